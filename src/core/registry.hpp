// Names to kernels: the one list of native aggregations
//
// Everything that is built per kernel (windows, slides, keyed slices, wheels) goes through with_kernel, so
// a new native aggregation is one kernel and one line here.

#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel.hpp"
#include "monoids/counted.hpp"
#include "monoids/decayed.hpp"
#include "monoids/exact.hpp"
#include "monoids/extreme.hpp"
#include "monoids/moments.hpp"
#include "monoids/ordered.hpp"
#include "monoids/product.hpp"
#include "monoids/sum.hpp"

namespace sash {

enum class ItemType : std::uint8_t { int64, float64, object };

// What Python says of a native aggregation: Aggregation.native(item_type).
struct KernelSpec {
  std::string name;
  ItemType type = ItemType::float64;
  std::vector<double> params;
};

// Calls visit(kernel) with the kernel that spec names.
template <class Visit>
decltype(auto) with_kernel(const KernelSpec& spec, Visit&& visit) {
  auto made = [&]<class K>(std::type_identity<K>) {
    if constexpr (std::is_constructible_v<K, const std::vector<double>&>)
      return K(spec.params);
    else
      return K{};
  };
  auto by_type = [&]<template <class> class K>() -> decltype(auto) {
    if (spec.type == ItemType::int64) return visit(made(std::type_identity<K<std::int64_t>>{}));
    return visit(made(std::type_identity<K<double>>{}));
  };
  if (spec.name == "count") return visit(Count{});
  if (spec.name == "sum") return by_type.template operator()<Sum>();
  if (spec.name == "mean") return by_type.template operator()<Mean>();
  if (spec.name == "min") return by_type.template operator()<Min>();
  if (spec.name == "max") return by_type.template operator()<Max>();
  if (spec.name == "first") return by_type.template operator()<First>();
  if (spec.name == "last") return by_type.template operator()<Last>();
  if (spec.name == "moments") return by_type.template operator()<Moments>();
  if (spec.name == "exact_sum") return by_type.template operator()<ExactSum>();
  if (spec.name == "exact_moments") return by_type.template operator()<ExactMoments>();
  if (spec.name == "minmax") return by_type.template operator()<MinMax>();
  if (spec.name == "argmin") return by_type.template operator()<ArgMin>();
  if (spec.name == "argmax") return by_type.template operator()<ArgMax>();
  if (spec.name == "mincount") return by_type.template operator()<MinCount>();
  if (spec.name == "maxcount") return by_type.template operator()<MaxCount>();
  if (spec.name == "geomean") return by_type.template operator()<Geomean>();
  if (spec.name == "product") return by_type.template operator()<Product>();
  if (spec.name == "truth") return by_type.template operator()<Truth>();
  if (spec.name == "ewma") return by_type.template operator()<Ewma>();
  if (spec.name == "bit_and") return visit(BitAnd{});
  if (spec.name == "bit_or") return visit(BitOr{});
  throw std::invalid_argument("no native kernel is named " + spec.name);
}

inline constexpr int first_field = 128;

inline Lower lower_named(const std::string& name) {
  static const std::pair<const char*, Lower> names[] = {
      {"count", Lower::count},       {"sum", Lower::sum},         {"sum_or_none", Lower::sum_or_none},
      {"mean", Lower::mean},         {"value", Lower::value},     {"min", Lower::min},
      {"max", Lower::max},           {"relvar", Lower::relvar},   {"time", Lower::time},
      {"var", Lower::var},           {"std", Lower::std_dev},     {"skew", Lower::skew},
      {"kurtosis", Lower::kurtosis}, {"geomean", Lower::geomean}, {"product", Lower::product},
      {"any", Lower::any},           {"all", Lower::all},         {"bits", Lower::bits}};
  for (auto& [known, lower] : names)
    if (name == known) return lower;
  // Field n of what a compiled function gives.
  if (name.starts_with("field")) return static_cast<Lower>(first_field + std::stoi(name.substr(5)));
  throw std::invalid_argument("no lowering is named " + name);
}

}  // namespace sash
