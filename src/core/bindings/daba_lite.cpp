#include "../swag/daba_lite.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct DabaLiteWindow {
  template <class M>
  using On = InOrder<DabaLite<M>>;
};

static const AlgorithmInfo info{.name = "DabaLite",
                                .in_order = true,
                                .ranges = false,
                                .suffixes = false,
                                .items = false,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<DabaLiteWindow, Heat::hot>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<DabaLiteWindow>(m, info, "Aggregate an in-order window in worst-case constant time, with n + 2 partials.");
});

}  // namespace sash
