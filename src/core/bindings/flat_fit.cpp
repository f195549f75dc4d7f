#include "../swag/flat_fit.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct FlatFitWindow {
  template <class M>
  using On = InOrder<FlatFit<M>>;
};

static const AlgorithmInfo flat_fit_info{.name = "FlatFit",
                                         .time = "amortised 3, n at a query",
                                         .space = "n",
                                         .paper = "FlatFIT, 2017",
                                         .make = make_window<FlatFitWindow, Heat::hot>,
                                         .in_order = true,
                                         .suffixes = true,
                                         .spike = "up to n combines at a query",
                                         .benches = "fifo latency"};

static Binding bind_flat_fit(7, [](nb::module_& m) {
  bind_window<FlatFitWindow>(m, flat_fit_info, "Aggregate an in-order window, or its youngest part, in amortised constant time.");
});

}  // namespace sash
