#include "key_bytes.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>

#include "items.hpp"

namespace sash {

namespace {

[[noreturn]] void refuse_key(nb::handle key) {
  raise("TypeError",
        text(key) + " can't be a key. Keys are ints, floats, bools, text, bytes, dates, timestamps, Decimals, None, and tuples of these.");
}

// What is not written here, sash.keys writes: a tag, and bytes behind their length.
nb::object rest(const char* function) { return nb::module_::import_("sash.keys").attr(function); }

}  // namespace

void write_key(nb::handle key, std::string& out, bool within) {
  PyObject* o = key.ptr();
  auto bytes = [&](char type, const char* data, Py_ssize_t n) {
    out.push_back(type);
    append_bytes(out, static_cast<std::uint32_t>(n));
    out.append(data, static_cast<std::size_t>(n));
  };
  if (o == Py_None) {
    out.push_back('n');
  } else if (PyBool_Check(o)) {
    out.push_back('b');
    out.push_back(o == Py_True);
  } else if (PyLong_Check(o) || (!PyFloat_Check(o) && PyIndex_Check(o))) {
    nb::object index = nb::steal(PyNumber_Index(o));
    if (!index.is_valid()) throw nb::python_error();
    int overflow = 0;
    std::int64_t value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow) {
      nb::bytes written = nb::cast<nb::bytes>(rest("write")(index));
      out.append(written.c_str(), written.size());
    } else {
      out.push_back('i');
      append_bytes(out, value);
    }
  } else if (PyFloat_Check(o)) {
    double value = PyFloat_AS_DOUBLE(o);
    if (value != value) value = std::numeric_limits<double>::quiet_NaN();
    if (value == 0) value = 0;
    out.push_back('f');
    append_bytes(out, value);
  } else if (PyUnicode_Check(o)) {
    Py_ssize_t n = 0;
    const char* data = PyUnicode_AsUTF8AndSize(o, &n);
    if (!data) throw nb::python_error();
    bytes('s', data, n);
  } else if (PyBytes_Check(o)) {
    bytes('y', PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o));
  } else if (PyTuple_Check(o) && !within) {
    out.push_back('t');
    append_bytes(out, static_cast<std::uint32_t>(PyTuple_GET_SIZE(o)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) write_key(PyTuple_GET_ITEM(o, i), out, true);
  } else if (nb::object written = PyTuple_Check(o) ? nb::none() : nb::object(rest("write")(key)); !written.is_none()) {
    if (nb::isinstance<nb::bytes>(written)) {
      nb::bytes plain = nb::borrow<nb::bytes>(written);
      out.append(plain.c_str(), plain.size());
    } else {
      write_key(nb::tuple(written)[0], out, within);  // another form of a key that is written above
    }
  } else {
    refuse_key(key);
  }
}

nb::object read_key(std::string_view& in) {
  auto take = [&](std::size_t n) {
    if (in.size() < n) throw std::invalid_argument("a stored key ends too early");
    std::string_view out = in.substr(0, n);
    in.remove_prefix(n);
    return out;
  };
  auto number = [&]<class T>(T value) {
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  };
  char type = take(1)[0];
  switch (type) {
    case 'n':
      return nb::none();
    case 'b':
      return nb::bool_(take(1)[0] != 0);
    case 'i':
      return nb::int_(number(std::int64_t{}));
    case 'f':
      return nb::float_(number(double{}));
    case 's': {
      std::string_view bytes = take(number(std::uint32_t{}));
      PyObject* made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), nullptr);
      if (!made) throw nb::python_error();
      return nb::steal(made);
    }
    case 'y': {
      std::string_view bytes = take(number(std::uint32_t{}));
      return nb::bytes(bytes.data(), bytes.size());
    }
    case 't': {
      nb::list values;
      for (auto n = number(std::uint32_t{}); n > 0; --n) values.append(read_key(in));
      return nb::tuple(values);
    }
  }
  if (std::string_view("Idmzc").find(type) == std::string_view::npos) throw std::invalid_argument("a stored key is of no known type");
  std::string_view bytes = take(number(std::uint32_t{}));
  return rest("read")(nb::bytes(&type, 1), nb::bytes(bytes.data(), bytes.size()));
}

static Binding bind(19, [](nb::module_& m) {
  m.def(
      "write_key",
      [](nb::handle key) {
        std::string out;
        write_key(key, out);
        return nb::bytes(out.data(), out.size());
      },
      nb::arg("key").none(), "Write a key as bytes: equal bytes are equal keys.");
  m.def(
      "read_key",
      [](nb::bytes written) {
        std::string_view left(written.c_str(), written.size());
        nb::object key = read_key(left);
        if (!left.empty()) throw nb::value_error("these bytes are damaged: something follows the key.");
        return key;
      },
      nb::arg("written"), "Read a key that write_key wrote.");
});

}  // namespace sash
