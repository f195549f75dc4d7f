// Wheels of the kernels that have an instantiation of their own
//
// Both kinds stand in one file: keyed wheels hold wheels, and compiled apart the two took half as long again.

#include "keyed_wheels_impl.hpp"
#include "wheel_impl.hpp"

namespace sash {

std::unique_ptr<AnyWheel> make_hot_wheel(const DefinitionPtr& definition, const WheelSettings& settings) {
  return with_kernel(definition->kernels[0], [&]<class K>(K) -> std::unique_ptr<AnyWheel> {
    if constexpr (in_wheels<K>) return std::make_unique<WheelImpl<NativeFace<K>>>(definition, settings);
    return nullptr;
  });
}

std::unique_ptr<AnyKeyedWheels> make_hot_keyed_wheels(const DefinitionPtr& definition, const WheelSettings& settings) {
  return with_kernel(definition->kernels[0], [&]<class K>(K) -> std::unique_ptr<AnyKeyedWheels> {
    if constexpr (in_wheels<K>) return std::make_unique<KeyedWheelsImpl<NativeFace<K>>>(definition, settings);
    return nullptr;
  });
}

}  // namespace sash
