// sash bench: the experiments' loops on the algorithms themselves, nothing between

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>

#include "../bench/loops.hpp"
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
#include "module.hpp"

namespace sash {

namespace {

using bench::Counted;
using bench::Outcome;

struct Experiment {
  std::string kind, algorithm, aggregation;
  std::size_t size, distance, bulk;
  std::uint64_t rounds;
  bool scattered;
  std::size_t min_arity;
};

// The loop every in-order figure is also given as a ratio to: a ring buffer and a running sum.
template <class M>
class PlainRing {
 public:
  using Partial = typename M::Partial;
  explicit PlainRing(M monoid, std::size_t capacity) : monoid_(monoid), ring_(capacity + 1, monoid.identity()), sum_(monoid.identity()) {}
  void insert(Partial v) {
    sum_ = monoid_.combine(sum_, v);
    ring_[tail_] = v;
    if (++tail_ == ring_.size()) tail_ = 0;
    ++size_;
  }
  void evict() {
    sum_ = monoid_.inverse(sum_, ring_[head_]);
    if (++head_ == ring_.size()) head_ = 0;
    --size_;
  }
  Partial query() const { return sum_; }
  std::size_t size() const { return size_; }

 private:
  M monoid_;
  std::vector<Partial> ring_;
  Partial sum_;
  std::size_t head_ = 0, tail_ = 0, size_ = 0;
};

[[noreturn]] void refuse(const Experiment& e) {
  throw nb::value_error(
      (e.kind + " has no cell for algorithm " + e.algorithm + " with aggregation " + e.aggregation +
       (e.min_arity ? " and a min arity" : "") +
       ". Use an algorithm that takes that order of items, and sum, sum_int, max or geomean; only fiba and b_tree have a min arity.")
          .c_str());
}

template <class M>
Outcome in_order(const Experiment& e, const M& monoid) {
  if ((e.kind != "fifo" && e.kind != "latency" && e.kind != "dynamic") || e.min_arity) refuse(e);
  auto run = [&](auto window) {
    if (e.kind == "dynamic") return bench::dynamic(window, monoid, e.size, e.rounds);
    return bench::fifo(window, monoid, e.size, e.rounds, e.kind == "latency");
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

// In order on an out-of-order algorithm: the times count up.
template <class Window>
class Stamped {
 public:
  using Partial = typename Window::Partial;
  explicit Stamped(Window& window) : window_(window) {}
  void insert(Partial v) { window_.insert(next_++, std::move(v)); }
  void evict() { window_.evict(); }
  Partial query() const { return window_.query(); }
  std::size_t size() const { return window_.size(); }

 private:
  Window& window_;
  Time next_ = 0;
};

template <class Window, class M>
Outcome any_order(const Experiment& e, Window& window, const M& monoid) {
  if (e.kind == "fifo" || e.kind == "latency") {
    Stamped<Window> stamped(window);
    return bench::fifo(stamped, monoid, e.size, e.rounds, e.kind == "latency");
  }
  if (e.kind == "dynamic") {
    Stamped<Window> stamped(window);
    return bench::dynamic(stamped, monoid, e.size, e.rounds);
  }
  if (e.kind == "ooo") return bench::out_of_order(window, monoid, e.size, e.distance, e.rounds, e.scattered);
  if (e.kind == "bulk" || e.kind == "bulk-evict")
    return bench::bulk(window, monoid, e.size, e.bulk, e.distance, e.rounds, e.kind == "bulk");
  refuse(e);
}

template <class M>
Outcome run_on(const Experiment& e, const M& monoid) {
  std::size_t arity = e.min_arity;
  if (e.algorithm == "fiba") {
    Fiba<M> window = arity ? Fiba<M>(monoid, arity) : Fiba<M>(monoid);
    return any_order(e, window, monoid);
  }
  if (e.algorithm == "b_tree") {
    BTree<M> window = arity ? BTree<M>(monoid, arity) : BTree<M>(monoid);
    return any_order(e, window, monoid);
  }
  if (e.algorithm == "block_fiba" && !arity) {
    BlockFiba<M> window(monoid);
    return any_order(e, window, monoid);
  }
  return in_order(e, monoid);
}

template <class Call>
Outcome with_aggregation(const Experiment& e, Call call) {
  if (e.aggregation == "sum") return call(Sum<double>{});
  if (e.aggregation == "sum_int") return call(Sum<std::int64_t>{});
  if (e.aggregation == "max") return call(Max<double>{});
  if (e.aggregation == "geomean") return call(Geomean<double>{});
  refuse(e);
}

}  // namespace

static Binding bind(30, [](nb::module_& m) {
  m.def(
      "bench",
      [](const std::string& kind, const std::string& algorithm, const std::string& aggregation, std::size_t size, std::size_t distance,
         std::size_t bulk, std::uint64_t rounds, bool scattered, std::size_t min_arity, bool count) {
        Experiment e{kind, algorithm, aggregation, size, distance, bulk, rounds, scattered, min_arity};
        if (size == 0 || rounds == 0) throw nb::value_error("an experiment needs a window of at least 1 and at least 1 round.");
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
        result["seconds"] = out.seconds;
        result["rounds"] = out.rounds;
        result["items"] = out.items;
        result["smallest"] = out.smallest;
        result["largest"] = out.largest;
        result["combines"] = combines;
        auto* ticks = new std::vector<std::uint32_t>(std::move(out.ticks));
        nb::capsule owner(ticks, [](void* p) noexcept { delete static_cast<std::vector<std::uint32_t>*>(p); });
        result["ticks"] = nb::ndarray<nb::numpy, std::uint32_t, nb::ndim<1>>(ticks->data(), {ticks->size()}, owner);
        return result;
      },
      nb::arg("kind"), nb::arg("algorithm"), nb::arg("aggregation"), nb::arg("size"), nb::arg("distance"), nb::arg("bulk"),
      nb::arg("rounds"), nb::arg("scattered"), nb::arg("min_arity"), nb::arg("count"), "Run one cell of an experiment in the core.");
});

}  // namespace sash
