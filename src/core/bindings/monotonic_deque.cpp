#include "../swag/monotonic_deque.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct MonotonicDequeWindow {
  template <class M>
  using On = InOrder<MonotonicDeque<M>>;
};

static const AlgorithmInfo monotonic_deque_info{.name = "MonotonicDeque",
                                                .time = "amortised 1, n at an insert",
                                                .space = "at most n",
                                                .paper = "SlickDeque, 2018",
                                                .make = make_window<MonotonicDequeWindow, Heat::hot>,
                                                .in_order = true,
                                                .needs_selective = true,
                                                .preference = 4,
                                                .spike = "up to n combines at one insert",
                                                .drawback = "slower than TwoStacksLite at native speed",
                                                .benches = "fifo"};

static Binding bind_monotonic_deque(11, [](nb::module_& m) {
  bind_window<MonotonicDequeWindow>(
      m, monotonic_deque_info, "Aggregate an in-order window of a selective aggregation by keeping only the items that can still win.");
});

}  // namespace sash
