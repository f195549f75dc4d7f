// B-Int
//
//   paper      Arasu and Widom, VLDB 2004; tutorial-2017, section 4.7
//   ordering   in order
//   needs      a monoid; neither inverse nor commutativity
//   time       insert amortised 1 combine, at worst log n; evict none; query O(log n), of any range of the window
//   space      2n partials, in rings that double and halve
//
//   level 2           [ 4    ..    7 ]
//   level 1           [4  5 ][6  7 ][8  9 ]            from 3 to 10:  3, 4..7, 8..9, 10
//   level 0        [3][4][5][6][7][8][9][10]
//
//   D1, D2 of dyadic.hpp

#pragma once

#include <utility>
#include <vector>

#include "../dyadic.hpp"

namespace sash {

template <Monoid M>
class BInt {
 public:
  using Partial = typename M::Partial;

  explicit BInt(M monoid) : monoid_(std::move(monoid)) {}

  void insert(Partial v) { intervals_.append(monoid_, std::move(v)); }
  void evict() { intervals_.drop_before(intervals_.begin() + 1); }
  Partial query() const { return combine(intervals_.begin(), intervals_.end()); }

  // Positions count from the oldest, both ends included.
  Partial query(std::size_t first, std::size_t last) const {
    return combine(intervals_.begin() + static_cast<Position>(first), intervals_.begin() + static_cast<Position>(last) + 1);
  }

  std::size_t size() const { return intervals_.size(); }
  bool torn() const { return false; }
  void clear() { intervals_.restart(0); }

  template <class Visit>
  void for_each(Visit visit) const {
    for (Position p = intervals_.begin(); p < intervals_.end(); ++p) visit(intervals_.item(p));
  }

  template <class Archive>
  void archive(Archive& ar) {
    intervals_.archive(ar, monoid_);
  }

  // Verifies D1 and D2, and the items if values are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    intervals_.check(monoid_, values, same);
  }

 private:
  // The largest intervals that fit, from left to right: first they grow, then they shrink.
  Partial combine(Position from, Position to) const {
    if (from == to) return monoid_.identity();
    std::size_t level = intervals_.largest_at(from, to);
    Partial sum = intervals_.at(level, from);
    while ((from += intervals_.size_of(level)) < to) {
      level = intervals_.largest_at(from, to);
      sum = monoid_.combine(sum, intervals_.at(level, from));
    }
    return sum;
  }

  M monoid_;
  Dyadic<M> intervals_;
};

}  // namespace sash
