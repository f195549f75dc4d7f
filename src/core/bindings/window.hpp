// The public window classes
//
// A Window reads times, and words what goes wrong. Its items, their types and the guards are Kept's (kept.hpp), all the rest is the
// algorithm's.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "any_window.hpp"
#include "collected.hpp"
#include "kept.hpp"

namespace sash {

class Window {
 public:
  Window(const AlgorithmInfo& info, nb::object aggregation, nb::object dtype, Options options);
  virtual ~Window() = default;

  void insert(nb::handle value, nb::handle time);
  void bulk_insert(nb::object values, nb::object times, bool sort);
  nb::object evict(nb::handle time);
  void bulk_evict(nb::handle time);
  nb::object query(nb::handle start, nb::handle end, nb::handle arg);
  nb::object query_many(nb::object starts, nb::object ends);
  std::size_t size();
  nb::object oldest();
  nb::object youngest();
  nb::list items();
  void clear();
  void check(nb::object values);
  void merge(Window& other);
  nb::tuple state();
  void restore(nb::tuple state);
  nb::dict counts();
  nb::object nodes();

  int traverse(visitproc visit, void* arg) const;
  void forget();

  const AlgorithmInfo& info() const { return info_; }
  const nb::object& aggregation() const { return items_.aggregation(); }
  const Options& options() const { return options_; }
  std::string dtype();
  std::string item_type() const;

 private:
  enum class TimeKind : std::uint8_t { unknown, counted, integers, floats };

  using Work = Kept<AnyWindow>::Work;
  using Change = Kept<AnyWindow>::Change;

  // Times come in by kind_of and key_of, bounds by bound_of, and all go out by time_out; points are Python ints and floats.
  TimeKind kind_of(nb::handle point) const;
  void follow(TimeKind kind);      // rebuilds the window if its kernel can't compute with such times
  void take_times(TimeKind kind);  // tells a reorder buffer which kind of times it has; before the first of them is in
  Time key_of(nb::handle point, TimeKind kind) const;
  std::optional<Time> bound_of(nb::handle point, bool lower) const;        // any number, also between keys; none: all keys lie beyond
  std::pair<Time, Time> range_of(nb::handle start, nb::handle end) const;  // from > to: nothing can lie in it
  nb::object time_out(Time t, TimeKind kind) const;
  nb::object time_out(Time t) const { return time_out(t, times_); }
  nb::object with_times(nb::object result) const;
  void refuse_older(Time t) const;
  template <class Step>
  void guarded(Step step);  // with words for what a reorder buffer refuses

  const AlgorithmInfo& info_;
  Options options_;
  ItemReader items_;
  Kept<AnyWindow> window_;
  TimeKind times_ = TimeKind::unknown;
};

// One C++ type, and so one Python class, per algorithm.
template <class Tag>
class WindowOf : public Window {
 public:
  using Window::Window;
};

inline bool keeps_ties(const std::string& ties) {
  if (ties != "combine" && ties != "keep")
    raise("ValueError", "ties='" + ties + "' is not known. Use 'combine' (equal times become one entry) or 'keep'.");
  return ties == "keep";
}

// Adds the class of an algorithm; `options` says which keywords its constructor takes besides dtype.
template <class Tag>
void bind_window(nb::module_& m, const AlgorithmInfo& info, const char* doc, bool takes_arity = false, bool takes_ties = false) {
  static const AlgorithmInfo* known;
  known = &info;
  add_algorithm(info);
  auto cls = nb::class_<WindowOf<Tag>, Window>(m, info.name, doc, nb::dynamic_attr(), nb::is_weak_referenceable(),
                                               nb::type_slots(Collected<Window>::slots));
  if (takes_arity) {
    cls.def(
        "__init__",
        [](WindowOf<Tag>* self, nb::object aggregation, nb::object min_arity, const std::string& ties, nb::object dtype) {
          Options options;
          options.keep_ties = keeps_ties(ties);
          if (!min_arity.is_none()) {
            for (int offered : {2, 4, 8, 16})
              if (PyLong_Check(min_arity.ptr()) && min_arity.equal(nb::int_(offered))) options.min_arity = offered;
            if (!options.min_arity) raise("ValueError", "min_arity=" + text(min_arity) + " is not offered. Use 2, 4, 8 or 16.");
          }
          new (self) WindowOf<Tag>(*known, std::move(aggregation), std::move(dtype), options);
        },
        nb::arg("aggregation").none(), nb::kw_only(), nb::arg("min_arity") = nb::none(), nb::arg("ties") = "combine",
        nb::arg("dtype") = nb::none());
  } else if (takes_ties) {
    cls.def(
        "__init__",
        [](WindowOf<Tag>* self, nb::object aggregation, const std::string& ties, nb::object dtype) {
          Options options;
          options.keep_ties = keeps_ties(ties);
          new (self) WindowOf<Tag>(*known, std::move(aggregation), std::move(dtype), options);
        },
        nb::arg("aggregation").none(), nb::kw_only(), nb::arg("ties") = "combine", nb::arg("dtype") = nb::none());
  } else {
    cls.def(
        "__init__",
        [](WindowOf<Tag>* self, nb::object aggregation, nb::object dtype) {
          new (self) WindowOf<Tag>(*known, std::move(aggregation), std::move(dtype), Options{});
        },
        nb::arg("aggregation").none(), nb::kw_only(), nb::arg("dtype") = nb::none());
  }
}

}  // namespace sash
