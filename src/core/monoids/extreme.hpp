// min, max, minmax, relvar: partials that keep the extremes
//
// Absence is a flag, not a sentinel: every int64 and every double is a value a window may hold. NaN is
// larger than any number, as in Spark. Of equal values the older stays.

#pragma once

#include <limits>
#include <type_traits>

#include "../kernel.hpp"

namespace sash {

// No branch: where the extreme changes often, a mispredicted one costs more than both comparisons.
template <class T>
inline bool less_than(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return !(a >= b) & (a == a);
  return a < b;
}

enum class Wants { least, greatest };

// Whether `b` would replace an older `a`.
template <Wants wants, class T>
inline bool beats(T b, T a) {
  return wants == Wants::greatest ? less_than(a, b) : less_than(b, a);
}

// The winner of an older `a` and `b`. Written so that a float64 costs one maxsd or minsd and one test for NaN.
template <Wants wants, class T>
inline T winner(T a, T b) {
  if constexpr (wants == Wants::greatest) {
    T v = b > a ? b : a;
    return b == b ? v : b;
  } else {
    T v = b < a ? b : a;
    return a == a ? v : b;
  }
}

// The value that beats none: the absent partial carries it, so that combine need not look at the flag.
template <Wants wants, class T>
inline constexpr T loser = [] {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) return wants == Wants::greatest ? -Limits::infinity() : Limits::quiet_NaN();
  return wants == Wants::greatest ? Limits::min() : Limits::max();
}();

// Here and below, partials are chosen field by field and not whole: a whole one is copied at once just after its
// fields were stored one by one, and the processor waits for the stores (max in DABA Lite: 71 million rounds/s whole, 155 by field).
template <class T, Wants wants>
struct Extreme {
  using Input = T;
  struct Partial {
    T value;
    std::int64_t present;
  };
  using Promoted = Extreme<double, wants>;
  static constexpr bool commutative = true;

  Partial identity() const { return {loser<wants, T>, 0}; }
  Partial lift(Input x, Time) const { return {x, 1}; }
  bool keeps_left(const Partial& a, const Partial& b) const { return !beats<wants>(b.value, a.value) & (a.present >= b.present); }
  Partial combine(const Partial& a, const Partial& b) const { return {winner<wants>(a.value, b.value), a.present | b.present}; }
  Scalar lower(Lower, const Partial& p) const { return p.present ? Scalar::of(p.value) : Scalar{}; }
  static auto promote(const Partial& p) { return p.present ? Promoted{}.lift(static_cast<double>(p.value), 0) : Promoted{}.identity(); }
};

template <class T>
using Min = Extreme<T, Wants::least>;
template <class T>
using Max = Extreme<T, Wants::greatest>;

}  // namespace sash
