// minmax, relvar, argmin, argmax, mincount, maxcount: extremes with something beside them

#pragma once

#include "extreme.hpp"

namespace sash {

template <class T>
struct MinMax {
  using Input = T;
  struct Partial {
    T min, max;
    std::int64_t present;
  };
  using Promoted = MinMax<double>;
  static constexpr bool commutative = true;

  Partial identity() const { return {loser<Wants::least, T>, loser<Wants::greatest, T>, 0}; }
  Partial lift(Input x, Time) const { return {x, x, 1}; }
  Partial combine(const Partial& a, const Partial& b) const {
    return {winner<Wants::least>(a.min, b.min), winner<Wants::greatest>(a.max, b.max), a.present | b.present};
  }
  Scalar lower(Lower how, const Partial& p) const {
    if (!p.present) return {};
    if (how == Lower::min) return Scalar::of(p.min);
    if (how == Lower::max) return Scalar::of(p.max);
    auto low = static_cast<double>(p.min), high = static_cast<double>(p.max);
    return Scalar::of((high - low) / high);
  }
  static auto promote(const Partial& p) {
    return p.present ? typename Promoted::Partial{static_cast<double>(p.min), static_cast<double>(p.max), 1} : Promoted{}.identity();
  }
};

// The extreme with its time, of slices, which come in any order: of equal values the one with the oldest time.
template <class T, Wants wants>
struct TimeOfExtreme {
  using Input = T;
  struct Partial {
    T value;
    Time time;
    bool present;
  };
  static constexpr bool commutative = true;

  Partial identity() const { return {T{}, 0, false}; }
  Partial lift(Input x, Time t) const { return {x, t, true}; }
  Partial combine(const Partial& a, const Partial& b) const {
    if (!a.present || !b.present) return a.present ? a : b;
    bool a_less = less_than(a.value, b.value), b_less = less_than(b.value, a.value);
    if (a_less || b_less) return (wants == Wants::least) == a_less ? a : b;
    return b.time < a.time ? b : a;
  }
  Scalar lower(Lower, const Partial& p) const { return p.present ? Scalar::of(p.time) : Scalar{}; }
};

// The extreme with its time. Ties go to the left, so this one does not commute.
template <class T, Wants wants>
struct ArgExtreme {
  using Input = T;
  struct Partial {
    T value;
    Time time;
    std::int64_t present;
  };
  using Promoted = ArgExtreme<double, wants>;
  using InSlices = TimeOfExtreme<T, wants>;

  Partial identity() const { return {loser<wants, T>, 0, 0}; }
  Partial lift(Input x, Time t) const { return {x, t, 1}; }
  bool keeps_left(const Partial& a, const Partial& b) const { return !beats<wants>(b.value, a.value) & (a.present >= b.present); }
  Partial combine(const Partial& a, const Partial& b) const {
    bool left = keeps_left(a, b);
    return {left ? a.value : b.value, left ? a.time : b.time, a.present | b.present};
  }
  Scalar lower(Lower how, const Partial& p) const {
    if (!p.present) return {};
    return how == Lower::value ? Scalar::of(p.value) : Scalar::of(static_cast<std::int64_t>(p.time));
  }
  static auto promote(const Partial& p) {
    return p.present ? Promoted{}.lift(static_cast<double>(p.value), p.time) : Promoted{}.identity();
  }
};

template <class T>
using ArgMin = ArgExtreme<T, Wants::least>;
template <class T>
using ArgMax = ArgExtreme<T, Wants::greatest>;

// The extreme with how often it occurs; count 0 is the identity.
template <class T, Wants wants>
struct ExtremeCount {
  using Input = T;
  struct Partial {
    T value;
    std::int64_t count;
  };
  using Promoted = ExtremeCount<double, wants>;
  static constexpr bool commutative = true;

  Partial identity() const { return {loser<wants, T>, 0}; }
  Partial lift(Input x, Time) const { return {x, 1}; }
  Partial combine(const Partial& a, const Partial& b) const {
    bool right = beats<wants>(b.value, a.value), left = beats<wants>(a.value, b.value);
    return {winner<wants>(a.value, b.value), (right ? 0 : a.count) + (left ? 0 : b.count)};
  }
  Scalar lower(Lower, const Partial& p) const { return p.count ? Scalar::of(p.count) : Scalar{}; }
  static auto promote(const Partial& p) {
    return p.count ? typename Promoted::Partial{static_cast<double>(p.value), p.count} : Promoted{}.identity();
  }
};

template <class T>
using MinCount = ExtremeCount<T, Wants::least>;
template <class T>
using MaxCount = ExtremeCount<T, Wants::greatest>;

}  // namespace sash
