// The start of a module: _core and _bench are both made of this file and of the bindings linked with it

#include "module.hpp"

#include <map>

namespace sash {

static std::multimap<int, void (*)(nb::module_&)>& bindings() {
  static std::multimap<int, void (*)(nb::module_&)> all;
  return all;
}

Binding::Binding(int rank, void (*bind)(nb::module_&)) { bindings().emplace(rank, bind); }

}  // namespace sash

NB_MODULE(SASH_MODULE, m) {
  nanobind::set_leak_warnings(false);  // modules and classes refer to each other until the interpreter ends
  for (auto& [rank, bind] : sash::bindings()) bind(m);
}
