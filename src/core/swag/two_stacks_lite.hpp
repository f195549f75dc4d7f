// Two-Stacks Lite
//
//   paper      daba-2021, section 4 (after Hammer Slide, 2018)
//   ordering   in order
//   needs      a monoid; neither inverse nor commutativity
//   time       insert and query 1 combine; evict 1 amortised, n - 1 at a turn
//   space      n + 1 partials
//
//       F                       B              E
//       | v0 v1 v2 | v1 v2 | v2 | v3 | v4 | v5 |    aggB = v3 v4 v5
//       '-- up to B, ready to leave --'-- as they came
//
//   I1  F <= B <= E
//   I2  a slot in [F, B) holds the combination from it up to B
//   I3  a slot in [B, E) holds its own value
//   I4  aggB is the combination of [B, E)

#pragma once

#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../chunked_queue.hpp"
#include "../monoid.hpp"

namespace sash {

template <Monoid M>
class TwoStacksLite {
 public:
  using Partial = typename M::Partial;

  explicit TwoStacksLite(M monoid) : monoid_(std::move(monoid)), B_(deque_.end()), aggB_(monoid_.identity()) {}
  TwoStacksLite(TwoStacksLite&&) = default;
  TwoStacksLite& operator=(TwoStacksLite&&) = default;  // and no copy: B_ would point into the other's slots

  void insert(Partial v) {
    deque_.push_back(v);
    Rollback undo(monoid_, [this] { deque_.pop_back(); });
    aggB_ = monoid_.combine(aggB_, v);
    undo.done();
  }

  void evict() {
    if (F() == B_) turn();
    deque_.pop_front();
  }

  Partial query() const { return monoid_.combine(F() == B_ ? monoid_.identity() : *F(), aggB_); }

  std::size_t size() const { return deque_.size(); }
  bool torn() const { return torn_; }

  void clear() {
    deque_.clear();
    B_ = E();
    aggB_ = monoid_.identity();
    torn_ = false;
  }

  template <class Archive>
  void archive(Archive& ar) {
    deque_.archive(ar, monoid_.identity());
    deque_.archive_place(ar, B_);
    ar.partial(aggB_);
  }

  // Verifies I1 to I4 against the values of the window, oldest first, or if there are none, what can be seen
  // without them; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    auto b = deque_.index_of(B_), e = size();
    require(b <= e, "I1: B (", b, ") lies behind the end (", e, ")");
    Partial aggB = monoid_.identity();
    for (Place p = B_; p != E(); ++p) aggB = monoid_.combine(aggB, *p);
    require(same(aggB_, aggB), "I4: aggB is not the combination from B (", b, ") to the end");
    if (values.empty()) return;
    require(values.size() == e, "I1: the window holds ", e, " slots for ", values.size(), " values");
    auto toB = suffixes(monoid_, values, b);
    std::size_t i = 0;
    for (Place p = F(); p != E(); ++p, ++i) {
      if (i < b)
        require(same(*p, toB[i]), "I2: slot ", i, " is not the combination of its value up to B (", b, ")");
      else
        require(same(*p, values[i]), "I3: slot ", i, " is not its own value");
    }
  }

 private:
  using Place = typename ChunkedQueue<Partial>::iterator;

  Place F() const { return deque_.begin(); }
  Place E() const { return deque_.end(); }

  // Youngest to oldest, each slot takes in the one after it; then all of them are ready to leave.
  void turn() {
    Tear<M> tear(torn_);
    Place p = E().prev();
    for (Partial sum = *p; p != F(); *p = sum) {  // kept in hand: read back from its slot, it would wait for the store
      --p;
      sum = monoid_.combine(*p, sum);
    }
    B_ = E();
    aggB_ = monoid_.identity();
    tear.mend();
  }

  M monoid_;
  ChunkedQueue<Partial> deque_;
  Place B_;
  Partial aggB_;
  bool torn_ = false;
};

}  // namespace sash
