// sash bench: the loops of the experiments on wheels

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "../bindings/module.hpp"
#include "wheels.hpp"

namespace sash {
namespace {

using Ints = Sum<std::int64_t>;

// An inverse counts as a combine, as in the optimiser's costs.
struct Counting : bench::Counted<Ints> {
  Partial inverse(const Partial& whole, const Partial& oldest) const {
    ++combines;
    return Ints::inverse(whole, oldest);
  }
};

template <class Run>
nb::dict told(bool count, Run run) {
  bench::WheelOutcome out;
  std::uint64_t combines = 0;
  {
    nb::gil_scoped_release unlocked;
    Counting::combines = 0;
    out = count ? run(Counting{}) : run(Ints{});
    combines = Counting::combines - out.filled;
  }
  nb::dict result;
  nb::list laps;
  for (double seconds : out.laps) laps.append(seconds);
  result["laps"] = laps;
  result["sum"] = out.sum;
  result["answers"] = out.answers;
  result["bytes"] = out.bytes;
  result["combines"] = count ? combines : 0;
  auto* ticks = new std::vector<std::uint32_t>(std::move(out.ticks));
  nb::capsule owner(ticks, [](void* p) noexcept { delete static_cast<std::vector<std::uint32_t>*>(p); });
  result["ticks"] = nb::ndarray<nb::numpy, std::uint32_t, nb::ndim<1>>(ticks->data(), {ticks->size()}, owner);
  return result;
}

const Binding bind(61, [](nb::module_& m) {
  m.def(
      "wheel_stream",
      [](const std::string& contender, std::size_t events, double late, std::size_t write_ahead, Tick range, Tick slide, bool count) {
        return told(count, [&](auto monoid) { return bench::stream(monoid, contender, events, late, write_ahead, range, slide); });
      },
      nb::arg("contender"), nb::arg("events"), nb::arg("late"), nb::arg("write_ahead"), nb::arg("range"), nb::arg("slide"),
      nb::arg("count"), "Run a stream of events through a wheel or what could serve instead.");
  m.def(
      "wheel_query",
      [](const std::string& contender, const std::string& aligned, Tick seconds, std::size_t queries, std::size_t laps, bool count) {
        return told(count, [&](auto monoid) { return bench::query(monoid, contender, aligned, seconds, queries, laps); });
      },
      nb::arg("contender"), nb::arg("aligned"), nb::arg("seconds"), nb::arg("queries"), nb::arg("laps"), nb::arg("count"),
      "Ask a history of one event per second for ranges.");
});

}  // namespace
}  // namespace sash
