// first and last: the order of the items is all that counts

#pragma once

#include "../kernel.hpp"

namespace sash {

enum class End { first, last };

template <class T, End end>
struct AtEnd {
  using Input = T;
  struct Partial {
    T value;
    std::int64_t present;
  };
  using Promoted = AtEnd<double, end>;

  Partial identity() const { return {T{}, 0}; }
  Partial lift(Input x, Time) const { return {x, 1}; }
  bool keeps_left(const Partial& a, const Partial& b) const { return end == End::first ? a.present || !b.present : !b.present; }
  Partial combine(const Partial& a, const Partial& b) const {
    return {keeps_left(a, b) ? a.value : b.value, a.present | b.present};  // by field: see Extreme
  }
  Scalar lower(Lower, const Partial& p) const { return p.present ? Scalar::of(p.value) : Scalar{}; }
  static auto promote(const Partial& p) { return typename Promoted::Partial{static_cast<double>(p.value), p.present}; }
};

template <class T>
using First = AtEnd<T, End::first>;
template <class T>
using Last = AtEnd<T, End::last>;

}  // namespace sash
