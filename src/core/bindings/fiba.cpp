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
                                .time = "log d for an item d places late",
                                .space = "between n and 2n",
                                .paper = "FiBA, 2019; in bulk, 2023",
                                .make = make,
                                .ranges = true,
                                .items = true,
                                .anywhere = true,
                                .combines_ties = true,
                                .benches = "fifo latency ooo bulk coarse"};

static Binding bind(14, [](nb::module_& m) {
  bind_window<FibaWindow>(m, info, "Aggregate a window of items in any order: O(log d) for an item d places late, ranges included.", true);
});

}  // namespace sash
