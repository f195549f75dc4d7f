// The engine's loops for Python: arrays in, arrays out, the lock of the interpreter given away in between

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "engine/arrow.hpp"
#include "engine/column.hpp"
#include "engine/runs.hpp"
#include "engine_arrays.hpp"
#include "module.hpp"

namespace sash::engine {
namespace {

nb::tuple encode(nb::list columns, std::size_t n) {
  std::vector<nb::object> held;
  std::vector<KeyColumn> views;
  for (nb::handle column : columns) {
    nb::object pair = column.attr("__arrow_c_array__")();
    auto* schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(nb::object(pair[0]).ptr(), "arrow_schema"));
    auto* array = static_cast<ArrowArray*>(PyCapsule_GetPointer(nb::object(pair[1]).ptr(), "arrow_array"));
    if (!schema || !array) throw nb::python_error();
    if (static_cast<std::size_t>(array->length) != n) throw std::invalid_argument("the key columns are of different lengths.");
    views.push_back(key_column(*schema, *array));
    held.push_back(std::move(pair));
  }
  Encoded out;
  {
    nb::gil_scoped_release free;
    out = encode_keys(views, n);
  }
  return nb::make_tuple(std::make_unique<KeyTable>(std::move(out.keys)), array_of(std::move(out.ids)));
}

nb::list decode(const KeyTable& keys, const std::vector<std::size_t>& widths) {
  std::vector<Decoded> columns;
  {
    nb::gil_scoped_release free;
    columns = decode_keys(keys, widths);
  }
  nb::list out;
  for (auto& column : columns) {
    nb::object offsets = column.offsets.empty() ? nb::none() : nb::cast(array_of(std::move(column.offsets)));
    out.append(nb::make_tuple(array_of(std::move(column.valid)), offsets, bytes_of(column.data)));
  }
  return out;
}

std::vector<std::int64_t> bucket_starts(const KeyTable& keys, std::uint32_t buckets) {
  std::vector<std::int64_t> starts;
  for (std::uint32_t b = 0; b < buckets; ++b) starts.push_back(static_cast<std::int64_t>(keys.bucket_start(b, buckets)));
  starts.push_back(static_cast<std::int64_t>(keys.size()));
  return starts;
}

nb::tuple slice(In<std::int32_t> ids, In<Time> times, Maybe<std::uint8_t> valid, std::size_t keys, Time grain, Time offset) {
  check_length(times, ids.size());
  const std::uint8_t* flags = data_of(valid, ids.size());
  Sliced out;
  {
    nb::gil_scoped_release free;
    out = slice_rows(ids.data(), times.data(), flags, ids.size(), keys, grain, offset);
  }
  return nb::make_tuple(array_of(std::move(out.layout.starts)), array_of(std::move(out.layout.times)), array_of(std::move(out.places)),
                        array_of(std::move(out.rows)), array_of(std::move(out.latest)));
}

nb::tuple order(In<std::int32_t> ids, In<Time> times, std::vector<In<std::int64_t>> ties, std::size_t keys) {
  check_length(times, ids.size());
  std::vector<const std::int64_t*> columns;
  for (auto& tie : ties) check_length(tie, ids.size()), columns.push_back(tie.data());
  Sliced out;
  {
    nb::gil_scoped_release free;
    out = order_rows(ids.data(), times.data(), ids.size(), columns, keys);
  }
  return nb::make_tuple(array_of(std::move(out.layout.starts)), array_of(std::move(out.layout.times)), array_of(std::move(out.places)));
}

nb::tuple merge(const KeyTable& a_keys, In<std::int64_t> a_starts, In<Time> a, const KeyTable& b_keys, In<std::int64_t> b_starts,
                In<Time> b, bool combine, Time oldest) {
  check_layout(a_keys.size(), a_starts, a);
  check_layout(b_keys.size(), b_starts, b);
  Merged out;
  {
    nb::gil_scoped_release free;
    out = merge_runs(a_keys, a_starts.data(), a.data(), b_keys, b_starts.data(), b.data(), combine, oldest);
  }
  return nb::make_tuple(std::make_unique<KeyTable>(std::move(out.keys)), array_of(std::move(out.layout.starts)),
                        array_of(std::move(out.layout.times)), array_of(std::move(out.left)), array_of(std::move(out.right)));
}

nb::tuple keep(const KeyTable& keys, In<std::int64_t> starts, In<Time> times, Time oldest, std::int64_t rows, bool fold,
               std::int64_t only) {
  check_layout(keys.size(), starts, times);
  Kept out;
  {
    nb::gil_scoped_release free;
    out = keep_entries(keys, starts.data(), times.data(), oldest, rows, fold, only);
  }
  return nb::make_tuple(std::make_unique<KeyTable>(std::move(out.keys)), array_of(std::move(out.layout.starts)),
                        array_of(std::move(out.layout.times)), array_of(std::move(out.places)));
}

nb::tuple windows(In<std::int64_t> starts, In<Time> panes, Time range, Time slide, Time first_end, Time last_end,
                  std::optional<std::pair<std::size_t, std::size_t>> only) {
  check_layout(starts.size() - 1, starts, panes);
  auto keys = only.value_or(std::pair<std::size_t, std::size_t>{0, starts.size() - 1});
  if (keys.first > keys.second || keys.second >= starts.size()) throw std::out_of_range("there are fewer keys than that.");
  WindowStretches out;
  {
    nb::gil_scoped_release free;
    out = window_stretches(starts.data(), panes.data(), keys.first, keys.second, range, slide, first_end, last_end);
  }
  return nb::make_tuple(array_of(std::move(out.stretches.from)), array_of(std::move(out.stretches.to)), array_of(std::move(out.key)),
                        array_of(std::move(out.end)));
}

nb::tuple lookbacks(In<std::int64_t> starts, In<Time> times, In<std::int32_t> entries, const std::string& unit, std::int64_t length,
                    bool takes_left, bool takes_right) {
  check_layout(starts.size() - 1, starts, times);
  Unit by = unit == "rows" ? Unit::rows : unit == "all" ? Unit::all : Unit::time;
  Stretches out;
  {
    nb::gil_scoped_release free;
    out = lookback_stretches(starts.data(), times.data(), starts.size() - 1, entries.data(), entries.size(), by, length, takes_left,
                             takes_right);
  }
  return nb::make_tuple(array_of(std::move(out.from)), array_of(std::move(out.to)));
}

std::unique_ptr<Column> make_column(const std::string& kernel, const std::string& type, const std::vector<double>& params) {
  std::unique_ptr<Column> made;
  KernelSpec spec{kernel, type == "int64" ? ItemType::int64 : ItemType::float64, params};
  with_engine_kernel(spec, [&](auto k) { made = std::make_unique<NativeColumn<decltype(k)>>(k); });
  return made;
}

// values: an int64 or a float64 array, as the column was made for.
std::unique_ptr<Column> lift(const Column& column, In<std::int32_t> places, std::size_t slices,
                             std::optional<nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig>> values, Maybe<std::uint8_t> valid,
                             Maybe<Time> times, Maybe<std::int64_t> ties, Maybe<std::uint8_t> tie_valid) {
  Items items;
  items.places = places.data();
  items.n = places.size();
  if (values) {
    check_length(*values, items.n);
    if (values->itemsize() != 8) throw std::invalid_argument("values must be int64 or float64.");
    items.values = values->data();
  }
  items.valid = data_of(valid, items.n);
  items.times = data_of(times, items.n);
  items.ties = data_of(ties, items.n);
  items.tie_valid = data_of(tie_valid, items.n);
  nb::gil_scoped_release free;
  return column.lift(items, slices);
}

std::unique_ptr<Column> gather(const Column& column, const std::vector<const Column*>& parts, const std::vector<In<std::int32_t>>& places,
                               std::size_t slices) {
  std::vector<Column::Part> pairs;
  check_length(parts, places.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    check_length(places[i], parts[i]->size());
    pairs.emplace_back(parts[i], places[i].data());
  }
  nb::gil_scoped_release free;
  return column.gather(pairs, slices);
}

// The fields of all stretches are written into arrays that several calls may share, each for stretches of its own: a pair of int64
// bits and of flags per lower. Gives whether each field holds real numbers.
std::vector<bool> slide(const Column& column, In<std::int64_t> from, In<std::int64_t> to, const std::vector<std::string>& how,
                        bool subtract, Maybe<std::int32_t> rows,
                        const std::vector<std::pair<Filled<std::int64_t>, Filled<std::uint8_t>>>& out) {
  check_length(to, from.size());
  check_length(out, how.size());
  const std::int32_t* places = data_of(rows, from.size());
  std::vector<Lower> lowers;
  std::vector<Field> fields;
  for (auto& name : how) lowers.push_back(lower_named(name));
  std::size_t room = 0;
  for (std::size_t f = 0; f < out.size(); ++f) {
    auto& [bits, valid] = out[f];
    check_length(valid, bits.size());
    room = f == 0 ? bits.size() : std::min(room, bits.size());
    fields.push_back({bits.data(), valid.data()});
  }
  {
    nb::gil_scoped_release free;
    for (std::size_t j = 0; j < from.size(); ++j)
      if (static_cast<std::size_t>(places ? places[j] : static_cast<std::int64_t>(j)) >= room)
        throw std::out_of_range("a result's place is beyond the arrays it goes to.");
    column.slide({from.data(), from.size()}, {to.data(), to.size()}, lowers, subtract, places, fields);
  }
  std::vector<bool> reals;
  for (auto& field : fields) reals.push_back(field.kind == Scalar::real);
  return reals;
}

template <class Write>
nb::bytes packed(Write write) {
  Bytes out;
  {
    nb::gil_scoped_release free;
    write(out);
  }
  return bytes_of(out);
}

void bind(nb::module_& m) {
  nb::class_<KeyTable>(m, "KeyTable", "Distinct keys in order of their hash.")
      .def(nb::init<>())
      .def("__len__", &KeyTable::size)
      .def("memory", &KeyTable::memory)
      .def("bucket_starts", [](const KeyTable& keys, std::uint32_t buckets) { return array_of(bucket_starts(keys, buckets)); })
      .def("find", &KeyTable::find, nb::arg("other"), nb::arg("place"))
      .def("decode", &decode, nb::arg("widths"))
      .def("pack",
           [](const KeyTable& keys, std::size_t from, std::size_t to) { return packed([&](Bytes& out) { keys.pack(out, from, to); }); })
      .def_static("unpack", [](nb::bytes data, std::size_t n) {
        Reader in(data.c_str(), data.size());
        nb::gil_scoped_release free;
        auto keys = std::make_unique<KeyTable>(KeyTable::unpack(in, n));
        in.done();
        return keys;
      });

  nb::class_<Column>(m, "SliceColumn", "The partials of one aggregation, one per slice of a run.")
      .def("__len__", &Column::size)
      .def("memory", &Column::memory)
      .def("lift", &lift, nb::arg("places"), nb::arg("slices"), nb::arg("values").none(), nb::arg("valid").none(), nb::arg("times").none(),
           nb::arg("ties").none(), nb::arg("tie_valid").none())
      .def("gather", &gather, nb::arg("parts"), nb::arg("places"), nb::arg("slices"))
      .def("slide", &slide, nb::arg("starts"), nb::arg("ends"), nb::arg("how"), nb::arg("subtract"), nb::arg("rows").none(), nb::arg("out"))
      .def("pack", [](const Column& c, std::size_t from, std::size_t to) { return packed([&](Bytes& out) { c.pack(out, from, to); }); })
      .def("unpack", [](const Column& c, nb::bytes data, std::size_t n) {
        Reader in(data.c_str(), data.size());
        nb::gil_scoped_release free;
        auto column = c.unpack(in, n);
        in.done();
        return column;
      });

  m.def("slice_column", &make_column, nb::arg("kernel"), nb::arg("type"), nb::arg("params"));
  m.def("encode_keys", &encode, nb::arg("columns"), nb::arg("n"));
  m.def("slice_rows", &slice, nb::arg("ids"), nb::arg("times"), nb::arg("valid").none(), nb::arg("keys"), nb::arg("grain"),
        nb::arg("offset"));
  m.def("order_rows", &order, nb::arg("ids"), nb::arg("times"), nb::arg("ties"), nb::arg("keys"));
  m.def("merge_runs", &merge);
  m.def("keep_entries", &keep);
  m.def("window_stretches", &windows, nb::arg("starts"), nb::arg("panes"), nb::arg("range"), nb::arg("slide"), nb::arg("first_end"),
        nb::arg("last_end"), nb::arg("keys") = nb::none());
  m.def("lookback_stretches", &lookbacks);
  m.def("pack_words", [](In<std::int64_t> words) {
    return packed([&](Bytes& out) { pack_words(out, words.size(), [&](std::size_t i) { return words.data()[i]; }); });
  });
  m.def("unpack_words", [](nb::bytes data, std::size_t n) {
    Vec<std::int64_t> words(n);
    Reader in(data.c_str(), data.size());
    unpack_words(in, n, [&](std::size_t i, std::int64_t word) { words[i] = word; });
    in.done();
    return array_of(std::move(words));
  });
}

const Binding binding(50, bind);

}  // namespace
}  // namespace sash::engine
