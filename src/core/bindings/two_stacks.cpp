#include "../swag/two_stacks.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct TwoStacksWindow {
  template <class M>
  using On = InOrder<TwoStacks<M>>;
};

static const AlgorithmInfo two_stacks_info{.name = "TwoStacks",
                                           .time = "amortised 1, n at a flip",
                                           .space = "2n",
                                           .paper = "DABA, 2021, section 3",
                                           .make = make_window<TwoStacksWindow, Heat::cold>,
                                           .in_order = true,
                                           .items = true,
                                           .spike = "up to n combines at a flip",
                                           .benches = "fifo latency"};

static Binding bind_two_stacks(3, [](nb::module_& m) {
  bind_window<TwoStacksWindow>(m, two_stacks_info,
                               "Aggregate an in-order window with two stacks: amortised constant time, 2n partials, its items at hand.");
});

}  // namespace sash
