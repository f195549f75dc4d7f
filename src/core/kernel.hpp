// A monoid together with what goes in and what comes out
//
// A kernel is the native form of an aggregation on one item type: lift(item, time) gives a partial, and
// lower(how, partial) one number of its result. `how` is chosen at run time, so that aggregations that
// store the same partial share one instantiation (mean and sum, var and std). A result with several
// fields is lowered once per field.

#pragma once

#include <cstdint>

#include "monoid.hpp"

namespace sash {

// One lowered number. `none` is the empty result of the design: None in Python, null in Spark.
struct Scalar {
  enum Kind : std::uint8_t { none, integer, real, truth, overflow };
  Kind kind = none;
  union {
    std::int64_t i;
    double f;
  };

  Scalar() : i(0) {}
  static Scalar of(std::int64_t value) {
    Scalar s;
    s.kind = integer;
    s.i = value;
    return s;
  }
  static Scalar of(double value) {
    Scalar s;
    s.kind = real;
    s.f = value;
    return s;
  }
  static Scalar of(bool value) {
    Scalar s;
    s.kind = truth;
    s.i = value;
    return s;
  }
  // Sums of integers keep 128 bits; only here, at the end, can one not fit.
  static Scalar of(__int128 value) {
    if (value > INT64_MAX || value < INT64_MIN) {
      Scalar s;
      s.kind = overflow;
      return s;
    }
    return of(static_cast<std::int64_t>(value));
  }
};

enum class Lower : std::uint8_t {
  count,
  sum,
  sum_or_none,  // Spark's sum: of no value, nothing
  mean,
  value,
  min,
  max,
  relvar,
  time,
  var,
  std_dev,
  skew,
  kurtosis,
  geomean,
  product,
  any,
  all,
  bits
};

template <class K>
concept Kernel = Monoid<K> && requires(const K k, typename K::Input x, Time t, Lower how, const typename K::Partial& p) {
  typename K::Input;
  { k.lift(x, t) } -> std::convertible_to<typename K::Partial>;
  { k.lower(how, p) } -> std::convertible_to<Scalar>;
};

}  // namespace sash
