// Sums, means and deviations of windows of so many items, over whole columns of doubles, four lanes at a time
//
//   narrow   every window anew, four windows side by side: no chain of sums to wait for
//   wide     the block form of Two-Stacks (slide.hpp). Its prefixes and suffixes are sums up to a place: a scan, which four lanes do
//            in two shifts and two sums, and one more sum from one four to the next. Suffixes are made stretch by stretch, just before
//            they are used, from the sums of the stretches behind: they stay in the nearest cache.
//
//                 block b - 1             block b
//              |   k-1  |   k   | k+1 |   k-1  |   k   | k+1 |      stretch k: suffixes of [k] in block b - 1, and behind[k + 1],
//                        [s s s | ... |         p p p]                         then prefixes and results of [k] in block b
//
// The compiler makes each loop twice, for any x86-64 and for AVX2, and the loader chooses. Both give the same bits: neither fuses a
// product with a sum. Nothing is ever subtracted from a sum.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define SASH_CLONES __attribute__((target_clones("default", "avx2")))
#else
#define SASH_CLONES
#endif
#define SASH_INLINE __attribute__((always_inline)) inline

#pragma GCC diagnostic ignored "-Wpsabi"  // how four lanes are handed over does not matter: all is inlined

namespace sash::scans {

using Four = double __attribute__((vector_size(32), aligned(8), may_alias));

SASH_INLINE Four all(double x) { return Four{x, x, x, x}; }
SASH_INLINE Four load(const double* p) { return *reinterpret_cast<const Four*>(p); }
SASH_INLINE void store(double* p, const Four& v) { *reinterpret_cast<Four*>(p) = v; }

// What a sum starts from: x + -0.0 is x, of -0.0 too.
inline constexpr double none = -0.0;

// The sums of the lanes up to each, and from each on.
SASH_INLINE Four up(Four v) {
  const Four nothing = all(none);
  v += __builtin_shufflevector(v, nothing, 4, 0, 1, 2);
  return v + __builtin_shufflevector(v, nothing, 4, 4, 0, 1);
}
SASH_INLINE Four down(Four v) {
  const Four nothing = all(none);
  v += __builtin_shufflevector(v, nothing, 1, 2, 3, 4);
  return v + __builtin_shufflevector(v, nothing, 2, 3, 4, 4);
}

// What is summed up, and what becomes of the sums of a window of n items. Lanes is double or Four.
struct Sums {
  static constexpr int parts = 1;
  static constexpr bool pivots = false;
  template <class Lanes>
  SASH_INLINE void terms(Lanes x, Lanes, Lanes* to) const {
    to[0] = x;
  }
  template <class Lanes>
  SASH_INLINE Lanes result(const Lanes* s) const {
    return s[0];
  }
  SASH_INLINE double growing(const double* s, double) const { return s[0]; }
};

struct Means : Sums {
  explicit Means(double n) : n_(n) {}
  template <class Lanes>
  SASH_INLINE Lanes result(const Lanes* s) const {
    return s[0] / n_;
  }
  SASH_INLINE double growing(const double* s, double n) const { return s[0] / n; }
  double n_;
};

// Sums of (x - p) and (x - p)^2, p an item of the window: see deviations.hpp.
template <bool root>
struct Deviations {
  static constexpr int parts = 2;
  static constexpr bool pivots = true;
  explicit Deviations(double n) : n_(n), scale_(1 / (n * (n - 1))) {}
  template <class Lanes>
  SASH_INLINE void terms(Lanes x, Lanes p, Lanes* to) const {
    to[0] = x - p;
    to[1] = to[0] * to[0];
  }
  SASH_INLINE double result(const double* s) const { return of(s, n_, scale_); }
  SASH_INLINE Four result(const Four* s) const {
    Four v = (s[1] * n_ - s[0] * s[0]) * scale_;
    v = v < 0.0 ? all(0.0) : v;
    if constexpr (root)
      for (int k = 0; k < 4; ++k) v[k] = __builtin_sqrt(v[k]);
    return v;
  }
  SASH_INLINE double growing(const double* s, double n) const {
    return n < 2 ? std::numeric_limits<double>::quiet_NaN() : of(s, n, 1 / (n * (n - 1)));
  }
  SASH_INLINE static double of(const double* s, double n, double scale) {
    double v = (s[1] * n - s[0] * s[0]) * scale;
    v = v < 0 ? 0 : v;
    return root ? __builtin_sqrt(v) : v;
  }
  double n_, scale_;
};

inline constexpr std::size_t narrow = 15, stretch = 256;

// Windows that grow to their size: those that end in [0, m) of x.
template <class Kind>
SASH_INLINE void grow(const Kind& kind, const double* x, std::size_t m, double* out) {
  double sum[2] = {none, none}, term[2];
  for (std::size_t i = 0; i < m; ++i) {
    kind.terms(x[i], x[0], term);
    for (int c = 0; c < Kind::parts; ++c) sum[c] += term[c];
    out[i] = kind.growing(sum, static_cast<double>(i + 1));
  }
}

// Every window by itself; those that end in [from, to), from >= size - 1.
template <class Kind>
SASH_INLINE void each(const Kind& kind, const double* x, std::size_t size, std::size_t from, std::size_t to, double* out) {
  auto window = [&](auto read, std::size_t i) __attribute__((always_inline)) {
    using Lanes = decltype(read(x));
    Lanes p = read(x + i), sum[2], term[2];
    kind.terms(read(x + i + 1 - size), p, sum);
    for (std::size_t k = size - 1; k-- > 0;) {
      kind.terms(read(x + i - k), p, term);
      for (int c = 0; c < Kind::parts; ++c) sum[c] += term[c];
    }
    return kind.result(sum);
  };
  std::size_t i = from;
  for (; i + 4 <= to; i += 4) store(out + i, window([](const double* at) __attribute__((always_inline)) { return load(at); }, i));
  for (; i < to; ++i) out[i] = window([](const double* at) __attribute__((always_inline)) { return *at; }, i);
}

// The sums of m items. Without a pivot they must be those that a block's own pass would have found, bit by bit.
template <class Kind>
SASH_INLINE void total(const Kind& kind, const double* x, std::size_t m, double p, double* sum) {
  std::size_t j = 0;
  for (int c = 0; c < Kind::parts; ++c) sum[c] = none;
  if constexpr (Kind::pivots) {
    Four sums[2][2] = {{all(none), all(none)}, {all(none), all(none)}}, term[2];
    for (; j + 8 <= m; j += 8)
      for (int h = 0; h < 2; ++h) {
        kind.terms(load(x + j + 4 * h), all(p), term);
        for (int c = 0; c < Kind::parts; ++c) sums[h][c] += term[c];
      }
    for (int c = 0; c < Kind::parts; ++c) {
      Four s = sums[0][c] + sums[1][c];
      sum[c] = (s[0] + s[1]) + (s[2] + s[3]);
    }
  } else {
    for (; j + 4 <= m; j += 4) sum[0] += up(load(x + j))[3];
  }
  for (double term[2]; j < m; ++j) {
    kind.terms(x[j], p, term);
    for (int c = 0; c < Kind::parts; ++c) sum[c] += term[c];
  }
}

// Windows that end in one block, whose first item is at x; it has m <= size items, and a whole block lies before it.
// totals: the sums of every stretch of that block, then of this one; those from a pivot are made anew, for this block has another.
template <class Kind>
SASH_INLINE void block(const Kind& kind, const double* x, std::size_t m, std::size_t size, double* totals, double* out) {
  constexpr int parts = Kind::parts;
  const double* before = x - size;
  double p = x[0];
  // A stretch is read from its end, which no processor foresees. Where blocks lie in memory, asking for the next one early made 10^6
  // items to a window run at 900 million a second instead of 510; where they lie in a cache it cost a tenth.
  bool far = size > std::size_t{1} << 16;
  std::size_t stretches = (size + stretch - 1) / stretch, used = (m + stretch - 1) / stretch;
  double rest[2] = {none, none};
  for (std::size_t k = stretches; k-- > 0;) {  // from here on, totals[k] is what lies behind stretch k
    double* sum = totals + parts * k;
    if (Kind::pivots && k > 0) total(kind, before + k * stretch, std::min(size - k * stretch, stretch), p, sum);
    for (int c = 0; c < parts; ++c) rest[c] = std::exchange(sum[c], rest[c]) + rest[c];
  }
  double suffix[parts][stretch + 4], earlier[2] = {none, none};  // of this block, before stretch k
  for (std::size_t k = 0; k < used; ++k) {
    const double* old = before + k * stretch;
    std::size_t length = std::min(size - k * stretch, stretch);
    double tail[2], sum[2] = {none, none};
    for (int c = 0; c < parts; ++c) suffix[c][length] = tail[c] = totals[parts * k + c] + earlier[c];
    std::size_t j = length;
    for (Four term[2]; j >= 4; j -= 4) {
      kind.terms(load(old + j - 4), all(p), term);
      for (int c = 0; c < parts; ++c) {
        Four s = down(term[c]);
        store(suffix[c] + j - 4, s + all(tail[c]));
        tail[c] += s[0];
      }
    }
    for (double term[2]; j > 0; --j) {
      kind.terms(old[j - 1], p, term);
      for (int c = 0; c < parts; ++c) suffix[c][j - 1] = tail[c] += term[c];
    }
    const double* now = x + k * stretch;
    double* results = out + k * stretch;
    std::size_t wanted = std::min(m - k * stretch, stretch);
    j = 0;
    for (Four term[2], whole[2]; j + 4 <= wanted; j += 4) {
      kind.terms(load(now + j), all(p), term);
      for (int c = 0; c < parts; ++c) {
        Four s = up(term[c]);
        whole[c] = load(suffix[c] + j + 1) + (s + all(sum[c]));
        sum[c] += s[3];
      }
      store(results + j, kind.result(whole));
      if (far) __builtin_prefetch(old + stretch + j);
    }
    for (double term[2], whole[2]; j < wanted; ++j) {
      kind.terms(now[j], p, term);
      for (int c = 0; c < parts; ++c) whole[c] = suffix[c][j + 1] + (sum[c] += term[c]);
      results[j] = kind.result(whole);
    }
    for (int c = 0; c < parts; ++c) {
      totals[parts * k + c] = sum[c];
      earlier[c] += sum[c];
    }
  }
}

// Windows of `size` items that end in [from, to); from is a multiple of size, so that results are the same however a column is cut.
template <class Kind>
SASH_INLINE void slide(const Kind& kind, const double* x, std::size_t size, std::size_t from, std::size_t to, double* out) {
  std::size_t i = from;
  if (i == 0) {
    i = std::min(size, to);
    grow(kind, x, i, out);
  }
  if (size <= narrow) return each(kind, x, size, i, to, out);
  if (i >= to) return;
  std::vector<double> totals(Kind::parts * ((size + stretch - 1) / stretch));
  for (std::size_t k = 0; !Kind::pivots && k < totals.size(); ++k)
    total(kind, x + i - size + k * stretch, std::min(size - k * stretch, stretch), 0.0, &totals[k]);
  for (; i < to; i += size) block(kind, x + i, std::min(size, to - i), size, totals.data(), out + i);
}

}  // namespace sash::scans
