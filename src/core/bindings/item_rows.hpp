// The items of one call with many rows

#pragma once

#include <vector>

#include "items.hpp"

namespace sash {

// Columns that are no columns of numbers decide on the types of all rows, also of those before their first item: row by row, numbers
// of other parts could come first.
// foreign: a truth value per part, or None, as sash.swag.columns.read tells.
template <class Become>
void settle_rows(ItemReader& items, nb::handle foreign, Become become) {
  if (foreign.is_none() || items.definition()->object) return;
  std::vector<Item::Kind> kinds;
  for (nb::handle part : foreign) kinds.push_back(nb::cast<bool>(part) ? Item::object : Item::null);
  items.settle(kinds, become);
}

// The items of one bulk, all read before the first goes in, and the types that they need together.
struct ItemRows {
  std::vector<std::vector<Item>> rows;
  std::vector<nb::object> values;

  // become(definition, promoted) is called at most once, when all items are known to fit. What is late is not looked at.
  // foreign: which parts are of columns that are no numbers, as sash.swag.columns.read tells.
  template <class Become>
  void read(ItemReader& items, nb::handle list, nb::handle foreign, Become become, const std::vector<std::uint8_t>& late = {}) {
    ItemReader trial = items;
    std::vector<bool> promoted;
    bool blank = false;
    auto note = [&](const DefinitionPtr& next, ItemReader::Promoted parts) {
      if (!parts) {
        blank = true;
        return;
      }
      promoted.resize(next->types.size(), false);
      for (std::size_t i = 0; i < parts->size(); ++i)
        if ((*parts)[i]) promoted[i] = true;
    };
    settle_rows(trial, foreign, note);
    for (nb::handle value : list) {
      if (!late.empty() && late[rows.size()]) {
        rows.emplace_back();
        values.emplace_back();
        continue;
      }
      trial.read(value, note);
      rows.push_back(trial.row());
      values.push_back(trial.value());
    }
    if (trial.definition() != items.definition()) become(trial.definition(), blank ? nullptr : &promoted);
    items = std::move(trial);
  }

  // Whether all items are null.
  bool blank() const {
    for (auto& row : rows)
      if (row.size() > 1 || (row.size() == 1 && row[0].kind != Item::null)) return false;
    return true;
  }
};

}  // namespace sash
