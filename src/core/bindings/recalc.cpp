#include "../swag/recalc.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct RecalcWindow {
  template <class M>
  using On = InOrder<Recalc<M>>;
};

static const AlgorithmInfo info{.name = "Recalc",
                                .in_order = true,
                                .ranges = true,
                                .suffixes = false,
                                .items = true,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = false,
                                .make = make_window<RecalcWindow, Heat::cold>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<RecalcWindow>(
      m, info, "Aggregate a window from scratch at every query: the oracle, and the only one that takes non-associative aggregations.");
});

}  // namespace sash
