// Kernels of the engine: first, last and the time of an extreme, whatever the order of arrival
//
// Slices of one pane arrive in pieces, in any order, so a partial carries what decides: first and last the time, the tie
// and the value; argmin and argmax the time. With that they are commutative.

#pragma once

#include "../kernel.hpp"
#include "../monoids/extreme.hpp"
#include "../monoids/ordered.hpp"
#include "../registry.hpp"

namespace sash::engine {

template <class T, End end>
struct AtEndOfTime {
  using Input = T;
  struct Partial {
    T value;
    Time time;
    std::int64_t tie;
    std::uint8_t rank;  // 0: nothing here, 1: no tie, which comes first, 2: a tie
  };
  static constexpr bool commutative = true;

  Partial identity() const { return {T{}, 0, 0, 0}; }
  Partial lift(Input x, Time t, std::int64_t tie, bool tied) const {
    return {x, t, tied ? tie : 0, static_cast<std::uint8_t>(tied ? 2 : 1)};
  }
  Partial lift(Input x, Time t) const { return lift(x, t, 0, false); }
  Partial combine(const Partial& a, const Partial& b) const {
    if (!a.rank || !b.rank) return a.rank ? a : b;
    return (end == End::first) == before(b, a) ? b : a;
  }
  Scalar lower(Lower, const Partial& p) const { return p.rank ? Scalar::of(p.value) : Scalar{}; }

 private:
  static bool before(const Partial& a, const Partial& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.tie != b.tie) return a.tie < b.tie;
    return less_than(a.value, b.value);
  }
};

template <class T, Wants wants>
struct TimeOfExtreme {
  using Input = T;
  struct Partial {
    T value;
    Time time;
    bool present;
  };
  static constexpr bool commutative = true;

  Partial identity() const { return {T{}, 0, false}; }
  Partial lift(Input x, Time t) const { return {x, t, true}; }
  Partial combine(const Partial& a, const Partial& b) const {
    if (!a.present || !b.present) return a.present ? a : b;
    bool a_less = less_than(a.value, b.value), b_less = less_than(b.value, a.value);
    if (a_less || b_less) return (wants == Wants::least) == a_less ? a : b;
    return b.time < a.time ? b : a;
  }
  Scalar lower(Lower, const Partial& p) const { return p.present ? Scalar::of(p.time) : Scalar{}; }
};

// Calls visit(kernel) with the kernel that the engine uses for this name; false if it has none: one that does not commute, or
// whose partials are not plain bytes.
template <class Visit>
bool with_engine_kernel(const KernelSpec& spec, Visit visit) {
  auto by_type = [&]<class Int, class Real>() {
    if (spec.type == ItemType::int64)
      visit(Int{});
    else
      visit(Real{});
    return true;
  };
  if (spec.name == "first") return by_type.template operator()<AtEndOfTime<std::int64_t, End::first>, AtEndOfTime<double, End::first>>();
  if (spec.name == "last") return by_type.template operator()<AtEndOfTime<std::int64_t, End::last>, AtEndOfTime<double, End::last>>();
  if (spec.name == "argmin")
    return by_type.template operator()<TimeOfExtreme<std::int64_t, Wants::least>, TimeOfExtreme<double, Wants::least>>();
  if (spec.name == "argmax")
    return by_type.template operator()<TimeOfExtreme<std::int64_t, Wants::greatest>, TimeOfExtreme<double, Wants::greatest>>();
  return with_kernel(spec, [&](auto kernel) {
    using K = decltype(kernel);
    if constexpr (is_commutative<K> && std::is_trivially_copyable_v<typename K::Partial>) {
      visit(kernel);
      return true;
    }
    return false;
  });
}

}  // namespace sash::engine
