#include "../swag/btree.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct BTreeWindow {
  template <class M>
  using On = ByTime<BTree<M>, Time>;
};
struct BTreeKeepingTies {
  template <class M>
  using On = ByTime<BTree<M, TimeSeq>, TimeSeq>;
};

static std::unique_ptr<AnyWindow> make(const DefinitionPtr& definition, const Options& options) {
  if (options.keep_ties) return make_window<BTreeKeepingTies, Heat::cold>(definition, options);
  return make_window<BTreeWindow, Heat::cold>(definition, options);
}

static const AlgorithmInfo info{.name = "BTree",
                                .time = "log n",
                                .space = "between n and 2n",
                                .paper = "FiBA, 2019, its baseline",
                                .make = make,
                                .ranges = true,
                                .items = true,
                                .anywhere = true,
                                .combines_ties = true,
                                .benches = "ooo"};

static Binding bind(13, [](nb::module_& m) {
  bind_window<BTreeWindow>(
      m, info, "Aggregate a window of items in any order: O(log n) for every item; the baseline that Fiba is measured against.", true);
});

}  // namespace sash
