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

  explicit DabaLite(M monoid) : monoid_(std::move(monoid)), aggRA_(monoid_.identity()), aggB_(monoid_.identity()) { gather(); }

  void insert(Partial v) {
    Partial aggB = monoid_.combine(aggB_, v);
    deque_.push_back(std::move(v));
    Rollback undo(monoid_, [this] { deque_.pop_back(); });
    fixup(F(), std::move(aggB));
    undo.done();
  }

  void evict() {
    fixup(F().next(), aggB_);
    deque_.pop_front();
  }

  Partial query() const { return monoid_.combine(piF(), aggB_); }

  std::size_t size() const { return deque_.size(); }
  bool torn() const { return false; }

  void clear() {
    deque_.clear();
    gather();
  }

  template <class Archive>
  void archive(Archive& ar) {
    deque_.archive(ar, monoid_.identity());
    for (Place* p : {&L_, &R_, &A_, &B_}) deque_.archive_place(ar, *p);
    ar.partial(aggRA_);
    ar.partial(aggB_);
  }

  // Verifies I1 to I7; `same` compares two partials. I2 to I6 need the values of the window, oldest first.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    auto l = index(L_), r = index(R_), a = index(A_), b = index(B_), e = deque_.size();
    require(l <= r && r <= a && a <= b && b <= e, "I1: the pointers are out of order: L ", l, ", R ", r, ", A ", a, ", B ", b, ", E ", e);
    require(e == 0 || (b - l + 1 + (e - b) == b && r - l == a - r), "I7: sizes: L ", l, ", R ", r, ", A ", a, ", B ", b, ", E ", e);
    if (values.empty()) return;
    require(values.size() == e, "I1: the window holds ", e, " slots for ", values.size(), " values");
    auto fold = [&](std::size_t from, std::size_t to) {
      Partial sum = monoid_.identity();
      for (; from < to; ++from) sum = monoid_.combine(sum, values[from]);
      return sum;
    };
    std::size_t i = 0;
    for (Place p = F(); p != E(); ++p, ++i) {
      if (i < l)
        require(same(*p, fold(i, b)), "I2: slot ", i, " is not the combination of its value up to B (", b, ")");
      else if (i < r)
        require(same(*p, fold(i, r)), "I3: slot ", i, " is not the combination of its value up to R (", r, ")");
      else if (i < a || i >= b)
        require(same(*p, values[i]), "I4: slot ", i, " is not its own value");
      else
        require(same(*p, fold(i, b)), "I5: slot ", i, " is not the combination of its value up to B (", b, ")");
    }
    require(same(aggB_, fold(b, e)), "I6: aggB is not the combination from B (", b, ") to the end");
    require(l == r || same(aggRA_, fold(r, b)), "I6: aggRA is not the combination from R (", r, ") to B (", b, ")");
  }

 private:
  using Place = typename ChunkedQueue<Partial>::iterator;

  std::size_t index(Place p) const { return deque_.index_of(p); }

  Place F() const { return deque_.begin(); }
  Place E() const { return deque_.end(); }

  Partial piF() const { return F() == B_ ? monoid_.identity() : *F(); }

  // All pointers at the end: every slot, at most one, is ready to leave.
  void gather() {
    L_ = R_ = A_ = B_ = E();
    aggRA_ = monoid_.identity();
    aggB_ = monoid_.identity();
  }

  // One step of incremental reversal, for a window that starts at F and whose back list combines to aggB.
  // Combines first, assigns after: a combine that throws has changed nothing.
  void fixup(Place F, Partial aggB) {
    if (F == B_) return gather();  // singleton
    bool flip = L_ == B_;          // the outer lists become the inner ones
    Place L = flip ? F : L_;
    Place A = flip ? E() : A_;
    Place B = flip ? E() : B_;
    if (L == R_) {  // shift
      ++A, ++R_, ++L;
      if (flip) aggRA_ = std::exchange(aggB, monoid_.identity());
    } else {  // shrink
      Place last = A.prev();
      Partial toB = monoid_.combine(*L, flip ? aggB : aggRA_);
      if (A != B) *last = monoid_.combine(*last, *A);
      *L = std::move(toB);
      if (flip) aggRA_ = std::exchange(aggB, monoid_.identity());
      ++L;
      A = last;
    }
    L_ = L, A_ = A, B_ = B;
    aggB_ = std::move(aggB);
  }

  M monoid_;
  ChunkedQueue<Partial> deque_;
  Place L_, R_, A_, B_;
  Partial aggRA_, aggB_;
};

}  // namespace sash
