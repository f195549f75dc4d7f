#include "../swag/two_stacks_lite.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct TwoStacksLiteWindow {
  template <class M>
  using On = InOrder<TwoStacksLite<M>>;
};

static const AlgorithmInfo info{.name = "TwoStacksLite",
                                .in_order = true,
                                .ranges = false,
                                .suffixes = false,
                                .items = false,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<TwoStacksLiteWindow, Heat::hot>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<TwoStacksLiteWindow>(m, info, "Aggregate an in-order window in amortised constant time, with n + 1 partials.");
});

}  // namespace sash
