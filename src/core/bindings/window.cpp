#include "window.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "hooks.hpp"

namespace sash {

// --- the table of algorithms

static std::vector<const AlgorithmInfo*>& table() {
  static std::vector<const AlgorithmInfo*> all;
  return all;
}

const std::vector<const AlgorithmInfo*>& algorithms() { return table(); }

void add_algorithm(const AlgorithmInfo& info) {
  if (info.name[0] != '_') table().push_back(&info);  // those are variants for tests
}

// --- construction

// What takes every aggregation of items in order, as sash.window would.
static std::string alternatives() {
  return names_of([](auto& a) { return a.in_order && a.preference && a.needs_associative && !a.needs_inverse && !a.needs_selective; },
                  " or ");
}

// An aggregation that has what the algorithm needs.
static nb::object fitting(const AlgorithmInfo& info, nb::object aggregation) {
  nb::object base = nb::module_::import_("sash.agg.base").attr("Aggregation");
  std::string algorithm = info.name;
  if (!nb::isinstance(aggregation, base))
    raise("TypeError", text(aggregation) + " is not an aggregation. Pass one of sash.agg, e.g. " + algorithm + "(agg.sum()).");
  auto name = nb::cast<std::string>(aggregation.attr("name"));
  auto has = [&](const char* trait) { return nb::cast<bool>(aggregation.attr(trait)); };
  if (info.needs_associative && !has("associative"))
    raise("TypeError", name + " is not associative. " + algorithm + " needs that; only " +
                           names_of([](auto& a) { return !a.needs_associative; }) + " does not.");
  if (info.needs_inverse && !has("invertible"))
    raise("TypeError", name + " has no inverse. " + algorithm + " needs one; use " + alternatives() + ".");
  if (info.needs_selective && !has("selective"))
    raise("TypeError",
          name + " is not selective. " + algorithm + " needs combine to return one of its arguments; use " + alternatives() + ".");
  if (info.needs_median_like && !has("median_like"))
    raise("TypeError", name + " is not median-like. " + algorithm + " computes what is found by rank, such as median and distinct; use " +
                           alternatives() + ".");
  return aggregation;
}

Window::Window(const AlgorithmInfo& info, nb::object aggregation, nb::object dtype, Options options)
    : info_(info),
      options_(options),
      items_(fitting(info, std::move(aggregation)), std::move(dtype), options.integers_only),
      window_(items_,
              {"the window could not be put back. Call clear() to use it again.",
               "this window is at work already. A callable of an aggregation may not call its own window, nor may two threads."},
              [this](const DefinitionPtr& definition) { return info_.make(definition, options_); }) {
  window_.start();
}

// --- times

// A time as a Python int or float, whatever it came as; None stays.
static nb::object point_of(nb::handle time) {
  PyObject* o = time.ptr();
  if (o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o)) return nb::borrow(time);
  return nb::module_::import_("sash.time").attr("point")(time);
}

static double finite_or_infinite(nb::handle point) {
  double t = PyFloat_AS_DOUBLE(point.ptr());
  if (std::isnan(t)) raise("ValueError", "NaN is not a time. Drop the item, or give it a time.");
  return t;
}

static bool less(nb::handle a, nb::handle b) {
  int answer = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_LT);
  if (answer < 0) throw nb::python_error();
  return answer != 0;
}

constexpr double two_to_63 = 0x1p63;

Window::TimeKind Window::kind_of(nb::handle point) const {
  if (point.is_none()) {
    if (!info_.in_order && !info_.counts_times)
      raise("TypeError", std::string(info_.name) + " needs a time for every item. Pass one, e.g. insert(value, time).");
    if (times_ == TimeKind::integers || times_ == TimeKind::floats)
      raise("ValueError", "this item has no time, earlier ones had. Give every item a time, or none.");
    return TimeKind::counted;
  }
  if (times_ == TimeKind::counted)
    raise("ValueError", "this item has the time " + text(point) + ", earlier ones had none. Give every item a time, or none.");
  if (times_ != TimeKind::unknown) return times_;
  return PyFloat_Check(point.ptr()) ? TimeKind::floats : TimeKind::integers;
}

// Keys of float times are integers of the same order, but not of the same distances. A kernel that measures distances would get them
// wrong; the aggregation's Python definition does not.
static bool measures_time(const KernelSpec& spec) {
  if (run_time_kernel(spec)) return false;
  return with_kernel(spec, []<class K>(const K&) { return requires { K::measures_time; }; });
}

static bool measures_time(const Definition& d) {
  return !d.object && std::any_of(d.kernels.begin(), d.kernels.end(), [](const KernelSpec& spec) { return measures_time(spec); });
}

void Window::follow(TimeKind kind) {
  if (kind != TimeKind::floats || times_ != TimeKind::unknown || !measures_time(*items_.definition())) return;
  window_.turn_into_objects();
}

// A reorder buffer reckons with times, so it must know of which kind they are.
void Window::take_times(TimeKind kind) {
  if (!options_.reorders || times_ != TimeKind::unknown || options_.float_times == (kind == TimeKind::floats)) return;
  options_.float_times = kind == TimeKind::floats;
  window_.start();
}

Time Window::key_of(nb::handle point, TimeKind kind) const {
  PyObject* o = point.ptr();
  if (PyFloat_Check(o)) {
    double t = finite_or_infinite(point);
    if (kind == TimeKind::floats) return encode_time(t);
    if (t != std::floor(t) || t >= two_to_63 || t < -two_to_63)
      raise("ValueError",
            "time " + text(point) +
                " is not whole, and the times of this window are integers. Use whole times, or floats from the first item on.");
    return static_cast<Time>(t);
  }
  int overflow = 0;
  long long t = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) raise("OverflowError", "time " + text(point) + " does not fit int64. Use a coarser unit.");
  if (kind != TimeKind::floats) return static_cast<Time>(t);
  auto as_float = static_cast<double>(t);
  if (as_float >= two_to_63 || static_cast<long long>(as_float) != t)
    raise("ValueError", "time " + text(point) +
                            " stands among floats, and no float is equal to it. Use integers from the first item on, or smaller times.");
  return encode_time(as_float);
}

// The nearest key on the inner side of a bound: at or after a lower one, at or before an upper one.
std::optional<Time> Window::bound_of(nb::handle point, bool lower) const {
  PyObject* o = point.ptr();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (times_ == TimeKind::floats) {
    if (PyFloat_Check(o)) return encode_time(finite_or_infinite(point));
    double t = PyLong_AsDouble(o);
    if (PyErr_Occurred()) {  // an int beyond all doubles
      PyErr_Clear();
      t = less(point, nb::int_(0)) ? -infinity : infinity;
    }
    if (lower && less(nb::float_(t), point)) t = std::nextafter(t, infinity);
    if (!lower && less(point, nb::float_(t))) t = std::nextafter(t, -infinity);
    return encode_time(t);
  }
  if (PyFloat_Check(o)) {
    double t = finite_or_infinite(point);
    t = lower ? std::ceil(t) : std::floor(t);
    if (t >= two_to_63) return lower ? std::nullopt : std::optional<Time>(INT64_MAX);
    if (t < -two_to_63) return lower ? std::optional<Time>(INT64_MIN) : std::nullopt;
    return static_cast<Time>(t);
  }
  int overflow = 0;
  long long t = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow > 0) return lower ? std::nullopt : std::optional<Time>(INT64_MAX);
  if (overflow < 0) return lower ? std::optional<Time>(INT64_MIN) : std::nullopt;
  return static_cast<Time>(t);
}

std::pair<Time, Time> Window::range_of(nb::handle start, nb::handle end) const {
  nb::object first = point_of(start), last = point_of(end);
  std::optional<Time> from = bound_of(first, true), to = bound_of(last, false);
  if (less(last, first))
    raise("ValueError", "start " + text(start) + " is after end " + text(end) + ". Ranges include both ends, start first.");
  if (!from || !to) return {1, 0};
  return {*from, *to};
}

nb::object Window::time_out(Time t, TimeKind kind) const {
  if (kind == TimeKind::floats) return nb::float_(decode_time(t));
  return nb::int_(t);
}

// Extremes in the core carry keys; what is given back are times.
nb::object Window::with_times(nb::object result) const {
  const Definition& d = *items_.definition();
  if (times_ != TimeKind::floats || d.object || result.is_none()) return result;
  auto carries = [&](std::size_t i) { return d.lowerings[i].hows.size() == 1 && d.lowerings[i].hows[0] == Lower::time; };
  if (d.names.empty()) return carries(0) ? time_out(nb::cast<Time>(result)) : result;
  for (std::size_t i = 0; i < d.names.size(); ++i) {
    const char* name = d.names[i].c_str();
    if (carries(i) && !nb::object(result[name]).is_none()) result[name] = time_out(nb::cast<Time>(result[name]));
  }
  return result;
}

void Window::refuse_older(Time t) const {
  if (!info_.in_order || window_->size() == 0 || t >= window_->youngest()) return;
  raise("OutOfOrderError",
        "time " + text(time_out(t)) + " is older than the youngest entry (" + text(time_out(window_->youngest())) + "). " + info_.name +
            " needs times that do not decrease; use Fiba for late items, or sash.window(..., in_order=False) to have one chosen.");
}

// --- operations

template <class Step>
void Window::guarded(Step step) {
  try {
    window_.guarded(step);
  } catch (const OutOfOrder& late) {
    raise("OutOfOrderError", "time " + text(time_out(late.time)) + " is older than what the reorder buffer already let through (" +
                                 text(time_out(late.youngest)) + "). Give a larger max_delay, or use Fiba for items of any lateness.");
  }
}

void Window::insert(nb::handle value, nb::handle time) {
  Work work(window_);
  nb::object point = point_of(time);
  TimeKind kind = kind_of(point);
  Time t = 0;
  Change change(window_);
  if (kind != TimeKind::counted) {
    t = key_of(point, kind);
    refuse_older(t);
    follow(kind);
    take_times(kind);
  }
  window_.read(value);
  if (kind == TimeKind::counted) {
    guarded([&] { window_->append(items_.row().data(), items_.value()); });
  } else {
    nb::object shown = items_.definition()->object ? time_out(t, kind) : nb::object();
    guarded([&] { window_->insert(items_.row().data(), items_.value(), shown, t); });
  }
  change.done();
  times_ = kind;
}

using IntArray = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatArray = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ByteArray = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void Window::bulk_insert(nb::object values, nb::object times, bool sort) {
  nb::object columns = nb::module_::import_("sash.swag.columns");
  nb::object stamps = times.is_none() ? times : nb::object(nb::module_::import_("sash.time").attr("timestamps")(times));
  bool in_python = !window_->native() || (times_ == TimeKind::unknown && !stamps.is_none() && nb::isinstance<FloatArray>(stamps) &&
                                          measures_time(*items_.definition()));
  // (columns or None, rows or None, times or None, number of rows, foreign columns or None), lengths checked, sorted if asked for.
  nb::tuple read_in = nb::cast<nb::tuple>(columns.attr("read")(aggregation(), values, stamps, sort, in_python));
  auto rows = nb::cast<std::size_t>(read_in[3]);
  if (rows == 0) return;

  Work work(window_);
  nb::object time_array = read_in[2];
  bool float_times = !time_array.is_none() && nb::isinstance<FloatArray>(time_array);
  TimeKind kind = kind_of(time_array.is_none() ? time_array : float_times ? nb::object(nb::float_(0.0)) : nb::object(nb::int_(0)));
  Change change(window_);
  std::vector<Time> keys;
  if (kind != TimeKind::counted) {
    keys.resize(rows);
    if (float_times) {
      auto t = nb::cast<FloatArray>(time_array);
      for (std::size_t i = 0; i < rows; ++i) keys[i] = kind == TimeKind::floats ? encode_time(t(i)) : key_of(nb::float_(t(i)), kind);
    } else {
      auto t = nb::cast<IntArray>(time_array);
      for (std::size_t i = 0; i < rows; ++i) keys[i] = kind == TimeKind::floats ? key_of(nb::int_(t(i)), kind) : t(i);
    }
    for (std::size_t i = 1; i < rows; ++i)
      if (keys[i] < keys[i - 1])
        raise(info_.in_order ? "OutOfOrderError" : "ValueError",
              "time " + text(time_out(keys[i], kind)) + " follows " + text(time_out(keys[i - 1], kind)) +
                  ". bulk_insert needs times that do not decrease; pass sort=True to have them sorted.");
    refuse_older(keys[0]);
    follow(kind);
    take_times(kind);
  }

  // The first bulk of a window has nothing before it that could be lost: broken off, it leaves the window as empty as it was.
  bool first = window_->untouched();
  auto step = [&](auto put_in) {
    try {
      guarded(put_in);
    } catch (...) {
      if (first && window_.broken()) {
        window_->clear();
        window_.mend();
      }
      throw;
    }
  };
  if (!read_in[0].is_none() && window_->native()) {
    ItemColumns columns_in(read_in[0], rows);
    if (!items_.definition()->object) window_.settle(columns_in.kinds);
    step([&] {
      nb::gil_scoped_release unlocked;
      window_->insert_column(columns_in.parts.data(), columns_in.parts.size(), keys.empty() ? nullptr : keys.data());
    });
  } else {
    ItemRows in;
    window_.read_rows(in, read_in[1], read_in[4]);
    bool counted = kind == TimeKind::counted;
    std::vector<nb::object> shown;
    for (std::size_t i = 0; i < in.rows.size(); ++i) {
      if (counted) keys.push_back(window_->next_time() + static_cast<Time>(i));
      shown.push_back(time_out(keys[i], kind));
    }
    step([&] { window_->insert_rows(in.rows, in.values, shown, keys, counted); });
  }
  change.done();
  times_ = kind;
}

nb::object Window::evict(nb::handle time) {
  Work work(window_);
  if (time.is_none()) {
    if (window_->size() == 0) raise("IndexError", "the window is empty: there is nothing to evict. Test len(window) first.");
    guarded([&] { window_->evict(); });
    return nb::none();
  }
  if (!info_.anywhere)
    raise("TypeError", std::string(info_.name) + " evicts only its oldest entry. Use evict(), bulk_evict(time), or, for evict(time), " +
                           names_of([](auto& a) { return a.anywhere && !a.needs_median_like; }, " or ") + ".");
  bool found = false;
  if (window_->size() > 0) guarded([&] { found = window_->evict(key_of(point_of(time), times_)); });
  return nb::borrow(found ? Py_True : Py_False);
}

void Window::bulk_evict(nb::handle time) {
  Work work(window_);
  std::optional<Time> bound = bound_of(point_of(time), false);
  if (bound) guarded([&] { window_->bulk_evict(*bound); });
}

nb::object Window::query(nb::handle start, nb::handle end, nb::handle arg) {
  Work work(window_);
  nb::object out;
  if (start.is_none() && end.is_none()) {
    guarded([&] { out = window_->query(arg); });
    return with_times(out);
  }
  if (!info_.ranges && !info_.suffixes)
    raise("TypeError", std::string(info_.name) + " answers for the whole window only. For ranges use " +
                           names_of([](auto& a) { return a.ranges; }, " or ") + ".");
  if (start.is_none() || end.is_none()) raise("TypeError", "a range has two ends. Use query(start, end), or query() for the whole window.");
  auto [from, to] = range_of(start, end);
  if (info_.suffixes && !info_.ranges && from <= to && !window_->reaches_the_end(to))
    raise("ValueError", "end " + text(end) + " is before the youngest entry (" + text(time_out(window_->youngest())) + "). " + info_.name +
                            " answers for ranges up to the youngest only.");
  guarded([&, first = from, last = to] { out = window_->query(first, last, arg); });
  return with_times(out);
}

nb::object Window::query_many(nb::object starts, nb::object ends) {
  nb::object columns = nb::module_::import_("sash.swag.columns");
  nb::tuple ranges = nb::cast<nb::tuple>(columns.attr("read_ranges")(starts, ends));
  auto many = nb::cast<std::size_t>(ranges[2]);
  if (!info_.ranges || !items_.one_number() || !nb::isinstance<IntArray>(ranges[0]) || !nb::isinstance<IntArray>(ranges[1]) ||
      times_ == TimeKind::floats) {
    nb::list out;
    if (!info_.ranges) {
      for (std::size_t i = 0; i < many; ++i) out.append(query(ranges[0][i].attr("item")(), ranges[1][i].attr("item")(), nb::none()));
      return columns.attr("results")(out);
    }
    Work work(window_);
    std::vector<Time> from(many), to(many);
    for (std::size_t i = 0; i < many; ++i) std::tie(from[i], to[i]) = range_of(ranges[0][i].attr("item")(), ranges[1][i].attr("item")());
    guarded([&] {
      for (nb::object& value : window_->query_each(from.data(), to.data(), many)) out.append(with_times(value));
    });
    return columns.attr("results")(out);
  }
  Work work(window_);
  auto from = nb::cast<IntArray>(ranges[0]), to = nb::cast<IntArray>(ranges[1]);
  for (std::size_t i = 0; i < many; ++i)
    if (from(i) > to(i))
      raise("ValueError",
            "start " + std::to_string(from(i)) + " is after end " + std::to_string(to(i)) + ". Ranges include both ends, start first.");
  std::vector<Scalar> found;
  {
    nb::gil_scoped_release unlocked;
    found = window_->query_many(from.data(), to.data(), many);
  }
  nb::list out;
  for (const Scalar& s : found) out.append(to_python(s));
  return columns.attr("results")(out);
}

// Whatever looks into the structure is guarded: another thread may be changing it without the interpreter's lock.
std::size_t Window::size() {
  Work work(window_);
  return window_->size();
}
nb::object Window::oldest() {
  Work work(window_);
  return window_->size() ? time_out(window_->oldest()) : nb::none();
}
nb::object Window::youngest() {
  Work work(window_);
  return window_->size() ? time_out(window_->youngest()) : nb::none();
}
std::string Window::dtype() {
  Work work(window_);
  return item_type();
}
std::string Window::item_type() const { return window_->item_type() ? window_->item_type() : items_.dtype(); }

int Window::traverse(visitproc visit, void* arg) const { return window_.traverse(visit, arg); }

void Window::forget() {
  if (window_.busy()) return;
  Work work(window_, true);  // what an object does as it goes may not reach in here
  items_.forget();
  window_->clear();
}

nb::list Window::items() {
  Work work(window_);
  if (!info_.items)
    raise("TypeError",
          std::string(info_.name) + " does not keep its items apart. These do: " + names_of([](auto& a) { return a.items; }) + ".");
  nb::list out;
  for (auto& [t, value] : window_->items()) out.append(nb::make_tuple(time_out(t), with_times(value)));
  return out;
}

void Window::clear() {
  Work work(window_, true);
  window_->clear();
  window_.mend();
  times_ = TimeKind::unknown;
}

void Window::check(nb::object values) {
  Work work(window_);
  std::vector<std::vector<Item>> items;
  std::vector<nb::object> objects;
  std::vector<Time> times;
  std::vector<nb::object> shown;
  if (!values.is_none()) {
    times = window_->times();
    for (Time t : times) shown.push_back(time_out(t));
    ItemReader reader = items_;
    for (nb::handle value : values) {
      reader.read(value, [](auto&&...) {});
      items.push_back(reader.row());
      objects.push_back(reader.value());
    }
    if (items.size() != times.size())
      raise("AssertionError", "the window holds " + std::to_string(times.size()) + " entries, " + std::to_string(items.size()) +
                                  " values were given to check it by.");
  }
  window_.check([&] { window_->check(items, objects, times, shown); });
}

void Window::merge(Window& other) {
  if (&other == this) raise("ValueError", "a window can't be merged into itself. Copy it first if that is meant.");
  Work work(window_), theirs(other.window_);
  if (&info_ != &other.info_ || !aggregation().equal(other.aggregation()))
    raise("ValueError", "only windows of the same algorithm and aggregation merge. Build both from one definition.");
  if (!info_.items)
    raise("TypeError", std::string(info_.name) + " does not keep its items apart, so it can't be merged. Use " +
                           names_of([](auto& a) { return a.items && !a.in_order && !a.needs_median_like; }, " or ") + ".");
  if (other.window_->size() == 0) return;
  if (options_.keep_ties != other.options_.keep_ties)
    raise("ValueError", "one window keeps equal times apart (ties='keep'), the other combines them. Build both with the same ties=.");
  TimeKind kind = times_ == TimeKind::unknown ? other.times_ : times_;
  if (kind != other.times_ || kind == TimeKind::counted)
    raise("ValueError", "windows merge by time, so both need times of the same kind. Give every item a time.");
  if (info_.in_order) refuse_older(other.window_->oldest());
  Change change(window_);
  if (!window_.same_types(other.window_)) {
    if (window_->size() > 0)
      raise("ValueError",
            "one window holds " + item_type() + " items, the other " + other.item_type() + ". Build both with the same dtype=.");
    window_.adopt(other.window_);
  }
  bool merged = false;
  guarded([&] { merged = window_->merge(*other.window_); });
  if (!merged) raise("ValueError", "the two windows are built differently. Build both with the same options.");
  change.done();
  times_ = kind;
}

nb::tuple Window::state() {
  Work work(window_);
  Saved saved = window_->save();
  nb::tuple types = items_.state();
  return nb::make_tuple(types[0], types[1], types[2], static_cast<int>(times_), saved.number_bytes(), saved.partials);
}

void Window::restore(nb::tuple state) {
  if (state.size() != 6) raise("ValueError", "these bytes are damaged: they do not hold 6 fields.");
  Work work(window_);
  ItemReader items = items_;
  items.restore(state);
  Saved saved = Saved::read(state[4], state[5]);
  int kind = nb::cast<int>(state[3]);
  if (kind < 0 || kind > 3) raise("ValueError", "these bytes are damaged: they know no kind of time.");
  Options options = options_;
  options.float_times = options.reorders && static_cast<TimeKind>(kind) == TimeKind::floats;
  std::shared_ptr<AnyWindow> loaded = info_.make(items.definition(), options);
  loaded->load(saved);
  options_ = options;
  window_.replace(std::move(loaded), std::move(items));
  times_ = static_cast<TimeKind>(kind);
}

nb::dict Window::counts() {
  Work work(window_);
  nb::dict out;
  out["visited"] = nb::int_(window_->visited());
  out["restructured"] = nb::int_(window_->restructured());
  nb::dict reached;
  for (auto& [branch, times] : window_->reached()) reached[branch.c_str()] = nb::int_(times);
  out["reached"] = reached;
  return out;
}

nb::object Window::nodes() {
  Work work(window_);
  nb::object found = window_->nodes();
  if (found.is_none()) raise("TypeError", std::string(info_.name) + " is not a tree of nodes. Fiba and BTree are.");
  nb::list out;
  for (nb::handle node : found) {
    auto times = nb::cast<nb::list>(node[2]);
    for (std::size_t i = 0; i < times.size(); ++i) times[i] = time_out(nb::cast<Time>(times[i]));
    out.append(nb::make_tuple(node[0], node[1], times, with_times(nb::object(node[3]))));
  }
  return out;
}

static void bind_table(nb::module_& m) {
  auto text_of = [](const char* text) -> nb::object { return text ? nb::object(nb::str(text)) : nb::none(); };
  using A = const AlgorithmInfo;
  nb::class_<AlgorithmInfo>(m, "Algorithm", "The entry of an algorithm: what it can do, what it needs, what it costs.")
      .def_prop_ro("name", [](A& a) { return a.name; })
      .def_prop_ro(
          "time", [](A& a) { return a.time; }, "Combines per operation.")
      .def_prop_ro(
          "space", [](A& a) { return a.space; }, "Partials.")
      .def_prop_ro("paper", [](A& a) { return a.paper; })
      .def_ro("in_order", &AlgorithmInfo::in_order, "Whether times must not decrease.")
      .def_ro("ranges", &AlgorithmInfo::ranges, "Whether query(start, end) is answered.")
      .def_ro("suffixes", &AlgorithmInfo::suffixes, "Whether it is answered for ends at the youngest entry.")
      .def_ro("items", &AlgorithmInfo::items, "Whether it still has its items.")
      .def_ro("anywhere", &AlgorithmInfo::anywhere, "Whether evict(time) removes an entry anywhere.")
      .def_ro("counts_times", &AlgorithmInfo::counts_times, "Whether times may be left out though items come in any order.")
      .def_ro("combines_ties", &AlgorithmInfo::combines_ties, "Whether equal times are one entry.")
      .def_ro("needs_associative", &AlgorithmInfo::needs_associative)
      .def_ro("needs_inverse", &AlgorithmInfo::needs_inverse)
      .def_ro("needs_selective", &AlgorithmInfo::needs_selective)
      .def_ro("needs_median_like", &AlgorithmInfo::needs_median_like)
      .def_ro("needs_delay", &AlgorithmInfo::needs_delay, "Whether its constructor needs max_delay=.")
      .def_ro("preference", &AlgorithmInfo::preference, "Its turn in sash.window, from 1; 0 where it must be named.")
      .def_prop_ro(
          "spike", [text_of](A& a) { return text_of(a.spike); }, "What a single call may cost, where that grows with n.")
      .def_prop_ro(
          "drawback", [text_of](A& a) { return text_of(a.drawback); }, "Why sash.window passes it over without need.")
      .def_prop_ro("benches", [](A& a) { return a.benches; }, "The experiments of sash bench that it is in.");
  m.def(
      "algorithms",
      [] {
        nb::list out;
        for (const AlgorithmInfo* info : algorithms()) out.append(nb::cast(info, nb::rv_policy::reference));
        return out;
      },
      "List the algorithms, in the order of the tables.");
}

static Binding bind(0, [](nb::module_& m) {
  bind_table(m);
  nb::class_<Window> window(m, "Window", "A sliding window: insert, evict, query. Its subclasses are the algorithms.", nb::dynamic_attr(),
                            nb::is_weak_referenceable(), nb::type_slots(Collected<Window>::slots));
  window
      .def("insert", &Window::insert, nb::arg("value").none(), nb::arg("time") = nb::none(),
           "Add an item; left-out times count 0, 1, 2 ...")
      .def("bulk_insert", &Window::bulk_insert, nb::arg("values"), nb::arg("times") = nb::none(), nb::kw_only(), nb::arg("sort") = false,
           "Add many items at once, fast for NumPy and Arrow columns.")
      .def("evict", &Window::evict, nb::arg("time") = nb::none(),
           "Remove the oldest entry; with a time, exactly that entry, and tell whether it was there.")
      .def("bulk_evict", &Window::bulk_evict, nb::arg("time"), "Remove all entries up to and including a time.")
      .def("query", &Window::query, nb::arg("start") = nb::none(), nb::arg("end") = nb::none(), nb::kw_only(), nb::arg("arg") = nb::none(),
           "Give the lowered value of the whole window, or of the entries from start to end, both included.")
      .def("query_many", &Window::query_many, nb::arg("starts"), nb::arg("ends"), "Give the value of many ranges at once, as an array.")
      .def("__len__", &Window::size, "Count the entries.")
      .def_prop_ro("oldest", &Window::oldest, "The time of the oldest entry, None when empty.")
      .def_prop_ro("youngest", &Window::youngest, "The time of the youngest entry, None when empty.")
      .def_prop_ro("dtype", &Window::dtype, "The item type: int64, float64 or object.")
      .def_prop_ro("aggregation", &Window::aggregation, "What is aggregated.")
      .def("items", &Window::items, "List (time, lowered value) in time order, where the algorithm still has its items.")
      .def("clear", &Window::clear, "Remove everything, and mend a broken window.")
      .def("check", &Window::check, nb::arg("values") = nb::none(), "Verify every invariant, and say in words which one broke.")
      .def("merge", &Window::merge, nb::arg("other"), "Take over the entries of another window, in time order.")
      .def_prop_ro(
          "algorithm", [](Window& w) -> const AlgorithmInfo& { return w.info(); }, nb::rv_policy::reference,
          "What the algorithm can do, what it needs, what it costs.")
      .def(
          "explain", [](nb::handle self) { return hook("explain")(self); }, nb::sig("def explain(self) -> str"),
          "Say which algorithm runs the window, at what cost, and why not another.")
      .def(
          "to_bytes", [](nb::handle self) { return hook("to_bytes")(self); }, nb::sig("def to_bytes(self) -> bytes"),
          "Store the window as bytes, with the fingerprint of its aggregation.")
      .def("__reduce__", [](nb::handle self) { return hook("reduce")(self); })
      .def("__copy__", [](nb::handle self) { return hook("copy")(self); })
      .def("__deepcopy__", [](nb::handle self, nb::handle memo) { return hook("deepcopy")(self, memo); })
      .def("_state", &Window::state)
      .def("_restore", &Window::restore)
      .def("_counts", &Window::counts)
      .def("_nodes", &Window::nodes)
      .def_prop_ro("_options", [](Window& w) {
        nb::dict out;
        if (w.options().min_arity) out["min_arity"] = nb::int_(w.options().min_arity);
        if (w.options().keep_ties) out["ties"] = nb::str("keep");
        if (w.options().reorders && (w.options().float_delay != std::floor(w.options().float_delay) || w.options().float_delay >= 0x1p63))
          out["max_delay"] = nb::float_(w.options().float_delay);
        else if (w.options().reorders)
          out["max_delay"] = nb::int_(w.options().max_delay);
        if (w.options().integers_only) out["integers_only"] = nb::bool_(true);
        return out;
      });
  // A class method, so that a class derived from a window reads its own.
  nb::object from_bytes =
      nb::cpp_function([](nb::handle cls, nb::handle data, nb::handle aggregation) { return hook("from_bytes")(cls, data, aggregation); },
                       nb::name("from_bytes"), nb::arg("cls"), nb::arg("data").none(), nb::arg("aggregation").none(),
                       "Read a window that to_bytes stored; ValueError for damaged bytes or another definition's.");
  window.attr("from_bytes") = nb::steal(PyClassMethod_New(from_bytes.ptr()));
});

}  // namespace sash
