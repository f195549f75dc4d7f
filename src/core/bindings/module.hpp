// How a translation unit adds itself to the module

#pragma once

#include <nanobind/nanobind.h>

namespace sash {

namespace nb = nanobind;

// A static Binding in each .cpp; module.cpp runs them in order of rank (base classes first).
struct Binding {
  Binding(int rank, void (*bind)(nb::module_&));
};

}  // namespace sash
