// The query optimiser: which slots answer a range, at what cost
//
//   paper      uwheel-2024, section 3.4.4, figure 4, with its errata: the landmark plan is for the range that equals the
//              landmark's; every fold is oldest first; a cost is a number of combines (an inverse counts as one)
//   needs      the shape of the wheel alone: no partial is looked at
//   time       O(levels), no allocation
//
//   prefix      one level stores prefixes and both ends lie on its slots               1
//   landmark    the range is all there is                                              levels - 1
//   single      one level, both ends on its slots                                      slots - 1
//   combined    the coarsest slots in the middle, finer ones towards both ends         slots - 1
//   inverse     the landmark without what lies before and after the range              landmark + both covers + 1 each
//
//   10:15:23                                                       13:20:50
//   | 37 s | 44 m      | 2 h                       | 20 m     | 50 s |      153 slots, 152 combines
//
// Ticks here count from the origin, a multiple of the coarsest level at or before the start, so none is negative.

#pragma once

#include <algorithm>
#include <array>
#include <exception>
#include <vector>

#include "ticks.hpp"

namespace sash {

// Why a range can't be answered; the face puts it in words. Its ends are times, or ticks where the thrower knows no times.
struct RangeRefused : std::exception {
  enum Why : std::uint8_t { reversed, misaligned, beyond_watermark, before_start, not_retained };
  RangeRefused(Why why, Time from, Time to) : why(why), from(from), to(to) {}
  const char* what() const noexcept override { return "the range can't be answered"; }
  Why why;
  Time from, to;  // the range; for not_retained the first piece that no level holds
};

struct LevelShape {
  Divider size;         // ticks per slot
  std::int64_t ratio;   // slots of the level below per slot
  std::int64_t retain;  // slots held, 0 for all
  bool prefix;
  std::int64_t lo, hi;  // the slots that are complete and held: [lo, hi)
};

struct Segment {
  int level;
  std::int64_t from, to;  // slots of that level
};

// A range as segments in time order, or the first piece of it that no level holds.
class Cover {
 public:
  static constexpr int most_levels = 12;

  Cover() {}  // not defaulted: the room is not to be cleared
  Cover(const Cover& other) { *this = other; }
  Cover& operator=(const Cover& other) {  // only what is filled: the room is for the worst case
    std::copy(other.begin(), other.end(), segments_.begin());
    size_ = other.size_;
    combines_ = other.combines_;
    missing_from = other.missing_from;
    missing_to = other.missing_to;
    return *this;
  }

  const Segment* begin() const { return segments_.data(); }
  const Segment* end() const { return segments_.data() + size_; }
  int size() const { return size_; }
  std::int64_t combines() const { return combines_ + (size_ > 1 ? size_ - 1 : 0); }
  bool whole() const { return missing_from == missing_to; }

  void add(int level, std::int64_t from, std::int64_t to, bool prefix) {
    segments_[static_cast<std::size_t>(size_++)] = {level, from, to};
    combines_ += prefix ? 1 : to - from - 1;
  }

  Tick missing_from = 0, missing_to = 0;

 private:
  // Pieces to the left, to the right, and what retention cuts out of them: at most levels^2 / 2 + 2 levels.
  std::array<Segment, most_levels * most_levels / 2 + 2 * most_levels> segments_;
  int size_ = 0;
  std::int64_t combines_ = 0;
};

enum class Strategy : std::uint8_t { none, empty, prefix, landmark, single, combined, inverse };

struct Plan {
  Strategy strategy = Strategy::none;  // none: it can't answer the range
  std::int64_t combines = 0;
  Cover cover;  // of the range; of what lies before it for the inverse plan
  Cover after;  // of what lies after it, for the inverse plan

  bool works() const { return strategy != Strategy::none; }
};

// What the optimiser may rely on.
struct Hints {
  bool inverse = false;        // the aggregation is invertible and commutative, and may be inverted
  bool vectorised = false;     // a long scan of one level is cheap
  std::int64_t threshold = 0;  // up to so many combines, such a scan is preferred to a plan that combines less
};

struct Timeline {
  Tick origin = 0;  // since the epoch; all that follows counts from it
  Tick start = 0, now = 0;
  std::vector<LevelShape> levels;

  // The plan for [from, to), a range within [start, now); where none works, its cover says what is missing.
  Plan choose(Tick from, Tick to, const Hints& hints) const {
    if (from == to) return with(Strategy::empty, 0);
    auto level = aligned(from, to);
    if (level.prefix >= 0) return on_level(Strategy::prefix, level.prefix, from, to);
    if (from == start && to == now) return landmark(from, to);
    if (level.plain >= 0) {
      Plan scan = on_level(Strategy::single, level.plain, from, to);
      if (scan.combines == 0 || (hints.vectorised && scan.combines <= hints.threshold)) return scan;
    }
    Plan plan = combined(from, to);
    std::int64_t least = landmark_combines() + 1;  // an inverse plan costs at least that
    if (hints.inverse && (!plan.works() || plan.combines > least)) {
      Plan other = inverse(from, to);
      if (other.works() && (!plan.works() || other.combines < plan.combines)) return other;
    }
    return plan;
  }

  Plan prefix(Tick from, Tick to) const { return on_level(Strategy::prefix, aligned(from, to).prefix, from, to); }
  Plan single(Tick from, Tick to) const { return on_level(Strategy::single, aligned(from, to).plain, from, to); }

  Plan landmark(Tick from, Tick to) const { return from == start && to == now ? with(Strategy::landmark, landmark_combines()) : Plan{}; }

  // The fewest slots: the coarsest level takes what it can, the finer ones what is left on both sides.
  Plan combined(Tick from, Tick to) const {
    Plan plan;
    cover(static_cast<int>(levels.size()) - 1, from, to, plan.cover);
    if (plan.cover.whole()) plan.strategy = plan.cover.size() == 1 ? Strategy::single : Strategy::combined;
    plan.combines = plan.cover.combines();
    return plan;
  }

  Plan inverse(Tick from, Tick to) const {
    Plan plan;
    int top = static_cast<int>(levels.size()) - 1;
    if (start < from) cover(top, start, from, plan.cover);
    if (to < now) cover(top, to, now, plan.after);
    plan.combines = landmark_combines();
    for (const Cover* part : {&plan.cover, &plan.after})
      if (part->size()) plan.combines += part->combines() + 1;
    if (plan.cover.whole() && plan.after.whole()) plan.strategy = Strategy::inverse;
    return plan;
  }

 private:
  std::int64_t landmark_combines() const { return static_cast<std::int64_t>(levels.size()) - 1; }

  // The coarsest levels of either layout on whose held slots both ends lie; -1 if none.
  struct Aligned {
    int prefix = -1, plain = -1;
  };
  Aligned aligned(Tick from, Tick to) const {
    Aligned found;
    for (int k = 0; k < static_cast<int>(levels.size()); ++k) {
      auto& level = levels[static_cast<std::size_t>(k)];
      std::int64_t a = level.size(from), size = level.size.divisor();
      if (a * size != from || level.size(to) * size != to) break;
      if (level.lo <= a) (level.prefix ? found.prefix : found.plain) = k;
    }
    return found;
  }

  void cover(int k, Tick from, Tick to, Cover& out) const {
    for (; k >= 0; --k) {
      auto& level = levels[static_cast<std::size_t>(k)];
      std::int64_t size = level.size.divisor();
      std::int64_t a = std::max(level.size.up(from), level.lo), b = level.size(to);
      if (a >= b) continue;
      if (from < a * size) cover(k - 1, from, a * size, out);
      out.add(k, a, b, level.prefix);
      from = b * size;
      if (from == to) return;
    }
    if (out.whole()) out.missing_from = from, out.missing_to = to;
  }

  static Plan with(Strategy strategy, std::int64_t combines) {
    Plan plan;
    plan.strategy = strategy;
    plan.combines = combines;
    return plan;
  }

  Plan on_level(Strategy strategy, int k, Tick from, Tick to) const {
    if (k < 0) return {};
    auto& level = levels[static_cast<std::size_t>(k)];
    Plan plan;
    plan.strategy = strategy;
    plan.cover.add(k, level.size(from), level.size(to), level.prefix);
    plan.combines = plan.cover.combines();
    return plan;
  }
};

}  // namespace sash
