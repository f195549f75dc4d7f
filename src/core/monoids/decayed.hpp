// ewma: the mean of items that lose half their weight in every half-life
//
// Weights are relative to the newest item, whose time the partial carries. So combine brings both arguments to the newer of
// their times, and its order does not matter.

#pragma once

#include <cmath>
#include <vector>

#include "../kernel.hpp"

namespace sash {

template <class T>
struct Ewma {
  using Input = T;
  struct Partial {
    double sum, weight;  // of no items, weight 0; else at least 1, the weight of the newest
    Time newest;
  };
  using Promoted = Ewma<double>;
  static constexpr bool commutative = true;
  static constexpr bool measures_time = true;

  explicit Ewma(const std::vector<double>& params) : half_life(params.at(0)) {}

  Partial identity() const { return {0, 0, 0}; }
  Partial lift(Input x, Time t) const { return {static_cast<double>(x), 1, t}; }
  Partial combine(const Partial& a, const Partial& b) const {
    if (a.weight == 0 || b.weight == 0) return a.weight == 0 ? b : a;
    bool a_is_newer = a.newest > b.newest;
    const Partial &newer = a_is_newer ? a : b, &older = a_is_newer ? b : a;
    // Unsigned: two times may be further apart than an int64 reaches.
    std::uint64_t age = static_cast<std::uint64_t>(newer.newest) - static_cast<std::uint64_t>(older.newest);
    double left = std::exp2(-static_cast<double>(age) / half_life);
    if (left == 0) return newer;  // an infinity of no weight would be NaN
    return {newer.sum + left * older.sum, newer.weight + left * older.weight, newer.newest};
  }
  Scalar lower(Lower, const Partial& p) const { return p.weight == 0 ? Scalar{} : Scalar::of(p.sum / p.weight); }
  static auto promote(const Partial& p) { return typename Promoted::Partial{p.sum, p.weight, p.newest}; }

  double magnitude(const Partial& p) const { return finite(p.sum) + p.weight; }
  bool close(const Partial& a, const Partial& b, double scale) const {
    return a.newest == b.newest && close_to(a.sum, b.sum, scale) && close_to(a.weight, b.weight, scale);
  }

  double half_life;
};

}  // namespace sash
