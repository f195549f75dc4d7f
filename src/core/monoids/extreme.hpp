// min, max, minmax, relvar: partials that keep the extremes
//
// Absence is a flag, not a sentinel: every int64 and every double is a value a window may hold. NaN is
// larger than any number, as in Spark. Of equal values the older stays.

#pragma once

#include <cmath>
#include <type_traits>

#include "../kernel.hpp"

namespace sash {

template <class T>
inline bool less_than(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || (std::isnan(b) && !std::isnan(a));
  return a < b;
}

enum class Wants { least, greatest };

template <class T, Wants wants>
struct Extreme {
  using Input = T;
  struct Partial {
    T value;
    bool present;
  };
  using Promoted = Extreme<double, wants>;
  static constexpr bool commutative = true;

  Partial identity() const { return {T{}, false}; }
  Partial lift(Input x, Time) const { return {x, true}; }
  bool keeps_left(const Partial& a, const Partial& b) const {
    if (!b.present) return true;
    if (!a.present) return false;
    return wants == Wants::greatest ? !less_than(a.value, b.value) : !less_than(b.value, a.value);
  }
  Partial combine(const Partial& a, const Partial& b) const { return keeps_left(a, b) ? a : b; }
  Scalar lower(Lower, const Partial& p) const { return p.present ? Scalar::of(p.value) : Scalar{}; }
  static auto promote(const Partial& p) { return typename Promoted::Partial{static_cast<double>(p.value), p.present}; }
};

template <class T>
using Min = Extreme<T, Wants::least>;
template <class T>
using Max = Extreme<T, Wants::greatest>;

}  // namespace sash
