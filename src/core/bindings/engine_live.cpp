// The live structure of a bucket for Python

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>

#include "engine/live.hpp"
#include "engine_arrays.hpp"
#include "live_objects.hpp"
#include "module.hpp"

namespace sash::engine {
namespace {

using Columns = std::vector<const Column*>;

// A live bucket, and the objects beside its words, if there are any.
struct Bound {
  PyObjects* objects;
  PyObjects* far_objects;
  Live live;
  bool broken = false;

  Bound(const Columns& prototypes, const Plan& plan, Form form, std::unique_ptr<PyObjects> near, std::unique_ptr<PyObjects> far)
      : objects(near.get()), far_objects(far.get()), live(prototypes, plan, form, std::move(near), std::move(far)) {}

  std::uint64_t combines() const {
    return live.tally().combines + (objects ? objects->combines() : 0) + (far_objects ? far_objects->combines() : 0);
  }
  std::uint64_t visited() const {
    return live.tally().visited + (objects ? objects->visited() : 0) + (far_objects ? far_objects->visited() : 0);
  }
};

// A call into a live bucket. Others may run Python meanwhile, unless there are objects. Where a callable raises in the middle, words and
// objects no longer belong together: no later call gets through.
class Call {
 public:
  explicit Call(Bound& bound) : bound_(bound), pending_(std::uncaught_exceptions()) {
    if (bound.broken)
      throw std::runtime_error(
          "an aggregation raised an error in an earlier call, which was not finished. Load the last state that was stored.");
    if (!bound.objects) free_.emplace();
  }
  ~Call() { bound_.broken |= std::uncaught_exceptions() > pending_ && bound_.objects; }
  Live* operator->() const { return &bound_.live; }

 private:
  Bound& bound_;
  int pending_;
  std::optional<nb::gil_scoped_release> free_;
};

Form form_named(const std::string& name) {
  if (name == "array") return Form::array;
  if (name == "tree") return Form::tree;
  if (name == "auto") return Form::automatic;
  throw std::invalid_argument("form='" + name + "' is not one of auto, array, tree.");
}

Plan windows(Time range, Time slide, const std::vector<Time>& ranges) {
  Plan plan;
  plan.kind = Plan::windows;
  plan.range = range;
  plan.slide = slide;
  plan.ranges = ranges;
  for (Time each : ranges)
    if (each > range) throw std::invalid_argument("a range is longer than the longest.");
  return plan;
}

using HopPairs = std::vector<std::pair<Time, Time>>;

// Look-backs that are coarse at their far end: pairs of a period and a hop.
void take_hops(Plan& plan, const HopPairs& hops, Time hop, Time ahead) {
  for (auto [period, each] : hops) {
    if (hop <= 0 || each <= 0 || each % hop) throw std::invalid_argument("a hop is not a multiple of the hop of all.");
    plan.hops.push_back({period, each});
  }
  plan.hop = hop;
  plan.ahead = ahead;
}

Plan oldest(bool apart, const HopPairs& hops, Time hop, Time ahead) {
  Plan plan;
  plan.apart = apart;
  take_hops(plan, hops, hop, ahead);
  return plan;
}

Plan sessions(Time gap) {
  Plan plan;
  plan.kind = Plan::sessions;
  plan.gap = gap;
  return plan;
}

Plan changes(bool apart, const std::vector<Time>& periods, Time delay, bool takes_left, bool takes_right, const HopPairs& hops, Time hop) {
  Plan plan;
  plan.kind = Plan::changes;
  plan.apart = apart;
  plan.periods = periods;
  plan.delay = delay;
  plan.takes_left = takes_left;
  plan.takes_right = takes_right;
  take_hops(plan, hops, hop, 0);
  return plan;
}

Out<std::int32_t> find(Bound& bound, const KeyTable& keys) {
  Places ids(keys.size());
  Call(bound)->find(keys, ids.data());
  return array_of(std::move(ids));
}

Out<std::int32_t> number(Bound& bound, const KeyTable& keys) {
  Places ids(keys.size());
  Call(bound)->number(keys, ids.data());
  return array_of(std::move(ids));
}

// objects: one per entry, where there are any.
nb::tuple insert(Bound& bound, const KeyTable& keys, In<std::int64_t> starts, In<Time> times, const Columns& columns,
                 std::optional<nb::list> objects) {
  check_layout(keys.size(), starts, times);
  if (objects.has_value() != (bound.objects != nullptr) || (objects && objects->size() != times.size()))
    throw std::invalid_argument("there must be an object for every entry, and none where no aggregation has them.");
  if (objects) bound.objects->give(*objects);
  Places ids;
  std::int64_t first = Call(bound)->insert(keys, starts.data(), times.data(), columns, ids);
  if (objects) bound.objects->give(nb::list());
  return nb::make_tuple(array_of(std::move(ids)), first);
}

std::unique_ptr<Answers> query(Bound& bound, In<std::int32_t> ids, Maybe<std::int32_t> places, In<Time> from, In<Time> to, bool past) {
  check_length(from, ids.size());
  check_length(to, ids.size());
  const std::int32_t* by = data_of(places, ids.size());
  auto out = std::make_unique<Answers>();
  Call(bound)->query(ids.data(), by, from.data(), to.data(), past, ids.size(), *out);
  return out;
}

std::unique_ptr<Answers> query_rows(Bound& bound, In<std::int32_t> ids, Maybe<std::int32_t> places, In<Time> times, std::int64_t first,
                                    std::size_t length, bool takes_itself) {
  check_length(times, ids.size());
  const std::int32_t* by = data_of(places, ids.size());
  auto out = std::make_unique<Answers>();
  Call(bound)->query_rows(ids.data(), by, times.data(), first, length, takes_itself, ids.size(), *out);
  return out;
}

std::unique_ptr<Answers> query_rows_upto(Bound& bound, In<std::int32_t> ids, In<Time> times, std::size_t length) {
  check_length(times, ids.size());
  auto out = std::make_unique<Answers>();
  Call(bound)->query_rows_upto(ids.data(), times.data(), length, ids.size(), *out);
  return out;
}

std::unique_ptr<Answers> query_last(Bound& bound, In<std::int32_t> ids, std::size_t length) {
  auto out = std::make_unique<Answers>();
  Call(bound)->query_last(ids.data(), length, ids.size(), *out);
  return out;
}

nb::list lower(const Bound& bound, const Answers& answers, std::size_t leaf, const std::vector<std::string>& how) {
  std::vector<Lower> lowers;
  for (auto& name : how) lowers.push_back(lower_named(name));
  std::vector<Lowered> fields;
  {
    nb::gil_scoped_release free;
    fields = bound.live.lower(answers, leaf, lowers);
  }
  return fields_of(std::move(fields));
}

nb::tuple closed(Closed out) {
  nb::list answers;
  for (Answers& each : out.answers) answers.append(nb::cast(std::make_unique<Answers>(std::move(each))));
  return nb::make_tuple(std::make_unique<KeyTable>(std::move(out.keys)), array_of(std::move(out.key)), array_of(std::move(out.start)),
                        array_of(std::move(out.end)), answers);
}

nb::tuple exported(Bound& bound) {
  Exported out = Call(bound)->exported();
  nb::list columns;
  for (auto& column : out.columns) columns.append(nb::cast(std::move(column)));
  return nb::make_tuple(std::make_unique<KeyTable>(std::move(out.keys)), array_of(std::move(out.layout.starts)),
                        array_of(std::move(out.layout.times)), columns);
}

// The objects of the last answers.
nb::list objects_of(const Bound& bound, std::size_t list) { return bound.objects ? bound.objects->answers(list) : nb::list(); }

void bind(nb::module_& m) {
  nb::class_<Answers>(m, "Answers", "Rows of partials that were asked for.").def("__len__", [](const Answers& a) { return a.n; });

  nb::class_<Plan>(m, "LivePlan", "What makes a key of a live bucket due.")
      .def_static("windows", &windows, nb::arg("range"), nb::arg("slide"), nb::arg("ranges"))
      .def_static("oldest", &oldest, nb::arg("apart"), nb::arg("hops"), nb::arg("hop"), nb::arg("ahead"))
      .def_static("sessions", &sessions, nb::arg("gap"))
      .def_static("changes", &changes, nb::arg("apart"), nb::arg("periods"), nb::arg("delay"), nb::arg("takes_left"),
                  nb::arg("takes_right"), nb::arg("hops"), nb::arg("hop"));

  nb::class_<Bound>(m, "Live", "The live structure of a bucket: windows of many keys that go on.")
      .def(
          "__init__",
          [](Bound* self, const Columns& prototypes, const Plan& plan, const std::string& form, nb::object combine, nb::object move) {
            auto objects = [&](bool apart) { return combine.is_none() ? nullptr : make_objects(apart, combine, move); };
            new (self) Bound(prototypes, plan, form_named(form), objects(plan.apart), plan.hop ? objects(false) : nullptr);
          },
          nb::arg("columns"), nb::arg("plan"), nb::arg("form") = "auto", nb::arg("combine") = nb::none(), nb::arg("move") = nb::none())
      .def_prop_ro("keys", [](const Bound& b) { return b.live.keys(); })
      .def_prop_ro("entries", [](const Bound& b) { return b.live.entries(); })
      .def_prop_ro("words", [](const Bound& b) { return b.live.words(); })
      .def_prop_ro("combines", &Bound::combines)
      .def_prop_ro("visited", &Bound::visited)
      .def("bytes", [](const Bound& b) { return b.live.bytes(); })
      .def("check", [](const Bound& b) { b.live.check(); })
      .def("number", &number, nb::arg("keys"))
      .def("find", &find, nb::arg("keys"))
      .def("table", [](const Bound& b, In<std::int32_t> ids) { return std::make_unique<KeyTable>(b.live.table(ids.data(), ids.size())); })
      .def("wait",
           [](Bound& b, In<std::int32_t> ids, In<std::int64_t> rows) {
             check_length(rows, ids.size());
             Call(b)->wait(ids.data(), rows.data(), ids.size());
           })
      .def("insert", &insert, nb::arg("keys"), nb::arg("starts"), nb::arg("times"), nb::arg("columns"), nb::arg("objects") = nb::none())
      .def(
          "expire", [](Bound& b, Time oldest, Time exact, std::size_t keep, bool fold) { Call(b)->expire(oldest, exact, keep, fold); },
          nb::arg("oldest"), nb::arg("exact"), nb::arg("keep"), nb::arg("fold"))
      .def("query", &query, nb::arg("ids"), nb::arg("places").none(), nb::arg("starts"), nb::arg("ends"), nb::arg("past"))
      .def("query_rows", &query_rows, nb::arg("ids"), nb::arg("places").none(), nb::arg("times"), nb::arg("first"), nb::arg("length"),
           nb::arg("takes_itself"))
      .def("query_rows_upto", &query_rows_upto, nb::arg("ids"), nb::arg("times"), nb::arg("length"))
      .def("query_last", &query_last, nb::arg("ids"), nb::arg("length"))
      .def("objects", &objects_of, nb::arg("which") = 0)
      .def("lower", &lower, nb::arg("answers"), nb::arg("leaf"), nb::arg("how"))
      .def("close_windows",
           [](Bound& b, Time last) {
             Closed out = Call(b)->close_windows(last);
             return closed(std::move(out));
           })
      .def("close_sessions",
           [](Bound& b, Time watermark) {
             Closed out = Call(b)->close_sessions(watermark);
             return closed(std::move(out));
           })
      .def("due",
           [](Bound& b, Time watermark) {
             std::vector<std::int32_t> ids = Call(b)->due(watermark);
             return array_of(std::move(ids));
           })
      .def("settle", [](Bound& b, In<std::int32_t> ids, Time watermark, Time oldest, Time exact, std::size_t keep,
                        bool fold) { Call(b)->settle(ids.data(), ids.size(), watermark, oldest, exact, keep, fold); })
      .def("export", &exported);
}

const Binding binding(51, bind);

}  // namespace
}  // namespace sash::engine
