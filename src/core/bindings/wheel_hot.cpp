#include "wheel_impl.hpp"

namespace sash {

// Moments are left to the erased kernel: a combine of theirs costs more than the indirect call.
std::unique_ptr<AnyWheel> make_hot_wheel(const DefinitionPtr& definition, const WheelSettings& settings) {
  return with_kernel(definition->kernels[0], [&]<class K>(K) -> std::unique_ptr<AnyWheel> {
    if constexpr (is_hot<K> && !std::is_same_v<K, Moments<std::int64_t>> && !std::is_same_v<K, Moments<double>>)
      return std::make_unique<WheelImpl<NativeFace<K>>>(definition, settings);
    return nullptr;
  });
}

}  // namespace sash
