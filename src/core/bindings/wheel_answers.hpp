// What can be asked of a wheel from Python, at one watermark

#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>

#include "any_wheel.hpp"

namespace sash {

using Times = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// --- times

// Reads points in time: ints as they are, all else as microseconds, in the wheel's unit.
class Clock {
 public:
  explicit Clock(std::int64_t micros) : micros_(micros) {}
  std::int64_t micros() const { return micros_; }

  // Rounded down to the unit.
  Time read(nb::handle time) const { return floor_div(raw(time), scale(time)); }

  // A bound of a range: not rounded, since the range would be another.
  Time bound(nb::handle time) const {
    Time t = raw(time), unit = scale(time);
    if (t % unit != 0) refuse("Misaligned", text(time) + " is not a whole number of the wheel's unit. Use a time that is.");
    return t / unit;
  }

  [[noreturn]] static void refuse(const char* error, const std::string& message) {
    nb::object type = nb::module_::import_("sash.wheel.errors").attr(error);
    PyErr_SetString(type.ptr(), message.c_str());
    throw nb::python_error();
  }

 private:
  static bool is_int(nb::handle time) { return PyLong_Check(time.ptr()) && !PyBool_Check(time.ptr()); }

  std::int64_t scale(nb::handle time) const { return is_int(time) || PyIndex_Check(time.ptr()) ? 1 : micros_; }

  static Time raw(nb::handle time) {
    nb::object read = nb::borrow(time);
    if (!is_int(time)) read = nb::module_::import_("sash.time").attr("timestamp")(time);
    int overflow = 0;
    long long t = PyLong_AsLongLongAndOverflow(read.ptr(), &overflow);
    if (t == -1 && PyErr_Occurred()) throw nb::python_error();
    if (overflow || t > Wheel<Count>::latest || t < -Wheel<Count>::latest)
      raise("OverflowError", "time " + text(time) + " is too far from the epoch for a wheel (more than 2^61 units). Use a coarser unit.");
    return t;
  }

  std::int64_t micros_;  // per unit
};

// --- what can be asked

class WheelAnswers {
 public:
  WheelAnswers(Clock clock, Time grain, ItemReader items) : clock_(clock), grain_(grain), items_(std::move(items)) {}
  virtual ~WheelAnswers() = default;

  nb::object query(nb::handle start, nb::handle end, bool clamp, nb::handle arg) {
    return asked([&](const AnyView& view) {
      Time from = clock_.bound(start), to = clock_.bound(end);
      clamp_range(view, from, to, clamp);
      return refusing(view, from, to, [&] { return view.query(from, to, arg); });
    });
  }

  nb::object landmark(nb::handle arg) {
    return asked([&](const AnyView& view) { return view.landmark(arg); });
  }

  // The last `length` units before the watermark, or before the grain it lies in.
  nb::object interval(Time length, nb::handle arg) {
    return asked([&](const AnyView& view) {
      Time to = view.closed(), from = to - length;
      return refusing(view, from, to, [&] { return view.query(from, to, arg); });
    });
  }

  nb::object query_many(const Times& starts, const Times& ends, bool clamp) {
    if (starts.size() != ends.size())
      raise("ValueError",
            "there are " + std::to_string(starts.size()) + " starts but " + std::to_string(ends.size()) + " ends. Pass one end per start.");
    return asked([&](const AnyView& view) {
      std::size_t n = starts.size();
      std::vector<Time> from(starts.data(), starts.data() + n), to(ends.data(), ends.data() + n);
      for (std::size_t i = 0; clamp && i < n; ++i) clamp_range(view, from[i], to[i], true);
      Time a = n ? from[0] : 0, b = n ? to[0] : 0;
      return refusing(view, a, b, [&]() -> nb::object {
        if (!items_.one_number()) {
          nb::list out;
          for (std::size_t i = 0; i < n; ++i) {
            a = from[i], b = to[i];
            out.append(view.query(a, b, nb::none()));
          }
          return nb::module_::import_("sash.swag.columns").attr("results")(out);
        }
        std::vector<Scalar> found;
        try {
          nb::gil_scoped_release unlocked;
          found = view.query_many(from.data(), to.data(), n);
        } catch (const RangeRefused&) {
          for (std::size_t i = 0; i < n; ++i) {  // which one it was
            a = from[i], b = to[i];
            view.query(a, b, nb::none());
          }
          throw;
        }
        return array_of(found);
      });
    });
  }

  // For explain: (chosen, [(strategy, works, combines, cover, after)]); a cover lists (level, from, to, slots).
  nb::tuple plans(nb::handle start, nb::handle end, bool clamp) {
    return nb::cast<nb::tuple>(asked([&](const AnyView& view) -> nb::object {
      Time from = clock_.bound(start), to = clock_.bound(end);
      clamp_range(view, from, to, clamp);
      return refusing(view, from, to, [&]() -> nb::object {
        auto [a, b] = view.ticks(from, to);
        auto& line = view.line();
        auto told = [&](const char* name, const Plan& plan) {
          return nb::make_tuple(name, plan.works(), plan.combines, told_cover(view, plan.cover), told_cover(view, plan.after));
        };
        Plan chosen = line.choose(a, b, view.hints());
        nb::list all;
        if (a < b) {
          all.append(told("prefix", line.prefix(a, b)));
          all.append(told("landmark", line.landmark(a, b)));
          all.append(told("single", line.single(a, b)));
          all.append(told("combined", line.combined(a, b)));
          all.append(told("inverse", line.inverse(a, b)));
        }
        if (!chosen.works()) throw RangeRefused(RangeRefused::not_retained, from, to);
        static const char* names[] = {"none", "empty", "prefix", "landmark", "single", "combined", "inverse"};
        return nb::make_tuple(told(names[static_cast<int>(chosen.strategy)], chosen), all, from, to);
      });
    }));
  }

  nb::object start() {
    return asked([](const AnyView& v) -> nb::object { return nb::int_(v.start()); });
  }
  nb::object watermark() {
    return asked([](const AnyView& v) -> nb::object { return nb::int_(v.watermark()); });
  }

  // From where the plans count.
  nb::object origin() {
    return asked([this](const AnyView& v) -> nb::object { return nb::int_(v.line().origin * grain_); });
  }

  // Per level: ticks per slot, first slot and end held (as times), whether it is a prefix level.
  nb::list levels() {
    return nb::cast<nb::list>(asked([this](const AnyView& v) -> nb::object {
      nb::list out;
      for (auto& level : v.line().levels) {
        std::int64_t size = level.size.divisor();
        auto time = [&](std::int64_t slot) { return (v.line().origin + slot * size) * grain_; };
        out.append(nb::make_tuple(size * grain_, time(level.lo), time(level.hi), level.hi - level.lo, level.retain, level.prefix));
      }
      return out;
    }));
  }

  const nb::object& aggregation() const { return items_.aggregation(); }
  std::string dtype() const { return items_.dtype(); }
  std::int64_t unit() const { return clock_.micros(); }

 protected:
  virtual const AnyView& begin() = 0;
  virtual void end() {}

  template <class Question>
  nb::object asked(Question question) {
    struct Asking {
      WheelAnswers& wheel;
      const AnyView& view = wheel.begin();
      ~Asking() { wheel.end(); }
    } asking{*this};
    return question(asking.view);
  }

  static void clamp_range(const AnyView& view, Time& from, Time& to, bool clamp) {
    if (!clamp || from > to) return;
    to = std::min(to, view.closed());
    from = std::min(from, to);
  }

  static nb::object array_of(const std::vector<Scalar>& found) {
    std::size_t n = found.size();
    bool ints = true, reals = true;
    constexpr std::int64_t exact = std::int64_t{1} << 53;  // up to here a double holds every integer
    for (const Scalar& s : found) {
      ints &= s.kind == Scalar::integer;
      reals &= (s.kind == Scalar::integer && s.i <= exact && s.i >= -exact) || s.kind == Scalar::real || s.kind == Scalar::none;
    }
    auto array = [&]<class T>(auto value) -> nb::object {
      auto* out = new T[n];
      nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<T*>(p); });
      for (std::size_t i = 0; i < n; ++i) out[i] = value(found[i]);
      return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(out, {n}, owner));
    };
    if (ints) return array.template operator()<std::int64_t>([](const Scalar& s) { return s.i; });
    if (reals)
      return array.template operator()<double>([](const Scalar& s) {
        if (s.kind == Scalar::none) return std::numeric_limits<double>::quiet_NaN();
        return s.kind == Scalar::integer ? static_cast<double>(s.i) : s.f;
      });
    nb::list all;
    for (const Scalar& s : found) all.append(to_python(s));
    return nb::module_::import_("sash.swag.columns").attr("results")(all);
  }

  static nb::list told_cover(const AnyView& view, const Cover& cover) {
    nb::list out;
    for (auto& s : cover) {
      std::int64_t size = view.line().levels[static_cast<std::size_t>(s.level)].size.divisor();
      out.append(nb::make_tuple(s.level, s.from * size, s.to * size, s.to - s.from));
    }
    return out;
  }

  // Puts a refusal in words; the face has them.
  template <class Step>
  nb::object refusing(const AnyView& view, const Time& from, const Time& to, Step step) {
    try {
      return step();
    } catch (const RangeRefused& refused) {
      static const char* whys[] = {"reversed", "misaligned", "beyond_watermark", "before_start", "not_retained"};
      nb::list levels;
      for (auto& level : view.line().levels) {
        std::int64_t size = level.size.divisor();
        levels.append(nb::make_tuple(size * grain_, (view.line().origin + level.lo * size) * grain_));
      }
      nb::object error = nb::module_::import_("sash.wheel.errors")
                             .attr("refusal")(whys[refused.why], from, to, refused.from, refused.to, view.start(), view.watermark(), levels,
                                              clock_.micros());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
      throw nb::python_error();
    }
  }

  Clock clock_;
  Time grain_;
  ItemReader items_;
};

}  // namespace sash
