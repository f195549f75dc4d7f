// DABA
//
//   paper      daba-2021, section 5
//   ordering   in order
//   needs      a monoid; neither inverse nor commutativity
//   time       insert at most 4 combines (2.5 on average), evict at most 3 (1.5 on average), query 1; all worst case
//   space      2n partials
//
//            F          L       R        A       B          E
//       agg  | dark blue | blue  | green  | blue  | green    |
//            | to B      | to R  | from R | to B  | from B   |    val: the item, everywhere
//
//   I1  F <= L <= R <= A <= B <= E
//   I2  val is the slot's own value
//   I3  agg in [F, L) and in [A, B) is the combination from the slot up to B
//   I4  agg in [L, R) is the combination from the slot up to R
//   I5  agg in [R, A) is the combination from R through the slot
//   I6  agg in [B, E) is the combination from B through the slot
//   I7  the window is empty, or |L..R| + |R..A| + |A..B| + 1 = |F..B| - |B..E| and |L..R| = |R..A|

#pragma once

#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../chunked_queue.hpp"
#include "../monoid.hpp"

namespace sash {

template <Monoid M>
class Daba {
 public:
  using Partial = typename M::Partial;

  explicit Daba(M monoid) : monoid_(std::move(monoid)) { gather(); }
  Daba(Daba&&) = default;
  Daba& operator=(Daba&&) = default;  // and no copy: the places would point into the other's slots

  void insert(Partial v) {
    Partial agg = monoid_.combine(piB(), v);
    deque_.push_back({std::move(v), std::move(agg)});
    Rollback undo(monoid_, [this] { deque_.pop_back(); });
    fixup(false);
    undo.done();
  }

  void evict() {
    fixup(true);
    deque_.pop_front();
  }

  Partial query() const { return monoid_.combine(piF(), piB()); }

  std::size_t size() const { return deque_.size(); }
  bool torn() const { return false; }

  void clear() {
    deque_.clear();
    gather();
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (Place p = F(); p != E(); ++p) visit(p->val);
  }

  template <class Archive>
  void archive(Archive& ar) {
    deque_.archive_each(ar, {monoid_.identity(), monoid_.identity()}, [&ar](Slot& s) { ar.partial(s.val), ar.partial(s.agg); });
    for (Place* p : {&L_, &R_, &A_, &B_}) deque_.archive_place(ar, *p);
    if constexpr (Archive::loading) require_sound([this] { check_places(); });
  }

  // Verifies I1 to I7, I2 if the values of the window are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    check_places();
    auto l = index(L_), r = index(R_), a = index(A_), b = index(B_), e = size();
    require(values.empty() || values.size() == e, "I1: the window holds ", e, " slots for ", values.size(), " values");
    std::vector<Partial> own;
    for_each([&own](const Partial& v) { own.push_back(v); });
    auto toR = suffixes(monoid_, own, r), toB = suffixes(monoid_, own, b);
    Partial from = monoid_.identity();
    std::size_t i = 0;
    for (Place p = F(); p != E(); ++p, ++i) {
      require(values.empty() || same(p->val, values[i]), "I2: slot ", i, " does not hold its own value");
      if (i == r || i == b) from = monoid_.identity();
      from = monoid_.combine(from, p->val);
      if (i < l || (a <= i && i < b))
        require(same(p->agg, toB[i]), "I3: slot ", i, " is not the combination of its value up to B (", b, ")");
      else if (i < r)
        require(same(p->agg, toR[i]), "I4: slot ", i, " is not the combination of its value up to R (", r, ")");
      else if (i < a)
        require(same(p->agg, from), "I5: slot ", i, " is not the combination from R (", r, ") through its value");
      else
        require(same(p->agg, from), "I6: slot ", i, " is not the combination from B (", b, ") through its value");
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

  // All places at the end: every slot, at most one, is ready to leave.
  void gather() { L_ = R_ = A_ = B_ = E(); }

  // One step of incremental reversal, after a value was pushed or, if `leaving`, before the oldest is popped.
  // Combines come first, so that one that throws has changed nothing.
  void fixup(bool leaving) {
    if (size() == 1)
      gather();  // singleton
    else if (L_ == B_)
      flip(leaving);
    else if (L_ == R_)
      ++A_, ++R_, ++L_;  // shift
    else
      shrink(L_, A_, A_ != B_);
  }

  // The outer lists become the inner ones, which then shrink.
  void flip(bool leaving) {
    Place L = leaving ? F().next() : F(), A = E();
    shrink(L, A, false);
    L_ = L, A_ = A, B_ = E();
  }

  // L and A come one place closer to R, and the slots they pass are combined up to B.
  void shrink(Place& L, Place& A, bool after_A) {
    Slot& last = A.before();
    Partial toB = monoid_.combine(L->agg, last.agg);  // L and R
    if (after_A) {
      toB = monoid_.combine(toB, A->agg);
      last.agg = monoid_.combine(last.val, A->agg);
    } else {
      last.agg = last.val;
    }
    L->agg = std::move(toB);
    ++L, --A;
  }

  std::size_t index(Place p) const { return deque_.index_of(p); }

  void check_places() const {
    auto l = index(L_), r = index(R_), a = index(A_), b = index(B_), e = size();
    require(l <= r && r <= a && a <= b && b <= e, "I1: the places are out of order: L ", l, ", R ", r, ", A ", a, ", B ", b, ", E ", e);
    require(e == 0 || (b - l + 1 + (e - b) == b && r - l == a - r), "I7: sizes: L ", l, ", R ", r, ", A ", a, ", B ", b, ", E ", e);
  }

  M monoid_;
  ChunkedQueue<Slot> deque_;
  Place L_, R_, A_, B_;
};

}  // namespace sash
