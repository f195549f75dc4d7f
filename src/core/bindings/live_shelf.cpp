// Shelves of the live engine: rows of up to 6 words

#include "engine/shelf.hpp"

namespace sash::engine {

std::unique_ptr<Shelf> make_shelf(const Record& record, bool apart, Form form) {
  if (apart) return make_apart_shelf(record, form);
  auto made = fitting<Time, 2, 3, 4, 6>(record, form);
  return made ? std::move(made) : make_long_shelf(record, form);
}

}  // namespace sash::engine
