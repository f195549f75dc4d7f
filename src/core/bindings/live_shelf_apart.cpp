// Shelves of the live engine: rows that stay apart

#include "engine/shelf.hpp"

namespace sash::engine {

std::unique_ptr<Shelf> make_apart_shelf(const Record& record, Form form) { return fitting<Place, 6, 16, 48, 144>(record, form); }

}  // namespace sash::engine
