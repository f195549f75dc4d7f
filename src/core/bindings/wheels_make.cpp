// Wheels of Python objects and of erased partials, and the choice between these and the kernels' own

#include "keyed_wheels_impl.hpp"
#include "wheel_impl.hpp"

namespace sash {

std::unique_ptr<AnyWheel> make_wheel(const DefinitionPtr& definition, const WheelSettings& settings) {
  if (definition->object) return std::make_unique<WheelImpl<WheelObjectFace>>(definition, settings);
  if (definition->names.empty() && !run_time_kernel(definition->kernels[0]))
    if (auto hot = make_hot_wheel(definition, settings)) return hot;
  return std::make_unique<WheelImpl<ErasedFace>>(definition, settings);
}

std::unique_ptr<AnyKeyedWheels> make_keyed_wheels(const DefinitionPtr& definition, const WheelSettings& settings) {
  if (definition->object) return std::make_unique<KeyedWheelsImpl<WheelObjectFace>>(definition, settings);
  if (definition->names.empty() && !run_time_kernel(definition->kernels[0]))
    if (auto hot = make_hot_keyed_wheels(definition, settings)) return hot;
  return std::make_unique<KeyedWheelsImpl<ErasedFace>>(definition, settings);
}

}  // namespace sash
