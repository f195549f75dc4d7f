// Names to kernels: the one list of native aggregations
//
// Everything that is built per kernel (windows, slides, keyed slices, wheels) goes through with_kernel, so
// a new native aggregation is one kernel and one line here.

#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernel.hpp"
#include "monoids/extreme.hpp"
#include "monoids/ordered.hpp"
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
  auto by_type = [&]<template <class> class K>() -> decltype(auto) {
    if (spec.type == ItemType::int64) return visit(K<std::int64_t>{});
    return visit(K<double>{});
  };
  if (spec.name == "count") return visit(Count{});
  if (spec.name == "sum") return by_type.template operator()<Sum>();
  if (spec.name == "mean") return by_type.template operator()<Mean>();
  if (spec.name == "min") return by_type.template operator()<Min>();
  if (spec.name == "max") return by_type.template operator()<Max>();
  if (spec.name == "first") return by_type.template operator()<First>();
  if (spec.name == "last") return by_type.template operator()<Last>();
  throw std::invalid_argument("no native kernel is named " + spec.name);
}

}  // namespace sash
