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

  Partial identity() const { return {T{}, T{}, 0}; }
  Partial lift(Input x, Time) const { return {x, x, 1}; }
  Partial combine(const Partial& a, const Partial& b) const {
    if (!b.present) return a;
    if (!a.present) return b;
    return {less_than(b.min, a.min) ? b.min : a.min, less_than(a.max, b.max) ? b.max : a.max, 1};
  }
  Scalar lower(Lower how, const Partial& p) const {
    if (!p.present) return {};
    if (how == Lower::min) return Scalar::of(p.min);
    if (how == Lower::max) return Scalar::of(p.max);
    auto low = static_cast<double>(p.min), high = static_cast<double>(p.max);
    return Scalar::of((high - low) / high);
  }
  static auto promote(const Partial& p) {
    return typename Promoted::Partial{static_cast<double>(p.min), static_cast<double>(p.max), p.present};
  }
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

  Partial identity() const { return {T{}, 0, 0}; }
  Partial lift(Input x, Time t) const { return {x, t, 1}; }
  bool keeps_left(const Partial& a, const Partial& b) const {
    if (!b.present) return true;
    if (!a.present) return false;
    return wants == Wants::greatest ? !less_than(a.value, b.value) : !less_than(b.value, a.value);
  }
  Partial combine(const Partial& a, const Partial& b) const { return keeps_left(a, b) ? a : b; }
  Scalar lower(Lower how, const Partial& p) const {
    if (!p.present) return {};
    return how == Lower::value ? Scalar::of(p.value) : Scalar::of(static_cast<std::int64_t>(p.time));
  }
  static auto promote(const Partial& p) { return typename Promoted::Partial{static_cast<double>(p.value), p.time, p.present}; }
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

  Partial identity() const { return {T{}, 0}; }
  Partial lift(Input x, Time) const { return {x, 1}; }
  Partial combine(const Partial& a, const Partial& b) const {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    bool worse = wants == Wants::greatest ? less_than(a.value, b.value) : less_than(b.value, a.value);
    bool better = wants == Wants::greatest ? less_than(b.value, a.value) : less_than(a.value, b.value);
    if (worse) return b;
    if (better) return a;
    return {a.value, a.count + b.count};
  }
  Scalar lower(Lower, const Partial& p) const { return p.count ? Scalar::of(p.count) : Scalar{}; }
  static auto promote(const Partial& p) { return typename Promoted::Partial{static_cast<double>(p.value), p.count}; }
};

template <class T>
using MinCount = ExtremeCount<T, Wants::least>;
template <class T>
using MaxCount = ExtremeCount<T, Wants::greatest>;

}  // namespace sash
