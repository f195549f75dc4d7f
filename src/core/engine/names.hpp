// Keys of mixed types, numbered for good in the order they came
//
// encode_keys numbers the keys of one batch; here a number stays for as long as the structure lives. A key is written as
// bytes that tell its type, so that 1, "1" and (1,) are three keys:
//
//   n                        null
//   b | 1 byte               bool            i | 8 bytes   int64        f | 8 bytes   float64
//   s | length u32 | bytes   text, UTF-8     y | length u32 | bytes     binary
//   t | length u32 | values  a tuple of the above

#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keys.hpp"

namespace sash::engine {

class KeyNames {
 public:
  std::size_t size() const { return offsets_.size() - 1; }
  std::string_view name(std::size_t i) const { return std::string_view(bytes_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]); }
  std::size_t memory() const { return bytes_.capacity() + offsets_.capacity() * 8 + size() * 8 + numbers_.memory(); }

  std::optional<std::uint32_t> find(std::string_view key) const {
    return numbers_.find(hash_of(key.data(), key.size()), [&](std::uint32_t id) { return name(id) == key; });
  }

  std::uint32_t number(std::string_view key) {
    auto known = static_cast<std::uint32_t>(size());
    std::uint32_t id = numbers_.find_or_add(hash_of(key.data(), key.size()), [&](std::uint32_t other) { return name(other) == key; });
    if (id == known) {
      bytes_.append(key);
      offsets_.push_back(bytes_.size());
    }
    return id;
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> offsets_{0};
  Numbering numbers_;
};

// A key of a batch, as encode_keys writes it, in the form above. types: one letter per column.
inline void rename_key(std::string_view key, std::string_view types, bool as_tuple, std::string& out) {
  out.clear();
  if (as_tuple) {
    out.push_back('t');
    auto n = static_cast<std::uint32_t>(types.size());
    out.append(reinterpret_cast<const char*>(&n), 4);
  }
  for (char type : types) {
    bool there = key[0];
    key.remove_prefix(1);
    out.push_back(there ? type : 'n');
    if (!there) continue;
    std::size_t length = type == 'b' ? 1 : 8;
    if (type == 's' || type == 'y') {
      std::uint32_t n;
      std::memcpy(&n, key.data(), 4);
      length = 4 + n;
    }
    out.append(key.substr(0, length));
    key.remove_prefix(length);
  }
}

}  // namespace sash::engine
