#include "../swag/two_stacks.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct TwoStacksWindow {
  template <class M>
  using On = InOrder<TwoStacks<M>>;
};

static const AlgorithmInfo info{.name = "TwoStacks",
                                .in_order = true,
                                .ranges = false,
                                .suffixes = false,
                                .items = true,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<TwoStacksWindow, Heat::cold>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<TwoStacksWindow>(m, info,
                               "Aggregate an in-order window with two stacks: amortised constant time, 2n partials, its items at hand.");
});

}  // namespace sash
