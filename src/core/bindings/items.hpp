// Items as Python gives them, and the item types that a structure must have to hold them
//
// The item type is settled by the first item that is not null. A float among integers promotes the part it belongs to, once;
// what is no number makes the whole a structure of Python objects, as long as it holds only nulls.

#pragma once

#include <string>
#include <vector>

#include "face.hpp"

namespace sash {

// Python's errors, looked up once.
[[noreturn]] void raise(const char* error, const std::string& message);

std::string text(nb::handle value);
bool is_null(nb::handle value);  // None, and what pandas has for it
const char* type_name(ItemType type);
Item item_of(nb::handle value);

// A column of items: numbers with an optional mask of nulls.
struct ItemColumn {
  ItemType type = ItemType::float64;
  const std::int64_t* ints = nullptr;
  const double* floats = nullptr;
  const std::uint8_t* nulls = nullptr;  // 1 where the item is null; may be absent
  std::size_t size = 0;

  Item operator[](std::size_t i) const {
    if (nulls && nulls[i]) return {};
    return type == ItemType::int64 ? Item::of(ints[i]) : Item::of(floats[i]);
  }
};

// The columns of one bulk insert, one per part, as sash.swag.columns.read gives them; holds on to the arrays.
struct ItemColumns {
  ItemColumns(nb::handle pairs, std::size_t rows);
  std::vector<ItemColumn> parts;
  std::vector<Item::Kind> kinds;

 private:
  std::vector<nb::object> alive_;
};

class ItemReader {
 public:
  // How a structure is rebuilt on other item types: which parts turn from int64 to float64; null: it holds only nulls.
  using Promoted = const std::vector<bool>*;

  ItemReader(nb::object aggregation, nb::object dtype, bool integers_only = false);

  const nb::object& aggregation() const { return aggregation_; }
  const DefinitionPtr& definition() const { return definition_; }
  std::string dtype() const;
  // Whether a result is one number.
  bool one_number() const;

  // The item that was read last: one entry per part, and itself, for Python callables.
  const std::vector<Item>& row() const { return row_; }
  const nb::object& value() const { return value_; }

  // Reads an item. Where that changes the types, become(next, promoted) is called first.
  template <class Become>
  void read(nb::handle value, Become become) {
    if (!take(value)) settle(kinds(), become);
  }

  // Settles the types for items of these kinds, one per part.
  template <class Become>
  void settle(const std::vector<Item::Kind>& kinds, Become become) {
    std::vector<bool> promoted;
    if (DefinitionPtr next = settled(kinds, promoted)) {
      become(next, promoted.empty() ? nullptr : &promoted);
      definition_ = std::move(next);
    }
    see(kinds);
  }

  DefinitionPtr define(const std::vector<ItemType>& types, bool object) const;

  // Types, and which parts have met an item: for bytes, and for a structure that takes over another's.
  nb::tuple state() const;
  bool settled() const {
    for (bool s : seen_)
      if (!s) return false;
    return true;
  }
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(aggregation_.ptr());
    Py_VISIT(value_.ptr());
    return definition_->traverse(visit, arg);
  }
  void forget() { value_ = nb::none(); }
  void restore(nb::handle state);
  void adopt(const ItemReader& other);

 private:
  bool take(nb::handle value);  // whether the types hold
  Item item(nb::handle value) const;
  nb::object plain_value(nb::handle value, const Item& read) const;
  std::vector<Item::Kind> kinds() const;
  DefinitionPtr settled(const std::vector<Item::Kind>& kinds, std::vector<bool>& promoted) const;  // null: as they are
  void see(const std::vector<Item::Kind>& kinds);

  nb::object aggregation_;
  DefinitionPtr definition_;
  std::vector<Item> row_;
  std::vector<bool> seen_;  // whether a part has met an item that is not null
  nb::object value_;
  bool plain_ = true;   // no column, no where, no parts: the item is the value
  bool typed_ = false;  // the types were given
  bool integers_only_ = false;
};

}  // namespace sash
