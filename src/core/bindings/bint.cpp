#include "../swag/bint.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct BIntWindow {
  template <class M>
  using On = InOrder<BInt<M>>;
};

static const AlgorithmInfo bint_info{.name = "BInt",
                                     .time = "log n per query",
                                     .space = "2n",
                                     .paper = "B-Int, 2004",
                                     .make = make_window<BIntWindow, Heat::cold>,
                                     .in_order = true,
                                     .ranges = true,
                                     .items = true,
                                     .benches = "fifo"};

static Binding bind_bint(9, [](nb::module_& m) {
  bind_window<BIntWindow>(m, bint_info,
                          "Aggregate an in-order window and any range of it with dyadic intervals; evicting costs no combine.");
});

}  // namespace sash
