#include "module.hpp"

#include <map>

namespace sash {

static std::multimap<int, void (*)(nb::module_&)>& bindings() {
  static std::multimap<int, void (*)(nb::module_&)> all;
  return all;
}

Binding::Binding(int rank, void (*bind)(nb::module_&)) { bindings().emplace(rank, bind); }

}  // namespace sash

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);  // modules and classes refer to each other until the interpreter ends
  m.doc() = "The native core of Sash: see the package's rooms for what is public.";
  for (auto& [rank, bind] : sash::bindings()) bind(m);
}
