// A ring of slots addressed by stream position
//
// Positions count up for ever from wherever the ring starts; position p lives in slot p mod capacity. The
// capacity is a power of two, doubles when the ring is full and halves when a quarter is used, so that growth and shrinking
// cost O(1) amortised. One move of all elements when that happens: what must never cost O(n) uses ChunkedQueue.
//
//   positions 13 .. 18 in a ring of 8      slot  0    1    2    3    4    5    6    7
//                                               | 16 | 17 | 18 | .  | .  | 13 | 14 | 15 |

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

namespace sash {

using Position = std::int64_t;

template <class T>
class Ring {
 public:
  Ring() = default;
  Ring(Ring&& other) noexcept { swap(other); }
  Ring& operator=(Ring other) noexcept {
    swap(other);
    return *this;
  }
  ~Ring() { release(); }

  void swap(Ring& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

  Position begin() const { return begin_; }
  Position end() const { return end_; }  // one past the youngest
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  bool empty() const { return begin_ == end_; }
  bool holds(Position p) const { return begin_ <= p && p < end_; }
  std::size_t capacity() const { return capacity_; }

  T& operator[](Position p) { return slots_[slot(p)]; }
  const T& operator[](Position p) const { return slots_[slot(p)]; }

  void push_back(T value) {
    if (size() == capacity_) move_to(capacity_ ? 2 * capacity_ : least);
    std::construct_at(&slots_[slot(end_)], std::move(value));
    ++end_;
  }

  void pop_front() {
    std::destroy_at(&slots_[slot(begin_)]);
    ++begin_;
    if (size() < capacity_ / 4) shrink();
  }

  void pop_back() {
    --end_;
    std::destroy_at(&slots_[slot(end_)]);
  }

  // Lets go of everything before p. O(1) for partials without a destructor, but for the shrinking.
  void drop_before(Position p) {
    if constexpr (std::is_trivially_destructible_v<T>)
      begin_ = p;
    else
      for (; begin_ < p; ++begin_) std::destroy_at(&slots_[slot(begin_)]);
    if (size() < capacity_ / 4) shrink();
  }

  // An empty ring that will start at p.
  void restart(Position p) {
    release();
    slots_ = nullptr;
    capacity_ = 0;
    begin_ = end_ = p;
  }

 private:
  static constexpr std::size_t least = 4;

  std::size_t slot(Position p) const { return static_cast<std::size_t>(p) & (capacity_ - 1); }

  // To twice what is used: a ring that was just shrunk is a whole doubling away from growing again.
  void shrink() {
    std::size_t capacity = least;
    while (capacity < 2 * size()) capacity *= 2;
    if (capacity < capacity_) move_to(capacity);
  }

  void move_to(std::size_t capacity) {
    slots_ = moved(slots_, capacity_, begin_, end_, capacity);
    capacity_ = capacity;
  }

  // Out of line and static, so that a ring that lives in a loop may stay in registers.
  [[gnu::noinline]] static T* moved(T* slots, std::size_t capacity, Position begin, Position end, std::size_t wanted) {
    auto* room = static_cast<T*>(::operator new(wanted * sizeof(T), std::align_val_t(alignof(T))));
    for (Position p = begin; p < end; ++p) {
      T& from = slots[static_cast<std::size_t>(p) & (capacity - 1)];
      std::construct_at(&room[static_cast<std::size_t>(p) & (wanted - 1)], std::move(from));
      std::destroy_at(&from);
    }
    ::operator delete(slots, std::align_val_t(alignof(T)));
    return room;
  }

  void release() {
    for (Position p = begin_; p < end_; ++p) std::destroy_at(&slots_[slot(p)]);
    ::operator delete(slots_, std::align_val_t(alignof(T)));
  }

  T* slots_ = nullptr;
  std::size_t capacity_ = 0;
  Position begin_ = 0, end_ = 0;
};

}  // namespace sash
