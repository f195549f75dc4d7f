// Whole arrays of numbers in order of size: quantiles, the k largest, how many are different
//
// All values are known beforehand, so nothing needs to be kept sorted. The array is taken in stretches of a few window
// lengths. The items of a stretch are sorted once, each then has a rank, and the window is a set of bits, one per rank:
// it enters and leaves in constant time, and the item asked for is found by walking from the last one.
//
//      ranks      0 1 1 0 1 0 0 1 1 0 1 1 0 ...      the window: bits of the items that are in it
//                           ^ place, `before` bits to the left
//
//   I1  before is the number of bits that are set to the left of place
//   I2  blocks[b] is the number of bits that are set in words 64 b .. 64 b + 63

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "../ranks.hpp"
#include "slide.hpp"

namespace sash {

class RankSet {
 public:
  void reset(std::size_t ranks) {
    words_.assign(ranks / 64 + 1, 0);
    blocks_.assign(words_.size() / 64 + 1, 0);
    size_ = place_ = before_ = 0;
  }
  void insert(std::size_t r) {
    words_[r / 64] |= std::uint64_t{1} << r % 64;
    ++blocks_[r / 4096];
    ++size_;
    before_ += r < place_;
  }
  void erase(std::size_t r) {
    words_[r / 64] &= ~(std::uint64_t{1} << r % 64);
    --blocks_[r / 4096];
    --size_;
    before_ -= r < place_;
  }
  std::size_t size() const { return size_; }

  // The rank of the item with exactly i smaller ones in the set.
  std::size_t select(std::size_t i) {
    std::size_t w = place_ / 64;
    if (i >= before_) {
      std::size_t left = i - before_;  // bits to skip, from place on
      std::uint64_t word = words_[w] & (~std::uint64_t{0} << place_ % 64);
      for (std::size_t bits; left >= (bits = ones(word)); word = words_[w]) {
        left -= bits;
        ++w;
        if (w % 64 == 0)  // whole blocks at once
          while (left >= blocks_[w / 64]) left -= blocks_[w / 64], w += 64;
      }
      for (; left > 0; --left) word &= word - 1;
      place_ = w * 64 + static_cast<std::size_t>(std::countr_zero(word));
    } else {
      std::size_t left = before_ - i - 1;  // bits to skip, down from place
      std::uint64_t word = words_[w] & ~(~std::uint64_t{0} << place_ % 64);
      for (std::size_t bits; left >= (bits = ones(word)); word = words_[w]) {
        left -= bits;
        if (w % 64 == 0)
          while (left >= blocks_[w / 64 - 1]) left -= blocks_[w / 64 - 1], w -= 64;
        --w;
      }
      for (; left > 0; --left) word &= ~(std::uint64_t{1} << (63 - std::countl_zero(word)));
      place_ = w * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word));
    }
    before_ = i;
    return place_;
  }

  // The next rank in the set after this one; there must be one.
  std::size_t next(std::size_t r) const {
    std::size_t w = r / 64;
    std::uint64_t word = words_[w] & (~std::uint64_t{1} << r % 64);
    while (!word) {
      ++w;
      if (w % 64 == 0)
        while (!blocks_[w / 64]) w += 64;
      word = words_[w];
    }
    return w * 64 + static_cast<std::size_t>(std::countr_zero(word));
  }

 private:
  static std::size_t ones(std::uint64_t word) { return static_cast<std::size_t>(std::popcount(word)); }
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> blocks_;
  std::size_t size_ = 0, place_ = 0, before_ = 0;
};

// The ranks of a stretch of items; equal ones rank by age, nulls have none.
template <class T>
class Ranks {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  void of(const T* values, const std::uint8_t* nulls, std::size_t n) {
    keys_.resize(n);
    order_.clear();
    std::uint64_t low = UINT64_MAX, high = 0;
    for (std::size_t i = 0; i < n; ++i) {
      keys_[i] = rank_key(values[i]);
      if (nulls && nulls[i]) continue;
      low = std::min(low, keys_[i]);
      high = std::max(high, keys_[i]);
      order_.push_back({0, static_cast<std::uint32_t>(i)});
    }
    sort(low, high);
    ranks_.assign(nulls ? n : 0, none);
    ranks_.resize(n);
    sorted_.resize(order_.size());
    for (std::size_t r = 0; r < order_.size(); ++r) {
      ranks_[order_[r].item] = static_cast<std::uint32_t>(r);
      sorted_[r] = from_rank_key<T>(keys_[order_[r].item]);
    }
  }
  // Numbers the different values instead: equal ones have one rank.
  void group() {
    std::uint32_t id = 0;
    for (std::size_t r = 0; r < order_.size(); ++r) {
      if (r > 0 && keys_[order_[r].item] != keys_[order_[r - 1].item]) ++id;
      ranks_[order_[r].item] = id;
    }
  }
  std::uint32_t operator[](std::size_t i) const { return ranks_[i]; }
  T value(std::size_t rank) const { return sorted_[rank]; }
  std::size_t size() const { return order_.size(); }

 private:
  struct Entry {
    std::uint32_t head;
    std::uint32_t item;
  };

  // By the 32 leading bits in which the keys differ, four bytes at a time; then what agrees in those by the whole key.
  void sort(std::uint64_t low, std::uint64_t high) {
    if (order_.empty()) return;
    int spare = std::bit_width(high - low) - 32;
    int shift = spare > 0 ? spare : 0;
    for (Entry& e : order_) e.head = static_cast<std::uint32_t>((keys_[e.item] - low) >> shift);
    std::vector<Entry>& other = spare_;
    other.resize(order_.size());
    std::uint32_t counts[4][256] = {};
    for (const Entry& e : order_)
      for (int d = 0; d < 4; ++d) ++counts[d][e.head >> 8 * d & 255];
    for (int d = 0; d < 4; ++d) {
      if (counts[d][order_[0].head >> 8 * d & 255] == order_.size()) continue;
      std::uint32_t at = 0;
      for (std::uint32_t& count : counts[d]) at += std::exchange(count, at);
      for (const Entry& e : order_) other[counts[d][e.head >> 8 * d & 255]++] = e;
      order_.swap(other);
    }
    if (shift == 0) return;
    for (std::size_t i = 0; i + 1 < order_.size(); ++i) {
      if (order_[i].head != order_[i + 1].head) continue;
      std::size_t end = i + 2;
      while (end < order_.size() && order_[end].head == order_[i].head) ++end;
      std::sort(
          order_.begin() + static_cast<std::ptrdiff_t>(i), order_.begin() + static_cast<std::ptrdiff_t>(end),
          [&](const Entry& a, const Entry& b) { return keys_[a.item] != keys_[b.item] ? keys_[a.item] < keys_[b.item] : a.item < b.item; });
      i = end - 1;
    }
  }

  std::vector<std::uint64_t> keys_;
  std::vector<Entry> order_, spare_;
  std::vector<std::uint32_t> ranks_;
  std::vector<T> sorted_;
};

// Windows by count, with the interface of TimeSpan.
class CountSpan {
 public:
  explicit CountSpan(std::size_t size) : size_(size) {}
  std::size_t reach(std::size_t i, std::size_t) const { return i + 1; }
  std::size_t leave(std::size_t i, std::size_t, std::size_t) const { return i + 1 > size_ ? i + 1 - size_ : 0; }

 private:
  std::size_t size_;
};

// Runs over results [from, to) of a segment. A stretch begins with begin(first, last): all its items; then come enter(item),
// leave(item) and emit(result).
template <class Span, class Begin, class Enter, class Leave, class Emit>
void slide_stretches(const Span& span, std::size_t from, std::size_t to, Begin begin, Enter enter, Leave leave, Emit emit) {
  constexpr std::size_t shortest = 2048;
  std::size_t lo = 0, hi = 0;
  for (std::size_t i = from; i < to;) {
    hi = span.reach(i, hi);
    lo = span.leave(i, lo, hi);
    // Four windows long: the overlap costs a third more sorting, and the bits stay in the fastest cache.
    std::size_t limit = lo + std::max(4 * (hi - lo), shortest), stop = i + 1, first = lo, last = hi;
    for (std::size_t l = lo, h = hi; stop < to; ++stop) {
      h = span.reach(stop, h);
      l = span.leave(stop, l, h);
      if (h > limit) break;
      last = h;
    }
    begin(first, last);
    for (std::size_t k = lo; k < hi; ++k) enter(k);
    emit(i);
    for (++i; i < stop; ++i) {
      for (std::size_t h = span.reach(i, hi); hi < h; ++hi) enter(hi);
      for (std::size_t l = span.leave(i, lo, hi); lo < l; ++lo) leave(lo);
      emit(i);
    }
  }
}

}  // namespace sash
