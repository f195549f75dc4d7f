#include "keyed_wheels_impl.hpp"

namespace sash {

std::unique_ptr<AnyKeyedWheels> make_hot_keyed_wheels(const DefinitionPtr& definition, const WheelSettings& settings) {
  return with_kernel(definition->kernels[0], [&]<class K>(K) -> std::unique_ptr<AnyKeyedWheels> {
    if constexpr (in_wheels<K>) return std::make_unique<KeyedWheelsImpl<NativeFace<K>>>(definition, settings);
    return nullptr;
  });
}

}  // namespace sash
