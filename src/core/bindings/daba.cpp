#include "../swag/daba.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct DabaWindow {
  template <class M>
  using On = InOrder<Daba<M>>;
};

static const AlgorithmInfo info{.name = "Daba",
                                .in_order = true,
                                .ranges = false,
                                .suffixes = false,
                                .items = true,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<DabaWindow, Heat::hot>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<DabaWindow>(m, info, "Aggregate an in-order window in worst-case constant time, with 2n partials and its items at hand.");
});

}  // namespace sash
