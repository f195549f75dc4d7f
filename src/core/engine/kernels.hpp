// The kernels that the engine runs on slices
//
// Slices of one pane arrive in pieces, in any order, so a kernel must commute. One that does not names another that does,
// InSlices, whose partial carries what decides: the time, and the tie.

#pragma once

#include "../kernel.hpp"
#include "../registry.hpp"

namespace sash::engine {

// Calls visit(kernel) with the kernel that the engine uses for this name; false if it has none: one that does not commute, or
// whose partials are not plain bytes.
template <class Visit>
bool with_engine_kernel(const KernelSpec& spec, Visit visit) {
  return with_kernel(spec, [&](auto kernel) {
    using K = decltype(kernel);
    if constexpr (requires { typename K::InSlices; }) {
      visit(typename K::InSlices{});
      return true;
    } else if constexpr (is_commutative<K> && std::is_trivially_copyable_v<typename K::Partial>) {
      visit(kernel);
      return true;
    }
    return false;
  });
}

}  // namespace sash::engine
