// DABA Lite
//
//   paper      daba-2021, section 6
//   ordering   in order
//   needs      a monoid; neither inverse nor commutativity
//   time       insert at most 3 combines (2 on average), evict at most 2 (1 on average), query 1; all worst case
//   space      n + 2 partials
//
//       F          L       R       A       B         E
//       | dark blue | blue  | green | blue  | green   |
//       | to B      | to R  | items | to B  | items   |    aggRA = R to B, if L != R;  aggB = B to E
//
//   I1  F <= L <= R <= A <= B <= E
//   I2  a slot in [F, L) holds the combination from it up to B
//   I3  a slot in [L, R) holds the combination from it up to R
//   I4  a slot in [R, A) and in [B, E) holds its own value
//   I5  a slot in [A, B) holds the combination from it up to B
//   I6  aggB is the combination of [B, E); where L != R, aggRA is that of [R, B)
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
class DabaLite {
 public:
  using Partial = typename M::Partial;

  explicit DabaLite(M monoid) : monoid_(std::move(monoid)), aggRA_(monoid_.identity()), aggB_(monoid_.identity()) { gather(aggB_); }
  DabaLite(DabaLite&&) = default;
  DabaLite& operator=(DabaLite&&) = default;  // and no copy: the places would point into the other's slots

  void insert(Partial v) {
    deque_.push_back(v);
    // Copied whole just after its fields were stored, a partial of several words makes the processor wait for the stores: in place,
    // max runs at 130 million rounds/s and not at 75, geomean at 65 and not 56; a sum, of one word, at 148 and not at 166.
    if constexpr (!may_throw<M> && sizeof(Partial) > sizeof(void*)) {
      aggB_ = monoid_.combine(aggB_, v);
      return fixup(aggB_, false);
    }
    Rollback undo(monoid_, [this] { deque_.pop_back(); });
    Partial aggB = monoid_.combine(aggB_, v);
    fixup(aggB, false);
    undo.done();
    aggB_ = std::move(aggB);
  }

  void evict() {
    fixup(aggB_, true);
    deque_.pop_front();
  }

  Partial query() const { return monoid_.combine(piF(), aggB_); }

  std::size_t size() const { return deque_.size(); }
  bool torn() const { return false; }

  void clear() {
    deque_.clear();
    gather(aggB_);
  }

  template <class Archive>
  void archive(Archive& ar) {
    deque_.archive(ar, monoid_.identity());
    for (Place* p : {&L_, &R_, &A_, &B_}) deque_.archive_place(ar, *p);
    ar.partial(aggRA_);
    ar.partial(aggB_);
    if constexpr (Archive::loading) require_sound([this] { check_places(); });
  }

  // Verifies I1 to I7 against the values of the window, oldest first, or if there are none, what can be seen
  // without them; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    check_places();
    auto l = index(L_), r = index(R_), a = index(A_), b = index(B_), e = size();
    if (values.empty()) return;
    require(values.size() == e, "I1: the window holds ", e, " slots for ", values.size(), " values");
    auto toR = suffixes(monoid_, values, r), toB = suffixes(monoid_, values, b);
    std::size_t i = 0;
    for (Place p = F(); p != E(); ++p, ++i) {
      if (i < l)
        require(same(*p, toB[i]), "I2: slot ", i, " is not the combination of its value up to B (", b, ")");
      else if (i < r)
        require(same(*p, toR[i]), "I3: slot ", i, " is not the combination of its value up to R (", r, ")");
      else if (i < a || i >= b)
        require(same(*p, values[i]), "I4: slot ", i, " is not its own value");
      else
        require(same(*p, toB[i]), "I5: slot ", i, " is not the combination of its value up to B (", b, ")");
    }
    require(same(aggB_, fold(monoid_, values, b, e)), "I6: aggB is not the combination from B (", b, ") to the end");
    require(l == r || same(aggRA_, toB[r]), "I6: aggRA is not the combination from R (", r, ") to B (", b, ")");
  }

 private:
  using Place = typename ChunkedQueue<Partial>::iterator;

  Place F() const { return deque_.begin(); }
  Place E() const { return deque_.end(); }
  Partial piF() const { return F() == B_ ? monoid_.identity() : *F(); }

  // All places at the end: every slot, at most one, is ready to leave.
  void gather(Partial& aggB) {
    L_ = R_ = A_ = B_ = E();
    aggRA_ = monoid_.identity();
    aggB = monoid_.identity();
  }

  // One step of incremental reversal, after a value was pushed or, if `leaving`, before the oldest is popped; aggB
  // is the combination of the back list by then. Combines come first, so that one that throws has changed nothing.
  void fixup(Partial& aggB, bool leaving) {
    if (size() == 1)
      gather(aggB);  // singleton
    else if (L_ == B_)
      flip(aggB, leaving);
    else if (L_ == R_)
      ++A_, ++R_, ++L_;  // shift
    else
      shrink(L_, A_, A_ != B_, aggRA_);
  }

  // The outer lists become the inner ones, which then shrink.
  void flip(Partial& aggB, bool leaving) {
    Place L = leaving ? F().next() : F(), A = E();
    shrink(L, A, false, aggB);
    L_ = L, A_ = A, B_ = E();
    aggRA_ = std::exchange(aggB, monoid_.identity());
  }

  // L and A come one place closer to R, and the slots they pass are combined up to B.
  void shrink(Place& L, Place& A, bool after_A, const Partial& aggRA) {
    Partial toB = monoid_.combine(*L, aggRA);
    if (after_A) A.before() = monoid_.combine(A.before(), *A);
    *L = std::move(toB);
    ++L, --A;
  }

  std::size_t index(Place p) const { return deque_.index_of(p); }

  void check_places() const {
    auto l = index(L_), r = index(R_), a = index(A_), b = index(B_), e = size();
    require(l <= r && r <= a && a <= b && b <= e, "I1: the places are out of order: L ", l, ", R ", r, ", A ", a, ", B ", b, ", E ", e);
    require(e == 0 || (b - l + 1 + (e - b) == b && r - l == a - r), "I7: sizes: L ", l, ", R ", r, ", A ", a, ", B ", b, ", E ", e);
  }

  M monoid_;
  ChunkedQueue<Partial> deque_;
  Place L_, R_, A_, B_;
  Partial aggRA_, aggB_;
};

}  // namespace sash
