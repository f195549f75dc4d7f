// The wheel for Python: what is asked of it, and what is put in

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <thread>

#include "collected.hpp"
#include "foreign.hpp"
#include "hooks.hpp"
#include "wheel_answers.hpp"

namespace sash {

// A view of one watermark, for other threads.
class WheelReader final : public WheelAnswers {
 public:
  WheelReader(Clock clock, Time grain, ItemReader items, std::unique_ptr<AnyView> view)
      : WheelAnswers(clock, grain, std::move(items)), view_(std::move(view)) {}

 protected:
  const AnyView& begin() override { return *view_; }

 private:
  std::unique_ptr<AnyView> view_;
};

// --- the wheel itself

class WheelHandle final : public WheelAnswers {
 public:
  // levels: (ticks per slot, slots retained or 0, whether prefix) from the grain up.
  WheelHandle(nb::object aggregation, nb::object dtype, std::int64_t unit, Time grain, Time start, nb::list levels, std::size_t write_ahead,
              bool inverse_asked, nb::object threshold, std::size_t chunk)
      : WheelAnswers(Clock(unit), grain, ItemReader(std::move(aggregation), std::move(dtype))), inverse_asked_(inverse_asked) {
    settings_.grain = grain;
    settings_.start = start;
    settings_.write_ahead = write_ahead;
    settings_.commutative = nb::cast<bool>(this->aggregation().attr("commutative"));
    for (nb::handle level : levels)
      settings_.levels.push_back({nb::cast<std::int64_t>(level[0]), nb::cast<std::int64_t>(level[1]), nb::cast<bool>(level[2]), chunk});
    if (!threshold.is_none()) {
      settings_.hints.vectorised = true;
      settings_.hints.threshold = nb::cast<std::int64_t>(threshold);
    }
    wheel_ = made(items_.definition());
  }

  bool insert(nb::handle value, nb::handle time) {
    Work work(*this);
    Time t = clock_.read(time);
    Change change(change_, items_, wheel_, broken_);
    items_.read(value, [this](const DefinitionPtr& next, ItemReader::Promoted promoted) { become(next, promoted); });
    nb::object shown = items_.definition()->object ? nb::object(nb::int_(t)) : nb::object();
    bool taken = false;
    guarded([&] { taken = wheel_->insert(t, items_.row().data(), items_.value(), shown); });
    if (items_.row()[0].kind != Item::null || items_.row().size() > 1) blank_ = false;
    change.done();
    return taken;
  }

  std::size_t insert_many(nb::object values, const Times& times) {
    nb::object columns = nb::module_::import_("sash.swag.columns");
    nb::tuple read_in = nb::cast<nb::tuple>(columns.attr("read")(aggregation(), values, times, false, items_.definition()->object));
    auto rows = nb::cast<std::size_t>(read_in[3]);
    if (rows == 0) return 0;
    Work work(*this);
    for (std::size_t i = 0; i < rows; ++i)
      if (times(i) > Wheel<Count>::latest || times(i) < -Wheel<Count>::latest)
        raise("OverflowError",
              "time " + std::to_string(times(i)) + " is too far from the epoch for a wheel (more than 2^61 units). Use a coarser unit.");
    Change change(change_, items_, wheel_, broken_);
    auto to_types = [this](const DefinitionPtr& next, ItemReader::Promoted promoted) { become(next, promoted); };
    std::size_t late = 0;
    if (!read_in[0].is_none() && !items_.definition()->object) {
      ItemColumns in(read_in[0], rows);
      items_.settle(in.kinds, to_types);
      guarded([&] {
        nb::gil_scoped_release unlocked;
        late = wheel_->insert_column(in.parts.data(), in.parts.size(), times.data());
      });
    } else {
      ItemRows in;
      in.read(items_, read_in[1], read_in[4], to_types);
      guarded([&] { late = wheel_->insert_rows(in, times.data()); });
      if (in.blank()) return change.done(), late;
    }
    blank_ = false;
    change.done();
    return late;
  }

  void install(Tick range, Tick slide, Tick offset, Tick session) {
    Work work(*this);
    wheel_->install({range, slide, offset, session});
  }

  // Results as WindowResult(name, start, end, value), made by type from the names of the windows. All of them, or none: those that
  // were not handed out come first with the next call.
  nb::list advance_to(nb::handle time, bool empties, nb::handle type, nb::handle names, bool keep_errors) {
    Work work(*this);
    Time to = clock_.read(time);
    if (empties)
      if (std::int64_t due = wheel_->due(to); due > most_results)
        raise("ValueError", "an advance to " + text(time) + " ends " + std::to_string(due) +
                                " windows. Start the wheel where its stream does (start=), advance in steps, or pass empty=False.");
    Lock lock(*this);
    guarded([&] {
      if (!wheel_->native()) return wheel_->advance(to, empties);
      nb::gil_scoped_release unlocked;
      wheel_->advance(to, empties);
    });
    nb::list out;
    auto* row_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    auto name = [&](std::size_t window) {
      auto at = static_cast<Py_ssize_t>(window);  // bytes under a right seal may still lack a name
      return at < PyList_GET_SIZE(names.ptr()) ? nb::borrow(PyList_GET_ITEM(names.ptr(), at)) : nb::object(nb::str(""));
    };
    try {
      for (auto& r : wheel_->results(keep_errors)) {
        nb::object row = nb::steal(row_type->tp_alloc(row_type, 4));  // what a named tuple's own constructor does, without its frame
        if (!row.is_valid()) throw nb::python_error();
        auto set = [&](Py_ssize_t i, nb::object value) { PyTuple_SET_ITEM(row.ptr(), i, value.release().ptr()); };
        set(0, name(r.window));
        set(1, nb::int_(r.start * grain_));
        set(2, nb::int_(r.end * grain_));
        set(3, std::move(r.value));
        out.append(row);
      }
    } catch (ResultRefused& refused) {
      nb::object error = nb::borrow(refused.error.value());
      error.attr("add_note")(
          "This is the result of window " + text(name(refused.window)) + " of [" + std::to_string(refused.start * grain_) + ", " +
          std::to_string(refused.end * grain_) + "). No result of this " +
          "advance is lost: the next advance_to() gives them all; with errors='keep', this one has its error as its value.");
      throw std::move(refused.error);
    }
    wheel_->handed_out();
    return out;
  }

  std::unique_ptr<WheelReader> reader() {
    std::shared_ptr<AnyWheel> wheel = wheel_;
    if (locked_by_ == std::this_thread::get_id()) raise("RuntimeError", at_work);
    ItemReader items = items_;
    Lock lock(*this);
    return std::make_unique<WheelReader>(clock_, grain_, std::move(items), wheel->pin());
  }

  void merge(WheelHandle& other) {
    if (&other == this) raise("ValueError", "a wheel can't be merged into itself. Copy it first if that is meant.");
    Work work(*this), theirs(other);
    auto same = [](const ItemReader& a, const ItemReader& b) {
      return a.definition()->types == b.definition()->types && a.definition()->object == b.definition()->object;
    };
    if (!same(items_, other.items_)) {
      if (!blank_ && !other.blank_)
        raise("ValueError", "one wheel holds " + dtype() + " items, the other " + other.dtype() + ". Build both with the same dtype=.");
      WheelHandle& empty = blank_ ? *this : other;
      WheelHandle& full = blank_ ? other : *this;
      ItemReader next = empty.items_;
      next.adopt(full.items_);
      empty.become(next.definition(), nullptr);
      empty.items_ = std::move(next);
    }
    Lock lock(*this);
    const AnyView& view = wheel_->view();
    try {
      guarded([&] { wheel_->merge(*other.wheel_); });
    } catch (const RangeRefused& refused) {
      nb::object error =
          nb::module_::import_("sash.wheel.errors").attr("merge_refusal")(refused.from * grain_, refused.to * grain_, clock_.micros());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
      throw nb::python_error();
    }
    settings_.start = view.start();
    blank_ &= other.blank_;
  }

  std::uint64_t late() {
    Work work(*this);
    return wheel_->late();
  }
  std::size_t bytes() {
    Work work(*this);
    return wheel_->bytes();
  }
  std::size_t slots() {
    Work work(*this);
    return wheel_->slots();
  }

  int traverse(visitproc visit, void* arg) const {
    if (wheel_->pinned()) return 0;  // a reader refers to the same objects, and would lose them
    if (int stop = items_.traverse(visit, arg)) return stop;
    return wheel_->traverse(visit, arg);
  }
  void forget() {
    if (busy_) return;
    broken_.clear();
    Work work(*this);
    items_.forget();
    std::shared_ptr<AnyWheel> held = std::exchange(wheel_, made(items_.definition()));
  }

  void check() {
    Work work(*this);
    try {
      wheel_->check();
    } catch (const std::logic_error& broken) {
      raise("AssertionError", broken.what());
    }
  }

  nb::tuple state() {
    Work work(*this);
    Saved saved = wheel_->save();
    nb::bytes numbers(reinterpret_cast<const char*>(saved.numbers.data()), saved.numbers.size() * sizeof(std::int64_t));
    return nb::make_tuple(items_.state(), nb::bool_(blank_), settings_.start, numbers, saved.partials);
  }

  void restore(nb::tuple state) {
    if (state.size() != 5) raise("ValueError", "these bytes are damaged: they do not hold 5 fields.");
    Work work(*this);
    ItemReader items = items_;
    items.restore(nb::object(state[0]));
    auto bytes = nb::cast<nb::bytes>(state[3]);
    Saved saved;
    saved.numbers.resize(bytes.size() / sizeof(std::int64_t));
    std::memcpy(saved.numbers.data(), bytes.c_str(), saved.numbers.size() * sizeof(std::int64_t));
    saved.partials = nb::object(state[4]);
    settings_.start = nb::cast<Time>(state[2]);
    std::shared_ptr<AnyWheel> loaded = made(items.definition());
    loaded->load(saved);
    wheel_ = std::move(loaded);
    items_ = std::move(items);
    blank_ = nb::cast<bool>(state[1]);
  }

 protected:
  const AnyView& begin() override {
    start_work();
    return wheel_->view();
  }
  void end() override { busy_ = false; }

 private:
  static constexpr std::int64_t most_results = 50'000'000;
  static constexpr const char* at_work =
      "this wheel is at work already. A callable of an aggregation may not call its own wheel; other threads use reader().";

  // Marks the wheel as at work: one thread writes and asks, others have readers.
  void start_work() {
    if (!broken_.empty())
      raise("BrokenWindow", "an earlier call was broken off by " + broken_ +
                                ", and the wheel could not be put back. Build it again, or load bytes stored before.");
    if (busy_) raise("RuntimeError", at_work);
    busy_ = true;
  }

  class Work {
   public:
    explicit Work(WheelHandle& w) : wheel_(w) { w.start_work(); }
    ~Work() { wheel_.busy_ = false; }

   private:
    WheelHandle& wheel_;
  };

  // Holds the wheel's mutex; never waits for it with the interpreter's lock in hand.
  class Lock {
   public:
    explicit Lock(WheelHandle& w) : wheel_(w), kept_(w.wheel_), lock_(kept_->mutex(), std::try_to_lock) {
      if (!lock_) {
        nb::gil_scoped_release unlocked;
        lock_.lock();
      }
      wheel_.locked_by_ = std::this_thread::get_id();
    }
    ~Lock() { wheel_.locked_by_ = std::thread::id(); }

   private:
    WheelHandle& wheel_;
    std::shared_ptr<AnyWheel> kept_;
    std::unique_lock<std::mutex> lock_;
  };

  // Rebuilds the wheel on other item types. Entries so far are nulls, or numbers of the parts in `promoted`.
  void become(const DefinitionPtr& next, ItemReader::Promoted promoted) {
    std::shared_ptr<AnyWheel> rebuilt = made(next);
    if (promoted)
      rebuilt->promote_from(*wheel_, *promoted);
    else
      rebuilt->load_blank(wheel_->save());
    if (change_)
      change_->replace(std::move(rebuilt));
    else
      wheel_ = std::move(rebuilt);
  }

  // Inverses are used without being asked for where they give back every bit: on integers.
  std::shared_ptr<AnyWheel> made(const DefinitionPtr& definition) {
    bool integers = !definition->object;
    for (ItemType type : definition->types) integers &= type == ItemType::int64;
    bool exact = integers && nb::cast<bool>(aggregation().attr("exact_inverse"));
    settings_.inverse = exact;
    settings_.hints.inverse = settings_.commutative && (exact || inverse_asked_);
    return make_wheel(definition, settings_);
  }

  template <class Step>
  void guarded(Step step) {
    try {
      step();
    } catch (nb::python_error& e) {
      if (wheel_->torn()) broken_ = text(e.value());
      throw;
    } catch (const std::bad_alloc&) {
      broken_ = "MemoryError";  // where in the step it was is not known
      throw;
    }
  }

  WheelSettings settings_;
  bool inverse_asked_;
  std::shared_ptr<AnyWheel> wheel_;
  bool blank_ = true;  // only nulls so far
  bool busy_ = false;
  std::atomic<std::thread::id> locked_by_{};
  std::string broken_;  // the first error that tore the wheel
  using Change = TypeChange<std::shared_ptr<AnyWheel>>;
  Change* change_ = nullptr;
};

static Binding bind(20, [](nb::module_& m) {
  nb::class_<WheelAnswers>(m, "WheelAnswers", "What can be asked of a wheel at one watermark.", nb::is_weak_referenceable())
      .def("query", &WheelAnswers::query, nb::arg("start").none(), nb::arg("end").none(), nb::kw_only(), nb::arg("clamp") = false,
           nb::arg("arg") = nb::none(), "Give the value of [start, end); with clamp, of its part before the watermark.")
      .def("landmark", &WheelAnswers::landmark, nb::kw_only(), nb::arg("arg") = nb::none(),
           "Give the value of everything before the watermark.")
      .def(
          "query_many",
          [](nb::handle self, nb::handle starts, nb::handle ends, bool clamp) {
            return hook("query_many")(self, starts, ends, nb::arg("clamp") = clamp);
          },
          nb::arg("starts"), nb::arg("ends"), nb::kw_only(), nb::arg("clamp") = false,
          "Give the value of many ranges [start, end) at once, as an array.")
      .def(
          "interval",
          [](nb::handle self, nb::handle length, nb::handle arg) { return hook("interval")(self, length, nb::arg("arg") = arg); },
          nb::arg("length"), nb::kw_only(), nb::arg("arg") = nb::none(), "Give the value of the last length of time before the watermark.")
      .def(
          "group_by",
          [](nb::handle self, nb::handle start, nb::handle end, nb::handle every, nb::handle tz) {
            return hook("group_by")(self, start, end, every, nb::arg("tz") = tz);
          },
          nb::arg("start").none(), nb::arg("end").none(), nb::arg("every"), nb::kw_only(), nb::arg("tz") = nb::none(),
          "Give (bucket start, value) for every length of time from start to end.")
      .def(
          "explain",
          [](nb::handle self, nb::handle start, nb::handle end, bool clamp) {
            return hook("explain_range")(self, start, end, nb::arg("clamp") = clamp);
          },
          nb::arg("start").none(), nb::arg("end").none(), nb::kw_only(), nb::arg("clamp") = false,
          "Say how a range would be answered, at what cost, and why not otherwise.")
      .def("_interval", &WheelAnswers::interval, nb::arg("length"), nb::arg("arg") = nb::none())
      .def("_query_many", &WheelAnswers::query_many, nb::arg("starts"), nb::arg("ends"), nb::arg("clamp"))
      .def("_plans", &WheelAnswers::plans, nb::arg("start").none(), nb::arg("end").none(), nb::arg("clamp"))
      .def("_levels", &WheelAnswers::levels)
      .def("_origin", &WheelAnswers::origin)
      .def_prop_ro("start", &WheelAnswers::start, "Where the wheel begins; before it, nothing can be asked.")
      .def_prop_ro("watermark", &WheelAnswers::watermark, "Up to here, not included, everything has arrived.")
      .def_prop_ro("dtype", &WheelAnswers::dtype, "The item type: int64, float64 or object.")
      .def_prop_ro("aggregation", &WheelAnswers::aggregation, "What is aggregated.")
      .def_prop_ro("_unit", &WheelAnswers::unit);
  nb::class_<WheelReader, WheelAnswers>(m, "WheelReader", "A read-only view of a wheel at one watermark, for other threads.",
                                        nb::dynamic_attr());
  nb::class_<WheelHandle, WheelAnswers>(m, "WheelCore", "A wheel: writer, reader, windows and one clock.", nb::dynamic_attr(),
                                        nb::type_slots(Collected<WheelHandle>::slots))
      .def(nb::init<nb::object, nb::object, std::int64_t, Time, Time, nb::list, std::size_t, bool, nb::object, std::size_t>(),
           nb::arg("aggregation"), nb::arg("dtype").none(), nb::arg("unit"), nb::arg("grain"), nb::arg("start"), nb::arg("levels"),
           nb::arg("write_ahead"), nb::arg("inverse"), nb::arg("threshold").none(), nb::arg("chunk"))
      .def("insert", &WheelHandle::insert, nb::arg("value").none(), nb::arg("time").none(),
           "Add an item; False if it is late, that is older than the watermark.")
      .def("_insert_many", &WheelHandle::insert_many, nb::arg("values"), nb::arg("times"))
      .def("_install", &WheelHandle::install, nb::arg("range"), nb::arg("slide"), nb::arg("offset"), nb::arg("session"))
      .def("_advance_to", &WheelHandle::advance_to, nb::arg("time").none(), nb::arg("empty"), nb::arg("type"), nb::arg("names"),
           nb::arg("keep_errors"))
      .def("_reader", &WheelHandle::reader)
      .def("_merge", &WheelHandle::merge, nb::arg("other"))
      .def_prop_ro("late", &WheelHandle::late, "How many items were late, and refused.")
      .def_prop_ro("nbytes", &WheelHandle::bytes, "The memory that slots and open ticks take, in bytes.")
      .def_prop_ro("slots", &WheelHandle::slots, "How many slots all levels hold together.")
      .def("check", &WheelHandle::check, "Verify every invariant, and say in words which one broke.")
      .def("_state", &WheelHandle::state)
      .def("_restore", &WheelHandle::restore);
});

}  // namespace sash
