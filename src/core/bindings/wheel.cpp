// The wheel for Python: what is asked of it, and what is put in

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <thread>

#include "any_wheel.hpp"
#include "collected.hpp"
#include "hooks.hpp"
#include "wheel_keeper.hpp"

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

class WheelHandle final : public WheelKeeper<AnyWheel> {
 public:
  // levels: (ticks per slot, slots retained or 0, whether prefix) from the grain up.
  WheelHandle(nb::object aggregation, nb::object dtype, std::int64_t unit, Time grain, Time start, nb::list levels, std::size_t write_ahead,
              bool inverse_asked, nb::object threshold, std::size_t chunk)
      : WheelKeeper(Clock(unit), {.grain = grain, .start = start, .levels = {}, .write_ahead = write_ahead, .hints = {}},
                    ItemReader(std::move(aggregation), std::move(dtype)),
                    {"the wheel could not be put back. Build it again, or load bytes stored before.", at_work}),
        inverse_asked_(inverse_asked) {
    for (nb::handle level : levels)
      settings_.levels.push_back({nb::cast<std::int64_t>(level[0]), nb::cast<std::int64_t>(level[1]), nb::cast<bool>(level[2]), chunk});
    if (!threshold.is_none()) {
      settings_.hints.vectorised = true;
      settings_.hints.threshold = nb::cast<std::int64_t>(threshold);
    }
    kept_.start();
  }

  bool insert(nb::handle value, nb::handle time) {
    Work work(kept_);
    Time t = clock_.read(time);
    Change change(kept_);
    kept_.read(value);
    bool taken = false;
    kept_.guarded([&] { taken = kept_->insert(t, items_.row().data(), items_.value(), shown(t)); });
    note_item();
    change.done();
    return taken;
  }

  std::size_t insert_many(nb::object values, const Times& times) {
    nb::tuple in_columns = read_in(values, times);
    auto rows = nb::cast<std::size_t>(in_columns[3]);
    if (rows == 0) return 0;
    Work work(kept_);
    check_times(times);
    Change change(kept_);
    std::size_t late = 0;
    if (!in_columns[0].is_none() && !items_.definition()->object) {
      ItemColumns in(in_columns[0], rows);
      kept_.settle(in.kinds);
      kept_.guarded([&] {
        nb::gil_scoped_release unlocked;
        late = kept_->insert_column(in.parts.data(), in.parts.size(), times.data());
      });
    } else {
      ItemRows in;
      kept_.read_rows(in, in_columns[1], in_columns[4]);
      kept_.guarded([&] { late = kept_->insert_rows(in, times.data()); });
      if (in.blank()) return change.done(), late;
    }
    blank_ = false;
    change.done();
    return late;
  }

  void install(Tick range, Tick slide, Tick offset, Tick session) {
    Work work(kept_);
    kept_->install({range, slide, offset, session});
  }

  // Results as WindowResult(name, start, end, value), made by type from the names of the windows. All of them, or none: those that
  // were not handed out come first with the next call.
  nb::list advance_to(nb::handle time, bool empties, nb::handle type, nb::handle names, bool keep_errors) {
    Work work(kept_);
    Time to = clock_.read(time);
    if (empties)
      if (std::int64_t due = kept_->due(to); due > most_results)
        raise("ValueError", "an advance to " + text(time) + " ends " + std::to_string(due) +
                                " windows. Start the wheel where its stream does (start=), advance in steps, or pass empty=False.");
    Lock lock(*this);
    kept_.guarded([&] {
      if (!kept_->native()) return kept_->advance(to, empties);
      nb::gil_scoped_release unlocked;
      kept_->advance(to, empties);
    });
    nb::list out;
    auto* row_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    auto name = [&](std::size_t window) {
      auto at = static_cast<Py_ssize_t>(window);  // bytes under a right seal may still lack a name
      return at < PyList_GET_SIZE(names.ptr()) ? nb::borrow(PyList_GET_ITEM(names.ptr(), at)) : nb::object(nb::str(""));
    };
    try {
      for (auto& r : kept_->results(keep_errors)) {
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
    kept_->handed_out();
    return out;
  }

  std::unique_ptr<WheelReader> reader() {
    std::shared_ptr<AnyWheel> wheel = kept_.shared();
    if (locked_by_ == std::this_thread::get_id()) raise("RuntimeError", at_work);
    ItemReader items = items_;
    Lock lock(*this);
    return std::make_unique<WheelReader>(clock_, grain_, std::move(items), wheel->pin());
  }

  void merge(WheelHandle& other) {
    if (&other == this) raise("ValueError", "a wheel can't be merged into itself. Copy it first if that is meant.");
    Work work(kept_), theirs(other.kept_);
    agree_on_types(other);
    Lock lock(*this);
    try {
      kept_.guarded([&] { kept_->merge(*other.kept_); });
    } catch (const RangeRefused& refused) {
      nb::object error =
          nb::module_::import_("sash.wheel.errors").attr("merge_refusal")(refused.from * grain_, refused.to * grain_, clock_.micros());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
      throw nb::python_error();
    }
    note_merge(other);
  }

  std::size_t bytes() {
    Work work(kept_);
    return kept_->bytes();
  }
  std::size_t slots() {
    Work work(kept_);
    return kept_->slots();
  }

  int traverse(visitproc visit, void* arg) const {
    if (kept_->pinned()) return 0;  // a reader refers to the same objects, and would lose them
    return kept_.traverse(visit, arg);
  }
  void forget() {
    if (!kept_.busy()) forget_all();
  }

  nb::tuple state() {
    Work work(kept_);
    return stored();
  }

  void restore(nb::tuple state) {
    Work work(kept_);
    take(loaded(state, 5), state[1]);
  }

 private:
  static constexpr std::int64_t most_results = 50'000'000;
  static constexpr const char* at_work =
      "this wheel is at work already. A callable of an aggregation may not call its own wheel; other threads use reader().";

  // Holds the wheel's mutex; never waits for it with the interpreter's lock in hand.
  class Lock {
   public:
    explicit Lock(WheelHandle& w) : wheel_(w), held_(w.kept_.shared()), lock_(held_->mutex(), std::try_to_lock) {
      if (!lock_) {
        nb::gil_scoped_release unlocked;
        lock_.lock();
      }
      wheel_.locked_by_ = std::this_thread::get_id();
    }
    ~Lock() { wheel_.locked_by_ = std::thread::id(); }

   private:
    WheelHandle& wheel_;
    std::shared_ptr<AnyWheel> held_;
    std::unique_lock<std::mutex> lock_;
  };

  // Inverses are used without being asked for where they give back every bit: on integers.
  std::shared_ptr<AnyWheel> made(const DefinitionPtr& definition) override {
    bool integers = !definition->object;
    for (ItemType type : definition->types) integers &= type == ItemType::int64;
    bool exact = integers && nb::cast<bool>(aggregation().attr("exact_inverse"));
    settings_.inverse = exact;
    settings_.hints.inverse = settings_.commutative && (exact || inverse_asked_);
    return make_wheel(definition, settings_);
  }

  bool inverse_asked_;
  std::atomic<std::thread::id> locked_by_{};
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
