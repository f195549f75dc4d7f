// The times of an in-order window, beside an algorithm that knows positions only
//
// Two forms with one face. A chunked queue never costs more than a chunk at once, as DABA asks; a ring finds a time in
// O(log n) and forgets any number of them in O(1), for algorithms with ranges or bulk eviction, whose own rings grow
// amortised anyway.

#pragma once

#include <bit>
#include <cstdint>

#include "../chunked_queue.hpp"
#include "../monoid.hpp"
#include "../ring.hpp"

namespace sash {

// Doubles as integers of the same order, so that every structure needs one kind of key only.
inline Time encode_time(double t) {
  auto bits = std::bit_cast<std::int64_t>(t + 0.0);  // -0.0 and 0.0 are one time
  return bits ^ ((bits >> 63) & INT64_MAX);
}
inline double decode_time(Time key) { return std::bit_cast<double>(key ^ ((key >> 63) & INT64_MAX)); }

class ChunkedTimes {
 public:
  void push(Time t) { queue_.push_back(t); }
  void drop(std::size_t n) {
    for (; n > 0; --n) queue_.pop_front();
  }
  void clear() { queue_.clear(); }
  std::size_t size() const { return queue_.size(); }
  Time oldest() const { return queue_.front(); }
  Time youngest() const { return queue_.back(); }

  // How many are at or before t. The oldest are looked at first: most calls are evictions of the few that are due.
  std::size_t count_up_to(Time t) const {
    if (size() == 0 || t >= youngest()) return size();
    std::size_t n = 0;
    for (auto i = queue_.begin(); *i <= t; ++i) ++n;
    return n;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (auto i = queue_.begin(); i != queue_.end(); ++i) visit(*i);
  }

 private:
  ChunkedQueue<Time> queue_;
};

class RingTimes {
 public:
  void push(Time t) { ring_.push_back(t); }
  void drop(std::size_t n) { ring_.drop_before(ring_.begin() + static_cast<Position>(n)); }
  void clear() { ring_.restart(0); }
  std::size_t size() const { return ring_.size(); }
  Time oldest() const { return ring_[ring_.begin()]; }
  Time youngest() const { return ring_[ring_.end() - 1]; }

  std::size_t count_up_to(Time t) const {
    Position low = ring_.begin(), high = ring_.end();
    while (low < high) {
      Position middle = low + (high - low) / 2;
      if (ring_[middle] <= t)
        low = middle + 1;
      else
        high = middle;
    }
    return static_cast<std::size_t>(low - ring_.begin());
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (Position p = ring_.begin(); p < ring_.end(); ++p) visit(ring_[p]);
  }

 private:
  Ring<Time> ring_;
};

}  // namespace sash
