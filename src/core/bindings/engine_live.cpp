// The live structure of a bucket for Python

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "engine/live.hpp"
#include "engine_arrays.hpp"
#include "module.hpp"

namespace sash::engine {
namespace {

using Columns = std::vector<const Column*>;

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

Plan oldest(bool apart) {
  Plan plan;
  plan.apart = apart;
  return plan;
}

Plan sessions(Time gap) {
  Plan plan;
  plan.kind = Plan::sessions;
  plan.gap = gap;
  return plan;
}

Plan changes(bool apart, const std::vector<Time>& periods, Time delay, bool takes_left, bool takes_right) {
  Plan plan;
  plan.kind = Plan::changes;
  plan.apart = apart;
  plan.periods = periods;
  plan.delay = delay;
  plan.takes_left = takes_left;
  plan.takes_right = takes_right;
  return plan;
}

Out<std::int32_t> find(const Live& live, const KeyTable& keys) {
  Places ids(keys.size());
  {
    nb::gil_scoped_release free;
    live.find(keys, ids.data());
  }
  return array_of(std::move(ids));
}

Out<std::int32_t> number(Live& live, const KeyTable& keys) {
  Places ids(keys.size());
  {
    nb::gil_scoped_release free;
    live.number(keys, ids.data());
  }
  return array_of(std::move(ids));
}

nb::tuple insert(Live& live, const KeyTable& keys, In<std::int64_t> starts, In<Time> times, const Columns& columns) {
  check_layout(keys.size(), starts, times);
  Places ids;
  std::int64_t first;
  {
    nb::gil_scoped_release free;
    first = live.insert(keys, starts.data(), times.data(), columns, ids);
  }
  return nb::make_tuple(array_of(std::move(ids)), first);
}

std::unique_ptr<Answers> query(Live& live, In<std::int32_t> ids, Maybe<std::int32_t> places, In<Time> from, In<Time> to, bool past) {
  check_length(from, ids.size());
  check_length(to, ids.size());
  const std::int32_t* by = data_of(places, ids.size());
  auto out = std::make_unique<Answers>();
  nb::gil_scoped_release free;
  live.query(ids.data(), by, from.data(), to.data(), past, ids.size(), *out);
  return out;
}

std::unique_ptr<Answers> query_rows(Live& live, In<std::int32_t> ids, Maybe<std::int32_t> places, In<Time> times, std::int64_t first,
                                    std::size_t length, bool takes_itself) {
  check_length(times, ids.size());
  const std::int32_t* by = data_of(places, ids.size());
  auto out = std::make_unique<Answers>();
  nb::gil_scoped_release free;
  live.query_rows(ids.data(), by, times.data(), first, length, takes_itself, ids.size(), *out);
  return out;
}

std::unique_ptr<Answers> query_rows_upto(Live& live, In<std::int32_t> ids, In<Time> times, std::size_t length) {
  check_length(times, ids.size());
  auto out = std::make_unique<Answers>();
  nb::gil_scoped_release free;
  live.query_rows_upto(ids.data(), times.data(), length, ids.size(), *out);
  return out;
}

std::unique_ptr<Answers> query_last(Live& live, In<std::int32_t> ids, std::size_t length) {
  auto out = std::make_unique<Answers>();
  nb::gil_scoped_release free;
  live.query_last(ids.data(), length, ids.size(), *out);
  return out;
}

nb::list lower(const Live& live, const Answers& answers, std::size_t leaf, const std::vector<std::string>& how) {
  std::vector<Lower> lowers;
  for (auto& name : how) lowers.push_back(lower_named(name));
  std::vector<Lowered> fields;
  {
    nb::gil_scoped_release free;
    fields = live.lower(answers, leaf, lowers);
  }
  return fields_of(std::move(fields));
}

template <class Close>
nb::tuple closed(Close close) {
  Closed out;
  {
    nb::gil_scoped_release free;
    out = close();
  }
  nb::list answers;
  for (Answers& each : out.answers) answers.append(nb::cast(std::make_unique<Answers>(std::move(each))));
  return nb::make_tuple(std::make_unique<KeyTable>(std::move(out.keys)), array_of(std::move(out.key)), array_of(std::move(out.start)),
                        array_of(std::move(out.end)), answers);
}

nb::tuple exported(const Live& live) {
  Exported out;
  {
    nb::gil_scoped_release free;
    out = live.exported();
  }
  nb::list columns;
  for (auto& column : out.columns) columns.append(nb::cast(std::move(column)));
  return nb::make_tuple(std::make_unique<KeyTable>(std::move(out.keys)), array_of(std::move(out.layout.starts)),
                        array_of(std::move(out.layout.times)), columns);
}

void bind(nb::module_& m) {
  nb::class_<Answers>(m, "Answers", "Rows of partials that were asked for.").def("__len__", [](const Answers& a) { return a.n; });

  nb::class_<Plan>(m, "LivePlan", "What makes a key of a live bucket due.")
      .def_static("windows", &windows, nb::arg("range"), nb::arg("slide"), nb::arg("ranges"))
      .def_static("oldest", &oldest, nb::arg("apart"))
      .def_static("sessions", &sessions, nb::arg("gap"))
      .def_static("changes", &changes, nb::arg("apart"), nb::arg("periods"), nb::arg("delay"), nb::arg("takes_left"),
                  nb::arg("takes_right"));

  nb::class_<Live>(m, "Live", "The live structure of a bucket: windows of many keys that go on.")
      .def(
          "__init__",
          [](Live* self, const Columns& prototypes, const Plan& plan, const std::string& form) {
            new (self) Live(prototypes, plan, form_named(form));
          },
          nb::arg("columns"), nb::arg("plan"), nb::arg("form") = "auto")
      .def_prop_ro("keys", &Live::keys)
      .def_prop_ro("entries", &Live::entries)
      .def_prop_ro("words", &Live::words)
      .def_prop_ro("combines", [](const Live& live) { return live.tally().combines; })
      .def_prop_ro("visited", [](const Live& live) { return live.tally().visited; })
      .def("bytes", &Live::bytes)
      .def("check", &Live::check)
      .def("number", &number, nb::arg("keys"))
      .def("find", &find, nb::arg("keys"))
      .def("table", [](const Live& live, In<std::int32_t> ids) { return std::make_unique<KeyTable>(live.table(ids.data(), ids.size())); })
      .def("wait",
           [](Live& live, In<std::int32_t> ids, In<std::int64_t> rows) {
             check_length(rows, ids.size());
             live.wait(ids.data(), rows.data(), ids.size());
           })
      .def("insert", &insert, nb::arg("keys"), nb::arg("starts"), nb::arg("times"), nb::arg("columns"))
      .def("expire", &Live::expire, nb::arg("oldest"), nb::arg("keep"), nb::arg("fold"), nb::call_guard<nb::gil_scoped_release>())
      .def("query", &query, nb::arg("ids"), nb::arg("places").none(), nb::arg("starts"), nb::arg("ends"), nb::arg("past"))
      .def("query_rows", &query_rows, nb::arg("ids"), nb::arg("places").none(), nb::arg("times"), nb::arg("first"), nb::arg("length"),
           nb::arg("takes_itself"))
      .def("query_rows_upto", &query_rows_upto, nb::arg("ids"), nb::arg("times"), nb::arg("length"))
      .def("query_last", &query_last, nb::arg("ids"), nb::arg("length"))
      .def("lower", &lower, nb::arg("answers"), nb::arg("leaf"), nb::arg("how"))
      .def("close_windows", [](Live& live, Time last) { return closed([&] { return live.close_windows(last); }); })
      .def("close_sessions", [](Live& live, Time watermark) { return closed([&] { return live.close_sessions(watermark); }); })
      .def("due",
           [](Live& live, Time watermark) {
             std::vector<std::int32_t> ids = live.due(watermark);
             return array_of(std::move(ids));
           })
      .def("settle",
           [](Live& live, In<std::int32_t> ids, Time watermark, Time oldest, std::size_t keep, bool fold) {
             nb::gil_scoped_release free;
             live.settle(ids.data(), ids.size(), watermark, oldest, keep, fold);
           })
      .def("export", &exported);
}

const Binding binding(51, bind);

}  // namespace
}  // namespace sash::engine
