#include "../swag/daba_lite.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct DabaLiteWindow {
  template <class M>
  using On = InOrder<DabaLite<M>>;
};

static const AlgorithmInfo daba_lite_info{.name = "DabaLite",
                                          .time = "at most 3 per insert, 2 per evict",
                                          .space = "n + 2",
                                          .paper = "DABA, 2021, section 6",
                                          .make = make_window<DabaLiteWindow, Heat::hot>,
                                          .in_order = true,
                                          .preference = 6,
                                          .benches = "fifo latency bulk coarse"};

static Binding bind_daba_lite(6, [](nb::module_& m) {
  bind_window<DabaLiteWindow>(m, daba_lite_info, "Aggregate an in-order window in worst-case constant time, with n + 2 partials.");
});

}  // namespace sash
