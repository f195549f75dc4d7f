// var, std, skew, kurtosis: central moments, combined without subtracting sums of squares

#pragma once

#include <cmath>
#include <limits>

#include "../kernel.hpp"

namespace sash {

template <class T>
struct Moments {
  using Input = T;
  struct Partial {
    std::int64_t n;
    double mean, m2, m3, m4;  // m_k: the sum of k-th powers of deviations from the mean
  };
  using Promoted = Moments<double>;
  static constexpr bool commutative = true;

  Partial identity() const { return {0, 0, 0, 0, 0}; }
  // An infinite item has no deviation from a mean: its NaN stays in all that it is combined with, whatever the order.
  Partial lift(Input x, Time) const {
    auto mean = static_cast<double>(x);
    double none = std::isfinite(mean) ? 0 : std::numeric_limits<double>::quiet_NaN();
    return {1, mean, none, none, none};
  }

  Partial combine(const Partial& a, const Partial& b) const {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    auto na = static_cast<double>(a.n), nb = static_cast<double>(b.n), n = na + nb;
    double d = b.mean - a.mean, r = d / n;
    // A difference of finite means may be too large for a double; their mean is not.
    double mean = std::isfinite(d) ? a.mean + r * nb : a.mean * (na / n) + b.mean * (nb / n);
    return {a.n + b.n, mean, a.m2 + b.m2 + d * r * na * nb, a.m3 + b.m3 + d * r * r * na * nb * (na - nb) + 3 * r * (na * b.m2 - nb * a.m2),
            a.m4 + b.m4 + d * r * r * r * na * nb * (na * na - na * nb + nb * nb) + 6 * r * r * (na * na * b.m2 + nb * nb * a.m2) +
                4 * r * (na * b.m3 - nb * a.m3)};
  }

  // combine, solved for its right argument.
  Partial inverse(const Partial& w, const Partial& a) const {
    if (a.n == w.n) return identity();
    if (a.n == 0) return w;
    auto n = static_cast<double>(w.n), na = static_cast<double>(a.n), nb = n - na;
    double mean = w.mean + (w.mean - a.mean) * na / nb, d = mean - a.mean, r = d / n;
    double m2 = w.m2 - a.m2 - d * r * na * nb;
    double m3 = w.m3 - a.m3 - d * r * r * na * nb * (na - nb) - 3 * r * (na * m2 - nb * a.m2);
    double m4 = w.m4 - a.m4 - d * r * r * r * na * nb * (na * na - na * nb + nb * nb) - 6 * r * r * (na * na * m2 + nb * nb * a.m2) -
                4 * r * (na * m3 - nb * a.m3);
    return {w.n - a.n, mean, m2, m3, m4};
  }
  bool removable(const Partial& p) const { return std::isfinite(p.mean) && std::isfinite(p.m4); }

  Scalar lower(Lower how, const Partial& p) const {
    auto n = static_cast<double>(p.n);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    switch (how) {
      case Lower::skew:
        if (p.n < 3) return {};
        if (!std::isfinite(p.m2)) return Scalar::of(nan);
        if (double scale = p.m2 > 0 ? std::pow(p.m2, 1.5) : 0; scale > 0)  // may vanish where m2 does not
          return Scalar::of(n * std::sqrt(n - 1) / (n - 2) * p.m3 / scale);
        return Scalar::of(nan);
      case Lower::kurtosis:
        if (p.n < 4) return {};
        if (!std::isfinite(p.m2)) return Scalar::of(nan);
        if (double scale = p.m2 * p.m2; scale > 0)
          return Scalar::of((n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * p.m4 / scale - 3 * (n - 1)));
        return Scalar::of(nan);
      case Lower::std_dev:
        if (p.n < 2) return {};
        return Scalar::of(std::sqrt(positive(p.m2) / (n - 1)));
      default:
        if (p.n < 2) return {};
        return Scalar::of(positive(p.m2) / (n - 1));
    }
  }
  static auto promote(const Partial& p) { return typename Promoted::Partial{p.n, p.mean, p.m2, p.m3, p.m4}; }
  double magnitude(const Partial& p) const { return finite(p.mean) + std::sqrt(finite(p.m2)); }
  bool close(const Partial& a, const Partial& b, double scale) const {
    return a.n == b.n && close_to(a.mean, b.mean, scale) && close_to(a.m2, b.m2, scale * scale) &&
           close_to(a.m3, b.m3, scale * scale * scale) && close_to(a.m4, b.m4, scale * scale * scale * scale);
  }

 private:
  // Rounding may leave m2 just below zero after an inverse; NaN passes through.
  static double positive(double m2) { return m2 < 0 ? 0 : m2; }
};

}  // namespace sash
