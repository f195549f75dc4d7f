// A fold over stretches of slots, in time order
//
// Where the order does not matter (the monoid commutes) and partials are plain numbers, a stretch is folded in lanes
// side by side: the chain of dependent combines gets shorter and the compiler can use vector registers.
// Either way n partials take n - 1 combines.

#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "../monoid.hpp"

namespace sash {

template <class M>
inline constexpr bool folds_in_lanes =
    is_commutative<M> && !may_throw<M> && std::is_trivially_copyable_v<typename M::Partial> && sizeof(typename M::Partial) <= 32;

template <Monoid M>
class Fold {
 public:
  using Partial = typename M::Partial;

  explicit Fold(const M& monoid) : monoid_(monoid), all_(monoid.identity()) {}

  // n partials in a row, or n times the blank one.
  void add(const Partial* first, std::size_t n, bool blank) {
    if (n == 0) return;
    if (blank) {
      add_blank(*first, n);
    } else if (folds_in_lanes<M> && n >= 2 * lanes) {
      if constexpr (folds_in_lanes<M>) add_one(in_lanes(first, n));
    } else {
      add_one(first[0]);
      for (std::size_t i = 1; i < n; ++i) all_ = monoid_.combine(all_, first[i]);
    }
  }

  Partial result() && { return std::move(all_); }

 private:
  static constexpr std::size_t lanes = sizeof(Partial) <= 8 ? 16 : 4;

  void add_one(const Partial& value) {
    if (any_) {
      all_ = monoid_.combine(all_, value);
    } else {
      all_ = value;
      any_ = true;
    }
  }

  // Blanks change nothing. Where someone may be counting combines, they are made all the same, so that a plan costs what it says.
  void add_blank(const Partial& blank, std::size_t n) {
    if constexpr (may_throw<M> || ProbeOf<M>::counting)
      for (; n > 0; --n) add_one(blank);
    else
      add_one(blank);
  }

  Partial in_lanes(const Partial* p, std::size_t n) const {
    Partial lane[lanes];
    for (std::size_t j = 0; j < lanes; ++j) lane[j] = p[j];
    std::size_t i = lanes;
    for (; i + lanes <= n; i += lanes)
      for (std::size_t j = 0; j < lanes; ++j) lane[j] = monoid_.combine(lane[j], p[i + j]);
    for (std::size_t j = 0; i < n; ++i, ++j) lane[j] = monoid_.combine(lane[j], p[i]);
    for (std::size_t width = lanes / 2; width > 0; width /= 2)
      for (std::size_t j = 0; j < width; ++j) lane[j] = monoid_.combine(lane[j], lane[j + width]);
    return lane[0];
  }

  const M& monoid_;
  Partial all_;
  bool any_ = false;
};

}  // namespace sash
