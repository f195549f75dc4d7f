// Numbers as keys that sort as unsigned integers, and where a quantile lies among n sorted items

#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace sash {

// NaN is the largest, -0.0 and 0.0 are one key.
inline std::uint64_t rank_key(double x) {
  if (x != x) return UINT64_MAX;
  auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
  return bits >> 63 ? ~bits : bits | (std::uint64_t{1} << 63);
}
inline std::uint64_t rank_key(std::int64_t x) { return static_cast<std::uint64_t>(x) ^ (std::uint64_t{1} << 63); }

template <class T>
T from_rank_key(std::uint64_t key) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(key ^ (std::uint64_t{1} << 63));
  else if (key == UINT64_MAX)
    return std::numeric_limits<double>::quiet_NaN();
  else
    return std::bit_cast<double>(key >> 63 ? key ^ (std::uint64_t{1} << 63) : ~key);
}

// The order is that of sash.agg.ranks.INTERPOLATIONS, which defines them.
enum class Interpolation : std::uint8_t {
  linear,
  lower,
  higher,
  midpoint,
  nearest,
  floor,
  inverted_cdf,
  averaged_inverted_cdf,
  closest_observation,
  interpolated_inverted_cdf,
  hazen,
  weibull,
  median_unbiased,
  normal_unbiased
};

// Between the items `low` and `low + 1`, the part `gap` of the way.
struct Place {
  std::size_t low;
  double gap;
};

inline Place place(Interpolation rule, std::size_t items, double q) {
  auto n = static_cast<double>(items);
  double v = 0;
  switch (rule) {
    case Interpolation::linear:
      v = (n - 1) * q;
      break;
    case Interpolation::lower:
      v = std::floor((n - 1) * q);
      break;
    case Interpolation::higher:
      v = std::ceil((n - 1) * q);
      break;
    case Interpolation::midpoint:
      v = (std::floor((n - 1) * q) + std::ceil((n - 1) * q)) / 2;
      break;
    case Interpolation::nearest:
      v = std::nearbyint((n - 1) * q);
      break;
    case Interpolation::floor:
      v = std::floor(n * q);
      break;
    case Interpolation::inverted_cdf:
      v = std::ceil(n * q - 1);
      break;
    case Interpolation::averaged_inverted_cdf:
      v = n * q - 1;
      if (v == std::floor(v) && v >= 0 && v < n - 1) return {static_cast<std::size_t>(v), 0.5};
      v = std::ceil(v);
      break;
    case Interpolation::closest_observation:
      v = n * q - 1.5;
      v = v == std::floor(v) && std::fmod(std::abs(v), 2) == 1 ? v : std::floor(v) + 1;
      break;
    case Interpolation::interpolated_inverted_cdf:
      v = n * q - 1;
      break;
    case Interpolation::hazen:
      v = n * q - 0.5;
      break;
    case Interpolation::weibull:
      v = (n + 1) * q - 1;
      break;
    case Interpolation::median_unbiased:
      v = n * q + (1.0 / 3 + q * (1.0 / 3)) - 1;
      break;
    case Interpolation::normal_unbiased:
      v = n * q + (3.0 / 8 + q * (1.0 / 4)) - 1;
      break;
  }
  double low = std::floor(v);
  if (low < 0) return {0, 0};
  if (low >= n - 1) return {items - 1, 0};
  return {static_cast<std::size_t>(low), v - low};
}

// Whether the rule picks an item, so that integers stay integers.
inline bool picks(Interpolation rule) {
  return rule == Interpolation::lower || rule == Interpolation::higher || rule == Interpolation::nearest || rule == Interpolation::floor ||
         rule == Interpolation::inverted_cdf || rule == Interpolation::closest_observation;
}

inline double between(double a, double b, double gap) {
  if (gap == 0 || a == b) return a;
  double step = b - a;
  if (std::isinf(step)) return a * (1 - gap) + b * gap;
  return gap < 0.5 ? a + step * gap : b - step * (1 - gap);
}

}  // namespace sash
