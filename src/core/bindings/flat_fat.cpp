#include "../swag/flat_fat.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct FlatFatWindow {
  template <class M>
  using On = InOrder<FlatFat<M>>;
};

static const AlgorithmInfo flat_fat_info{.name = "FlatFat",
                                         .time = "log n",
                                         .space = "2n",
                                         .paper = "Reactive Aggregator, 2015",
                                         .make = make_window<FlatFatWindow, Heat::cold>,
                                         .in_order = true,
                                         .ranges = true,
                                         .items = true,
                                         .benches = "fifo"};

static Binding bind_flat_fat(8, [](nb::module_& m) {
  bind_window<FlatFatWindow>(m, flat_fat_info, "Aggregate an in-order window and any range of it with a flat binary tree.");
});

}  // namespace sash
