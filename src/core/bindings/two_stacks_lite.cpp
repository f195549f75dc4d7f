#include "../swag/two_stacks_lite.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct TwoStacksLiteWindow {
  template <class M>
  using On = InOrder<TwoStacksLite<M>>;
};

static const AlgorithmInfo two_stacks_lite_info{.name = "TwoStacksLite",
                                                .time = "amortised 1, n at a flip",
                                                .space = "n + 1",
                                                .paper = "DABA, 2021, section 4",
                                                .make = make_window<TwoStacksLiteWindow, Heat::hot>,
                                                .in_order = true,
                                                .preference = 5,
                                                .spike = "up to n combines at a flip",
                                                .benches = "fifo latency bulk coarse"};

static Binding bind_two_stacks_lite(4, [](nb::module_& m) {
  bind_window<TwoStacksLiteWindow>(m, two_stacks_lite_info,
                                   "Aggregate an in-order window in amortised constant time, with n + 1 partials.");
});

}  // namespace sash
