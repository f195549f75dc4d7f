#include "../swag/flat_fat.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct FlatFatWindow {
  template <class M>
  using On = InOrder<FlatFat<M>>;
};

static const AlgorithmInfo info{.name = "FlatFat",
                                .in_order = true,
                                .ranges = true,
                                .suffixes = false,
                                .items = true,
                                .anywhere = false,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<FlatFatWindow, Heat::cold>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<FlatFatWindow>(m, info, "Aggregate an in-order window and any range of it with a flat binary tree.");
});

}  // namespace sash
