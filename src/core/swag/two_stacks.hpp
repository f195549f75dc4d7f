// Two-Stacks
//
//   paper      daba-2021, section 3
//   ordering   in order
//   needs      a monoid; neither inverse nor commutativity
//   time       insert and query 1 combine; evict 1 amortised, n - 1 at a turn
//   space      2n partials
//
//            F                        B                    E
//       val  | v0       | v1    | v2  | v3  | v4    | v5       |
//       agg  | v0 v1 v2 | v1 v2 | v2  | v3  | v3 v4 | v3 v4 v5 |
//            '-- front stack, top F --'-- back stack, top E - 1
//
//   The stacks stand bottom to bottom in one queue. Two-Stacks Lite needs half the space; this one still has its items.
//
//   I1  F <= B <= E
//   I2  val is the slot's own value
//   I3  agg in [F, B) is the combination from the slot up to B
//   I4  agg in [B, E) is the combination from B through the slot

#pragma once

#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../chunked_queue.hpp"
#include "../monoid.hpp"

namespace sash {

template <Monoid M>
class TwoStacks {
 public:
  using Partial = typename M::Partial;

  explicit TwoStacks(M monoid) : monoid_(std::move(monoid)), B_(deque_.end()) {}
  TwoStacks(TwoStacks&&) = default;
  TwoStacks& operator=(TwoStacks&&) = default;  // and no copy: B_ would point into the other's slots

  void insert(Partial v) {
    Partial agg = monoid_.combine(piB(), v);
    deque_.push_back({std::move(v), std::move(agg)});
  }

  void evict() {
    if (F() == B_) turn();
    deque_.pop_front();
  }

  Partial query() const { return monoid_.combine(piF(), piB()); }

  std::size_t size() const { return deque_.size(); }
  bool torn() const { return torn_; }

  void clear() {
    deque_.clear();
    B_ = E();
    torn_ = false;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (Place p = F(); p != E(); ++p) visit(p->val);
  }

  template <class Archive>
  void archive(Archive& ar) {
    deque_.archive_each(ar, {monoid_.identity(), monoid_.identity()}, [&ar](Slot& s) { ar.partial(s.val), ar.partial(s.agg); });
    deque_.archive_place(ar, B_);
  }

  // Verifies I1 to I4, I2 if the values of the window are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    auto b = deque_.index_of(B_), e = size();
    require(b <= e, "I1: B (", b, ") lies behind the end (", e, ")");
    require(values.empty() || values.size() == e, "I1: the window holds ", e, " slots for ", values.size(), " values");
    std::vector<Partial> own;
    for_each([&own](const Partial& v) { own.push_back(v); });
    auto toB = suffixes(monoid_, own, b);
    Partial fromB = monoid_.identity();
    std::size_t i = 0;
    for (Place p = F(); p != E(); ++p, ++i) {
      require(values.empty() || same(p->val, values[i]), "I2: slot ", i, " does not hold its own value");
      if (i >= b) fromB = monoid_.combine(fromB, p->val);
      if (i < b)
        require(same(p->agg, toB[i]), "I3: slot ", i, " is not the combination of its value up to B (", b, ")");
      else
        require(same(p->agg, fromB), "I4: slot ", i, " is not the combination from B (", b, ") through its value");
    }
  }

 private:
  struct Slot {
    Partial val, agg;
  };
  using Place = typename ChunkedQueue<Slot>::iterator;

  Place F() const { return deque_.begin(); }
  Place E() const { return deque_.end(); }
  Partial piF() const { return F() == B_ ? monoid_.identity() : F()->agg; }
  Partial piB() const { return B_ == E() ? monoid_.identity() : E().before().agg; }

  // The back stack goes over to the front stack, youngest first: its aggregates now start at their slot and end at B.
  void turn() {
    Tear<M> tear(torn_);
    Place p = E().prev();
    Partial sum = p->agg = p->val;
    for (; p != F(); p->agg = sum) {  // kept in hand: read back from its slot, it would wait for the store
      --p;
      sum = monoid_.combine(p->val, sum);
    }
    B_ = E();
    tear.mend();
  }

  M monoid_;
  ChunkedQueue<Slot> deque_;
  Place B_;
  bool torn_ = false;
};

}  // namespace sash
