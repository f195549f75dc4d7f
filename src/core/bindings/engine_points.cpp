// Look-backs from points in time, for Python: see engine/points.hpp

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "engine/points.hpp"
#include "engine_arrays.hpp"
#include "module.hpp"

namespace sash::engine {
namespace {

// Checks that the entries fit the keys; gives the number of keys.
std::size_t keys_of(const In<std::int64_t>& starts, const In<Time>& times) {
  if (starts.size() == 0) throw std::invalid_argument("the entries do not fit the keys.");
  check_layout(starts.size() - 1, starts, times);
  return starts.size() - 1;
}

nb::tuple points(In<std::int64_t> starts, In<Time> times, In<std::int32_t> keys, In<Time> at, const std::string& unit, std::int64_t length,
                 Time hop, Time delay, bool takes_left, bool takes_right) {
  if (keys.size() != at.size()) throw std::invalid_argument("the arrays of one call are of different lengths.");
  std::size_t n = keys_of(starts, times);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys.data()[i] < 0 || (i > 0 && keys.data()[i] < keys.data()[i - 1])) throw std::invalid_argument("points must come key by key.");
  Lookback back{unit == "rows" ? Unit::rows : unit == "all" ? Unit::all : Unit::time, length, hop, delay, takes_left, takes_right};
  Stretches out;
  {
    nb::gil_scoped_release free;
    out = point_stretches(starts.data(), times.data(), n, keys.data(), at.data(), at.size(), back);
  }
  return nb::make_tuple(array_of(std::move(out.from)), array_of(std::move(out.to)));
}

nb::tuple coarse(In<std::int64_t> starts, In<Time> times, Time before, std::int64_t rows, Time hop) {
  std::size_t n = keys_of(starts, times);
  if (hop <= 0 || rows < 0) throw std::invalid_argument("a hop must be longer than 0.");
  Coarse out;
  {
    nb::gil_scoped_release free;
    out = coarsen(starts.data(), times.data(), n, before, rows, hop);
  }
  return nb::make_tuple(array_of(std::move(out.layout.starts)), array_of(std::move(out.layout.times)), array_of(std::move(out.places)));
}

Out<std::int64_t> first(In<Time> times, In<std::int64_t> from, In<std::int64_t> to, In<Time> bounds) {
  std::size_t n = from.size();
  if (to.size() != n || bounds.size() != n) throw std::invalid_argument("the arrays of one call are of different lengths.");
  for (std::size_t i = 0; i < n; ++i)
    if (from.data()[i] < 0 || from.data()[i] > to.data()[i] || to.data()[i] > static_cast<std::int64_t>(times.size()))
      throw std::invalid_argument("a stretch leaves the run.");
  return array_of(first_from(times.data(), from.data(), to.data(), bounds.data(), n));
}

const Binding binding(50, [](nb::module_& m) {
  m.def("point_stretches", &points, nb::arg("starts"), nb::arg("times"), nb::arg("keys"), nb::arg("at"), nb::arg("unit"), nb::arg("length"),
        nb::arg("hop"), nb::arg("delay"), nb::arg("takes_left"), nb::arg("takes_right"));
  m.def("coarsen", &coarse, nb::arg("starts"), nb::arg("times"), nb::arg("before"), nb::arg("rows"), nb::arg("hop"));
  m.def("first_from", &first, nb::arg("times"), nb::arg("starts"), nb::arg("ends"), nb::arg("bounds"));
});

}  // namespace
}  // namespace sash::engine
