// The slots of one key that hold anything, by number
//
//   time       append O(1) amortised; a slot in the middle O(slots after it), or O(log n) amortised from far behind
//   space      a number and a partial per slot, at most half more, and 24 bytes
//
//   block_   | numbers ... | partials ... |      one allocation; [first_, sorted_) in order, [sorted_, end_) as they came
//
// A slot that comes late by a few places is put in its place; one that comes from further behind waits at the end until
// there are half as many as the others, or until somebody looks, and then all are sorted in at once.
//
//   I1  numbers in [first_, sorted_) increase; what waits after them is in order of arrival

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "../check.hpp"
#include "../monoid.hpp"

namespace sash {

template <Monoid M>
class SparseSlots {
 public:
  using Partial = typename M::Partial;

  SparseSlots() = default;
  SparseSlots(SparseSlots&& other) noexcept { swap(other); }
  SparseSlots& operator=(SparseSlots&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SparseSlots() {
    for (auto i = first_; i < end_; ++i) partials()[i].~Partial();
    ::operator delete(block_);
  }

  std::size_t size() const { return end_ - first_; }
  bool in_order() const { return sorted_ == end_; }
  std::int64_t number(std::size_t i) const { return numbers()[first_ + i]; }
  const Partial& partial(std::size_t i) const { return partials()[first_ + i]; }
  std::size_t bytes() const { return block_ ? offset(room_) + room_ * sizeof(Partial) : 0; }

  // Where the next append will look and write: to be fetched into the cache ahead of time.
  const void* tail() const { return block_ ? static_cast<const void*>(numbers() + end_) : nullptr; }
  const void* tail_partial() const { return block_ ? static_cast<const void*>(partials() + end_) : nullptr; }

  // Adds to a slot, after what it holds already. `before` is called when no combine is left to make: if a combine or
  // `before` throws, nothing has changed.
  template <class Before>
  void add(const M& monoid, std::int64_t number, Partial value, Before before) {
    if (in_order()) {
      if (end_ == first_ || number > numbers()[end_ - 1]) {
        before();
        push(number, std::move(value));
        sorted_ = end_;
        return;
      }
      auto at = end_ - 1;  // the last slot at or before the number, if it is near
      for (std::uint32_t steps = 0; steps < near && at > first_ && numbers()[at] > number; ++steps) --at;
      if (numbers()[at] == number) {
        Partial sum = monoid.combine(partials()[at], value);
        before();
        partials()[at] = std::move(sum);
        return;
      }
      if (numbers()[at] < number) {
        before();
        return insert_after(at - first_, number, std::move(value));
      }
    }
    if (end_ - sorted_ >= near && 2 * (end_ - sorted_) >= sorted_ - first_) sort(monoid);
    before();
    bool ordered = in_order() && (end_ == first_ || number > numbers()[end_ - 1]);
    push(number, std::move(value));
    if (ordered) sorted_ = end_;
  }
  void add(const M& monoid, std::int64_t number, Partial value) {
    add(monoid, number, std::move(value), [] {});
  }

  // Sorts in what waits at the end. Built apart: a combine that throws changes nothing.
  void sort(const M& monoid) {
    if (in_order()) return;
    std::vector<std::pair<std::int64_t, std::uint32_t>> own;
    auto& order = scratch(own);
    order.clear();
    for (auto i = sorted_; i < end_; ++i) order.emplace_back(numbers()[i], i);
    std::sort(order.begin(), order.end());
    SparseSlots out;
    out.reserve(size());
    auto take = [&](std::uint32_t i) {
      if (out.end_ > 0 && out.numbers()[out.end_ - 1] == numbers()[i])
        out.partials()[out.end_ - 1] = monoid.combine(out.partials()[out.end_ - 1], partials()[i]);
      else
        out.push(numbers()[i], partials()[i]);
    };
    auto old = first_;
    for (auto [number, i] : order) {
      while (old < sorted_ && numbers()[old] <= number) take(old++);
      take(i);
    }
    while (old < sorted_) take(old++);
    out.sorted_ = out.end_;
    swap(out);
  }

  // The first place at or after a number; only where all are in order.
  std::size_t lower(std::int64_t number) const {
    auto* from = numbers() + first_;
    return static_cast<std::size_t>(std::lower_bound(from, numbers() + end_, number) - from);
  }

  // Only where all are in order.
  void drop_before(std::int64_t number) {
    auto keep = first_ + static_cast<std::uint32_t>(lower(number));
    for (; first_ < keep; ++first_) partials()[first_].~Partial();
    if (first_ == end_) {
      ::operator delete(std::exchange(block_, nullptr));
      room_ = first_ = sorted_ = end_ = 0;
    } else if (first_ > end_ - first_) {  // more than half is dropped: close up
      reserve(size());
    }
  }

  // Counts all slots from another origin, `by` later than the present one.
  void renumber(std::int64_t by) {
    for (auto i = first_; i < end_; ++i) numbers()[i] -= by;
  }

  void check() const {
    require(first_ <= sorted_ && sorted_ <= end_ && end_ <= room_, "I1: ", first_, ", ", sorted_, ", ", end_, " of ", room_);
    for (auto i = first_ + 1; i < sorted_; ++i)
      require(numbers()[i - 1] < numbers()[i], "I1: slot ", numbers()[i], " comes after ", numbers()[i - 1]);
  }

 private:
  static constexpr std::uint32_t near = 16;

  void swap(SparseSlots& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(room_, other.room_);
    std::swap(first_, other.first_);
    std::swap(sorted_, other.sorted_);
    std::swap(end_, other.end_);
  }

  static std::size_t offset(std::size_t room) {
    constexpr std::size_t align = alignof(Partial);
    return (room * sizeof(std::int64_t) + align - 1) / align * align;
  }
  std::int64_t* numbers() const { return reinterpret_cast<std::int64_t*>(block_); }
  Partial* partials() const { return reinterpret_cast<Partial*>(block_ + offset(room_)); }

  // Where a combine may run any code, that code may sort other slots: then the memory is the caller's own, else the thread's.
  template <class Order>
  static Order& scratch([[maybe_unused]] Order& own) {
    if constexpr (may_throw<M>) {
      return own;
    } else {
      static thread_local Order kept;
      return kept;
    }
  }

  void push(std::int64_t number, Partial value) {
    if (end_ == room_) reserve(std::max<std::size_t>(2, size() + size() / 2 + 1));
    numbers()[end_] = number;
    ::new (static_cast<void*>(partials() + end_)) Partial(std::move(value));
    ++end_;
  }

  // `place` counts from the oldest slot: a push may move the block and what was dropped before it.
  void insert_after(std::uint32_t place, std::int64_t number, Partial value) {
    push(number, std::move(value));
    auto at = first_ + place + 1;
    std::rotate(numbers() + at, numbers() + end_ - 1, numbers() + end_);
    std::rotate(partials() + at, partials() + end_ - 1, partials() + end_);
    sorted_ = end_;
  }

  // Moves to a block with room for so many slots.
  void reserve(std::size_t room) {
    auto* block = static_cast<std::byte*>(::operator new(offset(room) + room * sizeof(Partial)));
    auto* to_numbers = reinterpret_cast<std::int64_t*>(block);
    auto* to_partials = reinterpret_cast<Partial*>(block + offset(room));
    auto n = static_cast<std::uint32_t>(size());
    if (n) std::memcpy(to_numbers, numbers() + first_, n * sizeof(std::int64_t));
    for (std::uint32_t i = 0; i < n; ++i) {
      ::new (static_cast<void*>(to_partials + i)) Partial(std::move(partials()[first_ + i]));
      partials()[first_ + i].~Partial();
    }
    ::operator delete(block_);
    block_ = block;
    room_ = static_cast<std::uint32_t>(room);
    sorted_ -= first_;
    first_ = 0;
    end_ = n;
  }

  std::byte* block_ = nullptr;
  std::uint32_t room_ = 0, first_ = 0, sorted_ = 0, end_ = 0;
};

}  // namespace sash
