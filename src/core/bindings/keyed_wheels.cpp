// Keyed wheels for Python: keys to numbers, columns in, answers per key and over all keys

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "any_keyed_wheels.hpp"
#include "collected.hpp"
#include "foreign.hpp"
#include "key_input.hpp"
#include "wheel_answers.hpp"

namespace sash {
namespace {

class KeyedHandle final : public WheelAnswers {
 public:
  // levels: (ticks per slot, slots retained or 0) from the grain up.
  KeyedHandle(nb::object aggregation, nb::object dtype, std::int64_t unit, Time grain, Time start, nb::list levels, std::size_t write_ahead,
              std::size_t few)
      : WheelAnswers(Clock(unit), grain, ItemReader(std::move(aggregation), std::move(dtype))) {
    settings_.grain = grain;
    settings_.start = start;
    settings_.write_ahead = std::max(write_ahead, least_ahead);
    settings_.few = few;
    settings_.commutative = nb::cast<bool>(this->aggregation().attr("commutative"));
    for (nb::handle level : levels) settings_.levels.push_back({nb::cast<std::int64_t>(level[0]), nb::cast<std::int64_t>(level[1])});
    wheels_ = make_keyed_wheels(items_.definition(), settings_);
  }

  bool insert(nb::handle key, nb::handle value, nb::handle time) {
    Work work(*this);
    Time t = clock_.read(time);
    std::string name;
    write_key(key, name);
    if (t < wheels_->all().watermark()) return wheels_->refuse(), false;
    Change change(change_, items_, wheels_, broken_);
    items_.read(value, [this](const DefinitionPtr& next, ItemReader::Promoted promoted) { become(next, promoted); });
    std::uint32_t number = place(name);
    nb::object shown = items_.definition()->object ? nb::object(nb::int_(t)) : nb::object();
    guarded([&] { wheels_->insert(number, t, items_.row().data(), items_.value(), shown); });
    if (items_.row()[0].kind != Item::null || items_.row().size() > 1) blank_ = false;
    names_.number(name);
    change.done();
    return true;
  }

  // keys: columns as (letter, array) pairs, or a list of Python keys.
  std::size_t insert_many(nb::object keys, bool as_tuple, nb::object values, const Times& times) {
    nb::object columns = nb::module_::import_("sash.swag.columns");
    nb::tuple read_in = nb::cast<nb::tuple>(columns.attr("read")(aggregation(), values, times, false, items_.definition()->object));
    auto rows = nb::cast<std::size_t>(read_in[3]);
    check_rows(rows, times.size(), "values");
    if (rows == 0) return 0;
    Work work(*this);
    check_times(times);
    Change change(change_, items_, wheels_, broken_);
    std::size_t late = 0;
    if (!read_in[0].is_none() && !items_.definition()->object) {
      ItemColumns in(read_in[0], rows);
      KeyInput input = read_keys(keys, as_tuple, rows);
      settle(in.kinds);
      guarded([&] {
        nb::gil_scoped_release unlocked;
        late = by_block(input, in, times, wheels_->all().watermark(),
                        [&](const Ids& ids, const std::vector<ItemColumn>& parts, const Time* t) {
                          return wheels_->insert_column(ids.data(), parts.data(), parts.size(), t);
                        });
      });
    } else {
      std::vector<std::string> names = written(read_keys(keys, as_tuple, rows), rows);
      std::vector<std::uint8_t> missed = late_ones(times, wheels_->all().watermark());
      ItemRows in;
      in.read(
          items_, read_in[1], read_in[4], [this](const DefinitionPtr& next, ItemReader::Promoted promoted) { become(next, promoted); },
          missed);
      guarded([&] { wheels_->stage_rows(in, times.data(), missed); });
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
    Work work(*this);
    check_times(times);
    ItemColumns in(columns, times.size());
    KeyInput input = read_keys(keys, as_tuple, times.size());
    if (items_.definition()->object) raise("TypeError", "these wheels hold Python partials. Pass the slices as a list of these.");
    Change change(change_, items_, wheels_, broken_);
    std::vector<Item::Kind> kinds;
    std::size_t column = 0;
    for (SliceForm form : made_of) {
      kinds.push_back(form == SliceForm::both ? std::max(in.kinds[column], in.kinds[column + 1]) : in.kinds[column]);
      column += columns_of(form);
    }
    settle(kinds);
    std::size_t late = 0;
    guarded([&] {
      nb::gil_scoped_release unlocked;
      late = by_block(input, in, times, wheels_->all().closed(), [&](const Ids& ids, const std::vector<ItemColumn>& parts, const Time* t) {
        return wheels_->insert_slices(ids.data(), made_of, parts.data(), t);
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
    Work work(*this);
    check_times(times);
    std::vector<std::string> names = written(read_keys(keys, as_tuple, times.size()), times.size());
    std::vector<std::uint8_t> missed = late_ones(times, wheels_->all().closed());
    Change change(change_, items_, wheels_, broken_);
    if (!items_.definition()->object) {
      if (!blank_)
        raise("TypeError", "these wheels hold " + dtype() +
                               " items in native form, which Python partials do not combine with. Insert slices only, or use "
                               "KeyedWheels(..., dtype='object').");
      ItemReader as_objects = items_;
      as_objects.restore(nb::make_tuple(nb::object(items_.state()[0]), nb::bool_(true), nb::object(items_.state()[2])));
      become(as_objects.definition(), nullptr);
      items_ = std::move(as_objects);
    }
    wheels_->stage_slices(partials);
    std::size_t late = insert_staged(names, times, missed, true);
    blank_ = false;
    change.done();
    return late;
  }

  void advance_to(nb::handle time) {
    Work work(*this);
    Time to = clock_.read(time);
    guarded([&] {
      if (!wheels_->native()) return wheels_->advance(to);
      nb::gil_scoped_release unlocked;
      wheels_->advance(to);
    });
  }

  nb::object key_query(nb::handle key, nb::handle start, nb::handle end, nb::handle arg, bool clamp) {
    Work work(*this);
    Time from = clock_.bound(start), to = clock_.bound(end);
    clamp_range(wheels_->all(), from, to, clamp);
    return range(from, to, [&] {
      auto k = find(key);
      return k ? wheels_->query(*k, from, to, arg) : wheels_->empty(from, to, arg);
    });
  }
  nb::object key_landmark(nb::handle key, nb::handle arg) {
    Work work(*this);
    auto k = find(key);
    nb::object out;
    guarded([&] { out = k ? wheels_->landmark(*k, arg) : wheels_->nothing(arg); });
    return out;
  }
  nb::object key_interval(nb::handle key, Time length, nb::handle arg) {
    Work work(*this);
    Time to = wheels_->all().closed(), from = to - length;
    return range(from, to, [&] {
      auto k = find(key);
      return k ? wheels_->query(*k, from, to, arg) : wheels_->empty(from, to, arg);
    });
  }

  // (keys, values) of the keys that hold something in a range.
  nb::object query_each(nb::handle start, nb::handle end, bool clamp) {
    Work work(*this);
    Time from = clock_.bound(start), to = clock_.bound(end);
    clamp_range(wheels_->all(), from, to, clamp);
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
    Work work(*this);
    Time from = clock_.bound(start), to = clock_.bound(end);
    clamp_range(wheels_->all(), from, to, clamp);
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
    Work work(*this);
    Time from = clock_.bound(start), to = clock_.bound(end);
    std::vector<std::size_t> out(settings_.levels.size(), 0);
    range(from, to, [&] {
      if (auto k = find(key)) out = wheels_->slots_read(*k, from, to);
      return nb::none();
    });
    return out;
  }

  std::size_t size() {
    Work work(*this);
    return names_.size();
  }
  bool has(nb::handle key) {
    Work work(*this);
    return find(key).has_value();
  }
  nb::list keys() {
    Work work(*this);
    nb::list out;
    for (std::uint32_t i = 0; i < names_.size(); ++i) out.append(key_of(i));
    return out;
  }
  std::uint64_t late() {
    Work work(*this);
    return wheels_->late();
  }
  std::size_t bytes() {
    Work work(*this);
    return wheels_->bytes() + names_.memory();
  }

  int traverse(visitproc visit, void* arg) const {
    if (int stop = items_.traverse(visit, arg)) return stop;
    return wheels_->traverse(visit, arg);
  }
  void forget() {
    if (busy_) return;
    broken_.clear();
    Work work(*this);
    items_.forget();
    names_ = {};
    auto held = std::exchange(wheels_, make_keyed_wheels(items_.definition(), settings_));
  }

  void merge(KeyedHandle& other) {
    if (&other == this) raise("ValueError", "keyed wheels can't be merged into themselves. Copy them first if that is meant.");
    Work work(*this), theirs(other);
    if (wheels_->drops() || other.wheels_->drops())
      raise("ValueError", "keyed wheels that drop slots can't be merged: the ticks of every key are needed. Use retention='keep'.");
    if (items_.definition()->types != other.items_.definition()->types ||
        items_.definition()->object != other.items_.definition()->object) {
      if (!blank_ && !other.blank_)
        raise("ValueError", "one holds " + dtype() + " items, the other " + other.dtype() + ". Build both with the same dtype=.");
      KeyedHandle& empty = blank_ ? *this : other;
      KeyedHandle& full = blank_ ? other : *this;
      ItemReader next = empty.items_;
      next.adopt(full.items_);
      empty.become(next.definition(), nullptr);
      empty.items_ = std::move(next);
    }
    Ids number;
    engine::KeyNames names = names_;
    for (std::size_t i = 0; i < other.names_.size(); ++i) number.push_back(names.number(other.names_.name(i)));
    wheels_->grow(names.size());
    guarded([&] { wheels_->merge(*other.wheels_, number); });
    names_ = std::move(names);
    settings_.start = wheels_->all().start();
    blank_ &= other.blank_;
  }

  void check() {
    Work work(*this);
    try {
      wheels_->check();
    } catch (const std::logic_error& broken) {
      raise("AssertionError", broken.what());
    }
  }

  nb::tuple state() {
    Work work(*this);
    Saved saved = wheels_->save();
    nb::bytes numbers(reinterpret_cast<const char*>(saved.numbers.data()), saved.numbers.size() * sizeof(std::int64_t));
    std::string names;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      append_bytes(names, static_cast<std::uint32_t>(names_.name(i).size()));
      names.append(names_.name(i));
    }
    return nb::make_tuple(items_.state(), nb::bool_(blank_), settings_.start, numbers, saved.partials,
                          nb::bytes(names.data(), names.size()));
  }

  void restore(nb::tuple state) {
    if (state.size() != 6) raise("ValueError", "these bytes are damaged: they do not hold 6 fields.");
    Work work(*this);
    ItemReader items = items_;
    items.restore(nb::object(state[0]));
    auto bytes = nb::cast<nb::bytes>(state[3]);
    Saved saved;
    saved.numbers.resize(bytes.size() / sizeof(std::int64_t));
    std::memcpy(saved.numbers.data(), bytes.c_str(), saved.numbers.size() * sizeof(std::int64_t));
    saved.partials = nb::object(state[4]);
    settings_.start = nb::cast<Time>(state[2]);
    auto loaded = make_keyed_wheels(items.definition(), settings_);
    loaded->load(saved);
    auto stored = nb::cast<nb::bytes>(state[5]);
    std::string_view left(stored.c_str(), stored.size());
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
    loaded->grow(names.size());
    wheels_ = std::move(loaded);
    names_ = std::move(names);
    items_ = std::move(items);
    blank_ = nb::cast<bool>(state[1]);
  }

 protected:
  const AnyView& begin() override {
    start_work();
    return wheels_->all();
  }
  void end() override { busy_ = false; }

 private:
  // The ring of all keys together: there is one for all, and batches often span hours. With 64 slots, 20 million rows of one day
  // in no order took 0.9 s longer than with these.
  static constexpr std::size_t least_ahead = 4096;
  static constexpr const char* at_work = "these wheels are at work already. A callable of an aggregation may not call its own wheels.";

  void start_work() {
    if (!broken_.empty())
      raise("BrokenWindow", "an earlier call was broken off by " + broken_ +
                                ", and the wheels could not be put back. Build them again, or load bytes stored before.");
    if (busy_) raise("RuntimeError", at_work);
    busy_ = true;
  }

  class Work {
   public:
    explicit Work(KeyedHandle& w) : wheels_(w) { w.start_work(); }
    ~Work() { wheels_.busy_ = false; }

   private:
    KeyedHandle& wheels_;
  };

  template <class Step>
  void guarded(Step step) {
    try {
      step();
    } catch (nb::python_error& e) {
      if (wheels_->torn()) broken_ = text(e.value());
      throw;
    } catch (const std::bad_alloc&) {
      broken_ = "MemoryError";  // where in the step it was is not known
      throw;
    }
  }

  template <class Step>
  nb::object range(const Time& from, const Time& to, Step step) {
    nb::object out;
    guarded([&] { out = refusing(wheels_->all(), from, to, [&]() -> nb::object { return step(); }); });
    return out;
  }

  static void check_rows(std::size_t rows, std::size_t times, const char* what) {
    if (rows != times)
      raise("ValueError",
            "there are " + std::to_string(rows) + " " + what + " but " + std::to_string(times) + " times. Pass one time each.");
  }

  static void check_times(const Times& times) {
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times(i) > Wheel<Count>::latest || times(i) < -Wheel<Count>::latest)
        raise("OverflowError",
              "time " + std::to_string(times(i)) + " is too far from the epoch for a wheel (more than 2^61 units). Use a coarser unit.");
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
    wheels_->grow(names_.size() + fresh.size());
    guarded([&] { wheels_->insert_staged(ids.data(), times.data(), late, slices); });
    for (std::size_t i = 0; i < fresh.size(); ++i) names_.number(fresh.name(i));
    return static_cast<std::size_t>(std::count(late.begin(), late.end(), 1));
  }

  // The number of a key, or the one it would get; there is room for it.
  std::uint32_t place(const std::string& name) {
    auto known = names_.find(name);
    if (known) return *known;
    wheels_->grow(names_.size() + 1);
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
    if (!wheels_->native() || !scalars) return wheels_->query_each(from, to, names_.size(), scalars);
    KeyedResults found;
    {
      nb::gil_scoped_release unlocked;
      found = wheels_->query_each(from, to, names_.size(), true);
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
    wheels_->grow(std::max<std::size_t>(names_.size(), 1));
  }

  void settle(const std::vector<Item::Kind>& kinds) {
    items_.settle(kinds, [this](const DefinitionPtr& next, ItemReader::Promoted promoted) { become(next, promoted); });
  }

  void become(const DefinitionPtr& next, ItemReader::Promoted promoted) {
    auto rebuilt = make_keyed_wheels(next, settings_);
    if (promoted)
      rebuilt->promote_from(*wheels_, *promoted);
    else
      rebuilt->load_blank(wheels_->save());
    if (change_)
      change_->replace(std::move(rebuilt));
    else
      wheels_ = std::move(rebuilt);
  }

  WheelSettings settings_;
  std::unique_ptr<AnyKeyedWheels> wheels_;
  engine::KeyNames names_;
  bool blank_ = true;  // only nulls so far
  bool busy_ = false;
  std::string broken_;  // the first error that tore the wheels
  using Change = TypeChange<std::unique_ptr<AnyKeyedWheels>>;
  Change* change_ = nullptr;
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
