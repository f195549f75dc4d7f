// The reader wheel
//
//   paper      uwheel-2024, sections 3.4 and 3.6; levels are a list, aligned to the epoch whatever the start
//   needs      a monoid; an inverse for prefix levels, an inverse and commutativity for the inverse landmark
//   time       tick 1 + 1/60 + 1/3600 + ... combines; a gap of any length O(levels); queries as planned
//   space      one partial per slot held, and one open partial per level
//
//   level 2   |            |            | open_ = closed slots of level 1
//   level 1   |   |   |   |   |   |   |   | open_ = closed slots of level 0
//   level 0   |||||||||||||||||||||||||||||||
//             ^ start                       ^ now
//
// Both layouts answer from the same interface: a plain level stores its slots, a prefix level the combination of
// all slots before each, so that any of its ranges is one inverse. What can't be taken out again (a NaN, an infinity, a sum that
// overflowed) breaks the prefixes: they start again after it, and it is kept apart, so that it counts in its own ranges only.
//
//   I1  a level holds the slots [lo, hi): hi is the slot that now lies in, lo the first that begins at or after the start
//       and is among the last `retain`
//   I2  a slot is the combination of the finer slots it spans, oldest first
//   I3  a level's open partial is the combination of the finer slots closed since its own last slot closed
//   I4  total is the combination of everything closed at the coarsest level, from the start on
//   I5  a prefix is the combination of the slots since the last break before it, and can be taken out
//
// A copy is a reader's view: it shares the slots, stays at its watermark, and may be asked in another thread.

#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "fold.hpp"
#include "marks.hpp"
#include "plan.hpp"
#include "slots.hpp"

namespace sash {

struct LevelSpec {
  std::int64_t size = 1;    // ticks per slot
  std::int64_t retain = 0;  // slots held, 0 for all
  bool prefix = false;
  std::size_t chunk = 0;  // slots per chunk, a power of two; 0 picks one
};

template <Monoid M>
class ReaderWheel {
 public:
  using Partial = typename M::Partial;

  // Levels from the grain up; each size is a multiple of the one before, the first is 1.
  ReaderWheel(M monoid, Tick start, std::vector<LevelSpec> specs)
      : monoid_(std::move(monoid)), specs_(std::move(specs)), marks_(start), total_(monoid_.identity()) {
    line_.origin = floor_div(start, specs_.back().size) * specs_.back().size;
    line_.start = line_.now = start - line_.origin;
    levels_.reserve(specs_.size());
    for (std::size_t k = 0; k < specs_.size(); ++k) add_level(specs_[k], k);
  }

  Tick start() const { return line_.origin + line_.start; }
  Tick now() const { return line_.origin + line_.now; }
  const Timeline& line() const { return line_; }
  // Which ticks had entries, as far back as ticks are held.
  const Marks& marks() const { return marks_; }

  // The next tick, closed, with what it holds.
  void tick(Partial value) {
    line_.now += 1;
    marks_.push(true);
    append(0, value);
    for (std::size_t k = 1;; ++k) {
      if (k == levels_.size()) return take_in(total_, any_, value);
      Level& level = levels_[k];
      take_in(level.open, level.any, value);
      if (--level.left > 0) return;
      level.left = line_.levels[k].ratio;
      level.any = false;
      value = std::exchange(level.open, monoid_.identity());
      append(k, value);
    }
  }

  // The next n ticks, closed and empty. No combine with an identity is made for them.
  void gap(std::int64_t n) {
    line_.now += n;
    marks_.gap(n);
    append_blank(0, n);
    for (std::size_t k = 1; k < levels_.size(); ++k) {
      Level& level = levels_[k];
      if (n < level.left) {
        level.left -= n;
        return;
      }
      std::int64_t rest = n - level.left, ratio = line_.levels[k].ratio;
      level.left = ratio - rest % ratio;
      n = 1 + rest / ratio;
      if (std::exchange(level.any, false)) {
        Partial closed = std::exchange(level.open, monoid_.identity());
        append(k, closed);
        if (k + 1 < levels_.size())
          take_in(levels_[k + 1].open, levels_[k + 1].any, closed);
        else
          take_in(total_, any_, closed);
      } else {
        append_blank(k, 1);
      }
      append_blank(k, n - 1);
    }
  }

  // All that is closed, oldest first: one combine per level above the grain.
  Partial landmark() const {
    Partial all = total_;
    for (std::size_t k = levels_.size() - 1; k > 0; --k) all = monoid_.combine(all, levels_[k].open);
    return all;
  }

  // Carries out a plan of line().choose() for [from, to), ticks from the origin.
  Partial run(const Plan& plan) const {
    switch (plan.strategy) {
      case Strategy::empty:
        return monoid_.identity();
      case Strategy::landmark:
        return landmark();
      case Strategy::inverse:
        if constexpr (Invertible<M>) return without(plan.cover, plan.after);
        break;
      case Strategy::none:
        break;
      default:
        return fold(plan.cover);
    }
    throw std::logic_error("a plan that can't be carried out");
  }

  // The partial of [from, to), ticks since the epoch; RangeRefused where no levels hold them.
  Partial query(Tick from, Tick to) const {
    if (from >= to) return monoid_.identity();
    Plan plan = line_.choose(from - line_.origin, to - line_.origin, {});
    if (!plan.works())
      throw RangeRefused(RangeRefused::not_retained, line_.origin + plan.cover.missing_from, line_.origin + plan.cover.missing_to);
    return run(plan);
  }

  // One slot of a level of either layout.
  Partial slot(std::size_t level, std::int64_t i) const { return fold_segment({static_cast<int>(level), i, i + 1}); }

  std::size_t slots_held() const {
    std::size_t n = 0;
    for (auto& level : line_.levels) n += static_cast<std::size_t>(level.hi - level.lo);
    return n;
  }

  std::size_t bytes() const {
    std::size_t total = sizeof(*this) + marks_.bytes();
    for (auto& level : levels_) total += level.slots.bytes() + sizeof(Level) + (level.breaks ? level.breaks->bytes() : 0);
    return total;
  }

  // Verifies I1 to I4 as far as what is held can show them; `same` compares two partials.
  template <class Same>
  void check(Same same) const {
    require(marks_.begin() == line_.origin + line_.levels[0].lo && marks_.end() == now(), "I1: ticks are marked from ", marks_.begin(),
            " to ", marks_.end(), ", held from ", line_.origin + line_.levels[0].lo, " to ", now());
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      auto& shape = line_.levels[k];
      auto& level = levels_[k];
      level.slots.check();
      std::int64_t first = shape.size.up(line_.start), size = shape.size.divisor();
      require(level.number == shape.size(line_.now), "I1: level ", k, " is in slot ", level.number, ", now in slot ",
              shape.size(line_.now));
      require(shape.hi == std::max(first, level.number), "I1: level ", k, " ends at slot ", shape.hi, ", now is in slot ", level.number);
      require(shape.lo >= (shape.retain ? std::max(first, shape.hi - shape.retain) : first) && shape.lo <= shape.hi, "I1: level ", k,
              " holds slots from ", shape.lo, " to ", shape.hi, ", the first is ", first);
      if (k == 0) continue;
      auto& finer = line_.levels[k - 1];
      for (std::int64_t i = std::max(shape.lo, ceil_div(finer.lo, shape.ratio)); i < shape.hi; ++i)
        require(same(slot(k, i), fold_slots(k - 1, i * shape.ratio, (i + 1) * shape.ratio)), "I2: level ", k, ", slot ", i);
      // Where the start cuts a finer slot, what is open holds more than the finer slots do.
      bool clean = level.number * size >= line_.start || line_.start % finer.size.divisor() == 0;
      std::int64_t from = std::max(level.number * shape.ratio, finer.size.up(line_.start));
      if (clean && from >= finer.lo)
        require(same(level.open, fold_slots(k - 1, from, finer.hi)), "I3: level ", k, " is open from finer slot ", from, " on");
      require(level.left == (level.number + 1) * shape.ratio - levels_[k - 1].number, "I3: level ", k, " closes in ", level.left, " slots");
    }
    auto& top = line_.levels.back();
    if (top.lo * top.size.divisor() == line_.start)
      require(same(total_, fold_slots(levels_.size() - 1, top.lo, top.hi)), "I4: the total is not the combination of the coarsest slots");
  }

  // Slots, open partials and how far back each level goes; the rest follows from the start and now.
  template <class Archive>
  void archive(Archive& ar) {
    ar.number(line_.now);
    if (line_.now < line_.start) throw std::invalid_argument("the stored wheel ends before it starts");
    marks_.archive(ar);
    ar.partial(total_);
    flag(ar, any_);
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      Level& level = levels_[k];
      LevelShape& shape = line_.levels[k];
      ar.partial(level.open);
      flag(ar, level.any);
      ar.number(shape.lo);
      if constexpr (Archive::loading) {
        level.number = shape.size(line_.now);
        shape.hi = std::max(shape.size.up(line_.start), level.number);
        if (k) level.left = (level.number + 1) * shape.ratio - levels_[k - 1].number;
        if (shape.lo < shape.size.up(line_.start) || shape.lo > shape.hi)
          throw std::invalid_argument("the stored wheel has a level that goes back too far");
      }
      archive_slots(ar, level, shape);
      if (shape.prefix) archive_breaks(ar, level, shape);
    }
  }

 private:
  template <Monoid>
  friend class MergedWheel;

  // Whether some partials can't be taken out again.
  static constexpr bool partly = Invertible<M> && requires(const M m, const Partial& p) {
    { m.removable(p) } -> std::convertible_to<bool>;
  };
  bool removable([[maybe_unused]] const Partial& p) const {
    if constexpr (partly) return monoid_.removable(p);
    return true;
  }

  // A slot of a prefix level after which the prefixes start again.
  struct Break {
    std::int64_t slot;
    Partial value;
  };

  struct Level {
    Slots<Partial> slots;
    Partial open;
    std::int64_t number;  // of the slot that is open
    std::int64_t left;    // finer slots until it closes
    bool any = false;     // whether anything was combined into open
    std::optional<Slots<Break>> breaks = {};
  };

  void add_level(const LevelSpec& spec, std::size_t k) {
    if constexpr (!Invertible<M>)
      if (spec.prefix) throw std::invalid_argument("a prefix level needs an inverse");
    Divider size(spec.size);
    std::int64_t below = k ? line_.levels[k - 1].size.divisor() : 1;
    std::int64_t ratio = spec.size / below, first = size.up(line_.start);
    line_.levels.push_back({size, ratio, spec.retain, spec.prefix, first, first});
    std::int64_t number = size(line_.start);
    std::int64_t left = k ? (number + 1) * ratio - levels_[k - 1].number : 1;
    Slots<Partial> slots(first, spec.chunk ? spec.chunk : chunk(spec.retain, k), monoid_.identity());
    levels_.push_back({std::move(slots), monoid_.identity(), number, left});
    if (spec.prefix) {
      levels_.back().slots.fill(1, monoid_.identity(), true);
      if constexpr (partly) levels_.back().breaks.emplace(0, 16, Break{0, monoid_.identity()});
    }
  }

  // Up to 4,096 slots for a level that grows, an eighth of it for each coarser one; a quarter of a bounded one.
  static std::size_t chunk(std::int64_t retain, std::size_t k) {
    auto most = std::max<std::size_t>(16, std::min<std::size_t>(4096, 65536 / sizeof(Partial)) >> std::min<std::size_t>(3 * k, 30));
    return retain ? std::bit_floor(std::clamp<std::size_t>(static_cast<std::size_t>(retain) / 4, 8, most)) : std::bit_floor(most);
  }

  void take_in(Partial& open, bool& any, const Partial& value) {
    if (any) {
      open = monoid_.combine(open, value);
    } else {
      open = value;
      any = true;
    }
  }

  // Closes the open slot. One that began before the start is not complete: it is not held, but goes on to the coarser levels.
  void append(std::size_t k, const Partial& value) {
    auto& shape = line_.levels[k];
    auto& slots = levels_[k].slots;
    if (levels_[k].number++ < shape.hi) return;
    if (shape.prefix) {
      Partial next = monoid_.combine(slots[slots.end() - 1], value);
      if (!removable(next)) [[unlikely]] {
        levels_[k].breaks->push({shape.hi, value});
        next = monoid_.identity();
      }
      slots.push(std::move(next));
    } else {
      slots.push(value);
    }
    ++shape.hi;
    retain(k);
  }

  void append_blank(std::size_t k, std::int64_t n) {
    auto& shape = line_.levels[k];
    auto& slots = levels_[k].slots;
    n = std::min(n, (levels_[k].number += n) - shape.hi);
    if (n <= 0) return;
    slots.fill(n, shape.prefix ? slots[slots.end() - 1] : slots.blank(), !shape.prefix || slots.touched() == slots.end());
    shape.hi += n;
    retain(k);
  }

  void retain(std::size_t k) {
    auto& shape = line_.levels[k];
    if (shape.retain == 0 || shape.hi - shape.lo <= shape.retain) return;
    shape.lo = shape.hi - shape.retain;
    levels_[k].slots.drop_before(shape.lo);
    if (auto& breaks = levels_[k].breaks) breaks->drop_before(first_break(*breaks, shape.lo));
    if (k == 0) marks_.drop_before(line_.origin + shape.lo);
  }

  Partial fold(const Cover& cover) const {
    const Segment* s = cover.begin();
    Partial all = fold_segment(*s);
    while (++s != cover.end()) all = monoid_.combine(all, fold_segment(*s));
    return all;
  }

  Partial fold_slots(std::size_t k, std::int64_t from, std::int64_t to) const {
    return from < to ? fold_segment({static_cast<int>(k), from, to}) : monoid_.identity();
  }

  // At least one slot of one level.
  Partial fold_segment(const Segment& s) const {
    auto k = static_cast<std::size_t>(s.level);
    auto& slots = levels_[k].slots;
    if constexpr (Invertible<M>)
      if (line_.levels[k].prefix) return between(levels_[k], s.from, s.to);
    Fold<M> fold(monoid_);
    slots.runs(s.from, s.to, [&](const Partial* first, std::size_t n, bool blank) { fold.add(first, n, blank); });
    return std::move(fold).result();
  }

  // The slots [from, to) of a prefix level.
  Partial between(const Level& level, std::int64_t from, std::int64_t to) const {
    if constexpr (partly) {
      if (level.breaks->begin() < level.breaks->end()) [[unlikely]] {
        Partial all = monoid_.identity();
        for (auto i = first_break(*level.breaks, from); i < level.breaks->end(); ++i) {
          const Break& b = (*level.breaks)[i];
          if (b.slot >= to) break;
          all = monoid_.combine(monoid_.combine(all, monoid_.inverse(level.slots[b.slot], level.slots[from])), b.value);
          from = b.slot + 1;
        }
        return monoid_.combine(all, monoid_.inverse(level.slots[to], level.slots[from]));
      }
    }
    return monoid_.inverse(level.slots[to], level.slots[from]);
  }

  // The first break at or after a slot.
  static std::int64_t first_break(const Slots<Break>& breaks, std::int64_t slot) {
    std::int64_t from = breaks.begin(), to = breaks.end();
    while (from < to) {
      std::int64_t middle = from + (to - from) / 2;
      if (breaks[middle].slot < slot)
        from = middle + 1;
      else
        to = middle;
    }
    return from;
  }

  // The landmark without what lies before and after a range; where that can't be taken out, the range itself.
  Partial without(const Cover& before, const Cover& after) const {
    Partial rest = landmark();
    bool exact = removable(rest);
    for (const Cover* part : {&before, &after}) {
      if (part->size() == 0) continue;
      Partial taken = fold(*part);
      exact &= removable(taken);
      rest = monoid_.inverse(rest, taken);
    }
    if (exact) [[likely]]
      return rest;
    auto end = [&](const Segment& s) { return s.to * line_.levels[static_cast<std::size_t>(s.level)].size.divisor(); };
    auto begin = [&](const Segment& s) { return s.from * line_.levels[static_cast<std::size_t>(s.level)].size.divisor(); };
    Tick from = before.size() ? end(*(before.end() - 1)) : line_.start, to = after.size() ? begin(*after.begin()) : line_.now;
    return query(line_.origin + from, line_.origin + to);
  }

  template <class Archive>
  static void flag(Archive& ar, bool& value) {
    std::int64_t n = value;
    ar.number(n);
    value = n != 0;
  }

  template <class Archive>
  void archive_slots(Archive& ar, Level& level, LevelShape& shape) {
    enum : std::int64_t { each, blanks, same_as_before };
    std::int64_t end = shape.hi + shape.prefix;
    if constexpr (Archive::loading) {
      level.slots.restart(shape.lo);
      for (std::int64_t at = shape.lo; at < end;) {
        std::int64_t n = 0, kind = 0;
        ar.number(n);
        ar.number(kind);
        if (n <= 0 || n > end - at || (kind == each && static_cast<std::size_t>(n) > ar.partials_left()) ||
            (kind && at == shape.lo && kind != blanks))
          throw std::invalid_argument("the stored wheel has more slots than it says");
        if (kind == each) {
          for (std::int64_t i = 0; i < n; ++i) {
            Partial value = monoid_.identity();
            ar.partial(value);
            level.slots.push(std::move(value));
          }
        } else {
          level.slots.fill(n, kind == blanks ? level.slots.blank() : level.slots[at - 1], kind == blanks);
        }
        at += n;
      }
    } else {
      const Partial* before = nullptr;
      level.slots.runs(shape.lo, end, [&](const Partial* first, std::size_t run, bool blank) {
        auto n = static_cast<std::int64_t>(run);
        std::int64_t kind = blank ? blanks : first == before ? same_as_before : each;
        before = first;
        ar.number(n);
        ar.number(kind);
        for (std::size_t i = 0; kind == each && i < run; ++i) {
          Partial value = first[i];
          ar.partial(value);
        }
      });
    }
  }

  // Their number is stored for every monoid: integers may be loaded as floats.
  template <class Archive>
  void archive_breaks(Archive& ar, Level& level, const LevelShape& shape) {
    std::int64_t n = level.breaks ? level.breaks->end() - level.breaks->begin() : 0, before = shape.lo - 1;
    ar.number(n);
    if constexpr (Archive::loading) {
      if (n < 0 || (n > 0 && !level.breaks)) throw std::invalid_argument("the stored wheel has prefixes that break where none can");
      if (level.breaks) level.breaks->restart(0);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      Break b{0, monoid_.identity()};
      if constexpr (!Archive::loading) b = (*level.breaks)[level.breaks->begin() + i];
      ar.number(b.slot);
      ar.partial(b.value);
      if constexpr (Archive::loading) {
        if (b.slot <= before || b.slot >= shape.hi) throw std::invalid_argument("the stored wheel has prefixes that break outside it");
        before = b.slot;
        level.breaks->push(std::move(b));
      }
    }
  }

  M monoid_;
  std::vector<LevelSpec> specs_;
  Timeline line_;
  Marks marks_;
  std::vector<Level> levels_;
  Partial total_;
  bool any_ = false;
};

}  // namespace sash
