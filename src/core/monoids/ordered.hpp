// first and last: the order of the items is all that counts

#pragma once

#include "../kernel.hpp"
#include "extreme.hpp"

namespace sash {

enum class End { first, last };

// first and last of slices, which come in any order: the time decides, then the tie, then the value.
template <class T, End end>
struct AtEndOfTime {
  using Input = T;
  struct Partial {
    T value;
    Time time;
    std::int64_t tie;
    std::uint8_t rank;  // 0: nothing here, 1: no tie, which comes first, 2: a tie
  };
  static constexpr bool commutative = true;

  Partial identity() const { return {T{}, 0, 0, 0}; }
  Partial lift(Input x, Time t, std::int64_t tie, bool tied) const {
    return {x, t, tied ? tie : 0, static_cast<std::uint8_t>(tied ? 2 : 1)};
  }
  Partial lift(Input x, Time t) const { return lift(x, t, 0, false); }
  Partial combine(const Partial& a, const Partial& b) const {
    if (!a.rank || !b.rank) return a.rank ? a : b;
    return (end == End::first) == before(b, a) ? b : a;
  }
  Scalar lower(Lower, const Partial& p) const { return p.rank ? Scalar::of(p.value) : Scalar{}; }

 private:
  static bool before(const Partial& a, const Partial& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.tie != b.tie) return a.tie < b.tie;
    return less_than(a.value, b.value);
  }
};

template <class T, End end>
struct AtEnd {
  using Input = T;
  struct Partial {
    T value;
    std::int64_t present;
  };
  using Promoted = AtEnd<double, end>;
  using InSlices = AtEndOfTime<T, end>;

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
