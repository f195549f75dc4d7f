#include "../swag/amta.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct AmtaWindow {
  template <class M>
  using On = InOrder<Amta<M>>;
};

static const AlgorithmInfo amta_info{.name = "Amta",
                                     .time = "amortised 1, log n at most, any bulk evict log n",
                                     .space = "2n",
                                     .paper = "AMTA, 2019",
                                     .make = make_window<AmtaWindow, Heat::cold>,
                                     .in_order = true,
                                     .items = true,
                                     .benches = "fifo bulk"};

static Binding bind_amta(10, [](nb::module_& m) {
  bind_window<AmtaWindow>(m, amta_info,
                          "Aggregate an in-order window in amortised constant time, evicting any number of items in O(log n).");
});

}  // namespace sash
