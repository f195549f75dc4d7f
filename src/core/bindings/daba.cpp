#include "../swag/daba.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct DabaWindow {
  template <class M>
  using On = InOrder<Daba<M>>;
};

static const AlgorithmInfo daba_info{.name = "Daba",
                                     .time = "at most 4 per insert, 3 per evict",
                                     .space = "2n",
                                     .paper = "DABA, 2021, section 5",
                                     .make = make_window<DabaWindow, Heat::hot>,
                                     .in_order = true,
                                     .items = true,
                                     .benches = "fifo latency"};

static Binding bind_daba(5, [](nb::module_& m) {
  bind_window<DabaWindow>(m, daba_info,
                          "Aggregate an in-order window in worst-case constant time, with 2n partials and its items at hand.");
});

}  // namespace sash
