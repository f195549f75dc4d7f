// Variance and standard deviation over whole arrays, without a division per combine
//
// Sums of (x - p) and (x - p)^2 add up, where p is an item that every window they are used for holds: the first of a block, or the
// one before a turn. With m the mean and M2 the sum of squared deviations, n (m - p)^2 <= (n - 1) M2, since p is an item itself, so
// that M2 = S2 - S1^2 / n loses a factor of n at worst and little as a rule, wherever the values lie: nothing that has left a window
// was ever in its sums. (Combined as means and deviations, which divide, std ran at a third of this.)
//
//                 block b - 1          p    block b
//              | x x x [s s s s s s | p p p] x x x x x |      both sides are taken from p
//
// By count they are scans (scans.hpp); by time they follow here.

#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "slide.hpp"

namespace sash {

struct Shifted {
  double s1 = 0, s2 = 0;

  void add(double y) {
    s1 += y;
    s2 += y * y;
  }
};

// The variance of so many items, or its root.
template <bool root>
double deviation(const Shifted& sum, std::size_t count) {
  if (count < 2) return std::numeric_limits<double>::quiet_NaN();
  auto n = static_cast<double>(count);
  double variance = (sum.s2 * n - sum.s1 * sum.s1) / (n * (n - 1));
  variance = variance < 0 ? 0 : variance;
  return root ? std::sqrt(variance) : variance;
}

template <bool root, class Input, class T>
void deviations_by_time(const Input* x, const T* times, std::size_t n, T period, Closed closed, double* out) {
  TimeSpan<T> span(times, n, period, closed);
  std::vector<Shifted> ready;      // ready[j]: items base + j up to turn
  std::size_t base = 0, turn = 0;  // items before turn are in ready, those from turn on in back
  double p = 0;
  Shifted back;
  auto value = [x](std::size_t i) { return static_cast<double>(x[i]); };
  for (std::size_t i = 0, lo = 0, hi = 0; i < n; ++i) {
    for (std::size_t stop = span.reach(i, hi); hi < stop; ++hi) back.add(value(hi) - p);
    lo = span.leave(i, lo, hi);
    if (lo >= turn) {  // the item before the turn has left: turn, around the youngest
      std::size_t count = hi - lo;
      if (ready.size() < count) ready.resize(count);
      p = hi > 0 ? value(hi - 1) : 0;
      Shifted sum;
      for (std::size_t j = count; j > 0; --j) {
        sum.add(value(lo + j - 1) - p);
        ready[j - 1] = sum;
      }
      base = lo;
      turn = hi;
      back = {};
    }
    Shifted whole = back;
    if (lo < turn) whole = {ready[lo - base].s1 + back.s1, ready[lo - base].s2 + back.s2};
    out[i] = deviation<root>(whole, hi - lo);
  }
}

}  // namespace sash
