// Arrays in and out of the engine's bindings

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/column.hpp"
#include "engine/runs.hpp"

namespace sash::engine {

namespace nb = nanobind;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Maybe = std::optional<In<T>>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <class T>
using Filled = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Vector>
auto array_of(Vector values) {
  auto* kept = new Vector(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Vector*>(p); });
  return Out<typename Vector::value_type>(kept->data(), {kept->size()}, owner);
}

inline nb::bytes bytes_of(const Bytes& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

template <class T>
const T* data_of(const Maybe<T>& array, std::size_t n) {
  if (!array) return nullptr;
  if (array->size() != n) throw std::invalid_argument("the arrays of one call are of different lengths.");
  return array->data();
}

template <class A>
void check_length(const A& array, std::size_t n) {
  if (array.size() != n) throw std::invalid_argument("the arrays of one call are of different lengths.");
}

// A run's layout must be what the loops rely on: starts that begin at 0, do not decrease, and end at the last entry.
inline void check_layout(std::size_t keys, const In<std::int64_t>& starts, const In<Time>& times) {
  check_length(starts, keys + 1);
  const std::int64_t* at = starts.data();
  if (at[0] != 0 || at[keys] != static_cast<std::int64_t>(times.size())) damaged("the slices do not fit the keys");
  for (std::size_t k = 0; k < keys; ++k)
    if (at[k] > at[k + 1]) damaged("the slices do not fit the keys");
}

inline nb::list fields_of(std::vector<Lowered> fields) {
  nb::list out;
  for (auto& field : fields)
    out.append(nb::make_tuple(array_of(std::move(field.bits)), array_of(std::move(field.valid)), field.kind == Scalar::real));
  return out;
}

}  // namespace sash::engine
