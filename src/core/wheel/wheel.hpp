// The wheel: writer, reader, windows and one clock
//
//   paper      uwheel-2024, sections 3.2 and 3.6
//   ordering   any, at or after the watermark; what is older is late, refused and counted
//   time       insert 1 combine; advance as the parts say: nothing is indexed until the watermark moves
//
//   items -> writer wheel -- advance --> windows -> results
//                             '--------> reader wheel -> queries
//
// Times are in the caller's unit. The watermark may lie inside a grain: that grain stays open, yet items before
// the watermark are late in it.
//
// One thread writes. Any thread may pin a view; what it gets is its own. advance, merge and pin are called with mutex() held
// (by the caller: where partials are Python objects, it must not be waited for with the interpreter's lock in hand).

#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "reader.hpp"
#include "windows.hpp"
#include "writer.hpp"

namespace sash {

struct WheelSettings {
  Time grain = 1;
  Time start = 0;                 // a multiple of the grain
  std::vector<LevelSpec> levels;  // from the grain up
  std::size_t write_ahead = 64;
  Hints hints;
  bool inverse = false;      // windows may invert
  bool commutative = false;  // merges may go level by level
  std::size_t few = 64;      // of keyed wheels: slots that a key folds one by one
};

// What can be asked of a wheel at one watermark.
template <Monoid M>
class WheelView {
 public:
  using Partial = typename M::Partial;

  WheelView(M monoid, const WheelSettings& settings)
      : grain(settings.grain),
        reader(std::move(monoid), floor_div(settings.start, settings.grain), settings.levels),
        hints(settings.hints),
        watermark(settings.start) {}

  Time start() const { return reader.start() * grain.divisor(); }
  // Everything before this is closed: the watermark, rounded down to the grain.
  Time closed() const { return reader.now() * grain.divisor(); }

  Partial landmark() const { return reader.landmark(); }
  Partial query(Time from, Time to) const {
    Plan plan = planned(from, to);
    return reader.run(plan);
  }

  // The plan for a range, or why there is none.
  Plan planned(Time from, Time to) const {
    auto [a, b] = ticks(from, to);
    Plan plan = reader.line().choose(a, b, hints);
    if (!plan.works()) throw RangeRefused(RangeRefused::not_retained, time(plan.cover.missing_from), time(plan.cover.missing_to));
    return plan;
  }

  // A range as ticks from the reader's origin.
  std::pair<Tick, Tick> ticks(Time from, Time to) const {
    if (from > to) throw RangeRefused(RangeRefused::reversed, from, to);
    if (from < start()) throw RangeRefused(RangeRefused::before_start, from, to);
    Time origin = reader.line().origin * grain.divisor();
    Tick a = grain(from - origin), b = grain(to - origin);
    if (origin + a * grain.divisor() != from || origin + b * grain.divisor() != to) throw RangeRefused(RangeRefused::misaligned, from, to);
    if (b > reader.line().now) throw RangeRefused(RangeRefused::beyond_watermark, from, to);
    return {a, b};
  }

  Time time(Tick from_origin) const { return (reader.line().origin + from_origin) * grain.divisor(); }

  Divider grain;
  ReaderWheel<M> reader;
  Hints hints;
  Time watermark;
};

template <Monoid M>
class Wheel {
 public:
  using Partial = typename M::Partial;
  using Result = WindowResult<Partial>;

  // Far enough from the ends of int64 for sums of a few times not to overflow.
  static constexpr Time latest = Time{1} << 61;

  Wheel(M monoid, const WheelSettings& settings)
      : monoid_(std::move(monoid)),
        view_(monoid_, settings),
        writer_(monoid_, floor_div(settings.start, settings.grain), settings.write_ahead),
        inverse_(settings.inverse),
        commutative_(settings.commutative),
        open_(settings.start) {}

  const WheelView<M>& view() const { return view_; }
  std::uint64_t late() const { return late_; }
  bool torn() const { return torn_; }

  bool insert(Time t, Partial value) {
    if (t < view_.watermark) return refuse(), false;
    take(t, std::move(value));
    return true;
  }

  // The two halves of an insert, for a caller that knows which it is: t lies in or after the open grain.
  void refuse() { ++late_; }
  void take(Time t, Partial value) { writer_.insert(ahead(t), std::move(value)); }

  // lift(i) gives the partial of the item at times[i]; returns how many were late.
  template <class Lift>
  std::size_t insert_many(const Time* times, std::size_t n, Lift lift) {
    std::size_t late = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (times[i] < view_.watermark)
        ++late;
      else
        writer_.insert(ahead(times[i]), lift(i));
    }
    late_ += late;
    return late;
  }

  // A window, or a session if spec has a gap; it begins at the watermark.
  void install(const WindowSpec& spec) {
    Tick from = ceil_div(view_.watermark, view_.grain.divisor());
    if (spec.session)
      windows_.emplace_back(std::in_place_type<SessionWindow<M>>, monoid_, spec, from);
    else
      windows_.emplace_back(std::in_place_type<PairsWindow<M>>, monoid_, spec, from, inverse_);
  }

  // How many results an advance would give, empty windows included and sessions not.
  std::int64_t due(Time to) const {
    std::int64_t n = 0;
    for (auto& window : windows_) n += std::visit([&](auto& w) { return w.due(floor_div(to, view_.grain.divisor())); }, window);
    return n;
  }

  // Moves the watermark to `to`, if that is later, and appends the results of the windows that end by then:
  // by end, then by order of installation.
  void advance(Time to, bool empties, std::vector<Result>& results) {
    if (to <= view_.watermark) return;
    Tear<M> tear(torn_);
    view_.watermark = to;
    Tick target = view_.reader.now() + view_.grain(to - open_);
    std::size_t old = results.size();
    for (Tick now = view_.reader.now(); now < target;) {
      if (writer_.marked()) {
        Partial value = writer_.tick();
        each_window([&](auto& window, auto emit) { window.tick(now, value, emit); }, results);
        view_.reader.tick(std::move(value));
        now += 1;
      } else {
        Tick quiet = writer_.quiet(target - now);
        writer_.skip(quiet);
        now += quiet;
        each_window([&](auto& window, auto emit) { window.gap(now, empties, emit); }, results);
        view_.reader.gap(quiet);
      }
    }
    open_ = target * view_.grain.divisor();
    auto in_order = [](const Result& a, const Result& b) { return a.end != b.end ? a.end < b.end : a.window < b.window; };
    auto first = results.begin() + static_cast<std::ptrdiff_t>(old);
    if (windows_.size() > 1 && !std::is_sorted(first, results.end(), in_order)) std::stable_sort(first, results.end(), in_order);
    tear.mend();
  }

  // A view at the present watermark, for any thread.
  WheelView<M> pin() const { return view_; }
  std::mutex& mutex() const { return mutex_; }

  std::size_t bytes() const { return sizeof(*this) + view_.reader.bytes() + writer_.bytes(); }

  // Everything but the settings. What is loaded was saved with equal ones, perhaps on a narrower item type.
  template <class Archive>
  void archive(Archive& ar) {
    auto late = static_cast<std::int64_t>(late_);
    ar.number(late);
    late_ = static_cast<std::uint64_t>(late);
    ar.number(view_.watermark);
    view_.reader.archive(ar);
    open_ = view_.closed();
    if (view_.watermark < open_ || view_.watermark - open_ >= view_.grain.divisor())
      throw std::invalid_argument("the stored wheel has a watermark outside its open grain");
    archive_writer(ar);
    archive_windows(ar);
  }

  template <class Same>
  void check(Same same) const {
    view_.reader.check(same);
    writer_.check();
    require(view_.reader.now() == writer_.now(), "the reader is at tick ", view_.reader.now(), ", the writer at ", writer_.now());
    require(open_ == view_.closed() && open_ <= view_.watermark && view_.watermark - open_ < view_.grain.divisor(), "the watermark ",
            view_.watermark, " is not in the open grain, which begins at ", open_);
  }

 private:
  template <Monoid>
  friend class MergedWheel;

  // Loads a window that was stored; its fields are checked as far as they could make a loop endless.
  template <class Archive>
  void archive_windows(Archive& ar) {
    auto n = static_cast<std::int64_t>(windows_.size());
    ar.number(n);
    if constexpr (Archive::loading) windows_.clear();
    for (std::int64_t i = 0; i < n; ++i) {
      WindowSpec spec;
      if constexpr (!Archive::loading) spec = std::visit([](auto& w) { return w.spec(); }, windows_[static_cast<std::size_t>(i)]);
      for (Tick* t : {&spec.range, &spec.slide, &spec.offset, &spec.session}) ar.number(*t);
      constexpr Tick far = Tick{1} << 62;  // a length that long would run over in the first sum
      bool lengths = spec.session > 0 || (spec.session == 0 && spec.slide >= 1 && spec.range >= spec.slide);
      if (!lengths || spec.session > far || spec.range > far || spec.offset > far || spec.offset < -far)
        throw std::invalid_argument("the stored wheel has a window without a length");
      if constexpr (Archive::loading) install(spec);
      std::visit([&](auto& w) { w.archive(ar); }, windows_[static_cast<std::size_t>(i)]);
    }
  }

  template <class Archive>
  void archive_writer(Archive& ar) {
    if constexpr (Archive::loading) {
      std::int64_t n = 0;
      ar.number(n);
      writer_ = WriterWheel<M>(monoid_, view_.reader.now(), writer_.write_ahead());
      for (; n > 0; --n) {
        Tick ahead = 0;
        Partial value = monoid_.identity();
        ar.number(ahead);
        ar.partial(value);
        if (ahead < 0) throw std::invalid_argument("the stored wheel has an open tick before its watermark");
        if (ahead > Tick{1} << 62) throw std::invalid_argument("the stored wheel has an open tick further than any time");
        writer_.insert(static_cast<std::uint64_t>(ahead), std::move(value));
      }
    } else {
      std::vector<std::pair<Tick, Partial>> open;
      writer_.for_each([&](Tick t, Partial value) { open.emplace_back(t - writer_.now(), std::move(value)); });
      auto n = static_cast<std::int64_t>(open.size());
      ar.number(n);
      for (auto& [ahead, value] : open) {
        ar.number(ahead);
        ar.partial(value);
      }
    }
  }

  // In ticks from the open grain on, for a time at or after the watermark.
  std::uint64_t ahead(Time t) const { return static_cast<std::uint64_t>(view_.grain(t - open_)); }

  template <class Step>
  void each_window(Step step, std::vector<Result>& results) {
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      auto emit = [&](Tick start, Tick end, Partial value) { results.push_back({i, start, end, std::move(value)}); };
      std::visit([&](auto& window) { step(window, emit); }, windows_[i]);
    }
  }

  M monoid_;
  WheelView<M> view_;
  WriterWheel<M> writer_;
  std::deque<std::variant<PairsWindow<M>, SessionWindow<M>>> windows_;
  bool inverse_, commutative_;
  Time open_;  // where the open grain begins
  std::uint64_t late_ = 0;
  bool torn_ = false;
  mutable std::mutex mutex_;
};

}  // namespace sash
