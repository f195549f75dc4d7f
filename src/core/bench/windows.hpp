// Windows that only benchmarks need: what the contenders of an experiment differ in
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../monoid.hpp"

namespace sash::bench {

// The papers' expensive aggregation: a Bloom filter of 4,096 bits, two of them set per item.
struct Bloom {
  using Input = double;
  using Partial = std::array<std::uint64_t, 64>;
  static constexpr bool commutative = true;

  Partial identity() const { return {}; }
  Partial lift(Input x, Time) const {
    Partial bits{};
    auto hash = static_cast<std::uint64_t>(x) * 0x9e3779b97f4a7c15;
    for (unsigned shift : {52, 40}) bits[hash >> shift >> 6 & 63] |= std::uint64_t{1} << (hash >> shift & 63);
    return bits;
  }
  Partial combine(const Partial& a, const Partial& b) const {
    Partial bits;
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = a[i] | b[i];
    return bits;
  }
};

// The loop every in-order figure is also given as a ratio to: a ring buffer and a running sum.
template <class M>
class PlainRing {
 public:
  using Partial = typename M::Partial;
  explicit PlainRing(M monoid, std::size_t capacity) : monoid_(monoid), ring_(capacity + 1, monoid.identity()), sum_(monoid.identity()) {}
  void insert(Partial v) {
    sum_ = monoid_.combine(sum_, v);
    ring_[tail_] = v;
    if (++tail_ == ring_.size()) tail_ = 0;
    ++size_;
  }
  void evict() {
    sum_ = monoid_.inverse(sum_, ring_[head_]);
    if (++head_ == ring_.size()) head_ = 0;
    --size_;
  }
  Partial query() const { return sum_; }
  std::size_t size() const { return size_; }

 private:
  M monoid_;
  std::vector<Partial> ring_;
  Partial sum_;
  std::size_t head_ = 0, tail_ = 0, size_ = 0;
};

// In order on an out-of-order algorithm: the times count up.
template <class Window>
class Stamped {
 public:
  using Partial = typename Window::Partial;
  explicit Stamped(Window window) : window_(std::move(window)) {}
  void insert(Partial v) { window_.insert(next_++, std::move(v)); }
  void evict() { window_.evict(); }
  Partial query() const { return window_.query(); }
  std::size_t size() const { return window_.size(); }

 private:
  Window window_;
  Time next_ = 0;
};

// Bulk operations as loops over single ones: what an algorithm without them does.
template <class Window>
class Singly {
 public:
  using Partial = typename Window::Partial;
  explicit Singly(Window window) : window_(std::move(window)) {}
  void insert(Time t, Partial v) { window_.insert(t, std::move(v)); }
  void evict() { window_.evict(); }
  void bulk_evict(Time t) {
    while (window_.size() > 0 && window_.oldest() <= t) window_.evict();
  }
  void bulk_insert(std::span<const Time> times, std::span<const Partial> partials) {
    for (std::size_t i = 0; i < times.size(); ++i) window_.insert(times[i], partials[i]);
  }
  Partial query() const { return window_.query(); }
  std::size_t size() const { return window_.size(); }
  Time oldest() const { return window_.oldest(); }

 private:
  Window window_;
};

// A bulk eviction that takes what it evicted apart at once: without the deferred free list.
template <class Window>
class Eager : public Window {
 public:
  using Window::Window;
  void bulk_evict(Time t) {
    Window::bulk_evict(t);
    Window::trim();
  }
};

// One accumulator per window that is open, as Flink's and Spark's own windows have it: an item goes into each of them.
template <class M>
class Buckets {
 public:
  using Partial = typename M::Partial;
  Buckets(M monoid, std::size_t n, std::size_t grain) : monoid_(monoid), open_(n / grain, monoid.identity()), grain_(grain) {}
  void insert(const Partial& v) {
    for (Partial& window : open_) window = monoid_.combine(window, v);
  }
  // The window that is full: it becomes the youngest, without items.
  Partial close() {
    Partial whole = std::exchange(open_[oldest_], monoid_.identity());
    if (++oldest_ == open_.size()) oldest_ = 0;
    return whole;
  }

 private:
  M monoid_;
  std::vector<Partial> open_;
  std::size_t grain_, oldest_ = 0;
};

}  // namespace sash::bench
