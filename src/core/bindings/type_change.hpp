// Item types that change with an item, and change back if that item does not go in

#pragma once

#include <optional>
#include <utility>

#include "foreign.hpp"
#include "items.hpp"

namespace sash {

// What a step replaces of a window or wheel before it puts its items in: the reader of items, which settles their types, and the
// structure, which is rebuilt on them. Unless the step is done, or broke the structure for good, both are put back.
template <class Structure>
class TypeChange {
 public:
  TypeChange(TypeChange*& current, ItemReader& items, Structure& structure, const std::string& broken)
      : current_(current), items_(items), structure_(structure), broken_(broken) {
    current_ = this;
    if (!items_.settled()) items_before_ = items_;
  }
  TypeChange(const TypeChange&) = delete;
  ~TypeChange() {
    current_ = nullptr;
    if (done_ || !broken_.empty()) return;
    if (items_before_) items_ = std::move(*items_before_);
    if (before_) structure_ = std::move(before_);
  }

  void replace(Structure next) {
    if (!items_before_) items_before_ = items_;
    if (!before_) before_ = std::move(structure_);
    structure_ = std::move(next);
  }
  void done() { done_ = true; }

 private:
  TypeChange*& current_;
  ItemReader& items_;
  Structure& structure_;
  const std::string& broken_;
  std::optional<ItemReader> items_before_;
  Structure before_;
  bool done_ = false;
};

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
