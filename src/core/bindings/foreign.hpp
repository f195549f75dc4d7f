// Columns that are no columns of numbers, in a call with many rows
//
// They decide on the types of all its rows, also of those before their first item: row by row, numbers of other parts could come first.

#pragma once

#include <vector>

#include "items.hpp"

namespace sash {

// foreign: a truth value per part, or None, as sash.swag.columns.read tells.
template <class Become>
void settle_rows(ItemReader& items, nb::handle foreign, Become become) {
  if (foreign.is_none() || items.definition()->object) return;
  std::vector<Item::Kind> kinds;
  for (nb::handle part : foreign) kinds.push_back(nb::cast<bool>(part) ? Item::object : Item::null);
  items.settle(kinds, become);
}

}  // namespace sash
