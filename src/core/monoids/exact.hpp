// sum, mean, var, std with exact=True: sums of floats without rounding
//
// A sum is an integer: the number of 2^-1074, the smallest double, in 34 words of 64 bits, two's complement. Every double is such a
// number, and 2^63 of the largest add up to 2^1087 at most, so that nothing is ever rounded before the end, and adding is exact,
// associative and commutative to the bit. The result is that number rounded once, half to even, as math.fsum does.
//
//     word    0          1                                    33
//           | 2^-1074 ...| 2^-1010 ...|        ...       | ... sign |
//
// A partial takes 304 bytes for a sum and 568 for a variance, where the plain ones take 8 and 40. Infinite items and NaN are counted
// apart, so that they leave again with their items. Squares below 2^-1074 are cut off there: each costs a variance 2^-1074 at most.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../kernel.hpp"
#include "sum.hpp"

namespace sash {

using Wide128 = unsigned __int128;

struct ExactTotal {
  static constexpr int words = 34;
  static constexpr int unit = 1074;  // word 0 counts 2^-unit
  std::uint64_t word[words];

  friend ExactTotal operator+(const ExactTotal& a, const ExactTotal& b) {
    ExactTotal sum;
    std::uint64_t carry = 0;
    for (int i = 0; i < words; ++i) {
      Wide128 s = static_cast<Wide128>(a.word[i]) + b.word[i] + carry;
      sum.word[i] = static_cast<std::uint64_t>(s);
      carry = static_cast<std::uint64_t>(s >> 64);
    }
    return sum;
  }
  friend ExactTotal operator-(const ExactTotal& a, const ExactTotal& b) {
    ExactTotal rest;
    std::uint64_t borrow = 0;
    for (int i = 0; i < words; ++i) {
      Wide128 d = static_cast<Wide128>(a.word[i]) - b.word[i] - borrow;
      rest.word[i] = static_cast<std::uint64_t>(d);
      borrow = static_cast<std::uint64_t>(d >> 64) & 1;
    }
    return rest;
  }

  bool negative() const { return word[words - 1] >> 63; }
  ExactTotal magnitude() const { return negative() ? ExactTotal{} - *this : *this; }

  // n * 2^(shift - unit), signed.
  static ExactTotal of(Wide128 n, int shift, bool negative) {
    ExactTotal out{};
    auto at = static_cast<std::size_t>(shift / 64);
    int bits = shift % 64;
    out.word[at] = static_cast<std::uint64_t>(n << bits);
    out.word[at + 1] = static_cast<std::uint64_t>(n >> (64 - bits - (bits == 0)) >> (bits == 0));
    if (bits && at + 2 < words) out.word[at + 2] = static_cast<std::uint64_t>(n >> 64 >> (64 - bits));
    return negative ? ExactTotal{} - out : out;
  }
};

// A finite double as m * 2^(shift - 1074).
struct Parts {
  std::uint64_t m;
  int shift;
  bool negative;
  explicit Parts(double x) {
    auto bits = std::bit_cast<std::uint64_t>(x);
    int exponent = static_cast<int>(bits >> 52 & 0x7FF);
    m = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent) m |= std::uint64_t{1} << 52;
    shift = exponent ? exponent - 1 : 0;
    negative = bits >> 63;
  }
};

// Words, lowest first, times 2^unit, rounded to a double, half to even; `rest`: there is more below them.
inline double rounded(const std::uint64_t* word, int words, int unit, bool rest = false) {
  int top = words - 1;
  while (top >= 0 && word[top] == 0) --top;
  if (top < 0) return 0;
  int high = 64 * top + 63 - std::countl_zero(word[top]);  // the highest bit
  auto bit = [&](int i) { return i >= 0 && (word[i / 64] >> (i % 64) & 1); };
  if (high <= 52) {  // all of it fits, but for what is below
    std::uint64_t m = word[0];
    return std::ldexp(static_cast<double>(m), unit);
  }
  int low = high - 52;
  std::uint64_t m = word[low / 64] >> (low % 64);
  if (low % 64 && low / 64 + 1 < words) m |= word[low / 64 + 1] << (64 - low % 64);
  m &= (std::uint64_t{1} << 53) - 1;
  if (bit(low - 1)) {
    bool more = rest || (word[(low - 1) / 64] & ((std::uint64_t{1} << ((low - 1) % 64)) - 1)) != 0;
    for (int i = 0; !more && i < (low - 1) / 64; ++i) more = word[i] != 0;
    m += more || (m & 1);
  }
  return std::ldexp(static_cast<double>(m), low + unit);
}

inline double rounded(const ExactTotal& total, int less = 0) {
  ExactTotal size = total.magnitude();
  double x = rounded(size.word, ExactTotal::words, -ExactTotal::unit - less);
  return total.negative() ? -x : x;
}

template <class T>
struct ExactSum;

template <>
struct ExactSum<double> {
  using Input = double;
  struct Partial {
    ExactTotal total;  // of the finite items
    std::int64_t n, nans, up, down;
  };
  static constexpr bool commutative = true;

  Partial identity() const { return {}; }
  Partial lift(Input x, Time) const {
    Partial p{};
    p.n = 1;
    if (std::isfinite(x)) {
      Parts of(x);
      p.total = ExactTotal::of(of.m, of.shift, of.negative);
    } else {
      (std::isnan(x) ? p.nans : x > 0 ? p.up : p.down) = 1;
    }
    return p;
  }
  Partial lift_integer(std::int64_t x) const { return of(x, 1); }
  Partial combine(const Partial& a, const Partial& b) const {
    return {a.total + b.total, a.n + b.n, a.nans + b.nans, a.up + b.up, a.down + b.down};
  }
  Partial inverse(const Partial& w, const Partial& a) const {
    return {w.total - a.total, w.n - a.n, w.nans - a.nans, w.up - a.up, w.down - a.down};
  }
  Scalar lower(Lower how, const Partial& p) const {
    if (how == Lower::count) return Scalar::of(p.n);
    if (p.n == 0 && how != Lower::sum) return {};
    double sum = value(p);
    if (how != Lower::mean) return Scalar::of(sum);
    auto n = static_cast<double>(p.n);
    if (std::isinf(sum) && !p.up && !p.down)  // the sum is too large, not the mean
      return Scalar::of(std::ldexp(rounded(p.total, 64) / n, 64));
    return Scalar::of(sum / n);
  }

  static Partial of(__int128 sum, std::int64_t n) {
    Partial p{};
    bool negative = sum < 0;
    p.total = ExactTotal::of(negative ? -static_cast<Wide128>(sum) : static_cast<Wide128>(sum), ExactTotal::unit, negative);
    p.n = n;
    return p;
  }

 private:
  static double value(const Partial& p) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (p.nans || (p.up && p.down)) return std::numeric_limits<double>::quiet_NaN();
    return p.up ? infinity : p.down ? -infinity : rounded(p.total);
  }
};

// Integers are exact as they are; a float among them turns their sum into the form above, without rounding.
template <>
struct ExactSum<std::int64_t> : Mean<std::int64_t> {
  using Promoted = ExactSum<double>;
  Scalar lower(Lower how, const Partial& p) const {
    return how == Lower::sum ? Scalar::of(static_cast<__int128>(p.sum)) : Mean<std::int64_t>::lower(how, p);
  }
  static auto promote(const Partial& p) { return ExactSum<double>::of(p.sum, p.count); }
};

// n, the sum and the sum of squares; the variance is of their exact difference, rounded once.
template <class T>
struct ExactMoments {
  using Input = T;
  struct Partial {
    ExactTotal sum, squares;
    std::int64_t n, strange, large;  // NaN and infinite items; items whose square is too large for a double
  };
  using Promoted = ExactMoments<double>;
  static constexpr bool commutative = true;

  Partial identity() const { return {}; }
  Partial lift(Input x, Time) const {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      return lift_integer(x);
    } else {
      Partial p{};
      p.n = 1;
      if (!std::isfinite(x)) {
        p.strange = 1;
      } else if (std::isinf(x * x)) {
        p.large = 1;
      } else {
        Parts of(x);
        p.sum = ExactTotal::of(of.m, of.shift, of.negative);
        auto square = static_cast<Wide128>(of.m) * of.m;
        int shift = 2 * of.shift - ExactTotal::unit;
        if (shift < 0) square = shift > -128 ? square >> -shift : 0;
        p.squares = ExactTotal::of(square, shift < 0 ? 0 : shift, false);
      }
      return p;
    }
  }
  Partial lift_integer(std::int64_t x) const {
    Partial p{};
    p.n = 1;
    std::uint64_t size = x < 0 ? -static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
    p.sum = ExactTotal::of(size, ExactTotal::unit, x < 0);
    p.squares = ExactTotal::of(static_cast<Wide128>(size) * size, ExactTotal::unit, false);
    return p;
  }
  Partial combine(const Partial& a, const Partial& b) const {
    return {a.sum + b.sum, a.squares + b.squares, a.n + b.n, a.strange + b.strange, a.large + b.large};
  }
  Partial inverse(const Partial& w, const Partial& a) const {
    return {w.sum - a.sum, w.squares - a.squares, w.n - a.n, w.strange - a.strange, w.large - a.large};
  }
  Scalar lower(Lower how, const Partial& p) const {
    if (p.n < 2) return {};
    double variance = p.strange ? std::numeric_limits<double>::quiet_NaN() : p.large ? std::numeric_limits<double>::infinity() : value(p);
    return Scalar::of(how == Lower::std_dev ? std::sqrt(variance) : variance);
  }
  static auto promote(const Partial& p) {
    typename Promoted::Partial out;
    out.sum = p.sum, out.squares = p.squares, out.n = p.n, out.strange = p.strange, out.large = p.large;
    return out;
  }

 private:
  // (n * squares - sum^2) / (n * (n - 1)), in words that count 2^-2148.
  static double value(const Partial& p) {
    constexpr int words = ExactTotal::words, twice = 2 * words;
    std::uint64_t top[twice] = {}, square[twice] = {};
    auto n = static_cast<std::uint64_t>(p.n);
    constexpr int skip = ExactTotal::unit / 64, bits = ExactTotal::unit % 64;
    std::uint64_t carry = 0, before = 0;
    for (int i = 0; i < words; ++i) {  // n * squares, moved up by the unit
      Wide128 product = static_cast<Wide128>(p.squares.word[i]) * n + carry;
      auto low = static_cast<std::uint64_t>(product);
      carry = static_cast<std::uint64_t>(product >> 64);
      top[i + skip] = low << bits | before >> (64 - bits);
      before = low;
    }
    top[words + skip] = carry << bits | before >> (64 - bits);
    top[words + skip + 1] = carry >> (64 - bits);
    ExactTotal size = p.sum.magnitude();
    int from = 0, to = words;  // the words that are not zero: few, as a rule
    while (from < to && size.word[from] == 0) ++from;
    while (to > from && size.word[to - 1] == 0) --to;
    for (int i = from; i < to; ++i) {
      std::uint64_t over = 0;
      for (int j = from; j < to; ++j) {
        Wide128 product = static_cast<Wide128>(size.word[i]) * size.word[j] + square[i + j] + over;
        square[i + j] = static_cast<std::uint64_t>(product);
        over = static_cast<std::uint64_t>(product >> 64);
      }
      square[i + to] = over;
    }
    std::uint64_t borrow = 0;
    for (int i = 0; i < twice; ++i) {
      Wide128 d = static_cast<Wide128>(top[i]) - square[i] - borrow;
      top[i] = static_cast<std::uint64_t>(d);
      borrow = static_cast<std::uint64_t>(d >> 64) & 1;
    }
    if (borrow) return 0;  // squares that were cut off

    // The highest 127 bits, divided by n (n - 1): at least 62 bits of a quotient, and whether there is more.
    int high = twice - 1;
    while (high >= 0 && top[high] == 0) --high;
    if (high < 0) return 0;
    int lowest = 64 * high + 63 - std::countl_zero(top[high]) - 126;  // may be below word 0
    auto word_at = [&](int bit) -> std::uint64_t {                    // 64 bits from there on
      if (bit <= -64) return 0;
      int at = bit < 0 ? -1 : bit / 64, by = bit - 64 * at;
      std::uint64_t low = at >= 0 ? top[at] : 0, next = at + 1 < twice ? top[at + 1] : 0;
      return by == 0 ? low : low >> by | next << (64 - by);
    };
    Wide128 number = static_cast<Wide128>(word_at(lowest + 64)) << 64 | word_at(lowest);
    bool rest = lowest > 0 && lowest % 64 && top[lowest / 64] << (64 - lowest % 64) != 0;
    for (int i = 0; !rest && i < lowest / 64; ++i) rest = top[i] != 0;
    Wide128 divisor = static_cast<Wide128>(n) * (n - 1);
    int smaller = 0;
    for (; divisor >> 64; divisor >>= 1) ++smaller;  // beyond 2^32 items: to 64 bits
    Wide128 quotient = number / divisor;
    rest |= number % divisor != 0;
    std::uint64_t out[2] = {static_cast<std::uint64_t>(quotient), static_cast<std::uint64_t>(quotient >> 64)};
    return rounded(out, 2, lowest - 2 * ExactTotal::unit - smaller, rest);
  }
};

}  // namespace sash
