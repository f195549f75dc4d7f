#include "items.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string_view>

namespace sash {

void raise(const char* error, const std::string& message) {
  nb::module_ builtins = nb::module_::import_("builtins");
  nb::object type = nb::hasattr(builtins, error) ? builtins.attr(error) : nb::module_::import_("sash.errors").attr(error);
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

std::string text(nb::handle value) { return nb::cast<std::string>(nb::repr(value)); }

const char* type_name(ItemType type) { return type == ItemType::int64 ? "int64" : type == ItemType::float64 ? "float64" : "object"; }

// NaT is null, NaN is a number.
static bool differs_from_itself(nb::handle value, std::string_view type) {
  if (type != "numpy.datetime64" && type != "numpy.timedelta64") return false;
  nb::object answer = nb::steal(PyObject_RichCompare(value.ptr(), value.ptr(), Py_NE));
  if (!answer) throw nb::python_error();
  return PyObject_IsTrue(answer.ptr()) == 1;
}

bool is_null(nb::handle value) {
  if (value.is_none()) return true;
  std::string_view type = Py_TYPE(value.ptr())->tp_name;
  return type == "pandas._libs.missing.NAType" || type == "pandas._libs.tslibs.nattype.NaTType" || type == "NAType" || type == "NaTType" ||
         type == "MaskedConstant" || (type.starts_with("numpy.") && differs_from_itself(value, type));
}

static bool from_numpy(nb::handle value) { return std::string_view(Py_TYPE(value.ptr())->tp_name).starts_with("numpy."); }

// What counts as an integer, as one; nothing for others, and for timedelta64, which says that it does and then does not.
static nb::object as_index(nb::handle value) {
  if (!PyIndex_Check(value.ptr())) return {};
  PyObject* index = PyNumber_Index(value.ptr());
  if (!index) PyErr_Clear();
  return nb::steal(index);
}

Item item_of(nb::handle value) {
  PyObject* o = value.ptr();
  if (o == Py_None) return {};
  if (PyFloat_Check(o)) return Item::of(PyFloat_AS_DOUBLE(o));
  if (PyLong_Check(o)) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return Item::of(static_cast<std::int64_t>(number));
  } else if (nb::object index = as_index(value)) {
    return item_of(index);
  } else if (std::string_view name = Py_TYPE(o)->tp_name; name.starts_with("numpy.")) {
    if (name.starts_with("numpy.bool")) return Item::of(static_cast<std::int64_t>(PyObject_IsTrue(o)));
    if (name.starts_with("numpy.float") || name == "numpy.longdouble") return Item::of(nb::cast<double>(nb::float_(value)));
  }
  if (is_null(value)) return {};
  Item x;
  x.kind = Item::object;
  return x;
}

// An array of so many rows, and of no other number: what is read beyond its end would be anything.
template <class Array>
static Array array(nb::handle given, std::size_t rows) {
  auto out = nb::cast<Array>(given);
  if (out.size() != rows)
    raise("ValueError", "a column has " + std::to_string(out.size()) + " rows, where there are " + std::to_string(rows) +
                            ". Pass columns of one length.");
  return out;
}

ItemColumns::ItemColumns(nb::handle pairs, std::size_t rows) {
  using Ints = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Floats = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  for (nb::handle pair : nb::cast<nb::list>(pairs)) {
    ItemColumn column;
    column.size = rows;
    if (nb::isinstance<Ints>(pair[0])) {
      column.type = ItemType::int64;
      column.ints = array<Ints>(pair[0], rows).data();
    } else {
      column.floats = array<Floats>(pair[0], rows).data();
    }
    if (!pair[1].is_none()) column.nulls = array<Bytes>(pair[1], rows).data();
    // Nothing but nulls says nothing of a type, unless it is a column of floats.
    bool blank = column.ints && column.nulls && std::all_of(column.nulls, column.nulls + rows, [](auto null) { return null != 0; });
    kinds.push_back(blank ? Item::null : column.ints ? Item::integer : Item::real);
    alive_.push_back(nb::borrow(pair));
    parts.push_back(column);
  }
}

ItemReader::ItemReader(nb::object aggregation, nb::object dtype, bool integers_only)
    : aggregation_(std::move(aggregation)), integers_only_(integers_only) {
  nb::object given = dtype.is_none() ? nb::object(aggregation_.attr("dtype")) : dtype;
  nb::tuple parts = nb::cast<nb::tuple>(aggregation_.attr("parts"));
  std::size_t n = parts.size() ? parts.size() : 1;
  std::vector<ItemType> types(n, ItemType::int64);
  seen_.assign(n, false);
  row_.resize(n);
  plain_ = parts.size() == 0 && aggregation_.attr("column").is_none() && aggregation_.attr("where").is_none();
  bool object = false;
  if (!given.is_none()) {
    auto type = nb::cast<std::string>(nb::str(given));
    if (type != "int64" && type != "float64" && type != "object")
      raise("ValueError", "dtype='" + type + "' is not an item type. Use 'int64', 'float64' or 'object'.");
    if (type == "float64") types.assign(n, ItemType::float64);
    object = type == "object" && aggregation_.attr("kernel")("object").is_none();
    typed_ = true;
    seen_.assign(n, true);
  }
  // A part that only Python can run makes Python run the whole.
  if (!object)
    for (std::size_t i = 0; i < n; ++i) {
      nb::object part = parts.size() ? nb::object(parts[i][1]) : aggregation_;
      bool any = false;
      for (const char* type : {"int64", "float64"}) any = any || !part.attr("kernel")(type).is_none();
      object |= !any;
      if (part.attr("dtype").equal(nb::str("float64"))) types[i] = ItemType::float64;
      if (part.attr("dtype").equal(nb::str("object")) && part.attr("kernel")("object").is_none()) object = true;
    }
  definition_ = define(types, object);
}

DefinitionPtr ItemReader::define(const std::vector<ItemType>& types, bool object) const {
  auto d = std::make_shared<Definition>();
  d->aggregation = aggregation_;
  d->types = types;
  d->object = object;
  nb::tuple parts = nb::cast<nb::tuple>(aggregation_.attr("parts"));
  for (nb::handle part : parts) {
    d->names.push_back(nb::cast<std::string>(part[0]));
    d->parts.push_back(nb::object(part[1]));
  }
  if (d->parts.empty()) d->parts.push_back(aggregation_);
  if (object) {
    d->zero = aggregation_.attr("zero");
    d->lift = aggregation_.attr("lift_function");
    d->combine = aggregation_.attr("combine_function");
    d->inverse = aggregation_.attr("inverse_function");
    return d;
  }
  for (std::size_t i = 0; i < d->parts.size(); ++i) {
    nb::object native = d->parts[i].attr("kernel")(type_name(types[i]));
    if (native.is_none())
      raise("TypeError",
            nb::cast<std::string>(d->parts[i].attr("name")) + " does not take " + type_name(types[i]) + " items. It takes integers.");
    KernelSpec spec{nb::cast<std::string>(native[0]), types[i], {}};
    for (nb::handle p : nb::borrow<nb::tuple>(native[1])) spec.params.push_back(nb::cast<double>(p));
    d->kernels.push_back(spec);
    Lowering lowering;
    for (nb::handle how : nb::borrow<nb::tuple>(native[2])) lowering.hows.push_back(lower_named(nb::cast<std::string>(how)));
    lowering.result = native[3];
    d->lowerings.push_back(lowering);
  }
  return d;
}

std::string ItemReader::dtype() const {
  if (definition_->object) return "object";
  for (ItemType type : definition_->types)
    if (type == ItemType::float64) return "float64";
  return "int64";
}

bool ItemReader::one_number() const {
  return !definition_->object && definition_->names.empty() && definition_->lowerings[0].hows.size() == 1;
}

// An item as the types see it. An integer that 64 bits do not hold is no number to them, and no object either.
Item ItemReader::item(nb::handle value) const {
  Item x = item_of(value);
  if (x.kind == Item::object && !definition_->object && PyLong_Check(value.ptr()))
    raise("OverflowError", "item " + text(value) + " does not fit int64. Use floats, or dtype='object' for Python's integers.");
  return x;
}

// What Python callables see of an item: no scalars of NumPy's, and None for every null.
nb::object ItemReader::plain_value(nb::handle value, const Item& read) const {
  if (read.kind == Item::null) return nb::none();
  if ((definition_->object || read.kind == Item::object) && from_numpy(value))
    return nb::module_::import_("sash.containers").attr("plain")(value);
  return nb::borrow(value);
}

// A record of a structured array as a dict.
static nb::object plain_record(nb::handle value) {
  return from_numpy(value) ? nb::object(nb::module_::import_("sash.containers").attr("plain")(value)) : nb::borrow(value);
}

bool ItemReader::take(nb::handle value) {
  if (plain_) {
    row_[0] = item(value);
    value_ = plain_value(value, row_[0]);
  } else if (definition_->names.empty()) {
    nb::object field = aggregation_.attr("value_of")(plain_record(value));
    row_[0] = item(field);
    value_ = plain_value(field, row_[0]);
  } else {
    value_ = plain_record(value);
    for (std::size_t i = 0; i < row_.size(); ++i) {
      nb::object field = definition_->object ? value_ : nb::object(definition_->parts[i].attr("value_of")(value_));
      row_[i] = item(field);
    }
  }
  if (definition_->object) return true;
  // The common case: every part has met items of this kind before.
  bool holds = true;
  for (std::size_t i = 0; i < row_.size(); ++i)
    holds &= row_[i].kind == Item::null ||
             (seen_[i] && (row_[i].kind == Item::integer || (row_[i].kind == Item::real && definition_->types[i] == ItemType::float64)));
  return holds;
}

std::vector<Item::Kind> ItemReader::kinds() const {
  std::vector<Item::Kind> out;
  for (const Item& x : row_) out.push_back(x.kind);
  return out;
}

// Whether it matters to a kernel what the items are.
static bool looks_at_items(const KernelSpec& spec) {
  if (run_time_kernel(spec)) return true;
  return with_kernel(spec, []<class K>(const K&) { return !requires { K::looks_at_items; }; });
}

DefinitionPtr ItemReader::settled(const std::vector<Item::Kind>& kinds, std::vector<bool>& promoted) const {
  std::vector<ItemType> types = definition_->types;
  bool object = false, blank = true;
  for (std::size_t i = 0; i < types.size(); ++i) blank &= !seen_[i];
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (kinds[i] == Item::null || !looks_at_items(definition_->kernels[i])) continue;
    if (kinds[i] == Item::object) {
      if (!blank || typed_)
        raise("TypeError", "an item that is no number can't go into a window of " + std::string(type_name(types[i])) +
                               " items. Use numbers that fit 64 bits, or a window with dtype='object'.");
      object = true;
    } else if (kinds[i] == Item::real && types[i] == ItemType::int64) {
      if (integers_only_)
        raise(
            "TypeError",
            "a float can't go in: integers were promised (dtype='int64'), so this window subtracts, which would round floats. Leave dtype "
            "out to have another algorithm chosen, or name SubtractOnEvict.");
      types[i] = ItemType::float64;
      promoted.resize(types.size(), false);
      promoted[i] = true;
    }
  }
  if (object) {
    promoted.clear();
    return define(types, true);
  }
  return promoted.empty() ? nullptr : define(types, false);
}

void ItemReader::see(const std::vector<Item::Kind>& kinds) {
  for (std::size_t i = 0; i < seen_.size(); ++i)
    if (kinds[i] != Item::null) seen_[i] = true;
}

nb::tuple ItemReader::state() const {
  nb::list types, seen;
  for (ItemType type : definition_->types) types.append(type_name(type));
  for (bool s : seen_) seen.append(nb::bool_(s));
  return nb::make_tuple(nb::tuple(types), nb::bool_(definition_->object), nb::tuple(seen));
}

void ItemReader::restore(nb::handle state) {
  std::vector<ItemType> types;
  for (nb::handle type : nb::cast<nb::tuple>(state[0]))
    types.push_back(type.equal(nb::str("int64")) ? ItemType::int64 : type.equal(nb::str("float64")) ? ItemType::float64 : ItemType::object);
  std::vector<bool> seen;
  for (nb::handle s : nb::cast<nb::tuple>(state[2])) seen.push_back(nb::cast<bool>(s));
  if (types.size() != row_.size() || seen.size() != row_.size())
    raise("ValueError", "these bytes are damaged: they are of another number of parts.");
  definition_ = define(types, nb::cast<bool>(state[1]));
  seen_ = std::move(seen);
}

void ItemReader::adopt(const ItemReader& other) {
  definition_ = define(other.definition_->types, other.definition_->object);
  seen_ = other.seen_;
}

}  // namespace sash
