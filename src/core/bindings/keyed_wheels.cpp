// Keyed wheels for Python: keys to numbers, columns in, answers per key and over all keys

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "any_keyed_wheels.hpp"
#include "collected.hpp"
#include "key_input.hpp"
#include "wheel_keeper.hpp"

namespace sash {
namespace {

class KeyedHandle final : public WheelKeeper<AnyKeyedWheels> {
 public:
  // levels: (ticks per slot, slots retained or 0) from the grain up.
  KeyedHandle(nb::object aggregation, nb::object dtype, std::int64_t unit, Time grain, Time start, nb::list levels, std::size_t write_ahead,
              std::size_t few)
      : WheelKeeper(
            Clock(unit),
            {.grain = grain, .start = start, .levels = {}, .write_ahead = std::max(write_ahead, least_ahead), .hints = {}, .few = few},
            ItemReader(std::move(aggregation), std::move(dtype)),
            {"the wheels could not be put back. Build them again, or load bytes stored before.",
             "these wheels are at work already. A callable of an aggregation may not call its own wheels."}) {
    for (nb::handle level : levels) settings_.levels.push_back({nb::cast<std::int64_t>(level[0]), nb::cast<std::int64_t>(level[1])});
    kept_.start();
  }

  bool insert(nb::handle key, nb::handle value, nb::handle time) {
    Work work(kept_);
    Time t = clock_.read(time);
    std::string name;
    write_key(key, name);
    if (t < kept_->view().watermark()) return kept_->refuse(), false;
    Change change(kept_);
    kept_.read(value);
    std::uint32_t number = place(name);
    kept_.guarded([&] { kept_->insert(number, t, items_.row().data(), items_.value(), shown(t)); });
    note_item();
    names_.number(name);
    change.done();
    return true;
  }

  // keys: columns as (letter, array) pairs, or a list of Python keys.
  std::size_t insert_many(nb::object keys, bool as_tuple, nb::object values, const Times& times) {
    nb::tuple in_columns = read_in(values, times);
    auto rows = nb::cast<std::size_t>(in_columns[3]);
    check_rows(rows, times.size(), "values");
    if (rows == 0) return 0;
    Work work(kept_);
    check_times(times);
    Change change(kept_);
    std::size_t late = 0;
    if (!in_columns[0].is_none() && !items_.definition()->object) {
      ItemColumns in(in_columns[0], rows);
      KeyInput input = read_keys(keys, as_tuple, rows);
      kept_.settle(in.kinds);
      kept_.guarded([&] {
        nb::gil_scoped_release unlocked;
        late =
            by_block(input, in, times, kept_->view().watermark(), [&](const Ids& ids, const std::vector<ItemColumn>& parts, const Time* t) {
              return kept_->insert_column(ids.data(), parts.data(), parts.size(), t);
            });
      });
    } else {
      std::vector<std::string> names = written(read_keys(keys, as_tuple, rows), rows);
      std::vector<std::uint8_t> missed = late_ones(times, kept_->view().watermark());
      ItemRows in;
      kept_.read_rows(in, in_columns[1], in_columns[4], missed);
      kept_.guarded([&] { kept_->stage_rows(in, times.data(), missed); });
      late = insert_staged(names, times, missed, false);
      if (in.blank()) return change.done(), late;
    }
    blank_ = false;
    change.done();
    return late;
  }

  // Slices of plain numbers: a form per part, and the columns of them all, as sash.swag.columns.numbers gives them.
  std::size_t insert_slices(nb::object keys, bool as_tuple, nb::list forms, nb::list columns, const Times& times) {
    static const std::pair<const char*, SliceForm> known_forms[] = {
        {"value", SliceForm::value}, {"count", SliceForm::count}, {"mean", SliceForm::mean}, {"both", SliceForm::both}};
    std::vector<SliceForm> made_of;
    for (nb::handle form : forms)
      for (auto& [name, known] : known_forms)
        if (nb::cast<std::string>(form) == name) made_of.push_back(known);
    if (times.size() == 0) return 0;
    Work work(kept_);
    check_times(times);
    ItemColumns in(columns, times.size());
    KeyInput input = read_keys(keys, as_tuple, times.size());
    if (items_.definition()->object) raise("TypeError", "these wheels hold Python partials. Pass the slices as a list of these.");
    Change change(kept_);
    std::vector<Item::Kind> kinds;
    std::size_t column = 0;
    for (SliceForm form : made_of) {
      kinds.push_back(form == SliceForm::both ? std::max(in.kinds[column], in.kinds[column + 1]) : in.kinds[column]);
      column += columns_of(form);
    }
    kept_.settle(kinds);
    std::size_t late = 0;
    kept_.guarded([&] {
      nb::gil_scoped_release unlocked;
      late = by_block(input, in, times, kept_->view().closed(), [&](const Ids& ids, const std::vector<ItemColumn>& parts, const Time* t) {
        return kept_->insert_slices(ids.data(), made_of, parts.data(), t);
      });
    });
    blank_ = false;
    change.done();
    return late;
  }

  // Slices as Python partials.
  std::size_t insert_partials(nb::object keys, bool as_tuple, nb::list partials, const Times& times) {
    check_rows(partials.size(), times.size(), "partials");
    if (times.size() == 0) return 0;
    Work work(kept_);
    check_times(times);
    std::vector<std::string> names = written(read_keys(keys, as_tuple, times.size()), times.size());
    std::vector<std::uint8_t> missed = late_ones(times, kept_->view().closed());
    Change change(kept_);
    if (!items_.definition()->object) {
      if (!blank_)
        raise("TypeError", "these wheels hold " + dtype() +
                               " items in native form, which Python partials do not combine with. Insert slices only, or use "
                               "KeyedWheels(..., dtype='object').");
      kept_.turn_into_objects();
    }
    kept_->stage_slices(partials);
    std::size_t late = insert_staged(names, times, missed, true);
    blank_ = false;
    change.done();
    return late;
  }

  void advance_to(nb::handle time) {
    Work work(kept_);
    Time to = clock_.read(time);
    kept_.guarded([&] {
      if (!kept_->native()) return kept_->advance(to);
      nb::gil_scoped_release unlocked;
      kept_->advance(to);
    });
  }

  nb::object key_query(nb::handle key, nb::handle start, nb::handle end, nb::handle arg, bool clamp) {
    Work work(kept_);
    Time from = clock_.bound(start), to = clock_.bound(end);
    clamp_range(kept_->view(), from, to, clamp);
    return range(from, to, [&] {
      auto k = find(key);
      return k ? kept_->query(*k, from, to, arg) : kept_->empty(from, to, arg);
    });
  }
  nb::object key_landmark(nb::handle key, nb::handle arg) {
    Work work(kept_);
    auto k = find(key);
    nb::object out;
    kept_.guarded([&] { out = k ? kept_->landmark(*k, arg) : kept_->nothing(arg); });
    return out;
  }
  nb::object key_interval(nb::handle key, Time length, nb::handle arg) {
    Work work(kept_);
    Time to = kept_->view().closed(), from = to - length;
    return range(from, to, [&] {
      auto k = find(key);
      return k ? kept_->query(*k, from, to, arg) : kept_->empty(from, to, arg);
    });
  }

  // (keys, values) of the keys that hold something in a range.
  nb::object query_each(nb::handle start, nb::handle end, bool clamp) {
    Work work(kept_);
    Time from = clock_.bound(start), to = clock_.bound(end);
    clamp_range(kept_->view(), from, to, clamp);
    return range(from, to, [&]() -> nb::object {
      KeyedResults found = each(from, to);
      nb::list keys, values;
      for (std::size_t i = 0; i < found.keys.size(); ++i) {
        keys.append(key_of(found.keys[i]));
        values.append(found.scalars.empty() ? found.objects[i] : to_python(found.scalars[i]));
      }
      return nb::make_tuple(keys, values);
    });
  }

  // The keys of the n largest values, of one-number results; None where results are something else.
  nb::object top(std::size_t n, nb::handle start, nb::handle end, bool clamp) {
    Work work(kept_);
    Time from = clock_.bound(start), to = clock_.bound(end);
    clamp_range(kept_->view(), from, to, clamp);
    if (!items_.one_number()) return nb::none();
    return range(from, to, [&]() -> nb::object {
      KeyedResults found = each(from, to);
      std::vector<std::uint32_t> order;
      {
        nb::gil_scoped_release unlocked;
        for (std::uint32_t i = 0; i < found.keys.size(); ++i)
          if (found.scalars[i].kind != Scalar::none) order.push_back(i);
        auto value = [&](std::uint32_t i) -> const Scalar& { return found.scalars[i]; };
        std::size_t wanted = std::min(n, order.size());
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted), order.end(), [&](auto a, auto b) {
          if (greater(value(a), value(b))) return true;
          return !greater(value(b), value(a)) && a < b;
        });
        order.resize(wanted);
      }
      nb::list out;
      for (auto i : order) out.append(nb::make_tuple(key_of(found.keys[i]), to_python(found.scalars[i])));
      return out;
    });
  }

  // Per level, how many slots that hold something a query of a key reads.
  std::vector<std::size_t> slots_read(nb::handle key, nb::handle start, nb::handle end) {
    Work work(kept_);
    Time from = clock_.bound(start), to = clock_.bound(end);
    std::vector<std::size_t> out(settings_.levels.size(), 0);
    range(from, to, [&] {
      if (auto k = find(key)) out = kept_->slots_read(*k, from, to);
      return nb::none();
    });
    return out;
  }

  std::size_t size() {
    Work work(kept_);
    return names_.size();
  }
  bool has(nb::handle key) {
    Work work(kept_);
    return find(key).has_value();
  }
  nb::list keys() {
    Work work(kept_);
    nb::list out;
    for (std::uint32_t i = 0; i < names_.size(); ++i) out.append(key_of(i));
    return out;
  }
  std::size_t bytes() {
    Work work(kept_);
    return kept_->bytes() + names_.memory();
  }

  int traverse(visitproc visit, void* arg) const { return kept_.traverse(visit, arg); }
  void forget() {
    if (kept_.busy()) return;
    names_ = {};
    forget_all();
  }

  void merge(KeyedHandle& other) {
    if (&other == this) raise("ValueError", "keyed wheels can't be merged into themselves. Copy them first if that is meant.");
    Work work(kept_), theirs(other.kept_);
    if (kept_->drops() || other.kept_->drops())
      raise("ValueError", "keyed wheels that drop slots can't be merged: the ticks of every key are needed. Use retention='keep'.");
    agree_on_types(other);
    Ids number;
    engine::KeyNames names = names_;
    for (std::size_t i = 0; i < other.names_.size(); ++i) number.push_back(names.number(other.names_.name(i)));
    kept_->grow(names.size());
    kept_.guarded([&] { kept_->merge(*other.kept_, number); });
    names_ = std::move(names);
    note_merge(other);
  }

  nb::tuple state() {
    Work work(kept_);
    std::string names;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      append_bytes(names, static_cast<std::uint32_t>(names_.name(i).size()));
      names.append(names_.name(i));
    }
    return nb::cast<nb::tuple>(stored() + nb::make_tuple(nb::bytes(names.data(), names.size())));
  }

  void restore(nb::tuple state) {
    Work work(kept_);
    Loaded read = loaded(state, 6);
    auto written = nb::cast<nb::bytes>(state[5]);
    std::string_view left(written.c_str(), written.size());
    engine::KeyNames names;
    while (!left.empty()) {
      std::uint32_t n = 0;
      if (left.size() >= 4) std::memcpy(&n, left.data(), 4);
      if (left.size() < 4 + std::size_t{n}) throw std::invalid_argument("a stored key ends too early");
      std::string_view name = left.substr(4, n);
      std::size_t known = names.size();
      if (names.number(name) != known) throw std::invalid_argument("a key is stored twice");
      read_key(name);
      if (!name.empty()) throw std::invalid_argument("a stored key is longer than it says");
      left.remove_prefix(4 + n);
    }
    read.structure->grow(names.size());
    take(std::move(read), state[1]);
    names_ = std::move(names);
  }

 private:
  // The ring of all keys together: there is one for all, and batches often span hours. With 64 slots, 20 million rows of one day
  // in no order took 0.9 s longer than with these.
  static constexpr std::size_t least_ahead = 4096;

  std::shared_ptr<AnyKeyedWheels> made(const DefinitionPtr& definition) override { return make_keyed_wheels(definition, settings_); }

  template <class Step>
  nb::object range(const Time& from, const Time& to, Step step) {
    nb::object out;
    kept_.guarded([&] { out = refusing(kept_->view(), from, to, [&]() -> nb::object { return step(); }); });
    return out;
  }

  static void check_rows(std::size_t rows, std::size_t times, const char* what) {
    if (rows != times)
      raise("ValueError",
            "there are " + std::to_string(rows) + " " + what + " but " + std::to_string(times) + " times. Pass one time each.");
  }

  static std::vector<std::uint8_t> late_ones(const Times& times, Time open) {
    std::vector<std::uint8_t> late(times.size());
    for (std::size_t i = 0; i < times.size(); ++i) late[i] = times(i) < open;
    return late;
  }

  // What was staged, each row to its key; keys that are new are known only once all rows are in.
  std::size_t insert_staged(const std::vector<std::string>& names, const Times& times, const std::vector<std::uint8_t>& late, bool slices) {
    engine::KeyNames fresh;
    Ids ids(names.size(), 0);
    auto known = static_cast<std::uint32_t>(names_.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (late[i]) continue;
      auto found = names_.find(names[i]);
      ids[i] = found ? *found : known + fresh.number(names[i]);
    }
    kept_->grow(names_.size() + fresh.size());
    kept_.guarded([&] { kept_->insert_staged(ids.data(), times.data(), late, slices); });
    for (std::size_t i = 0; i < fresh.size(); ++i) names_.number(fresh.name(i));
    return static_cast<std::size_t>(std::count(late.begin(), late.end(), 1));
  }

  // The number of a key, or the one it would get; there is room for it.
  std::uint32_t place(const std::string& name) {
    auto known = names_.find(name);
    if (known) return *known;
    kept_->grow(names_.size() + 1);
    return static_cast<std::uint32_t>(names_.size());
  }

  std::optional<std::uint32_t> find(nb::handle key) const {
    std::string name;
    write_key(key, name);
    return names_.find(name);
  }

  nb::object key_of(std::uint32_t number) const {
    std::string_view name = names_.name(number);
    return read_key(name);
  }

  static bool greater(const Scalar& a, const Scalar& b) {
    if (a.kind == Scalar::integer && b.kind == Scalar::integer) return a.i > b.i;
    double x = a.kind == Scalar::real ? a.f : static_cast<double>(a.i), y = b.kind == Scalar::real ? b.f : static_cast<double>(b.i);
    return x > y || (x != x && y == y);  // NaN is the largest
  }

  KeyedResults each(Time from, Time to) {
    bool scalars = items_.one_number();
    if (!kept_->native() || !scalars) return kept_->query_each(from, to, names_.size(), scalars);
    KeyedResults found;
    {
      nb::gil_scoped_release unlocked;
      found = kept_->query_each(from, to, names_.size(), true);
    }
    for (auto& s : found.scalars)
      if (s.kind == Scalar::overflow) to_python(s);
    return found;
  }

  // Calls put(ids, columns, times) with some millions of rows at a time: what is made for each stays small.
  template <class Put>
  std::size_t by_block(const KeyInput& input, const ItemColumns& in, const Times& times, Time open, Put put) {
    constexpr std::size_t block = std::size_t{1} << 22;
    std::size_t late = 0;
    for (std::size_t from = 0; from < times.size(); from += block) {
      std::size_t n = std::min(block, times.size() - from);
      Ids ids;
      if (input.columns.empty()) {
        ids.assign(input.ids.begin() + static_cast<std::ptrdiff_t>(from), input.ids.begin() + static_cast<std::ptrdiff_t>(from + n));
        number(ids, input.names, times.data() + from, open);
      } else {
        auto encoded = input.encode(from, n);
        ids = std::move(encoded.first);
        number(ids, encoded.second, times.data() + from, open);
      }
      std::vector<ItemColumn> parts = in.parts;
      for (auto& part : parts) {
        if (part.ints) part.ints += from;
        if (part.floats) part.floats += from;
        if (part.nulls) part.nulls += from;
        part.size = n;
      }
      late += put(ids, parts, times.data() + from);
    }
    return late;
  }

  // From a batch's own numbers to ours; new keys are numbered in the order of their first row that is not late.
  void number(Ids& ids, const std::vector<std::string>& names, const Time* times, Time open) {
    constexpr std::uint32_t unknown = 0xFFFFFFFFu;
    Ids ours(names.size(), unknown);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::uint32_t& mine = ours[ids[i]];
      if (mine == unknown && times[i] >= open) mine = names_.number(names[ids[i]]);
      ids[i] = mine == unknown ? 0 : mine;  // late: its key is only fetched
    }
    kept_->grow(std::max<std::size_t>(names_.size(), 1));
  }

  engine::KeyNames names_;
};

const Binding bind(21, [](nb::module_& m) {
  nb::class_<KeyedHandle, WheelAnswers>(m, "KeyedWheelsCore", "Wheels of many keys under one clock.", nb::dynamic_attr(),
                                        nb::type_slots(Collected<KeyedHandle>::slots))
      .def(nb::init<nb::object, nb::object, std::int64_t, Time, Time, nb::list, std::size_t, std::size_t>(), nb::arg("aggregation"),
           nb::arg("dtype").none(), nb::arg("unit"), nb::arg("grain"), nb::arg("start"), nb::arg("levels"), nb::arg("write_ahead"),
           nb::arg("few"))
      .def("insert", &KeyedHandle::insert, nb::arg("key").none(), nb::arg("value").none(), nb::arg("time").none())
      .def("insert_many", &KeyedHandle::insert_many, nb::arg("keys"), nb::arg("as_tuple"), nb::arg("values"), nb::arg("times"))
      .def("insert_slices", &KeyedHandle::insert_slices, nb::arg("keys"), nb::arg("as_tuple"), nb::arg("forms"), nb::arg("columns"),
           nb::arg("times"))
      .def("insert_partials", &KeyedHandle::insert_partials, nb::arg("keys"), nb::arg("as_tuple"), nb::arg("partials"), nb::arg("times"))
      .def("advance_to", &KeyedHandle::advance_to, nb::arg("time").none())
      .def("key_query", &KeyedHandle::key_query, nb::arg("key").none(), nb::arg("start").none(), nb::arg("end").none(),
           nb::arg("arg") = nb::none(), nb::arg("clamp") = false)
      .def("key_landmark", &KeyedHandle::key_landmark, nb::arg("key").none(), nb::arg("arg") = nb::none())
      .def("key_interval", &KeyedHandle::key_interval, nb::arg("key").none(), nb::arg("length"), nb::arg("arg") = nb::none())
      .def("query_each", &KeyedHandle::query_each, nb::arg("start").none(), nb::arg("end").none(), nb::arg("clamp") = false)
      .def("top", &KeyedHandle::top, nb::arg("n"), nb::arg("start").none(), nb::arg("end").none(), nb::arg("clamp") = false)
      .def("slots_read", &KeyedHandle::slots_read, nb::arg("key").none(), nb::arg("start").none(), nb::arg("end").none())
      .def("__len__", &KeyedHandle::size)
      .def("has", &KeyedHandle::has, nb::arg("key").none())
      .def("keys", &KeyedHandle::keys)
      .def_prop_ro("late", &KeyedHandle::late)
      .def_prop_ro("nbytes", &KeyedHandle::bytes)
      .def("merge", &KeyedHandle::merge, nb::arg("other"))
      .def("check", &KeyedHandle::check)
      .def("state", &KeyedHandle::state)
      .def("restore", &KeyedHandle::restore);
});

}  // namespace
}  // namespace sash
