// Ticks: time cut into grains
//
// A tick is the number of a grain since the epoch. Division rounds down, also before the epoch, so a grain is
// always [tick * grain, (tick + 1) * grain).

#pragma once

#include <bit>
#include <cstdint>

#include "../monoid.hpp"

namespace sash {

using Tick = std::int64_t;

inline std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return q - (a % b < 0);
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return q + (a % b > 0);
}

// n / d for 0 <= n < 2^63 by one multiplication and a shift: a hardware division per item would be half of
// the cost of an insert.
class Divider {
 public:
  explicit Divider(std::int64_t d) : d_(d), shift_(std::bit_width(static_cast<std::uint64_t>(d) - 1)) {
    magic_ = static_cast<std::uint64_t>((static_cast<unsigned __int128>(1) << (63 + shift_)) / static_cast<std::uint64_t>(d)) + 1;
  }

  // With m = 2^(63 + shift) / d rounded up, the error n * (m * d - 2^(63 + shift)) stays below 2^(63 + shift).
  std::int64_t operator()(std::int64_t n) const {
    auto product = static_cast<unsigned __int128>(static_cast<std::uint64_t>(n) << 1) * magic_;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(product >> 64) >> shift_);
  }
  std::int64_t up(std::int64_t n) const { return (*this)(n + d_ - 1); }
  std::int64_t divisor() const { return d_; }

 private:
  std::int64_t d_;
  int shift_;
  std::uint64_t magic_;
};

}  // namespace sash
