// Whole arrays at once
//
//   by count   the block form of Two-Stacks (van Herk; Gil and Werman): blocks of the window's size, suffix
//              combinations of one block, prefix combinations of the next; a result is one suffix and one prefix.
//              Three combines per item, no branch, no queue.
//
//                 block b - 1            block b
//              | x x x [s s s s s s | p p p] x x x x x |      result = suffix ⊗ prefix
//
//   by time    Two-Stacks Lite on the array itself: the suffixes are made anew where a flip would be.
//   arrival    any order: an out-of-order window follows the largest time seen so far.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "../kernel.hpp"
#include "../monoids/extreme.hpp"
#include "../monoids/sum.hpp"

namespace sash {

// The extreme of a window that is never empty: the value alone, and an identity that any value replaces.
// Without NaN a combine is one instruction; with it, NaN is the largest, and a comparison with it is false.
template <class T, Wants wants, bool with_nan>
struct DenseExtreme {
  using Input = T;
  using Partial = T;
  static constexpr bool commutative = true;
  static constexpr bool plain = true;  // the partial is the result

  Partial identity() const {
    if constexpr (wants == Wants::greatest)
      return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    else if constexpr (with_nan)
      return std::numeric_limits<T>::quiet_NaN();
    else
      return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  Partial lift(Input x, Time) const { return x; }
  Partial combine(T a, T b) const {
    if constexpr (wants == Wants::greatest && with_nan) return a >= b || a != a ? a : b;
    if constexpr (wants == Wants::greatest) return a > b ? a : b;
    if constexpr (with_nan) return a <= b || b != b ? a : b;
    return a < b ? a : b;
  }
  Scalar lower(Lower, T p) const { return Scalar::of(p); }
};

// A sum whose partial is the result.
struct DenseSum : Sum<double> {
  static constexpr bool plain = true;
};

enum class Closed : std::uint8_t { right, left, both, neither };

constexpr bool holds_start(Closed c) { return c == Closed::left || c == Closed::both; }
constexpr bool holds_end(Closed c) { return c == Closed::right || c == Closed::both; }

// read(i) gives the partial of item i; emit(i, partial, count) takes the result of the window that ends there. Windows that end in
// [from, n) are asked for; from is a multiple of size, so that results are the same however an array is cut.
//
// A block's prefixes go up while its suffixes come down: each chain waits for its own last combine, and one after the other they
// took twice as long. A suffix goes where the one just used was, so that they fill the array from its other end in every
// other block.
template <Monoid M, class Read, class Emit>
void slide_by_count(const M& monoid, std::size_t from, std::size_t n, std::size_t size, Read read, Emit emit) {
  using Partial = typename M::Partial;
  std::vector<Partial> suffixes(std::min(size, n) + 1, monoid.identity());  // from 1 on: a step down may end before them
  auto block = [&](std::size_t begin, Partial* slot, std::ptrdiff_t step, auto window) {
    std::size_t m = std::min(size, n - begin);
    Partial prefix = read(begin), suffix = read(begin + m - 1);
    for (std::size_t k = 0; k + 1 < m; ++k, slot += step) {
      window(begin + k, *slot, prefix);
      *slot = suffix;
      prefix = monoid.combine(prefix, read(begin + k + 1));
      suffix = monoid.combine(read(begin + m - 2 - k), suffix);
    }
    if (m < size)
      window(begin + m - 1, *slot, prefix);
    else if (begin >= from)
      emit(begin + m - 1, prefix, m);
  };
  bool up = true;
  for (std::size_t begin = from < size ? 0 : from - size; begin < n; begin += size, up = !up) {
    Partial* slot = suffixes.data() + (up ? 1 : size - 1);
    std::ptrdiff_t step = up ? 1 : -1;
    if (begin < from)
      block(begin, slot, step, [](std::size_t, const Partial&, const Partial&) {});
    else if (begin == 0)
      block(begin, slot, step, [&](std::size_t i, const Partial&, const Partial& prefix) { emit(i, prefix, i + 1); });
    else
      block(begin, slot, step,
            [&](std::size_t i, const Partial& before, const Partial& prefix) { emit(i, monoid.combine(before, prefix), size); });
  }
}

// Two pointers over times that do not decrease: [lo, hi) are the items of the window of item i.
template <class T>
class TimeSpan {
 public:
  TimeSpan(const T* times, std::size_t n, T period, Closed closed) : times_(times), n_(n), period_(period), closed_(closed) {}

  // hi for the window that ends at item i: items with an equal time count too where the end is closed.
  std::size_t reach(std::size_t i, std::size_t hi) const {
    T t = times_[i];
    if (holds_end(closed_))
      while (hi < n_ && times_[hi] <= t) ++hi;
    else
      while (hi < n_ && times_[hi] < t) ++hi;
    return hi;
  }
  std::size_t leave(std::size_t i, std::size_t lo, std::size_t hi) const {
    if constexpr (std::is_integral_v<T>)
      if (times_[i] < std::numeric_limits<T>::lowest() + period_) return lo;  // the window reaches back beyond all times
    T start = times_[i] - period_;
    if (holds_start(closed_))
      while (lo < hi && times_[lo] < start) ++lo;
    else
      while (lo < hi && times_[lo] <= start) ++lo;
    return lo;
  }

 private:
  const T* times_;
  std::size_t n_;
  T period_;
  Closed closed_;
};

// In one function with slide_by_count, where gcc runs out of inlining, it made 145 million sums/s instead of 195.
template <Monoid M, class T, class Read, class Emit>
[[gnu::noinline]] void slide_by_time(const M& monoid, const T* times, std::size_t n, T period, Closed closed, Read read, Emit emit) {
  using Partial = typename M::Partial;
  TimeSpan<T> span(times, n, period, closed);
  std::vector<Partial> ready;      // ready[j]: items base + j up to turn, combined
  std::size_t base = 0, turn = 0;  // items before turn are in ready, those from turn on in back
  Partial back = monoid.identity();
  for (std::size_t i = 0, lo = 0, hi = 0; i < n; ++i) {
    for (std::size_t stop = span.reach(i, hi); hi < stop; ++hi) back = monoid.combine(back, read(hi));
    lo = span.leave(i, lo, hi);
    if (lo > turn) {  // an item of back has left: turn
      std::size_t count = hi - lo;
      if (ready.size() < count) ready.resize(count, monoid.identity());
      if (count > 0) {
        Partial sum = read(hi - 1);
        ready[count - 1] = sum;
        for (std::size_t j = count - 1; j > 0; --j) {
          sum = monoid.combine(read(lo + j - 1), sum);
          ready[j - 1] = sum;
        }
      }
      base = lo;
      turn = hi;
      back = monoid.identity();
    }
    if (lo < turn)
      emit(i, hi > turn ? monoid.combine(ready[lo - base], back) : ready[lo - base], hi - lo);
    else
      emit(i, back, hi - lo);
  }
}

// Result i is the window that ends at the largest time up to item i. Window is an out-of-order one, keyed by time.
template <class Window, class Read, class Emit>
void slide_by_arrival(Window& window, const typename Window::Partial& nothing, const Time* times, std::size_t n, Time period, Closed closed,
                      Read read, Emit emit) {
  Time newest = std::numeric_limits<Time>::lowest();
  for (std::size_t i = 0; i < n; ++i) {
    Time t = times[i];
    bool moved = t > newest;
    if (moved) newest = t;
    // The newest time that is outside. A window that reaches back beyond all times has none.
    std::optional<Time> out;
    if (newest >= std::numeric_limits<Time>::lowest() + period) {
      Time start = newest - period;
      if (!holds_start(closed))
        out = start;
      else if (start > std::numeric_limits<Time>::lowest())
        out = start - 1;
    }
    if (!out || t > *out) window.insert(t, read(i));
    if (out && moved && window.size() > 0 && window.oldest() <= *out) window.bulk_evict(*out);
    if (holds_end(closed))
      emit(i, window.query(), window.size());
    else if (newest > std::numeric_limits<Time>::lowest())
      emit(i, window.query(std::numeric_limits<Time>::lowest(), newest - 1), window.size());
    else
      emit(i, nothing, 0);
  }
}

}  // namespace sash
