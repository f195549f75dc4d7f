// Recalc
//
//   paper      tutorial-2017, section 3 (recalculate from scratch)
//   ordering   in order
//   needs      nothing, not even associativity: items are folded from the oldest to the youngest
//   time       insert and evict no combine; query n - 1
//   space      n partials
//
//       | v0 | v1 | v2 | v3 |      query = ((v0 v1) v2) v3
//
//   I1  slots_ holds the partial of each item, oldest first

#pragma once

#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../chunked_queue.hpp"
#include "../monoid.hpp"

namespace sash {

template <Monoid M>
class Recalc {
 public:
  using Partial = typename M::Partial;

  explicit Recalc(M monoid) : monoid_(std::move(monoid)) {}

  void insert(Partial v) { slots_.push_back(std::move(v)); }
  void evict() { slots_.pop_front(); }
  Partial query() const { return fold(slots_.begin(), slots_.end()); }

  // Positions count from the oldest, both ends included.
  Partial query(std::size_t first, std::size_t last) const {
    auto from = slots_.begin();
    for (std::size_t i = 0; i < first; ++i) ++from;
    auto to = from;
    for (std::size_t i = first; i <= last; ++i) ++to;
    return fold(from, to);
  }

  std::size_t size() const { return slots_.size(); }
  void clear() { slots_.clear(); }
  bool torn() const { return false; }

  // Verifies I1, if the values of the window are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    require(values.empty() || values.size() == size(), "I1: the window holds ", size(), " slots for ", values.size(), " values");
    std::size_t i = 0;
    for_each([&](const Partial& v) {
      require(values.empty() || same(v, values[i]), "I1: slot ", i, " is not its own value");
      ++i;
    });
    require(i == size(), "I1: the slots hold ", i, " items of ", size());
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (auto i = slots_.begin(); i != slots_.end(); ++i) visit(*i);
  }

  template <class Archive>
  void archive(Archive& ar) {
    slots_.archive(ar, monoid_.identity());
  }

 private:
  using Place = typename ChunkedQueue<Partial>::iterator;

  Partial fold(Place from, Place to) const {
    if (from == to) return monoid_.identity();
    Partial sum = *from;
    while (++from != to) sum = monoid_.combine(sum, *from);
    return sum;
  }

  M monoid_;
  ChunkedQueue<Partial> slots_;
};

}  // namespace sash
