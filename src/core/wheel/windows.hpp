// Windows over the ticks of a wheel, cut by Pairs
//
//   paper      uwheel-2024, sections 3.5 and 3.6, algorithm 2, with its pop put right: where range mod slide is not 0, a slide is
//              two slices, and both must go
//   needs      a monoid; subtract-on-evict where an inverse may be used, Two-Stacks Lite otherwise
//   time       1 combine per tick; insert, query and evict of the window's algorithm per slide
//   space      at most 2 range / slide slices
//
//   range 10, slide 4:   |--|  |--|  |--|        first slices of range mod slide = 2, second ones of slide - 2 = 2
//                        0  2  4  6  8  10
//
// Slices are made of the ticks as they close, never of slots that a level may have dropped.
//
//   I1  every window starts at a multiple of slide plus offset; start_ is the one that closes next
//   I2  the algorithm holds the slices of [start_, begun_), open_ what came since begun_, the next slice ends at edge_

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../monoid.hpp"
#include "../swag/subtract_on_evict.hpp"
#include "../swag/two_stacks_lite.hpp"
#include "plan.hpp"
#include "ticks.hpp"

namespace sash {

struct WindowSpec {
  Tick range = 0, slide = 0, offset = 0;
  Tick session = 0;  // the gap of a session window, whose other fields are 0
};

template <class Partial>
struct WindowResult {
  std::size_t window;  // by order of installation
  Tick start, end;
  Partial value;
};

// An in-order algorithm for the slices: subtract-on-evict where the caller says that the inverse may be used.
template <Monoid M>
class SliceQueue {
 public:
  using Partial = typename M::Partial;

  SliceQueue(const M& monoid, [[maybe_unused]] bool inverse) : monoid_(monoid) {
    if constexpr (Invertible<M>)
      if (inverse) exact_.emplace(monoid);
    if (!exact_) any_.emplace(monoid);
  }
  SliceQueue(const SliceQueue&) = delete;  // the algorithms hold places in their own queues

  void insert(Partial v) {
    if constexpr (Invertible<M>)
      if (exact_) return exact_->insert(std::move(v));
    any_->insert(std::move(v));
  }
  void evict() {
    if constexpr (Invertible<M>)
      if (exact_) return exact_->evict();
    any_->evict();
  }
  Partial query() const {
    if constexpr (Invertible<M>)
      if (exact_) return exact_->query();
    return any_->query();
  }
  void clear() {
    if constexpr (Invertible<M>)
      if (exact_) return exact_->clear();
    any_->clear();
  }

  std::size_t size() const {
    if constexpr (Invertible<M>)
      if (exact_) return exact_->size();
    return any_->size();
  }

  // Slices stored by subtract-on-evict may be loaded into a queue that does not invert: integers that became floats.
  template <class Archive>
  void archive(Archive& ar) {
    std::int64_t inverts = !any_, stored = inverts;
    ar.number(stored);
    if constexpr (Invertible<M>) {
      if (stored == 1 && exact_) return exact_->archive(ar);
      if constexpr (Archive::loading) {
        if (stored == 1) {
          SubtractOnEvict<M> slices(monoid_);
          slices.archive(ar);
          slices.for_each([&](const Partial& v) { any_->insert(v); });
          return;
        }
      }
    }
    if (stored != 0 || !any_) throw std::invalid_argument("the stored wheel has windows of another kind");
    any_->archive(ar);
  }

 private:
  struct Never {};
  template <bool invertible, class N>
  struct Exact {
    using type = Never;
  };
  template <class N>
  struct Exact<true, N> {
    using type = SubtractOnEvict<N>;
  };

  M monoid_;
  std::optional<typename Exact<Invertible<M>, M>::type> exact_;
  std::optional<TwoStacksLite<M>> any_;
};

template <Monoid M>
class PairsWindow {
 public:
  using Partial = typename M::Partial;

  // The first window is the first that starts at or after `from`.
  PairsWindow(M monoid, WindowSpec spec, Tick from, bool inverse)
      : monoid_(std::move(monoid)), spec_(spec), slices_(monoid_, inverse), open_(monoid_.identity()) {
    first_ = spec_.offset + spec_.slide * ceil_div(from - spec_.offset, spec_.slide);
    restart(first_);
  }

  const WindowSpec& spec() const { return spec_; }
  Tick first() const { return first_; }

  // Tick t, closed, with a value. emit(start, end, value) is called for a window that ends with it.
  template <class Emit>
  void tick(Tick t, const Partial& value, Emit emit) {
    if (t < start_) return;
    open_ = any_ ? monoid_.combine(open_, value) : value;
    any_ = true;
    seen_ = t;
    if (t + 1 == edge_) cut(emit, true);
  }

  // Ticks up to `to`, closed and empty. Windows that hold nothing are emitted only if `empties`.
  template <class Emit>
  void gap(Tick to, bool empties, Emit emit) {
    while (edge_ <= to) {
      if (!empties && seen_ < start_ && to - start_ > 2 * (spec_.range + spec_.slide)) {
        // Nothing is in any window that ends before `to`: go on with the last but few of them.
        restart(start_ + (to - start_ - spec_.range) / spec_.slide * spec_.slide);
        continue;
      }
      cut(emit, empties);
    }
  }

  // How many windows end in (now, to].
  std::int64_t due(Tick to) const { return to < start_ + spec_.range ? 0 : (to - start_ - spec_.range) / spec_.slide + 1; }

  // Becomes what it would be at the end of the reader's ticks.
  template <class Reader>
  void rewind(const Reader& reader) {
    Tick now = reader.now();
    Tick ended = now - spec_.range - first_;  // windows that start up to here have ended
    restart(ended < 0 ? first_ : first_ + (ended / spec_.slide + 1) * spec_.slide);
    while (edge_ <= now) {
      slices_.insert(reader.query(begun_, edge_));
      next_edge();
    }
    if (begun_ < now) open_ = reader.query(begun_, now), any_ = true;
    seen_ = reader.marks().last(now);
  }

  template <class Archive>
  void archive(Archive& ar) {
    for (Tick* t : {&first_, &start_, &begun_, &edge_, &seen_}) ar.number(*t);
    std::int64_t flags = any_ | second_ << 1;
    ar.number(flags);
    any_ = flags & 1;
    second_ = flags >> 1 & 1;
    ar.partial(open_);
    slices_.archive(ar);
    if constexpr (Archive::loading)
      if (!whole()) throw std::invalid_argument("the stored wheel has a window whose slices are not those of its edges");
  }

 private:
  // Whether the edges are those of a window, and the slices since its start are as many as lie between them.
  bool whole() const {
    Tick at = 0, end = 0, edge = 0, rest = spec_.range % spec_.slide;
    if (__builtin_sub_overflow(begun_, start_, &at) || __builtin_add_overflow(start_, spec_.range, &end) || at < 0 || begun_ >= end)
      return false;
    bool after_rest = rest != 0 && at % spec_.slide == rest;
    if (at % spec_.slide != 0 && !after_rest) return false;
    Tick step = rest == 0 ? spec_.slide : after_rest ? spec_.slide - rest : rest;
    if (__builtin_add_overflow(begun_, step, &edge) || edge != edge_ || second_ != (rest != 0 && !after_rest)) return false;
    Tick slices = rest == 0 ? at / spec_.slide : at / spec_.slide * 2 + after_rest;
    return slices_.size() == static_cast<std::size_t>(slices);
  }

  // The start of the window that closes next, nothing in it yet.
  void restart(Tick start) {
    slices_.clear();
    open_ = monoid_.identity();
    any_ = second_ = false;
    seen_ = start - 1;
    start_ = begun_ = edge_ = start;
    next_edge();
  }

  void next_edge() {
    Tick rest = spec_.range % spec_.slide;
    begun_ = edge_;
    edge_ += rest == 0 ? spec_.slide : second_ ? spec_.slide - rest : rest;
    second_ = rest != 0 && !second_;
  }

  template <class Emit>
  void cut(Emit& emit, bool empties) {
    slices_.insert(std::exchange(open_, monoid_.identity()));
    any_ = false;
    next_edge();
    if (begun_ != start_ + spec_.range) return;
    if (empties || seen_ >= start_) emit(start_, begun_, slices_.query());
    slices_.evict();
    if (spec_.range % spec_.slide != 0) slices_.evict();
    start_ += spec_.slide;
  }

  M monoid_;
  WindowSpec spec_;
  SliceQueue<M> slices_;
  Tick first_, start_, begun_, edge_;
  Tick seen_;  // the last tick with an entry
  bool second_ = false, any_ = false;
  Partial open_;
};

// A session: ticks with entries, each at most the gap after the one before; it ends a gap after its last tick. As in Spark, a
// tick exactly at its end still joins, so it is over once the ticks are past its end.
template <Monoid M>
class SessionWindow {
 public:
  using Partial = typename M::Partial;

  SessionWindow(M monoid, WindowSpec spec, Tick from) : monoid_(std::move(monoid)), spec_(spec), from_(from), open_(monoid_.identity()) {}

  const WindowSpec& spec() const { return spec_; }
  Tick first() const { return from_; }

  template <class Emit>
  void tick(Tick t, const Partial& value, Emit emit) {
    if (t < from_) return;
    gap(t, true, emit);
    open_ = active_ ? monoid_.combine(open_, value) : value;
    if (!active_) first_ = t;
    active_ = true;
    last_ = t;
    gap(t + 1, true, emit);
  }

  template <class Emit>
  void gap(Tick to, bool, Emit emit) {
    if (!active_ || to <= last_ + spec_.session) return;
    active_ = false;
    emit(first_, last_ + spec_.session, std::exchange(open_, monoid_.identity()));
  }

  std::int64_t due(Tick) const { return 0; }

  // Becomes what it would be at the end of the reader's ticks; RangeRefused if a session goes back further than those held.
  template <class Reader>
  void rewind(const Reader& reader) {
    auto& marks = reader.marks();
    auto before = [&](Tick t) { return std::max(marks.last(t), from_ - 1); };
    last_ = before(reader.now());
    active_ = last_ >= std::max(from_, marks.begin()) && last_ + spec_.session >= reader.now();
    first_ = active_ ? last_ : reader.now();
    Tick held = std::max(from_, marks.begin());
    while (active_ && before(first_) >= held && first_ - before(first_) <= spec_.session) first_ = before(first_);
    if (held > std::max(from_, reader.start()) && first_ - spec_.session < held)  // an entry before those held might join
      throw RangeRefused(RangeRefused::not_retained, first_ - spec_.session, held);
    if (active_) open_ = reader.query(first_, reader.now());
  }

  template <class Archive>
  void archive(Archive& ar) {
    for (Tick* t : {&from_, &first_, &last_}) ar.number(*t);
    std::int64_t active = active_;
    ar.number(active);
    active_ = active != 0;
    ar.partial(open_);
  }

 private:
  M monoid_;
  WindowSpec spec_;
  Tick from_, first_ = 0, last_ = 0;
  bool active_ = false;
  Partial open_;
};

}  // namespace sash
