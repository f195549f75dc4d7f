// count, sum, mean: partials that add up

#pragma once

#include <cmath>
#include <type_traits>

#include "../kernel.hpp"
#include "../wide.hpp"

namespace sash {

struct Count {
  using Input = std::int64_t;
  static constexpr bool looks_at_items = false;
  using Partial = std::int64_t;
  static constexpr bool commutative = true;

  Partial identity() const { return 0; }
  Partial lift(Input, Time) const { return 1; }
  Partial combine(Partial a, Partial b) const { return a + b; }
  Partial inverse(Partial whole, Partial oldest) const { return whole - oldest; }
  Scalar lower(Lower, Partial p) const { return Scalar::of(p); }
};

template <class T>
struct Sum;

template <>
struct Sum<double> {
  using Input = double;
  using Partial = double;
  static constexpr bool commutative = true;

  Partial identity() const { return 0.0; }
  Partial lift(Input x, Time) const { return x; }
  Partial combine(Partial a, Partial b) const { return a + b; }
  Partial inverse(Partial whole, Partial oldest) const { return whole - oldest; }
  bool removable(Partial p) const { return std::isfinite(p); }
  Scalar lower(Lower, Partial p) const { return Scalar::of(p); }
  double magnitude(Partial p) const { return finite(p); }
  bool close(Partial a, Partial b, double scale) const { return close_to(a, b, scale); }
};

// 128 bits: combine can't overflow before 2^64 items were added.
template <>
struct Sum<std::int64_t> {
  using Input = std::int64_t;
  using Partial = Wide;
  using Promoted = Sum<double>;
  static constexpr bool commutative = true;

  Partial identity() const { return 0; }
  Partial lift(Input x, Time) const { return x; }
  Partial combine(Partial a, Partial b) const { return a + b; }
  Partial inverse(Partial whole, Partial oldest) const { return whole - oldest; }
  Scalar lower(Lower, Partial p) const { return Scalar::of(p); }
  static double promote(Partial p) { return static_cast<double>(p); }
};

// A sum with its number of values: mean, and the sum that knows whether it is of nothing (Spark's).
template <class T>
struct Mean {
  using Input = T;
  using Total = typename Sum<T>::Partial;
  struct Partial {
    Total sum;
    std::int64_t count;
  };
  using Promoted = Mean<double>;
  static constexpr bool commutative = true;

  Partial identity() const { return {0, 0}; }
  Partial lift(Input x, Time) const { return {x, 1}; }
  Partial combine(const Partial& a, const Partial& b) const { return {a.sum + b.sum, a.count + b.count}; }
  Partial inverse(const Partial& whole, const Partial& oldest) const { return {whole.sum - oldest.sum, whole.count - oldest.count}; }
  bool removable(const Partial& p) const
    requires std::is_floating_point_v<Total>
  {
    return std::isfinite(p.sum);
  }
  double magnitude(const Partial& p) const
    requires std::is_floating_point_v<Total>
  {
    return finite(p.sum);
  }
  bool close(const Partial& a, const Partial& b, double scale) const
    requires std::is_floating_point_v<Total>
  {
    return a.count == b.count && close_to(a.sum, b.sum, scale);
  }
  Scalar lower(Lower how, const Partial& p) const {
    if (how == Lower::count) return Scalar::of(p.count);
    if (p.count == 0) return {};
    if (how == Lower::sum_or_none) return Scalar::of(p.sum);
    return Scalar::of(static_cast<double>(p.sum) / static_cast<double>(p.count));
  }
  static auto promote(const Partial& p) { return typename Mean<double>::Partial{static_cast<double>(p.sum), p.count}; }
};

}  // namespace sash
