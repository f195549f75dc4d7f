// Rows of numbers as Python lists: the results of top_k and bottom_k
//
// A window differs from the one before by an item or two, so most numbers of a row are those of the row before, in their
// place or one off: neighbouring lists share them. A slide of top_k(5) takes 250 ns an item, and 500 without that.

#include <nanobind/ndarray.h>

#include <bit>

#include "module.hpp"

namespace sash {

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

PyObject* number(double x) { return PyFloat_FromDouble(x); }
PyObject* number(std::int64_t x) { return PyLong_FromLongLong(x); }

nb::object made(PyObject* o) {
  if (!o) throw nb::python_error();
  return nb::steal(o);
}

// The first counts[i] of the k numbers of each row i.
template <class T>
nb::object lists(const T* rows, const std::int64_t* counts, std::size_t n, std::size_t k) {
  nb::object out = made(PyList_New(static_cast<Py_ssize_t>(n)));
  PyObject* before = nullptr;
  for (std::size_t i = 0; i < n; ++i, rows += k) {
    std::size_t known = i ? static_cast<std::size_t>(counts[i - 1]) : 0, count = static_cast<std::size_t>(counts[i]);
    nb::object list = made(PyList_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t j = 0; j < count; ++j) {
      auto is = [&](std::size_t at) {  // by bits: NaN is NaN
        return at < known && std::bit_cast<std::uint64_t>((rows - k)[at]) == std::bit_cast<std::uint64_t>(rows[j]);
      };
      std::size_t at = is(j) ? j : is(j + 1) ? j + 1 : j > 0 && is(j - 1) ? j - 1 : known;
      PyObject* item = at < known ? Py_NewRef(PyList_GET_ITEM(before, static_cast<Py_ssize_t>(at))) : made(number(rows[j])).release().ptr();
      PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(j), item);
    }
    before = list.ptr();
    PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), list.release().ptr());
  }
  return out;
}

}  // namespace

static Binding bind(20, [](nb::module_& m) {
  m.def(
      "rows_as_lists",
      [](nb::object rows, nb::object counts, std::size_t k) {
        auto lengths = nb::cast<Array<std::int64_t>>(counts);
        if (nb::isinstance<Array<std::int64_t>>(rows))
          return lists(nb::cast<Array<std::int64_t>>(rows).data(), lengths.data(), lengths.size(), k);
        return lists(nb::cast<Array<double>>(rows).data(), lengths.data(), lengths.size(), k);
      },
      nb::arg("rows"), nb::arg("counts"), nb::arg("k"), "Make a list of the first so many of every k numbers.");
});

}  // namespace sash
