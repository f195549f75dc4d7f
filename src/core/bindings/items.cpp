#include "items.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

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

Item item_of(nb::handle value) {
  PyObject* o = value.ptr();
  if (o == Py_None) return {};
  if (PyFloat_Check(o)) return Item::of(PyFloat_AS_DOUBLE(o));
  if (PyLong_Check(o)) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return Item::of(static_cast<std::int64_t>(number));
  } else if (PyIndex_Check(o)) {
    return item_of(nb::steal(PyNumber_Index(o)));
  } else if (std::string_view name = Py_TYPE(o)->tp_name; name.starts_with("numpy.")) {
    if (name.starts_with("numpy.bool")) return Item::of(static_cast<std::int64_t>(PyObject_IsTrue(o)));
    if (name.starts_with("numpy.float")) return Item::of(nb::cast<double>(nb::float_(value)));
  }
  Item x;
  x.kind = Item::object;
  return x;
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
      column.ints = nb::cast<Ints>(pair[0]).data();
      kinds.push_back(Item::integer);
    } else {
      column.floats = nb::cast<Floats>(pair[0]).data();
      kinds.push_back(Item::real);
    }
    if (!pair[1].is_none()) column.nulls = nb::cast<Bytes>(pair[1]).data();
    alive_.push_back(nb::borrow(pair));
    parts.push_back(column);
  }
}

ItemReader::ItemReader(nb::object aggregation, nb::object dtype) : aggregation_(std::move(aggregation)) {
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
  if (object) return d;
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

bool ItemReader::take(nb::handle value) {
  if (plain_) {
    row_[0] = item_of(value);
    value_ = nb::borrow(value);
  } else if (definition_->names.empty()) {
    value_ = aggregation_.attr("value_of")(value);
    row_[0] = item_of(value_);
  } else {
    value_ = nb::borrow(value);
    for (std::size_t i = 0; i < row_.size(); ++i) {
      nb::object field = definition_->object ? nb::borrow(value) : nb::object(definition_->parts[i].attr("value_of")(value));
      row_[i] = item_of(field);
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
  definition_ = other.definition_;
  seen_ = other.seen_;
}

}  // namespace sash
