// 128 bits as two words
//
// What a sum of int64 is kept in. A struct of two words and not __int128: as a stored partial, gcc moves an
// __int128 through vector registers, loading at once what was just stored as two words, and the processor
// waits for the stores (DABA Lite: 77 million rounds/s with __int128, 155 with this).

#pragma once

#include <cstdint>

namespace sash {

struct Wide {
  std::uint64_t low;
  std::int64_t high;

  Wide() = default;
  constexpr Wide(std::int64_t n) : low(static_cast<std::uint64_t>(n)), high(n >> 63) {}
  constexpr Wide(int n) : Wide(static_cast<std::int64_t>(n)) {}
  constexpr Wide(__int128 n) : low(static_cast<std::uint64_t>(n)), high(static_cast<std::int64_t>(n >> 64)) {}
  constexpr operator __int128() const { return static_cast<__int128>(high) << 64 | low; }

  friend constexpr Wide operator+(Wide a, Wide b) {
    Wide sum;
    bool carry = __builtin_add_overflow(a.low, b.low, &sum.low);
    sum.high = static_cast<std::int64_t>(static_cast<std::uint64_t>(a.high) + static_cast<std::uint64_t>(b.high) + carry);
    return sum;
  }
  friend constexpr Wide operator-(Wide a, Wide b) {
    Wide rest;
    bool borrow = __builtin_sub_overflow(a.low, b.low, &rest.low);
    rest.high = static_cast<std::int64_t>(static_cast<std::uint64_t>(a.high) - static_cast<std::uint64_t>(b.high) - borrow);
    return rest;
  }
  friend constexpr bool operator==(Wide a, Wide b) { return a.low == b.low && a.high == b.high; }
};

}  // namespace sash
