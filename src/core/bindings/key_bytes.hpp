// A key of Python's as bytes and back: its type, then its value
//
// Equal bytes are equal keys: 1, 1.0 and True are three keys, every NaN is one, and so are 0.0 and -0.0.

#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace sash {

namespace nb = nanobind;

// A number as it lies in memory.
template <class T>
void append_bytes(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// TypeError for what can't be a key; a tuple is one, but not within another.
void write_key(nb::handle key, std::string& out, bool within = false);

// Reads one value off the front; ValueError where the bytes are damaged.
nb::object read_key(std::string_view& in);

}  // namespace sash
