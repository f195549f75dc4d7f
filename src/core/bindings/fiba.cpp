#include "../swag/fiba.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct FibaWindow {
  template <class M>
  using On = ByTime<Fiba<M>, Time>;
};
struct FibaKeepingTies {
  template <class M>
  using On = ByTime<Fiba<M, TimeSeq>, TimeSeq>;
};

static std::unique_ptr<AnyWindow> make(const DefinitionPtr& definition, const Options& options) {
  if (options.keep_ties) return make_window<FibaKeepingTies, Heat::cold>(definition, options);
  return make_window<FibaWindow, Heat::hot>(definition, options);
}

static const AlgorithmInfo info{.name = "Fiba",
                                .in_order = false,
                                .ranges = true,
                                .suffixes = false,
                                .items = true,
                                .anywhere = true,
                                .needs_inverse = false,
                                .needs_selective = false,
                                .needs_associative = true,
                                .make = make};

static Binding bind(10, [](nb::module_& m) {
  bind_window<FibaWindow>(m, info, "Aggregate a window of items in any order: O(log d) for an item d places late, ranges included.", true);
});

}  // namespace sash
