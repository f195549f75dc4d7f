// Shelves of the live engine: longer rows

#include "engine/shelf.hpp"

namespace sash::engine {

std::unique_ptr<Shelf> make_long_shelf(const Record& record, Form form) { return fitting<Time, 8, 12, 24, 48, 144>(record, form); }

}  // namespace sash::engine
