// BlockFiba with ties="keep", in a file of its own that is not optimised (see CMakeLists.txt)

#include "../swag/block_fiba.hpp"
#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct BlockFibaKeepingTies {
  template <class M>
  using On = ByTime<BlockFiba<M, TimeSeq>, TimeSeq>;
};

std::unique_ptr<AnyWindow> make_block_fiba_keeping_ties(const DefinitionPtr& definition, const Options& options) {
  return make_window<BlockFibaKeepingTies, Heat::cold>(definition, options);
}

}  // namespace sash
