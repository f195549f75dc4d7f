// FlatFIT
//
//   paper      Shein, Chrysanthis, Labrinidis, SSDBM 2017 (named in daba-2021, section 8)
//   ordering   in order
//   needs      a monoid; neither inverse nor commutativity
//   time       insert and evict no combine; query amortised O(1), at worst n - 1; also from any item to the youngest
//   space      n partials and n positions, in a ring that doubles and halves
//
//       | v0 v1 v2 | v1 v2 | v2 | v3 v4 | v4 |      a query hops from item to item along `next`
//         '-----------------------^ '---------^     and lets every slot on its way reach the end
//
//   I1  position < next <= end for every slot
//   I2  a slot holds the combination from it up to `next`

#pragma once

#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../monoid.hpp"
#include "../ring.hpp"

namespace sash {

template <Monoid M>
class FlatFit {
 public:
  using Partial = typename M::Partial;

  explicit FlatFit(M monoid) : monoid_(std::move(monoid)) {}

  void insert(Partial v) { ring_.push_back({std::move(v), ring_.end() + 1}); }

  void evict() { ring_.pop_front(); }

  Partial query() const { return query_from(0); }

  // From the i-th oldest to the youngest. The way there is kept in the slots themselves, their links reversed: with a
  // stack beside them it is 75 million rounds/s at n = 2^14 and 62 at 2^22 instead of 116 and 114. Each slot is rewritten
  // whole: a combine that throws has at most shortened the way for the next query.
  Partial query_from(std::size_t i) const {
    Position p = ring_.begin() + static_cast<Position>(i), end = ring_.end();
    if (p == end) return monoid_.identity();
    Position before = none;
    for (Position next; (next = ring_[p].next) != end; p = next) ring_[p].next = std::exchange(before, p);
    auto step_back = [&](Position next) { p = std::exchange(before, std::exchange(ring_[before].next, next)); };
    Rollback undo(monoid_, [&] {
      while (before != none) step_back(p);
    });
    while (before != none) {
      Slot& slot = ring_[before];
      slot.partial = monoid_.combine(slot.partial, ring_[p].partial);
      step_back(end);
    }
    undo.done();
    return ring_[p].partial;
  }

  std::size_t size() const { return ring_.size(); }
  bool torn() const { return false; }

  void clear() { ring_.restart(0); }

  template <class Archive>
  void archive(Archive& ar) {
    auto n = static_cast<std::int64_t>(size());
    ar.number(n);
    if constexpr (Archive::loading) {
      clear();
      for (std::int64_t i = 0; i < n; ++i) {
        Slot slot{monoid_.identity(), 0};
        ar.partial(slot.partial);
        ar.number(slot.next);
        slot.next += i;
        ring_.push_back(std::move(slot));
      }
      require_sound([this] { check_next(); });
    } else {
      for (Position p = ring_.begin(); p < ring_.end(); ++p) {
        Position hop = ring_[p].next - p;
        ar.partial(ring_[p].partial);
        ar.number(hop);
      }
    }
  }

  // Verifies I1, and I2 if the values of the window are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    check_next();
    if (values.empty()) return;
    require(values.size() == size(), "I2: the window holds ", size(), " slots for ", values.size(), " values");
    for (std::size_t i = 0; i < size(); ++i) {
      const Slot& slot = ring_[ring_.begin() + static_cast<Position>(i)];
      auto next = static_cast<std::size_t>(slot.next - ring_.begin());
      require(same(slot.partial, fold(monoid_, values, i, next)), "I2: slot ", i, " is not the combination of its value up to ", next);
    }
  }

 private:
  struct Slot {
    Partial partial;
    Position next;
  };
  static constexpr Position none = -1;

  void check_next() const {
    for (Position p = ring_.begin(); p < ring_.end(); ++p) {
      Position next = ring_[p].next;
      require(p < next && next <= ring_.end(), "I1: position ", p, " leads to ", next, ", the window ends at ", ring_.end());
    }
  }

  M monoid_;
  mutable Ring<Slot> ring_;  // a query shortens the way for the next one
};

}  // namespace sash
