#include "../swag/block_fiba.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct BlockFibaWindow {
  template <class M>
  using On = ByTime<BlockFiba<M>, Time>;
};
struct BlockFibaKeepingTies {
  template <class M>
  using On = ByTime<BlockFiba<M, TimeSeq>, TimeSeq>;
};

static std::unique_ptr<AnyWindow> make(const DefinitionPtr& definition, const Options& options) {
  if (options.keep_ties) return make_window<BlockFibaKeepingTies, Heat::cold>(definition, options);
  return make_window<BlockFibaWindow, Heat::hot>(definition, options);
}

static AlgorithmInfo info_of(const char* name, decltype(AlgorithmInfo::make) make) {
  return {.name = name,
          .time = "log d for an item d places late",
          .space = "about n",
          .paper = "our own layout of FiBA",
          .make = make,
          .ranges = true,
          .items = true,
          .anywhere = true,
          .combines_ties = true,
          .preference = 8,
          .benches = "fifo latency ooo bulk coarse"};
}

static const AlgorithmInfo info = info_of("BlockFiba", make);

// The smallest blocks there can be, for tests: a few dozen entries meet every split, merge and cut.
struct SmallBlockFibaWindow {
  template <class M>
  using On = ByTime<BlockFiba<M, Time, 4, 4>, Time>;
};

static const AlgorithmInfo small = info_of("_SmallBlockFiba", make_window<SmallBlockFibaWindow, Heat::cold>);

static Binding bind(15, [](nb::module_& m) {
  bind_window<BlockFibaWindow>(m, info, "Aggregate a window of items in any order: blocks of entries and three fingers.", false, true);
  bind_window<SmallBlockFibaWindow>(m, small, "BlockFiba with blocks of four, for tests.");
});

}  // namespace sash
