// Monotonic deque
//
//   paper      SlickDeque: Shein, Chrysanthis, Labrinidis, EDBT 2018 (named in daba-2021, section 8)
//   ordering   in order
//   needs      a selective monoid: combine returns one of its arguments
//   time       insert amortised 2 choices, at worst as many as there are candidates; evict and query none
//   space      at most n partials and n counts; far fewer where old items lose against young ones
//
//       items       3 1 4 1 5 2 2 0      max
//       candidates  5 2 2 0              the front is the answer; a newcomer removes from the back all that it replaces
//       stands for  5 1 1 1              itself and the items it replaced, for size and eviction
//
//   I1  each candidate is kept against the one behind it
//   I2  each candidate stands for one item or more; together they stand for size() items
//   I3  the candidates are the items that every later item loses against

#pragma once

#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../chunked_queue.hpp"
#include "../monoid.hpp"

namespace sash {

template <Selective M>
class MonotonicDeque {
 public:
  using Partial = typename M::Partial;

  explicit MonotonicDeque(M monoid) : monoid_(std::move(monoid)) {}

  // All choices come before the first removal, so that one that throws has changed nothing.
  void insert(Partial v) {
    std::int64_t stands_for = 1;
    std::size_t replaced = 0;
    for (Place p = candidates_.end(); p != candidates_.begin() && !monoid_.keeps_left(p.before().partial, v); --p) {
      stands_for += p.before().stands_for;
      ++replaced;
    }
    for (; replaced > 0; --replaced) candidates_.pop_back();
    candidates_.push_back({std::move(v), stands_for});
    ++size_;
  }

  void evict() {
    if (--candidates_.front().stands_for == 0) candidates_.pop_front();
    --size_;
  }

  Partial query() const { return size_ ? candidates_.front().partial : monoid_.identity(); }

  std::size_t size() const { return size_; }
  bool torn() const { return false; }

  void clear() {
    candidates_.clear();
    size_ = 0;
  }

  template <class Archive>
  void archive(Archive& ar) {
    candidates_.archive_each(ar, {monoid_.identity(), 0}, [&ar](Candidate& c) { ar.partial(c.partial), ar.number(c.stands_for); });
    if constexpr (Archive::loading) {
      size_ = 0;
      for (Place p = candidates_.begin(); p != candidates_.end(); ++p) size_ += static_cast<std::size_t>(p->stands_for);
      require_sound([this] { check_counts(); });
    }
  }

  // Verifies I1 and I2, and I3 if the values of the window are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    check_counts();
    std::size_t i = 0;
    for (Place p = candidates_.begin(), next; p != candidates_.end(); p = next, ++i) {
      next = p.next();
      require(next == candidates_.end() || monoid_.keeps_left(p->partial, next->partial), "I1: candidate ", i,
              " loses against the next one");
    }
    if (values.empty()) return;
    require(values.size() == size_, "I2: the window holds ", size_, " items for ", values.size(), " values");
    Partial best = monoid_.identity();  // of the items behind the one looked at
    Place p = candidates_.end();
    std::int64_t ahead = 0;  // how many items the candidate in hand still stands for
    for (i = size_; i-- > 0; --ahead) {
      bool candidate = i + 1 == size_ || monoid_.keeps_left(values[i], best);
      require(candidate == (ahead == 0), "I3: item ", i, candidate ? " is no candidate" : " is a candidate, but a later item replaces it");
      if (!candidate) continue;
      --p;
      ahead = p->stands_for;
      require(same(p->partial, values[i]), "I3: the candidate for item ", i, " is not its value");
      best = values[i];
    }
  }

 private:
  struct Candidate {
    Partial partial;
    std::int64_t stands_for;
  };
  using Place = typename ChunkedQueue<Candidate>::iterator;

  void check_counts() const {
    std::size_t total = 0, i = 0;
    for (Place p = candidates_.begin(); p != candidates_.end(); ++p, ++i) {
      require(p->stands_for > 0, "I2: candidate ", i, " stands for ", p->stands_for, " items");
      total += static_cast<std::size_t>(p->stands_for);
    }
    require(total == size_, "I2: the candidates stand for ", total, " items, the window has ", size_);
  }

  M monoid_;
  ChunkedQueue<Candidate> candidates_;
  std::size_t size_ = 0;
};

}  // namespace sash
