// What the garbage collector asks of a class: which Python objects an instance refers to, and to let go of them

#pragma once

#include <nanobind/nanobind.h>

namespace sash {

namespace nb = nanobind;

// T has traverse(visit, arg), which visits every reference that it owns, each as often as it owns it, and forget().
template <class T>
struct Collected {
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (PyObject** attributes = _PyObject_GetDictPtr(self)) Py_VISIT(*attributes);
    return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
  }

  static int clear(PyObject* self) {
    if (PyObject** attributes = _PyObject_GetDictPtr(self)) Py_CLEAR(*attributes);
    try {
      if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->forget();
    } catch (...) {  // out of memory: what refers to itself stays
    }
    return 0;
  }

  static inline PyType_Slot slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};
};

}  // namespace sash
