// The keys of many rows as Python gives them: Arrow columns, a column of integers, or a list of Python keys

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "any_keyed_wheels.hpp"
#include "engine/arrow.hpp"
#include "engine/names.hpp"
#include "key_bytes.hpp"
#include "wheel_answers.hpp"

namespace sash {

using Ids = std::vector<std::uint32_t>;  // a number per row, for its key

// The keys of one call: columns, or what a list of Python keys has been turned into.
struct KeyInput {
  std::vector<engine::KeyColumn> columns;
  std::string types;  // one letter per column
  bool as_tuple = false;
  std::vector<nb::object> held;
  Ids ids;  // of a list: numbers of its own
  std::vector<std::string> names;

  // The keys of some rows: their numbers, and what each number stands for.
  std::pair<Ids, std::vector<std::string>> encode(std::size_t from, std::size_t n) const {
    std::pair<Ids, std::vector<std::string>> out;
    std::vector<engine::KeyColumn> part = columns;
    for (auto& column : part) column.offset += static_cast<std::int64_t>(from);
    engine::Encoded encoded = engine::encode_keys(part, n);
    out.first.assign(encoded.ids.begin(), encoded.ids.end());
    out.second.resize(encoded.keys.size());
    for (std::size_t i = 0; i < out.second.size(); ++i) engine::rename_key(encoded.keys.key(i), types, as_tuple, out.second[i]);
    return out;
  }
};

inline KeyInput read_keys(nb::object keys, bool as_tuple, std::size_t rows) {
  KeyInput out;
  out.as_tuple = as_tuple;
  auto check = [&](std::size_t n) {
    if (n != rows)
      raise("ValueError", "there are " + std::to_string(n) + " keys but " + std::to_string(rows) + " rows. Pass one key per row.");
  };
  if (nb::isinstance<nb::tuple>(keys)) {
    for (nb::handle column : keys) {
      out.types += nb::cast<std::string>(column[0]);
      nb::object pair = nb::object(column[1]).attr("__arrow_c_array__")();
      auto* schema = static_cast<engine::ArrowSchema*>(PyCapsule_GetPointer(nb::object(pair[0]).ptr(), "arrow_schema"));
      auto* array = static_cast<engine::ArrowArray*>(PyCapsule_GetPointer(nb::object(pair[1]).ptr(), "arrow_array"));
      if (!schema || !array) throw nb::python_error();
      check(static_cast<std::size_t>(array->length));
      out.columns.push_back(engine::key_column(*schema, *array));
      out.held.push_back(std::move(pair));
    }
  } else if (nb::isinstance<nb::list>(keys)) {
    auto list = nb::cast<nb::list>(keys);
    check(list.size());
    engine::KeyNames distinct;
    std::string name;
    for (nb::handle key : list) {
      name.clear();
      write_key(key, name);
      out.ids.push_back(distinct.number(name));
    }
    for (std::size_t i = 0; i < distinct.size(); ++i) out.names.emplace_back(distinct.name(i));
  } else {  // one column of integers
    auto ints = nb::cast<Times>(keys);
    check(ints.size());
    engine::KeyColumn column;
    column.kind = engine::KeyColumn::fixed;
    column.width = 8;
    column.data = reinterpret_cast<const char*>(ints.data());
    out.columns.push_back(column);
    out.types = "i";
    out.held.push_back(keys);
  }
  return out;
}

// Each row's key, as bytes.
inline std::vector<std::string> written(const KeyInput& input, std::size_t rows) {
  auto [ids, names] = input.columns.empty() ? std::pair(input.ids, input.names) : input.encode(0, rows);
  std::vector<std::string> out;
  for (auto id : ids) out.push_back(names[id]);
  return out;
}

}  // namespace sash
