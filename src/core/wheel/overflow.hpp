// The overflow wheel: partials of ticks too far ahead for the write-ahead ring
//
//   paper      uwheel-2024, section 3.3 (a hierarchical timing wheel, after Varghese and Lauck, 1987)
//   needs      a monoid
//   time       insert O(1) amortised, but for the sorting below; an entry moves down at most 10 times; empty time is skipped
//   space      at most twice one entry per tick, and 128 per bucket, in buckets that exist only while they are needed
//
// Ticks are numbers of 6-bit digits. A tick lies at the level of the highest digit in which it differs from the
// cursor, in the bucket of that digit:
//
//   cursor  0 2 5       tick 0 2 9 -> level 0, bucket 9      tick 0 4 1 -> level 1, bucket 4
//
// So all entries of a tick are in one bucket, in order of arrival, and the lowest bucket of the lowest level that has
// any is the earliest. When the cursor enters a bucket above level 0, its entries move down. A bucket that has doubled is
// sorted by tick, and the entries of each tick are combined: many items far ahead take no more room than their ticks.
//
//   I1  every entry is at or after the cursor, at the level and in the bucket that the cursor gives its tick
//   I2  a bit of a level's mask is set where its bucket has entries

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "../check.hpp"
#include "ticks.hpp"

namespace sash {

template <Monoid M>
class OverflowWheel {
 public:
  using Partial = typename M::Partial;

  OverflowWheel(M monoid, Tick cursor) : monoid_(std::move(monoid)), cursor_(key(cursor)) {}

  bool empty() const { return entries_ == 0; }
  std::size_t size() const { return entries_; }

  // A tick at or after the cursor.
  void insert(Tick tick, Partial value) {
    Bucket& bucket = place(key(tick));
    if (bucket.entries.size() >= bucket.limit) gather(bucket);
    bucket.entries.push_back({tick, std::move(value)});
    ++entries_;
  }

  // A tick before which nothing comes out; only where there is an entry.
  Tick quiet_until() const {
    int level = lowest();
    return tick(start(level, std::countr_zero(levels_[level]->mask)));
  }

  // Moves the cursor and takes out, in time order, all entries before it.
  template <class Take>
  void advance(Tick to, Take take) {
    std::uint64_t target = key(to);
    if (entries_ == 0) {
      cursor_ = target;
      return;
    }
    while (entries_ > 0) {
      int level = lowest();
      int bucket = std::countr_zero(levels_[level]->mask);
      std::uint64_t from = start(level, bucket);
      if (from > target || (from == target && level == 0)) break;
      cursor_ = from;
      std::vector<Entry> entries;
      entries.swap(levels_[level]->buckets[bucket].entries);
      levels_[level]->buckets[bucket].limit = least;
      levels_[level]->mask &= levels_[level]->mask - 1;
      entries_ -= entries.size();
      for (Entry& e : entries) {
        if (level == 0)
          take(e.tick, std::move(e.value));
        else
          insert(e.tick, std::move(e.value));
      }
    }
    cursor_ = target;
    if (entries_ == 0) levels_ = {};
  }

  // visit(tick, value); of one tick in order of arrival.
  template <class Visit>
  void for_each(Visit visit) const {
    for (auto& level : levels_)
      if (level)
        for (auto& bucket : level->buckets)
          for (auto& e : bucket.entries) visit(e.tick, e.value);
  }

  void check() const {
    std::size_t entries = 0;
    for (int l = 0; l < depth; ++l) {
      if (!levels_[l]) continue;
      for (int b = 0; b < 64; ++b) {
        auto& bucket = levels_[l]->buckets[b].entries;
        entries += bucket.size();
        require(bucket.empty() == !(levels_[l]->mask >> b & 1), "I2: level ", l, ", bucket ", b);
        for (auto& e : bucket)
          require(key(e.tick) >= cursor_ && level_of(key(e.tick)) == l && digit(key(e.tick), l) == b, "I1: tick ", e.tick, " at level ", l,
                  ", bucket ", b, ", cursor ", tick(cursor_));
      }
    }
    require(entries == entries_, "I2: ", entries_, " entries counted, ", entries, " found");
  }

 private:
  static constexpr int depth = 11;  // 6-bit digits of 64 bits

  struct Entry {
    Tick tick;
    Partial value;
  };
  static constexpr std::size_t least = 128;
  struct Bucket {
    std::vector<Entry> entries;
    std::size_t limit = least;
  };
  struct Level {
    std::uint64_t mask = 0;
    std::array<Bucket, 64> buckets;
  };

  // Ticks as unsigned numbers in the same order.
  static std::uint64_t key(Tick t) { return static_cast<std::uint64_t>(t) ^ (std::uint64_t{1} << 63); }
  static Tick tick(std::uint64_t k) { return static_cast<Tick>(k ^ (std::uint64_t{1} << 63)); }

  static int digit(std::uint64_t k, int level) { return static_cast<int>(k >> 6 * level & 63); }
  int level_of(std::uint64_t k) const { return k == cursor_ ? 0 : (static_cast<int>(std::bit_width(k ^ cursor_)) - 1) / 6; }

  // The first tick of a bucket: the cursor's higher digits, the bucket's, zeros.
  std::uint64_t start(int level, int bucket) const {
    std::uint64_t higher = level + 1 < depth ? cursor_ >> 6 * (level + 1) << 6 * (level + 1) : 0;
    return higher | static_cast<std::uint64_t>(bucket) << 6 * level;
  }

  int lowest() const {
    int level = 0;
    while (!levels_[level] || !levels_[level]->mask) ++level;
    return level;
  }

  // Combines the entries of each tick. Built apart: a combine that throws changes nothing.
  void gather(Bucket& bucket) {
    std::vector<std::uint32_t> order(bucket.entries.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return bucket.entries[a].tick < bucket.entries[b].tick; });
    std::vector<Entry> gathered;
    for (auto i : order) {
      Entry& e = bucket.entries[i];
      if (!gathered.empty() && gathered.back().tick == e.tick)
        gathered.back().value = monoid_.combine(gathered.back().value, e.value);
      else
        gathered.push_back(e);
    }
    entries_ -= bucket.entries.size() - gathered.size();
    bucket.entries.swap(gathered);
    bucket.limit = std::max(least, 2 * bucket.entries.size());
  }

  Bucket& place(std::uint64_t k) {
    int level = level_of(k), bucket = digit(k, level);
    if (!levels_[level]) levels_[level] = std::make_unique<Level>();
    levels_[level]->mask |= std::uint64_t{1} << bucket;
    return levels_[level]->buckets[bucket];
  }

  M monoid_;
  std::uint64_t cursor_;
  std::array<std::unique_ptr<Level>, depth> levels_;
  std::size_t entries_ = 0;
};

}  // namespace sash
