#include "../swag/recalc.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct RecalcWindow {
  template <class M>
  using On = InOrder<Recalc<M>>;
};

static const AlgorithmInfo recalc_info{.name = "Recalc",
                                       .time = "n - 1 per query",
                                       .space = "n",
                                       .paper = "the tutorial of 2017",
                                       .make = make_window<RecalcWindow, Heat::cold>,
                                       .in_order = true,
                                       .ranges = true,
                                       .items = true,
                                       .needs_associative = false,
                                       .preference = 1,
                                       .drawback = "recalculates the whole window at every query"};

static Binding bind_recalc(1, [](nb::module_& m) {
  bind_window<RecalcWindow>(
      m, recalc_info,
      "Aggregate a window from scratch at every query: the oracle, and the only one that takes non-associative aggregations.");
});

}  // namespace sash
