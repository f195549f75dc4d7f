#include "../swag/subtract_on_evict.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct SubtractOnEvictWindow {
  template <class M>
  using On = InOrder<SubtractOnEvict<M>>;
};

static const AlgorithmInfo info{.name = "SubtractOnEvict",
                                .in_order = true,
                                .ranges = false,
                                .suffixes = false,
                                .items = true,
                                .anywhere = false,
                                .needs_inverse = true,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make_window<SubtractOnEvictWindow, Heat::hot>};

static Binding bind(10, [](nb::module_& m) {
  bind_window<SubtractOnEvictWindow>(m, info, "Aggregate an in-order window by taking the oldest item away with an inverse.");
});

}  // namespace sash
