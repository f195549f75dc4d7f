// Variance and standard deviation over whole arrays, without a division per combine
//
// Sums of (x - p) and (x - p)^2 add up, where p is an item that every window they are used for holds: the first of a block, or the
// one before a turn. With m the mean and M2 the sum of squared deviations, n (m - p)^2 <= (n - 1) M2, since p is an item itself, so
// that M2 = S2 - S1^2 / n loses a factor of n at worst and little as a rule, wherever the values lie: nothing that has left a window
// was ever in its sums. (Combined as means and deviations, which divide, std ran at a third of this.)
//
//                 block b - 1          p    block b
//              | x x x [s s s s s s | p p p] x x x x x |      both sides are taken from p

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

// The variance of n items, or its root; `scale` is 1 / (n (n - 1)).
template <bool root>
double deviation(double s1, double s2, double n, double scale) {
  double variance = (s2 * n - s1 * s1) * scale;
  variance = variance < 0 ? 0 : variance;
  return root ? std::sqrt(variance) : variance;
}

template <bool root>
double deviation(const Shifted& sum, std::size_t count) {
  if (count < 2) return std::numeric_limits<double>::quiet_NaN();
  auto n = static_cast<double>(count);
  return deviation<root>(sum.s1, sum.s2, n, 1 / (n * (n - 1)));
}

// Sums are made item after item; results of a stretch of them at once, which the compiler vectorises.
template <bool root, class Input>
void deviations_by_count(const Input* x, std::size_t n, std::size_t size, double* out) {
  constexpr std::size_t stretch = 512;
  double prefix1[stretch], prefix2[stretch];
  std::size_t stored = size < n ? size : n;
  std::vector<double> suffix1(stored + 1), suffix2(stored + 1);  // of the block before, by place in it; beyond its end nothing
  auto value = [x](std::size_t i) { return static_cast<double>(x[i]); };
  auto items = static_cast<double>(size);
  double scale = 1 / (items * (items - 1));
  for (std::size_t begin = 0; begin < n; begin += size) {
    std::size_t end = begin + size < n ? begin + size : n;
    double p = value(begin);
    Shifted sum;
    if (begin > 0)
      for (std::size_t j = size - 1; j > 0; --j) {
        sum.add(value(begin - size + j) - p);
        suffix1[j] = sum.s1;
        suffix2[j] = sum.s2;
      }
    sum = {};
    if (begin == 0 || size == 1) {  // windows that grow, and those of one item
      for (std::size_t i = begin; i < end; ++i) {
        sum.add(value(i) - p);
        out[i] = deviation<root>(sum, i - begin + 1);
      }
      continue;
    }
    for (std::size_t from = begin; from < end; from += stretch) {
      std::size_t count = from + stretch < end ? stretch : end - from;
      for (std::size_t j = 0; j < count; ++j) {
        sum.add(value(from + j) - p);
        prefix1[j] = sum.s1;
        prefix2[j] = sum.s2;
      }
      const double *before1 = &suffix1[from - begin + 1], *before2 = &suffix2[from - begin + 1];
      double* results = out + from;
      for (std::size_t j = 0; j < count; ++j) results[j] = deviation<root>(before1[j] + prefix1[j], before2[j] + prefix2[j], items, scale);
    }
  }
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
