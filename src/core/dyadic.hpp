// Dyadic intervals over a stream
//
// Level l cuts the stream's positions into intervals of 2^l; each complete one whose items are all in the
// window has its combination stored, one ring per level. Appending completes pairs upwards like a binary counter;
// dropping the oldest forgets, per level, what starts before the window.
//
//   level 2           [ 4    ..    7 ]
//   level 1           [4  5 ][6  7 ][8  9 ]
//   level 0        [3][4][5][6][7][8][9][10]        window 3 .. 10
//
//   D1  level l holds exactly the intervals [k 2^l, (k + 1) 2^l) that lie in the window
//   D2  each holds the combination of its two halves

#pragma once

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "check.hpp"
#include "monoid.hpp"
#include "ring.hpp"

namespace sash {

template <Monoid M>
class Dyadic {
 public:
  using Partial = typename M::Partial;

  Dyadic() : levels_(1) {}

  Position begin() const { return levels_[0].begin(); }
  Position end() const { return levels_[0].end(); }
  std::size_t size() const { return levels_[0].size(); }

  // The stored interval of 2^level items that starts at p, a multiple of 2^level.
  const Partial& at(std::size_t level, Position p) const { return levels_[level][p >> level]; }
  const Partial& item(Position p) const { return levels_[0][p]; }

  // The level of the largest stored interval that starts at p and ends at or before `end`.
  std::size_t largest_at(Position p, Position end) const {
    auto aligned = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(p)));  // 64 at position 0
    auto fits = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(end - p))) - 1;
    return std::min(aligned, fits);
  }
  static Position size_of(std::size_t level) { return Position{1} << level; }

  // Amortised one combine. Nothing has changed if one throws.
  void append(const M& monoid, Partial v) {
    levels_[0].push_back(std::move(v));
    Rollback undo(monoid, [this] { retract(); });
    for (std::size_t l = 0;; ++l) {
      Position last = levels_[l].end() - 1;
      if (last % 2 == 0 || !levels_[l].holds(last - 1)) break;
      if (l + 1 == levels_.size()) levels_.emplace_back();
      Partial pair = monoid.combine(levels_[l][last - 1], levels_[l][last]);
      if (levels_[l + 1].empty()) levels_[l + 1].restart(last / 2);
      levels_[l + 1].push_back(std::move(pair));
    }
    undo.done();
  }

  // Takes the youngest item back, with all intervals that it completed.
  void retract() {
    Position last = end() - 1;
    for (auto& level : levels_) {
      if (!level.holds(last)) break;
      level.pop_back();
      if (last % 2 == 0) break;
      last /= 2;
    }
  }

  // No combine; O(log n) but for the release of partials.
  void drop_before(Position p) {
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      Position k = (p + size_of(l) - 1) >> l;
      if (levels_[l].begin() >= k || levels_[l].empty()) break;  // then no wider interval starts before p either
      levels_[l].drop_before(std::min(k, levels_[l].end()));
    }
  }

  void restart(Position p) {
    levels_.clear();
    levels_.emplace_back().restart(p);
  }

  template <class Archive>
  void archive(Archive& ar, const M& monoid) {
    Position from = begin();
    auto n = static_cast<std::int64_t>(size());
    ar.number(from);
    ar.number(n);
    if constexpr (Archive::loading) {
      if (from < 0 || from > Position{1} << 61) throw std::invalid_argument("a stored window starts at an impossible position");
      restart(from);
      for (; n > 0; --n) {
        Partial v = monoid.identity();
        ar.partial(v);
        append(monoid, std::move(v));
      }
    } else {
      for (Position p = from; p < end(); ++p) ar.partial(levels_[0][p]);
    }
  }

  // Verifies D1 and D2, and the items if values are given, oldest first.
  template <class Same>
  void check(const M& monoid, const std::vector<Partial>& values, Same same) const {
    require(values.empty() || values.size() == size(), "D1: the window holds ", size(), " items for ", values.size(), " values");
    for (std::size_t i = 0; i < values.size(); ++i)
      require(same(item(begin() + static_cast<Position>(i)), values[i]), "D1: item ", i, " is not its own value");
    for (std::size_t l = 1; l < levels_.size() || (l < 62 && size_of(l) <= end()); ++l) {
      Position first = (begin() + size_of(l) - 1) >> l, stop = end() >> l;
      if (first >= stop) {
        require(l >= levels_.size() || levels_[l].empty(), "D1: level ", l, " holds intervals that are not in the window");
        continue;
      }
      require(l < levels_.size() && levels_[l].begin() == first && levels_[l].end() == stop, "D1: level ", l, " does not hold intervals ",
              first, " to ", stop);
      for (Position k = first; k < stop; ++k)
        require(same(levels_[l][k], monoid.combine(levels_[l - 1][2 * k], levels_[l - 1][2 * k + 1])), "D2: interval ", k, " of level ", l,
                " is not the combination of its halves");
    }
  }

 private:
  std::vector<Ring<Partial>> levels_;
};

}  // namespace sash
