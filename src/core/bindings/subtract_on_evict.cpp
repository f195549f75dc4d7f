#include "../swag/subtract_on_evict.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct SubtractOnEvictWindow {
  template <class M>
  using On = InOrder<SubtractOnEvict<M>>;
};

static const AlgorithmInfo subtract_on_evict_info{.name = "SubtractOnEvict",
                                                  .time = "1, and 1 inverse",
                                                  .space = "n + 1",
                                                  .paper = "the tutorial of 2017",
                                                  .make = make_window<SubtractOnEvictWindow, Heat::hot>,
                                                  .in_order = true,
                                                  .items = true,
                                                  .needs_inverse = true,
                                                  .preference = 3,
                                                  .drawback = "subtracts: exact on integers only, and none were promised",
                                                  .benches = "fifo latency"};

static Binding bind_subtract_on_evict(2, [](nb::module_& m) {
  bind_window<SubtractOnEvictWindow>(m, subtract_on_evict_info,
                                     "Aggregate an in-order window by taking the oldest item away with an inverse.");
});

}  // namespace sash
