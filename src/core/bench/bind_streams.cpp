// sash bench: streams with times of their own, shared and coarse windows, memory

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <string>
#include <type_traits>

#ifdef __GLIBC__
#include <malloc.h>
#endif

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
#include "../swag/two_stacks.hpp"
#include "../swag/two_stacks_lite.hpp"
#include "coarse.hpp"
#include "streams.hpp"
#include "windows.hpp"

namespace sash {

namespace {

using bench::Buckets;
using bench::Counted;
using bench::Eager;
using bench::Mode;
using bench::Singly;
using bench::Stamped;
using bench::Watched;
using Times = nb::ndarray<const Time, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const std::string& experiment, const std::string& algorithm, const std::string& others) {
  throw nb::value_error((experiment + " has no cell for algorithm " + algorithm + ". Use " + others + ".").c_str());
}

template <class T>
auto array_of(std::vector<T> values) {
  auto* held = new std::vector<T>(std::move(values));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner);
}

nb::dict told(Watched out, std::uint64_t combines) {
  nb::dict result;
  result["seconds"] = out.seconds;
  result["items"] = out.items;
  result["rounds"] = out.rounds;
  result["started"] = out.started;
  result["smallest"] = out.smallest;
  result["largest"] = out.largest;
  result["sizes"] = out.sizes;
  result["results"] = out.results;
  result["combines"] = combines;
  result["ticks"] = array_of(std::move(out.ticks));
  return result;
}

Mode mode_named(const std::string& name) {
  if (name == "throughput") return Mode::throughput;
  if (name == "latency") return Mode::latency;
  if (name == "watch") return Mode::watch;
  throw nb::value_error(("no mode is named " + name).c_str());
}

// Watched runs are on sums of whole numbers, which every contender adds up exactly.
template <class Run>
nb::dict run_as(const std::string& aggregation, Mode mode, Run run) {
  using Watching = Counted<Sum<double>>;
  Watched out;
  {
    nb::gil_scoped_release unlocked;
    Watching::combines = 0;
    if (mode == Mode::watch)
      out = run(Watching{});
    else if (aggregation == "sum")
      out = run(Sum<double>{});
    else if (aggregation == "relvar")
      out = run(MinMax<double>{});
    else if (aggregation == "geomean")
      out = run(Geomean<double>{});
    else
      throw nb::value_error(("no cell for aggregation " + aggregation + ". Use sum, relvar or geomean.").c_str());
  }
  return told(std::move(out), Watching::combines);
}

template <class M>
Watched stream_on(const std::string& algorithm, const M& monoid, std::span<const Time> times, std::span<const double> values, Time period,
                  std::size_t arity, Mode mode) {
  auto on = [&](auto window) { return bench::by_time(window, monoid, times, values, period, mode); };
  auto fiba = [&] { return arity ? Fiba<M>(monoid, arity) : Fiba<M>(monoid); };
  if (algorithm == "fiba") return on(fiba());
  if (algorithm == "fiba_singly") return on(Singly<Fiba<M>>(fiba()));
  if (algorithm == "b_tree") return on(Singly<BTree<M>>(arity ? BTree<M>(monoid, arity) : BTree<M>(monoid)));
  if (arity) throw nb::value_error("only fiba and b_tree have a min arity.");
  if (algorithm == "block_fiba") return on(BlockFiba<M>(monoid));
  if (!std::is_sorted(times.begin(), times.end())) refuse("a stream out of order", algorithm, "fiba, fiba_singly, block_fiba or b_tree");
  if (algorithm == "daba_lite") return on(InOrder<DabaLite<M>>(monoid, 0));
  if (algorithm == "daba") return on(InOrder<Daba<M>>(monoid, 0));
  if (algorithm == "two_stacks_lite") return on(InOrder<TwoStacksLite<M>>(monoid, 0));
  if (algorithm == "two_stacks") return on(InOrder<TwoStacks<M>>(monoid, 0));
  if (algorithm == "flat_fit") return on(InOrder<FlatFit<M>>(monoid, 0));
  refuse("a stream", algorithm,
         "fiba, fiba_singly, block_fiba, b_tree, or in order daba_lite, daba, two_stacks_lite, two_stacks or flat_fit");
}

template <class M>
Watched sharing_on(const std::string& algorithm, const M& monoid, std::size_t n, std::size_t m, std::uint64_t rounds, bool shared,
                   Mode mode) {
  auto on = [&](auto big, auto small) { return bench::sharing(big, small, monoid, n, m, rounds, shared, mode); };
  if (algorithm == "fiba") return on(Fiba<M>(monoid), Fiba<M>(monoid));
  if (algorithm == "b_tree") return on(BTree<M>(monoid), BTree<M>(monoid));
  if (algorithm == "block_fiba") return on(BlockFiba<M>(monoid), BlockFiba<M>(monoid));
  refuse("sharing", algorithm, "fiba, b_tree or block_fiba");
}

template <class M>
Watched coarse_on(const std::string& algorithm, const M& monoid, std::size_t n, std::size_t g, std::uint64_t asks, bool coarse, Mode mode) {
  if (algorithm == "buckets") {
    Buckets<M> buckets(monoid, n, g);
    return bench::asked_of_buckets(buckets, monoid, n, g, asks, mode);
  }
  auto on = [&](auto algorithm) {
    if (coarse) {
      Coarse<decltype(algorithm), M> window(std::move(algorithm), monoid, g);
      return bench::asked_every(window, monoid, n, g, asks, mode, [&] { window.evict(); });
    }
    return bench::asked_every(algorithm, monoid, n, g, asks, mode, [&] {
      for (std::size_t i = 0; i < g; ++i) algorithm.evict();
    });
  };
  if (algorithm == "daba_lite") return on(DabaLite<M>(monoid));
  if (algorithm == "two_stacks_lite") return on(TwoStacksLite<M>(monoid));
  if (algorithm == "fiba") return on(Stamped<Fiba<M>>(Fiba<M>(monoid)));
  if (algorithm == "block_fiba") return on(Stamped<BlockFiba<M>>(BlockFiba<M>(monoid)));
  refuse("coarse", algorithm, "buckets, daba_lite, two_stacks_lite, fiba or block_fiba");
}

// Bytes that the allocator has given out.
std::size_t allocated() {
#ifdef __GLIBC__
  struct mallinfo2 m = ::mallinfo2();
  return m.uordblks + m.hblkhd;
#else
  throw nb::value_error("memory is counted by glibc's allocator, which this system has not.");
#endif
}

// A sum's bytes per entry: after n inserts, and after half a window more has slid through.
template <class Make>
std::pair<double, double> bytes_of(std::size_t n, Make make) {
  std::size_t before = allocated();
  auto window = make();
  auto per_entry = [&] { return static_cast<double>(allocated() - before) / static_cast<double>(window.size()); };
  for (std::size_t i = 0; i < n; ++i) window.insert(static_cast<double>(i % 101));
  double filled = per_entry();
  for (std::size_t i = 0; i < n / 2; ++i) {
    window.evict();
    window.insert(static_cast<double>(i % 101));
  }
  bench::consume(window.query());
  if (window.size() != n) throw nb::value_error("the window does not hold what the experiment claims.");
  return {filled, per_entry()};
}

// An in-order algorithm with its times beside it.
template <class Algorithm>
auto timed(const Sum<double>& monoid) {
  return Stamped<InOrder<Algorithm>>(InOrder<Algorithm>(monoid, 0));
}

std::pair<double, double> memory_on(const std::string& algorithm, std::size_t n, bool with_times, std::size_t arity) {
  using M = Sum<double>;
  M monoid;
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // a mapping of its own counts what aligning it leaves unused, which no page backs
#endif
  auto fiba = [&] { return Stamped<Fiba<M>>(arity ? Fiba<M>(monoid, arity) : Fiba<M>(monoid)); };
  if (algorithm == "fiba") return bytes_of(n, fiba);
  if (arity) throw nb::value_error("only fiba has a min arity here.");
  if (algorithm == "block_fiba") return bytes_of(n, [&] { return Stamped<BlockFiba<M>>(BlockFiba<M>(monoid)); });
  auto in_order = [&]<class Algorithm>(std::type_identity<Algorithm>) {
    if (with_times) return bytes_of(n, [&] { return timed<Algorithm>(monoid); });
    return bytes_of(n, [&] { return Algorithm(monoid); });
  };
  if (algorithm == "daba_lite") return in_order(std::type_identity<DabaLite<M>>{});
  if (algorithm == "daba") return in_order(std::type_identity<Daba<M>>{});
  if (algorithm == "two_stacks_lite") return in_order(std::type_identity<TwoStacksLite<M>>{});
  if (algorithm == "two_stacks") return in_order(std::type_identity<TwoStacks<M>>{});
  if (algorithm == "flat_fit") return in_order(std::type_identity<FlatFit<M>>{});
  if (algorithm == "flat_fat") return in_order(std::type_identity<FlatFat<M>>{});
  if (algorithm == "b_int") return in_order(std::type_identity<BInt<M>>{});
  if (algorithm == "amta") return in_order(std::type_identity<Amta<M>>{});
  refuse("memory", algorithm, "fiba, block_fiba, daba_lite, daba, two_stacks_lite, two_stacks, flat_fit, flat_fat, b_int or amta");
}

nb::dict freelist_on(std::size_t n, std::size_t m, std::uint64_t rounds, std::size_t arity, bool deferred) {
  using M = Sum<double>;
  bench::Outcome out;
  {
    nb::gil_scoped_release unlocked;
    auto on = [&](auto window) { out = bench::bulk(window, M{}, n, m, 0, rounds, 1, false); };
    deferred ? on(Fiba<M>(M{}, arity)) : on(Eager<Fiba<M>>(M{}, arity));
  }
  Watched whole;
  static_cast<bench::Outcome&>(whole) = std::move(out);
  return told(std::move(whole), 0);
}

}  // namespace

static Binding bind(31, [](nb::module_& m) {
  m.def(
      "stream",
      [](const std::string& algorithm, const std::string& aggregation, Times times, Values values, Time period, std::size_t min_arity,
         const std::string& mode) {
        if (times.size() == 0 || times.size() != values.size())
          throw nb::value_error("a stream needs as many values as times, at least 1.");
        std::span<const Time> t(times.data(), times.size());
        std::span<const double> v(values.data(), values.size());
        Mode how = mode_named(mode);
        return run_as(aggregation, how, [&](auto monoid) { return stream_on(algorithm, monoid, t, v, period, min_arity, how); });
      },
      nb::arg("algorithm"), nb::arg("aggregation"), nb::arg("times"), nb::arg("values"), nb::arg("period"), nb::arg("min_arity"),
      nb::arg("mode"), "A window of one period over a stream in order of arrival.");
  m.def(
      "shape",
      [](Times times, Time period) {
        bench::Shape shape = bench::shape({times.data(), times.size()}, period);
        nb::dict result;
        result["n"] = array_of(std::move(shape.n));
        result["m"] = array_of(std::move(shape.m));
        result["d"] = array_of(std::move(shape.d));
        return result;
      },
      nb::arg("times"), nb::arg("period"), "What such a window holds, found without a window.");
  m.def(
      "sharing",
      [](const std::string& algorithm, std::size_t n, std::size_t small, std::uint64_t rounds, bool shared, const std::string& mode) {
        if (small == 0 || small > n) throw nb::value_error("the small window holds from 1 to as many items as the big one.");
        Mode how = mode_named(mode);
        return run_as("sum", how, [&](auto monoid) { return sharing_on(algorithm, monoid, n, small, rounds, shared, how); });
      },
      nb::arg("algorithm"), nb::arg("size"), nb::arg("small"), nb::arg("rounds"), nb::arg("shared"), nb::arg("mode"),
      "Two windows of one stream, as ranges of one tree or as two trees.");
  m.def(
      "coarse",
      [](const std::string& algorithm, std::size_t n, std::size_t grain, std::uint64_t asks, bool coarse, const std::string& mode) {
        if (grain == 0 || n % grain != 0) throw nb::value_error("the window's size must be a multiple of the grain.");
        Mode how = mode_named(mode);
        return run_as("sum", how, [&](auto monoid) { return coarse_on(algorithm, monoid, n, grain, asks, coarse, how); });
      },
      nb::arg("algorithm"), nb::arg("size"), nb::arg("grain"), nb::arg("asks"), nb::arg("coarse"), nb::arg("mode"),
      "A window asked every few items, with its items or with slices of them.");
  m.def("ticks", &bench::ticks, "The counter that single rounds are timed by.");
  m.def("compiler", [] { return std::string("C++ ") + __VERSION__; }, "What compiled the core.");
  m.def("memory", &memory_on, nb::arg("algorithm"), nb::arg("size"), nb::arg("times"), nb::arg("min_arity"),
        "Bytes per entry of a sum, filled and after sliding.");
  m.def("freelist", &freelist_on, nb::arg("size"), nb::arg("bulk"), nb::arg("rounds"), nb::arg("min_arity"), nb::arg("deferred"),
        "Bulk evictions with the deferred free list, or with what was evicted taken apart at once.");
});

}  // namespace sash
