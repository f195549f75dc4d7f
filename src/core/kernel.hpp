// A monoid together with what goes in and what comes out
//
// A kernel is the native form of an aggregation on one item type: lift(item, time) gives a partial, and
// lower(how, partial) one number of its result. `how` is chosen at run time, so that aggregations that
// store the same partial share one instantiation (mean and sum, var and std). A result with several
// fields is lowered once per field.

#pragma once

#include <cmath>
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

// Partials of floats depend on the order of their combines by rounding. A kernel of such partials has magnitude(p), and
// close(a, b, scale): whether rounding alone may tell a from b, where scale is the sum of the magnitudes of all that was combined.
template <class K>
concept Rounding = Kernel<K> && requires(const K k, const typename K::Partial& p) {
  { k.magnitude(p) } -> std::convertible_to<double>;
  { k.close(p, p, 1.0) } -> std::convertible_to<bool>;
};

inline double finite(double x) { return std::isfinite(x) ? std::abs(x) : 0; }
inline bool close_to(double a, double b, double scale) {
  if (!std::isfinite(scale)) return true;  // one order of the combines may have left the range of a double, and another not
  if (!std::isfinite(a) || !std::isfinite(b)) return a == b || (std::isnan(a) && std::isnan(b));
  return std::abs(a - b) <= 1e-9 * scale;
}
// Of floats that may be anything: sums, powers of sums, products.
inline bool loosely_close(double a, double b, double scale) {
  if (!std::isfinite(a) || !std::isfinite(b)) return true;
  double square = scale * scale;
  return close_to(a, b, 1e3 * (1 + std::abs(a) + std::abs(b) + scale + square + square * square));
}

}  // namespace sash
