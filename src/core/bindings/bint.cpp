#include "../swag/bint.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct BIntWindow {
  template <class M>
  using On = InOrder<BInt<M>>;
};

static const AlgorithmInfo info{.name = "BInt",
                                .in_order = true,
                                .ranges = true,
                                .suffixes = false,
                                .items = true,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<BIntWindow, Heat::cold>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<BIntWindow>(m, info, "Aggregate an in-order window and any range of it with dyadic intervals; evicting costs no combine.");
});

}  // namespace sash
