#include "../swag/flat_fit.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct FlatFitWindow {
  template <class M>
  using On = InOrder<FlatFit<M>>;
};

static const AlgorithmInfo info{.name = "FlatFit",
                                .in_order = true,
                                .ranges = false,
                                .suffixes = true,
                                .items = false,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<FlatFitWindow, Heat::hot>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<FlatFitWindow>(m, info, "Aggregate an in-order window, or its youngest part, in amortised constant time.");
});

}  // namespace sash
