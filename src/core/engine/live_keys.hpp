// The keys of a live bucket, and when each must be looked at

#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runs.hpp"

namespace sash::engine {

// Keys by their bytes, numbered densely; a number is free again when its key has left.
class LiveKeys {
 public:
  LiveKeys() { slots_.assign(64, none); }

  std::size_t size() const { return used_; }
  std::size_t numbers() const { return names_.size(); }
  std::uint64_t hash(std::uint32_t id) const { return hashes_[id]; }
  const std::string& name(std::uint32_t id) const { return names_[id]; }
  bool is_used(std::uint32_t id) const { return in_use_[id]; }

  std::uint32_t find_or_add(std::uint64_t hash, std::string_view key) {
    std::size_t at = hash & mask();
    for (; slots_[at] != none; at = (at + 1) & mask())
      if (hashes_[slots_[at]] == hash && names_[slots_[at]] == key) return slots_[at];
    std::uint32_t id;
    if (free_.empty()) {
      id = static_cast<std::uint32_t>(names_.size());
      names_.emplace_back(key);
      hashes_.push_back(hash);
      in_use_.push_back(true);
    } else {
      id = free_.back();
      free_.pop_back();
      names_[id] = key;
      hashes_[id] = hash;
      in_use_[id] = true;
    }
    slots_[at] = id;
    if (++used_ * 2 > slots_.size()) rehash(slots_.size() * 2);
    return id;
  }

  // The number of a key, -1 if it is not there.
  std::int32_t find(std::uint64_t hash, std::string_view key) const {
    for (std::size_t at = hash & mask(); slots_[at] != none; at = (at + 1) & mask())
      if (hashes_[slots_[at]] == hash && names_[slots_[at]] == key) return static_cast<std::int32_t>(slots_[at]);
    return -1;
  }

  void remove(std::uint32_t id) {
    std::size_t at = hashes_[id] & mask();
    while (slots_[at] != id) at = (at + 1) & mask();
    // Keys behind it that were pushed on move back, so that none is cut off from its place.
    for (std::size_t next = (at + 1) & mask(); slots_[next] != none; next = (next + 1) & mask()) {
      std::size_t home = hashes_[slots_[next]] & mask();
      if (((next - home) & mask()) >= ((next - at) & mask())) {
        slots_[at] = slots_[next];
        at = next;
      }
    }
    slots_[at] = none;
    in_use_[id] = false;
    names_[id] = {};
    free_.push_back(id);
    --used_;
  }

  std::size_t bytes() const {
    std::size_t all = slots_.capacity() * 4 + hashes_.capacity() * 8 + names_.capacity() * sizeof(std::string) + free_.capacity() * 4;
    for (const std::string& name : names_)
      if (name.capacity() > 15) all += name.capacity() + 1;
    return all;
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFFu;
  std::size_t mask() const { return slots_.size() - 1; }
  void rehash(std::size_t n) {
    slots_.assign(n, none);
    for (std::uint32_t id = 0; id < names_.size(); ++id) {
      if (!in_use_[id]) continue;
      std::size_t at = hashes_[id] & mask();
      while (slots_[at] != none) at = (at + 1) & mask();
      slots_[at] = id;
    }
  }

  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::string> names_;
  std::vector<bool> in_use_;
  std::vector<std::uint32_t> free_;
  std::size_t used_ = 0;
};

// When each key must be looked at next: a heap. A key whose time is set anew leaves its old one behind, which is skipped later.
class Due {
 public:
  static constexpr Time never = after_all;
  struct Entry {
    Time time;
    std::uint32_t id;
  };

  void reach(std::uint32_t id) {
    if (id >= times_.size()) times_.resize(id + 1, never);
  }
  Time time(std::uint32_t id) const { return times_[id]; }
  void set(std::uint32_t id, Time time) {
    if (times_[id] == time) return;
    times_[id] = time;
    if (time == never) return;
    heap_.push_back({time, id});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void sooner(std::uint32_t id, Time time) {
    if (time < times_[id]) set(id, time);
  }
  // The keys that are due up to a time; each is then due never.
  std::vector<Entry> take(Time upto) {
    std::vector<Entry> taken;
    while (!heap_.empty() && heap_.front().time <= upto) {
      Entry first = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
      if (times_[first.id] != first.time) continue;
      times_[first.id] = never;
      taken.push_back(first);
    }
    return taken;
  }
  std::size_t bytes() const { return times_.capacity() * sizeof(Time) + heap_.capacity() * sizeof(Entry); }

 private:
  static bool later(const Entry& a, const Entry& b) { return a.time > b.time; }
  std::vector<Time> times_;
  std::vector<Entry> heap_;
};

}  // namespace sash::engine
