#include "hooks.hpp"

#include <nanobind/stl/string.h>

#include <map>

namespace sash {

static std::map<std::string, nb::object>& hooks() {
  static auto* all = new std::map<std::string, nb::object>;  // never freed: the interpreter may be gone by then
  return *all;
}

nb::handle hook(const char* name) {
  auto found = hooks().find(name);
  if (found == hooks().end()) throw std::logic_error(std::string("no room has registered ") + name + ". Import sash first.");
  return found->second;
}

static Binding bind(0, [](nb::module_& m) {
  m.def(
      "register_hooks",
      [](nb::kwargs functions) {
        for (auto [name, function] : functions) hooks()[nb::cast<std::string>(name)] = nb::borrow(function);
      },
      "Give the bodies of methods of the core that are written in Python, by name.");
});

}  // namespace sash
