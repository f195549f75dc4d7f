// A key column out of Arrow's C data interface: two structs whose layout is fixed, and a type written as a few letters

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "keys.hpp"

namespace sash::engine {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

inline KeyColumn key_column(const ArrowSchema& schema, const ArrowArray& array) {
  KeyColumn column;
  std::string format = schema.format;
  auto fixed = [&](std::size_t width) {
    column.kind = KeyColumn::fixed;
    column.width = width;
  };
  char first = format[0];
  if (format == "b") {
    column.kind = KeyColumn::bits;
  } else if (format == "c" || format == "C") {
    fixed(1);
  } else if (format == "s" || format == "S") {
    fixed(2);
  } else if (format == "i" || format == "I" || format == "tdD" || format == "tts" || format == "ttm") {
    fixed(4);
  } else if (format == "l" || format == "L" || format == "tdm" || format == "ttu" || format == "ttn" || format.starts_with("ts") ||
             format.starts_with("tD")) {
    fixed(8);
  } else if (format == "f") {
    column.kind = KeyColumn::real32;
  } else if (format == "g") {
    column.kind = KeyColumn::real64;
  } else if (format == "u" || format == "z") {
    column.kind = KeyColumn::text32;
  } else if (format == "U" || format == "Z") {
    column.kind = KeyColumn::text64;
  } else if (first == 'w') {
    fixed(std::stoul(format.substr(2)));
  } else if (first == 'd') {
    auto comma = format.rfind(',');
    bool sized = std::count(format.begin(), format.end(), ',') == 2;
    fixed(sized ? std::stoul(format.substr(comma + 1)) / 8 : 16);
  } else {
    throw std::invalid_argument("a column of Arrow format " + format + " can't be a key. Use numbers, text, binary, dates or times.");
  }
  column.validity = array.null_count == 0 ? nullptr : static_cast<const std::uint8_t*>(array.buffers[0]);
  column.offset = array.offset;
  bool text = column.kind == KeyColumn::text32 || column.kind == KeyColumn::text64;
  if (text) column.offsets = static_cast<const char*>(array.buffers[1]);
  column.data = static_cast<const char*>(array.buffers[text ? 2 : 1]);
  return column;
}

}  // namespace sash::engine
