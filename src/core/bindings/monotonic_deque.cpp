#include "../swag/monotonic_deque.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct MonotonicDequeWindow {
  template <class M>
  using On = InOrder<MonotonicDeque<M>>;
};

static const AlgorithmInfo info{.name = "MonotonicDeque",
                                .in_order = true,
                                .ranges = false,
                                .suffixes = false,
                                .items = false,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = true,
                                .needs_associative = true,
                                .make = make_window<MonotonicDequeWindow, Heat::hot>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<MonotonicDequeWindow>(
      m, info, "Aggregate an in-order window of a selective aggregation by keeping only the items that can still win.");
});

}  // namespace sash
