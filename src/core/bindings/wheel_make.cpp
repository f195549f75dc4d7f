#include "wheel_impl.hpp"

namespace sash {

std::unique_ptr<AnyWheel> make_wheel(const DefinitionPtr& definition, const WheelSettings& settings) {
  if (definition->object) return std::make_unique<WheelImpl<WheelObjectFace>>(definition, settings);
  if (definition->names.empty() && !run_time_kernel(definition->kernels[0]))
    if (auto hot = make_hot_wheel(definition, settings)) return hot;
  return std::make_unique<WheelImpl<ErasedFace>>(definition, settings);
}

}  // namespace sash
