// Between Python values and partials: items in, results out, bytes both ways
//
// A face wraps a monoid for the window classes. There are four: a native kernel, an erased kernel (or struct of
// them), a user's compiled functions, and Python callables on Python objects.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <string>
#include <vector>

#include "../monoids/compiled.hpp"
#include "module.hpp"

namespace sash {

// How a result is put together: one number, or several in a named tuple.
struct Lowering {
  std::vector<Lower> hows;
  nb::object result;  // the named tuple, or None
};

// The definition of a window's aggregation, as Python gave it, on the item types it has now.
struct Definition {
  nb::object aggregation;
  std::vector<nb::object> parts;            // the parts of a struct; of anything else, itself
  std::vector<std::string> names;           // the names of the parts; empty where it is no struct
  std::vector<ItemType> types;              // one per part
  std::vector<KernelSpec> kernels;          // one per part, unless object
  std::vector<Lowering> lowerings;          // one per part, unless object
  bool object = false;                      // Python callables on Python objects
  nb::object zero, lift, combine, inverse;  // and then these

  // A definition belongs to one window or wheel, which tells the garbage collector what it refers to.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(aggregation.ptr());
    for (const nb::object& part : parts) Py_VISIT(part.ptr());
    for (const Lowering& lowering : lowerings) Py_VISIT(lowering.result.ptr());
    for (const nb::object* o : {&zero, &lift, &combine, &inverse}) Py_VISIT(o->ptr());
    return 0;
  }
};

using DefinitionPtr = std::shared_ptr<const Definition>;

inline nb::object to_python(const Scalar& s) {
  switch (s.kind) {
    case Scalar::integer:
      return nb::steal(PyLong_FromLongLong(s.i));
    case Scalar::real:
      return nb::steal(PyFloat_FromDouble(s.f));
    case Scalar::truth:
      return nb::borrow(s.i ? Py_True : Py_False);
    case Scalar::overflow:
      PyErr_SetString(PyExc_OverflowError, "the result does not fit int64. Use float items (dtype='float64') or a smaller window.");
      throw nb::python_error();
    default:
      return nb::none();
  }
}

template <class LowerOne>
nb::object lower_fields(const Lowering& lowering, LowerOne lower_one) {
  Scalar first = lower_one(lowering.hows[0]);
  if (lowering.hows.size() == 1 || first.kind == Scalar::none) return to_python(first);
  nb::object fields = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(lowering.hows.size())));
  for (std::size_t i = 0; i < lowering.hows.size(); ++i)
    PyTuple_SET_ITEM(fields.ptr(), static_cast<Py_ssize_t>(i), to_python(lower_one(lowering.hows[i])).release().ptr());
  return lowering.result(*nb::borrow<nb::args>(fields));
}

inline bool equal(const Scalar& a, const Scalar& b) {
  if (a.kind != b.kind) return false;
  if (a.kind != Scalar::real) return a.i == b.i;
  return a.f == b.f || (std::isnan(a.f) && std::isnan(b.f));
}

inline void refuse_arg(const Definition& d) {
  auto name = nb::cast<std::string>(d.aggregation.attr("name"));
  throw nb::type_error((name + " takes no arg. Leave it out; aggregations that take one have the trait parametric.").c_str());
}

// --- a native kernel

template <Kernel K>
class NativeFace {
 public:
  using Monoid = K;
  using Partial = typename K::Partial;
  static constexpr bool native = true;

  explicit NativeFace(DefinitionPtr d) : definition_(std::move(d)) {}
  K monoid() const { return {}; }
  Partial lift(const Item* items, nb::handle, nb::handle, Time t) const { return lift_item(K{}, *items, t); }
  Partial identity() const { return K{}.identity(); }
  nb::object lower(const Partial& p, nb::handle arg) const {
    if (!arg.is_none()) refuse_arg(*definition_);
    return lower_fields(definition_->lowerings[0], [&](Lower how) { return K{}.lower(how, p); });
  }
  Scalar scalar(const Partial& p) const { return K{}.lower(definition_->lowerings[0].hows[0], p); }
  // Whether two partials of one window may stand for the same items: exactly, but for rounding.
  double magnitude([[maybe_unused]] const Partial& p) const {
    if constexpr (Rounding<K>) return K{}.magnitude(p);
    return 0;
  }
  bool same(const Partial& a, const Partial& b, [[maybe_unused]] double scale) const {
    if constexpr (Rounding<K>) return K{}.close(a, b, scale);
    return equal(scalar(a), scalar(b));
  }
  int traverse(visitproc, void*) const { return 0; }

  nb::object to_bytes(const std::vector<Partial>& partials) const {
    return nb::bytes(reinterpret_cast<const char*>(partials.data()), partials.size() * sizeof(Partial));
  }
  std::vector<Partial> from_bytes(nb::handle stored) const {
    auto bytes = nb::cast<nb::bytes>(stored);
    if (bytes.size() % sizeof(Partial)) throw nb::value_error("these bytes are damaged: they hold no whole number of partials.");
    std::vector<Partial> partials(bytes.size() / sizeof(Partial));
    std::memcpy(static_cast<void*>(partials.data()), bytes.c_str(), bytes.size());
    return partials;
  }

 private:
  DefinitionPtr definition_;
};

// --- a kernel known at run time only, or a struct of kernels

template <class M>
class AnyFace {
 public:
  using Monoid = M;
  using Partial = typename M::Partial;
  static constexpr bool native = true;

  explicit AnyFace(DefinitionPtr d) : definition_(std::move(d)) {
    if (definition_->names.empty()) {
      kernel_ = erase(definition_->kernels[0]);
    } else {
      std::vector<std::shared_ptr<const AnyKernel>> parts;
      for (auto& spec : definition_->kernels) parts.push_back(erase(spec));
      kernel_ = struct_ = std::make_shared<StructKernel>(std::move(parts));
    }
    monoid_ = M(kernel_);
  }
  M monoid() const { return monoid_; }
  Partial lift(const Item* items, nb::handle, nb::handle, Time t) const { return monoid_.lift(items, t); }
  Partial identity() const { return monoid_.identity(); }
  nb::object lower(const Partial& p, nb::handle arg) const {
    if (!arg.is_none()) {
      nb::object from_native = definition_->aggregation.attr("from_native");
      if (from_native.is_none()) refuse_arg(*definition_);
      nb::bytes stored(reinterpret_cast<const char*>(p.data()), kernel_->size());
      return definition_->aggregation.attr("lower")(from_native(stored), arg);
    }
    if (!struct_) return lower_fields(definition_->lowerings[0], [&](Lower how) { return kernel_->lower(how, p.data()); });
    nb::dict out;
    for (std::size_t i = 0; i < definition_->names.size(); ++i)
      out[definition_->names[i].c_str()] =
          lower_fields(definition_->lowerings[i], [&](Lower how) { return struct_->lower_part(i, how, p.data()); });
    return out;
  }
  Scalar scalar(const Partial& p) const { return struct_ ? Scalar{} : kernel_->lower(definition_->lowerings[0].hows[0], p.data()); }
  double magnitude(const Partial& p) const { return kernel_->magnitude(p.data()); }
  bool same(const Partial& a, const Partial& b, double scale) const {
    if (!struct_) return kernel_->rounds() ? kernel_->close(a.data(), b.data(), scale) : equal(scalar(a), scalar(b));
    for (std::size_t i = 0; i < definition_->names.size(); ++i) {
      if (struct_->part_rounds(i)) {
        if (!struct_->parts_close(i, a.data(), b.data(), scale)) return false;
        continue;
      }
      for (Lower how : definition_->lowerings[i].hows)
        if (!equal(struct_->lower_part(i, how, a.data()), struct_->lower_part(i, how, b.data()))) return false;
    }
    return true;
  }
  int traverse(visitproc, void*) const { return 0; }

  nb::object to_bytes(const std::vector<Partial>& partials) const {
    std::string all;
    for (auto& p : partials) all.append(reinterpret_cast<const char*>(p.data()), kernel_->size());
    return nb::bytes(all.data(), all.size());
  }
  std::vector<Partial> from_bytes(nb::handle stored) const {
    auto bytes = nb::cast<nb::bytes>(stored);
    std::size_t size = kernel_->size();
    if (bytes.size() % size) throw nb::value_error("these bytes are damaged: they hold no whole number of partials.");
    std::vector<Partial> partials(bytes.size() / size, monoid_.blank());
    for (std::size_t i = 0; i < partials.size(); ++i) std::memcpy(partials[i].data(), bytes.c_str() + i * size, size);
    return partials;
  }

  // A partial of the same definition on narrower item types, as one of this.
  Partial widened(const AnyFace& narrower, const std::vector<bool>& parts, const Partial& p) const {
    Partial out = monoid_.blank();
    if (struct_)
      narrower.struct_->promote_into(*struct_, parts, out.data(), p.data());
    else
      narrower.kernel_->promote_to(*kernel_, out.data(), p.data());
    return out;
  }
  const AnyKernel& kernel() const { return *kernel_; }

 private:
  DefinitionPtr definition_;
  std::shared_ptr<const AnyKernel> kernel_;
  std::shared_ptr<const StructKernel> struct_;
  M monoid_;
};

using ErasedFace = AnyFace<ErasedMonoid>;
using CompiledFace = AnyFace<CompiledMonoid>;

// --- Python callables on Python objects

// The Python objects that the partials of one window or wheel refer to. Each object is held once, in a box that all copies of a
// partial share, and all boxes are on one list: so the garbage collector can be told exactly what is held. Needs the GIL.
class Boxes {
 public:
  struct Box {
    PyObject* object = nullptr;
    std::size_t copies = 0;
    Box* next = this;
    Box* before = this;

    void leave() {
      before->next = next;
      next->before = before;
      next = before = this;
    }
  };

  Boxes() = default;
  Boxes(const Boxes&) = delete;
  ~Boxes() {
    while (head_.next != &head_) head_.next->leave();  // they may live on in a reader
  }

  Box* hold(PyObject* stolen) {
    Box* box = new Box{stolen, 0};
    box->next = head_.next, box->before = &head_;
    head_.next->before = box, head_.next = box;
    return box;
  }

  int traverse(visitproc visit, void* arg) const {
    for (Box* box = head_.next; box != &head_; box = box->next) Py_VISIT(box->object);
    return 0;
  }

 private:
  Box head_;
};

// A partial that is a Python object; algorithms may copy and move it.
class PyRef {
 public:
  PyRef() = default;
  PyRef(Boxes& boxes, nb::object o) : box_(boxes.hold(o.release().ptr())) { ++box_->copies; }
  PyRef(const PyRef& other) : box_(other.box_) {
    if (box_) ++box_->copies;
  }
  PyRef(PyRef&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  PyRef& operator=(PyRef other) noexcept {
    std::swap(box_, other.box_);
    return *this;
  }
  ~PyRef() {
    if (!box_ || --box_->copies > 0) return;
    box_->leave();
    PyObject* object = box_->object;
    delete box_;
    Py_XDECREF(object);  // last: it may run anything
  }
  PyObject* ptr() const { return box_ ? box_->object : nullptr; }
  nb::object object() const { return nb::borrow(ptr()); }

 private:
  Boxes::Box* box_ = nullptr;
};

// The sum of the absolute values of the floats in a partial.
inline double magnitude_of(PyObject* p) {
  if (PyFloat_Check(p)) return finite(PyFloat_AS_DOUBLE(p));
  double sum = 0;
  if (PyTuple_Check(p) || PyList_Check(p)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(p);
    for (Py_ssize_t i = 0; i < n; ++i) sum += magnitude_of(PySequence_Fast_GET_ITEM(p, i));
  }
  return sum;
}

// Equal, but for the rounding of floats within.
inline bool loosely_equal(PyObject* a, PyObject* b, double scale) {
  if (a == b) return true;
  if ((PyFloat_Check(a) && PyNumber_Check(b)) || (PyFloat_Check(b) && PyNumber_Check(a))) {
    double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
    if (!PyErr_Occurred()) return loosely_close(x, y, scale);
    PyErr_Clear();
  }
  auto listed = [](PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); };
  if (listed(a) && listed(b)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(a);
    if (n != PySequence_Fast_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!loosely_equal(PySequence_Fast_GET_ITEM(a, i), PySequence_Fast_GET_ITEM(b, i), scale)) return false;
    return true;
  }
  if (PyDict_Check(a) && PyDict_Check(b)) {
    if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) return false;
    Py_ssize_t at = 0;
    for (PyObject *key, *value; PyDict_Next(a, &at, &key, &value);) {
      PyObject* other = PyDict_GetItemWithError(b, key);
      if (!other && PyErr_Occurred()) throw nb::python_error();
      if (!other || !loosely_equal(value, other, scale)) return false;
    }
    return true;
  }
  if (nb::hasattr(a, "dtype") && nb::hasattr(b, "dtype"))  // arrays
    return nb::cast<bool>(
        nb::bool_(nb::module_::import_("numpy").attr("allclose")(nb::borrow(a), nb::borrow(b), 1e-6, 1e-6 * (1 + scale), true)));
  int answer = PyObject_RichCompareBool(a, b, Py_EQ);
  if (answer < 0) throw nb::python_error();
  return answer != 0;
}

// The callables are the definition's, and live as long as the window that this is in.
class ObjectMonoid {
 public:
  using Partial = PyRef;
  using Probe = CountingProbe;
  static constexpr bool may_throw = true;

  ObjectMonoid() = default;
  ObjectMonoid(const Definition& d, std::shared_ptr<Boxes> boxes)
      : boxes_(std::move(boxes)), zero_(*boxes_, d.zero), combine_(d.combine.ptr()), inverse_(d.inverse.ptr()) {}

  Partial identity() const { return zero_; }
  Partial combine(const Partial& a, const Partial& b) const { return call(combine_, a, b); }
  Partial inverse(const Partial& whole, const Partial& oldest) const { return call(inverse_, whole, oldest); }
  bool keeps_left(const Partial& a, const Partial& b) const {
    PyRef kept = combine(a, b);
    return kept.ptr() == a.ptr() || equal(kept, a);
  }
  static bool equal(const Partial& a, const Partial& b) {
    int answer = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
    if (answer < 0) throw nb::python_error();
    return answer != 0;
  }
  Partial held(nb::object o) const { return PyRef(*boxes_, std::move(o)); }

 private:
  Partial call(PyObject* f, const Partial& a, const Partial& b) const {
    PyObject* args[] = {nullptr, a.ptr(), b.ptr()};
    PyObject* result = PyObject_Vectorcall(f, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (!result) throw nb::python_error();
    return held(nb::steal(result));
  }
  std::shared_ptr<Boxes> boxes_;
  PyRef zero_;
  PyObject* combine_ = nullptr;
  PyObject* inverse_ = nullptr;
};

class ObjectFace {
 public:
  using Monoid = ObjectMonoid;
  using Partial = PyRef;
  static constexpr bool native = false;

  explicit ObjectFace(DefinitionPtr d) : definition_(std::move(d)), boxes_(std::make_shared<Boxes>()), monoid_(*definition_, boxes_) {}
  ObjectMonoid monoid() const { return monoid_; }
  Partial lift(const Item* items, nb::handle value, nb::handle time, Time) const {
    if (items->kind == Item::null && definition_->names.empty()) return identity();
    PyObject* args[] = {nullptr, value.ptr(), time.ptr()};
    PyObject* result = PyObject_Vectorcall(definition_->lift.ptr(), args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (!result) throw nb::python_error();
    return held(nb::steal(result));
  }
  Partial identity() const { return monoid_.identity(); }
  Partial held(nb::object o) const { return monoid_.held(std::move(o)); }
  nb::object lower(const Partial& p, nb::handle arg) const {
    if (arg.is_none()) return definition_->aggregation.attr("lower_function")(p.object());
    return definition_->aggregation.attr("lower")(p.object(), arg);
  }
  Scalar scalar(const Partial&) const { return {}; }
  double magnitude(const Partial& p) const { return magnitude_of(p.ptr()); }
  bool same(const Partial& a, const Partial& b, double scale) const { return loosely_equal(a.ptr(), b.ptr(), scale); }
  int traverse(visitproc visit, void* arg) const { return boxes_->traverse(visit, arg); }

  nb::object to_bytes(const std::vector<Partial>& partials) const {
    nb::list all;
    for (auto& p : partials) all.append(p.object());
    return all;
  }
  std::vector<Partial> from_bytes(nb::handle stored) const {
    std::vector<Partial> partials;
    for (nb::handle p : nb::cast<nb::list>(stored)) partials.push_back(held(nb::borrow(p)));
    return partials;
  }

 private:
  DefinitionPtr definition_;
  std::shared_ptr<Boxes> boxes_;
  ObjectMonoid monoid_;
};

}  // namespace sash
