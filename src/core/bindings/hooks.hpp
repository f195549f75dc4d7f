// Methods of the core's classes that are written in Python
//
// The core declares the method, and the room that has its body registers that once, when it is imported: register_hooks.
// So nobody writes into a class of the core from outside, and the core imports no room for it.

#pragma once

#include <string>

#include "module.hpp"

namespace sash {

nb::handle hook(const char* name);

}  // namespace sash
