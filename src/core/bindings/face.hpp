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
  std::vector<nb::object> parts;    // the parts of a struct; of anything else, itself
  std::vector<std::string> names;   // the names of the parts; empty where it is no struct
  std::vector<ItemType> types;      // one per part
  std::vector<KernelSpec> kernels;  // one per part, unless object
  std::vector<Lowering> lowerings;  // one per part, unless object
  bool object = false;              // Python callables on Python objects
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

inline bool near(const Scalar& a, const Scalar& b) {
  if (a.kind != b.kind) return false;
  if (a.kind != Scalar::real) return a.i == b.i;
  if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) == std::isnan(b.f);
  return a.f == b.f || std::abs(a.f - b.f) <= 1e-6 * (1 + std::abs(a.f) + std::abs(b.f));
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
  bool same(const Partial& a, const Partial& b) const { return near(scalar(a), scalar(b)); }

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
  bool same(const Partial& a, const Partial& b) const {
    if (!struct_) return near(scalar(a), scalar(b));
    for (std::size_t i = 0; i < definition_->names.size(); ++i)
      for (Lower how : definition_->lowerings[i].hows)
        if (!near(struct_->lower_part(i, how, a.data()), struct_->lower_part(i, how, b.data()))) return false;
    return true;
  }

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

// A counted reference that algorithms may copy and move; needs the GIL.
class PyRef {
 public:
  PyRef() = default;
  explicit PyRef(nb::object o) : ptr_(o.release().ptr()) {}
  PyRef(const PyRef& other) : ptr_(other.ptr_) { Py_XINCREF(ptr_); }
  PyRef(PyRef&& other) noexcept : ptr_(std::exchange(other.ptr_, nullptr)) {}
  PyRef& operator=(PyRef other) noexcept {
    std::swap(ptr_, other.ptr_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(ptr_); }
  PyObject* ptr() const { return ptr_; }
  nb::object object() const { return nb::borrow(ptr_); }

 private:
  PyObject* ptr_ = nullptr;
};

class ObjectMonoid {
 public:
  using Partial = PyRef;
  using Probe = CountingProbe;
  static constexpr bool may_throw = true;

  ObjectMonoid() = default;
  explicit ObjectMonoid(const nb::object& aggregation)
      : zero_(aggregation.attr("zero")), combine_(aggregation.attr("combine_function")), inverse_(aggregation.attr("inverse_function")) {}

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

 private:
  static Partial call(const PyRef& f, const Partial& a, const Partial& b) {
    PyObject* args[] = {nullptr, a.ptr(), b.ptr()};
    PyObject* result = PyObject_Vectorcall(f.ptr(), args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (!result) throw nb::python_error();
    return PyRef(nb::steal(result));
  }
  PyRef zero_, combine_, inverse_;
};

class ObjectFace {
 public:
  using Monoid = ObjectMonoid;
  using Partial = PyRef;
  static constexpr bool native = false;

  explicit ObjectFace(DefinitionPtr d) : definition_(std::move(d)), lift_(nb::object(definition_->aggregation.attr("lift_function"))) {}
  ObjectMonoid monoid() const { return ObjectMonoid(definition_->aggregation); }
  Partial lift(const Item* items, nb::handle value, nb::handle time, Time) const {
    if (items->kind == Item::null && definition_->names.empty()) return identity();
    PyObject* args[] = {nullptr, value.ptr(), time.ptr()};
    PyObject* result = PyObject_Vectorcall(lift_.ptr(), args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (!result) throw nb::python_error();
    return PyRef(nb::steal(result));
  }
  Partial identity() const { return monoid().identity(); }
  nb::object lower(const Partial& p, nb::handle arg) const {
    if (arg.is_none()) return definition_->aggregation.attr("lower_function")(p.object());
    return definition_->aggregation.attr("lower")(p.object(), arg);
  }
  Scalar scalar(const Partial&) const { return {}; }
  bool same(const Partial& a, const Partial& b) const { return ObjectMonoid::equal(a, b); }

  nb::object to_bytes(const std::vector<Partial>& partials) const {
    nb::list all;
    for (auto& p : partials) all.append(p.object());
    return all;
  }
  std::vector<Partial> from_bytes(nb::handle stored) const {
    std::vector<Partial> partials;
    for (nb::handle p : nb::cast<nb::list>(stored)) partials.emplace_back(nb::borrow(p));
    return partials;
  }

 private:
  DefinitionPtr definition_;
  PyRef lift_;
};

}  // namespace sash
