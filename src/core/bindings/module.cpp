// The start of a module: _core and _bench are both made of this file and of the bindings linked with it

#include "module.hpp"

#include <map>
#include <typeinfo>

namespace sash {

static std::multimap<int, void (*)(nb::module_&)>& bindings() {
  static std::multimap<int, void (*)(nb::module_&)> all;
  return all;
}

Binding::Binding(int rank, void (*bind)(nb::module_&)) { bindings().emplace(rank, bind); }

}  // namespace sash

NB_MODULE(SASH_MODULE, m) {
  // What a caller passes is checked by name where it is read; this is for bytes that hold something else than they say.
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_cast&) {
      PyErr_SetString(PyExc_TypeError,
                      "a value is of another type than it is used as, or does not fit 64 bits. See help() of what was called.");
    }
  });
  nanobind::set_leak_warnings(false);  // modules and classes refer to each other until the interpreter ends
  for (auto& [rank, bind] : sash::bindings()) bind(m);
}
