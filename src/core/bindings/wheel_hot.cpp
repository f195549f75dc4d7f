#include "wheel_impl.hpp"

namespace sash {

std::unique_ptr<AnyWheel> make_hot_wheel(const DefinitionPtr& definition, const WheelSettings& settings) {
  return with_kernel(definition->kernels[0], [&]<class K>(K) -> std::unique_ptr<AnyWheel> {
    if constexpr (in_wheels<K>) return std::make_unique<WheelImpl<NativeFace<K>>>(definition, settings);
    return nullptr;
  });
}

}  // namespace sash
