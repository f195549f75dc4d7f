#include "../swag/amta.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct AmtaWindow {
  template <class M>
  using On = InOrder<Amta<M>>;
};

static const AlgorithmInfo info{.name = "Amta",
                                .in_order = true,
                                .ranges = false,
                                .suffixes = false,
                                .items = true,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<AmtaWindow, Heat::cold>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<AmtaWindow>(m, info, "Aggregate an in-order window in amortised constant time, evicting any number of items in O(log n).");
});

}  // namespace sash
