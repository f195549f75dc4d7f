// sash bench: the experiments' loops on the algorithms themselves, nothing between

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>

#include "../adapters/in_order.hpp"
#include "../bindings/module.hpp"
#include "../registry.hpp"
#include "../swag/amta.hpp"
#include "../swag/bint.hpp"
#include "../swag/block_fiba.hpp"
#include "../swag/btree.hpp"
#include "../swag/daba.hpp"
#include "../swag/daba_lite.hpp"
#include "../swag/fiba.hpp"
#include "../swag/flat_fat.hpp"
#include "../swag/flat_fit.hpp"
#include "../swag/monotonic_deque.hpp"
#include "../swag/recalc.hpp"
#include "../swag/subtract_on_evict.hpp"
#include "../swag/two_stacks.hpp"
#include "../swag/two_stacks_lite.hpp"
#include "loops.hpp"
#include "windows.hpp"

namespace sash {

namespace {

using bench::Counted;
using bench::Outcome;
using bench::PlainRing;
using bench::Singly;
using bench::Stamped;

struct Experiment {
  std::string kind, algorithm, aggregation;
  std::size_t size, distance, bulk;
  std::uint64_t rounds;
  std::size_t laps;
  bool scattered;
  std::size_t min_arity;
};

[[noreturn]] void refuse(const Experiment& e) {
  throw nb::value_error(
      (e.kind + " has no cell for algorithm " + e.algorithm + " with aggregation " + e.aggregation +
       (e.min_arity ? " and a min arity" : "") +
       ". Use an algorithm that takes that order of items, and sum, sum_int, max, geomean or bloom; only fiba and b_tree have a min arity.")
          .c_str());
}

template <class M>
Outcome in_order(const Experiment& e, const M& monoid) {
  if (e.min_arity) refuse(e);
  bool bulk = e.kind == "bulk" || e.kind == "bulk-evict";
  if (bulk ? e.distance > 0 : e.kind == "ooo" || e.distance > 0) refuse(e);
  if (bulk) {
    auto run = [&]<class Algorithm>(std::type_identity<Algorithm>) {
      InOrder<Algorithm> window(monoid, 0);
      return bench::bulk(window, monoid, e.size, e.bulk, 0, e.rounds, e.laps, e.kind == "bulk");
    };
    if (e.algorithm == "daba_lite") return run(std::type_identity<DabaLite<M>>{});
    if (e.algorithm == "two_stacks_lite") return run(std::type_identity<TwoStacksLite<M>>{});
    if (e.algorithm == "amta") return run(std::type_identity<Amta<M>>{});
    refuse(e);
  }
  auto run = [&](auto window) {
    if (e.kind == "dynamic") return bench::dynamic(window, monoid, e.size, e.rounds, e.laps);
    return bench::fifo(window, monoid, e.size, e.rounds, e.laps, e.kind == "latency");
  };
  if (e.algorithm == "daba_lite") return run(DabaLite<M>(monoid));
  if (e.algorithm == "daba") return run(Daba<M>(monoid));
  if (e.algorithm == "two_stacks_lite") return run(TwoStacksLite<M>(monoid));
  if (e.algorithm == "two_stacks") return run(TwoStacks<M>(monoid));
  if (e.algorithm == "flat_fit") return run(FlatFit<M>(monoid));
  if (e.algorithm == "flat_fat") return run(FlatFat<M>(monoid));
  if (e.algorithm == "b_int") return run(BInt<M>(monoid));
  if (e.algorithm == "amta") return run(Amta<M>(monoid));
  if (e.algorithm == "recalc") return run(Recalc<M>(monoid));
  if constexpr (Invertible<M>) {
    if (e.algorithm == "subtract_on_evict") return run(SubtractOnEvict<M>(monoid));
    if (e.algorithm == "plain_ring") return run(PlainRing<M>(monoid, e.size));
  }
  if constexpr (Selective<M>)
    if (e.algorithm == "monotonic_deque") return run(MonotonicDeque<M>(monoid));
  refuse(e);
}

template <class Window, class M>
Outcome any_order(const Experiment& e, Window window, const M& monoid) {
  bool latency = e.kind == "latency";
  if (e.kind == "ooo" || (latency && e.distance > 0))
    return bench::out_of_order(window, monoid, e.size, e.distance, e.rounds, e.laps, e.scattered, latency);
  if (e.kind == "bulk" || e.kind == "bulk-evict")
    return bench::bulk(window, monoid, e.size, e.bulk, e.distance, e.rounds, e.laps, e.kind == "bulk");
  Stamped<Window> stamped(std::move(window));
  if (e.kind == "fifo" || latency) return bench::fifo(stamped, monoid, e.size, e.rounds, e.laps, latency);
  if (e.kind == "dynamic") return bench::dynamic(stamped, monoid, e.size, e.rounds, e.laps);
  refuse(e);
}

template <class M>
Outcome run_on(const Experiment& e, const M& monoid) {
  bool singly = e.algorithm == "fiba_singly", bulk = e.kind == "bulk" || e.kind == "bulk-evict";
  if (e.algorithm == "fiba" || (singly && bulk)) {
    Fiba<M> window = e.min_arity ? Fiba<M>(monoid, e.min_arity) : Fiba<M>(monoid);
    if (!singly) return any_order(e, std::move(window), monoid);
    Singly<Fiba<M>> looping(std::move(window));
    return bench::bulk(looping, monoid, e.size, e.bulk, e.distance, e.rounds, e.laps, e.kind == "bulk");
  }
  if (e.algorithm == "b_tree") return any_order(e, e.min_arity ? BTree<M>(monoid, e.min_arity) : BTree<M>(monoid), monoid);
  if (e.algorithm == "block_fiba" && !e.min_arity) return any_order(e, BlockFiba<M>(monoid), monoid);
  return in_order(e, monoid);
}

template <class Call>
Outcome with_aggregation(const Experiment& e, Call call) {
  if (e.aggregation == "sum") return call(Sum<double>{});
  if (e.aggregation == "sum_int") return call(Sum<std::int64_t>{});
  if (e.aggregation == "max") return call(Max<double>{});
  if (e.aggregation == "geomean") return call(Geomean<double>{});
  if (e.aggregation == "bloom") return call(bench::Bloom{});
  refuse(e);
}

}  // namespace

static Binding bind(30, [](nb::module_& m) {
  m.def(
      "loop",
      [](const std::string& kind, const std::string& algorithm, const std::string& aggregation, std::size_t size, std::size_t distance,
         std::size_t bulk, std::uint64_t rounds, std::size_t laps, bool scattered, std::size_t min_arity, bool count) {
        Experiment e{kind, algorithm, aggregation, size, distance, bulk, rounds, laps, scattered, min_arity};
        if (size == 0 || bulk == 0 || rounds == 0 || laps == 0)
          throw nb::value_error("an experiment needs a window and bulks of at least 1 item, and at least 1 round and repeat.");
        if (distance >= size)
          throw nb::value_error("the distance is not smaller than the window: nothing would be out of order. Use a larger size.");
        if (bulk > size - distance)
          throw nb::value_error("a bulk larger than the window below the distance would empty it. Use a larger size.");
        Outcome out;
        std::uint64_t combines = 0;
        {
          nb::gil_scoped_release unlocked;
          if (count) {  // sums only: the number of combines does not depend on the monoid
            Counted<Sum<double>>::combines = 0;
            out = run_on(e, Counted<Sum<double>>{});
            combines = Counted<Sum<double>>::combines;
          } else {
            out = with_aggregation(e, [&](auto monoid) { return run_on(e, monoid); });
          }
        }
        nb::dict result;
        nb::list laps_;
        for (double seconds : out.laps) laps_.append(seconds);
        result["laps"] = laps_;
        result["rounds"] = out.rounds;
        result["items"] = out.items;
        result["smallest"] = out.smallest;
        result["largest"] = out.largest;
        result["combines"] = combines - out.filled;
        result["evict_combines"] = out.evicting;
        auto* ticks = new std::vector<std::uint32_t>(std::move(out.ticks));
        nb::capsule owner(ticks, [](void* p) noexcept { delete static_cast<std::vector<std::uint32_t>*>(p); });
        result["ticks"] = nb::ndarray<nb::numpy, std::uint32_t, nb::ndim<1>>(ticks->data(), {ticks->size()}, owner);
        return result;
      },
      nb::arg("kind"), nb::arg("algorithm"), nb::arg("aggregation"), nb::arg("size"), nb::arg("distance"), nb::arg("bulk"),
      nb::arg("rounds"), nb::arg("laps"), nb::arg("scattered"), nb::arg("min_arity"), nb::arg("count"),
      "Run one cell of an experiment in the core.");
});

}  // namespace sash
