// geomean, product, any, all, bit_and, bit_or

#pragma once

#include <cmath>
#include <limits>

#include "../kernel.hpp"

namespace sash {

// Zeros and negatives are counted apart, so that they leave again with their items.
template <class T>
struct Geomean {
  using Input = T;
  struct Partial {
    double logs;
    std::int64_t n, zeros, negatives;
  };
  using Promoted = Geomean<double>;
  static constexpr bool commutative = true;

  Partial identity() const { return {0, 0, 0, 0}; }
  Partial lift(Input x, Time) const {
    if (x == 0) return {0, 1, 1, 0};
    if (x < 0) return {0, 1, 0, 1};
    return {std::log(static_cast<double>(x)), 1, 0, 0};
  }
  Partial combine(const Partial& a, const Partial& b) const {
    return {a.logs + b.logs, a.n + b.n, a.zeros + b.zeros, a.negatives + b.negatives};
  }
  Partial inverse(const Partial& w, const Partial& a) const {
    return {w.logs - a.logs, w.n - a.n, w.zeros - a.zeros, w.negatives - a.negatives};
  }
  bool removable(const Partial& p) const { return std::isfinite(p.logs); }
  Scalar lower(Lower, const Partial& p) const {
    if (p.n == 0) return {};
    if (p.negatives) return Scalar::of(std::numeric_limits<double>::quiet_NaN());
    // 0 among finite items is 0; among NaN or infinite ones it is NaN, as in 0 * inf.
    if (p.zeros) return Scalar::of(std::isfinite(p.logs) ? 0.0 : std::numeric_limits<double>::quiet_NaN());
    return Scalar::of(std::exp(p.logs / static_cast<double>(p.n)));
  }
  static auto promote(const Partial& p) { return typename Promoted::Partial{p.logs, p.n, p.zeros, p.negatives}; }
  double magnitude(const Partial& p) const { return finite(p.logs); }
  bool close(const Partial& a, const Partial& b, double scale) const {
    return a.n == b.n && a.zeros == b.zeros && a.negatives == b.negatives && close_to(a.logs, b.logs, scale);
  }
};

// Zeros are counted apart, so that they leave again with their items, and infinite items in the upper bits of that number: a
// product may be too large for a double without one, and 0 times it is still 0.
template <class T>
struct Product {
  using Input = T;
  struct Partial {
    double product;  // of the items that are not zero
    std::int64_t zeros, n;
  };
  static constexpr std::int64_t an_infinity = std::int64_t{1} << 40;
  using Promoted = Product<double>;
  static constexpr bool commutative = true;

  Partial identity() const { return {1, 0, 0}; }
  Partial lift(Input x, Time) const {
    if (x == 0) return {1, 1, 1};
    auto product = static_cast<double>(x);
    return {product, std::isinf(product) ? an_infinity : 0, 1};
  }
  Partial combine(const Partial& a, const Partial& b) const { return {a.product * b.product, a.zeros + b.zeros, a.n + b.n}; }
  Partial inverse(const Partial& w, const Partial& a) const { return {w.product / a.product, w.zeros - a.zeros, w.n - a.n}; }
  bool removable(const Partial& p) const { return std::isfinite(p.product) && p.product != 0; }
  Scalar lower(Lower, const Partial& p) const {
    if (p.n == 0) return {};
    std::int64_t zeros = p.zeros % an_infinity;
    if (zeros && (p.zeros >= an_infinity || std::isnan(p.product))) return Scalar::of(std::numeric_limits<double>::quiet_NaN());
    return Scalar::of(zeros ? 0.0 : p.product);
  }
  static auto promote(const Partial& p) { return typename Promoted::Partial{p.product, p.zeros, p.n}; }
  double magnitude(const Partial&) const { return 0; }
  // Too large or too small for a double in one order may fit in another.
  bool close(const Partial& a, const Partial& b, double) const {
    bool fits = std::isnormal(a.product) && std::isnormal(b.product);
    return a.zeros == b.zeros && a.n == b.n && (!fits || std::abs(a.product - b.product) <= 1e-9 * std::abs(a.product));
  }
};

template <class T>
struct Truth {
  using Input = T;
  struct Partial {
    std::int64_t trues, n;
  };
  using Promoted = Truth<double>;
  static constexpr bool commutative = true;

  Partial identity() const { return {0, 0}; }
  Partial lift(Input x, Time) const { return {x != 0, 1}; }
  Partial combine(const Partial& a, const Partial& b) const { return {a.trues + b.trues, a.n + b.n}; }
  Partial inverse(const Partial& w, const Partial& a) const { return {w.trues - a.trues, w.n - a.n}; }
  Scalar lower(Lower how, const Partial& p) const {
    if (p.n == 0) return {};
    return Scalar::of(how == Lower::any ? p.trues > 0 : p.trues == p.n);
  }
  static auto promote(const Partial& p) { return typename Promoted::Partial{p.trues, p.n}; }
};

enum class Bit { in_all, in_some };

template <Bit bit>
struct Bits {
  using Input = std::int64_t;
  struct Partial {
    std::int64_t bits, present;
  };
  static constexpr bool commutative = true;

  Partial identity() const { return {0, 0}; }
  Partial lift(Input x, Time) const { return {x, 1}; }
  Partial combine(const Partial& a, const Partial& b) const {
    if (!b.present) return a;
    if (!a.present) return b;
    return {bit == Bit::in_all ? a.bits & b.bits : a.bits | b.bits, 1};
  }
  Scalar lower(Lower, const Partial& p) const { return p.present ? Scalar::of(p.bits) : Scalar{}; }
};

using BitAnd = Bits<Bit::in_all>;
using BitOr = Bits<Bit::in_some>;

}  // namespace sash
