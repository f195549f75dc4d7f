// The slots of one level: numbered, appended at the end, dropped at the front, never changed
//
//   needs      nothing of the partials
//   time       push O(1), dropping O(1) amortised, a gap of n slots O(n / chunk), a copy O(1)
//   space      at most one chunk more than the slots held; a gap takes one pointer per chunk
//
//   lo_           from_                                             hi_
//    | blank ......| a b c d | e f g h | (null: blank) | i j . . |
//                    ^ table_[first_]                    ^ tail_
//
// A copy is a reader's view of the moment: it shares the chunks, which may be read while the owner appends, since
// a slot is written before the view is made and never again. What the owner drops goes into the current
// epoch, and an epoch dies when neither the owner nor any view made up to then holds it: no reader is ever asked.
//
//   I1  lo_ <= from_ <= hi_; slots in [lo_, from_) are blank and not stored
//   I2  a chunk of the table holds its slots; a null one is all blank; equal neighbours hold one value throughout
//   I3  tail_ is the chunk that takes slot hi_, or null where that slot opens a new chunk

#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "../check.hpp"

namespace sash {

template <class Partial>
class Slots {
  struct alignas(std::max_align_t) Chunk {
    std::size_t filled = 0;
    Partial* slots() { return reinterpret_cast<Partial*>(this + 1); }
  };
  static_assert(alignof(Partial) <= alignof(std::max_align_t));

  struct Epoch {
    std::atomic<std::size_t> holders{1};
    std::vector<Chunk*> dropped;
    Epoch* next = nullptr;
  };

 public:
  // No slots yet, the first will have number `first`; a chunk has `chunk` slots, a power of two.
  Slots(std::int64_t first, std::size_t chunk, Partial blank)
      : shift_(std::bit_width(chunk) - 1),
        mask_(static_cast<std::int64_t>(chunk) - 1),
        lo_(first),
        from_(first),
        hi_(first),
        blank_(std::move(blank)),
        epoch_(new Epoch) {}

  Slots(const Slots& other)
      : shift_(other.shift_),
        mask_(other.mask_),
        lo_(other.lo_),
        from_(other.from_),
        hi_(other.hi_),
        blank_(other.blank_),
        table_(other.table_),
        base_(other.base_),
        first_(other.first_),
        count_(other.count_),
        room_(other.room_),
        epoch_(other.epoch_),
        owner_(false) {
    epoch_->holders.fetch_add(1, std::memory_order_relaxed);
  }

  Slots(Slots&& other) noexcept : blank_(other.blank_) { swap(other); }
  Slots& operator=(Slots&& other) noexcept {
    swap(other);
    return *this;
  }

  ~Slots() {
    if (!epoch_) return;
    if (owner_) drop_chunks(count_);
    release(epoch_);
  }

  void swap(Slots& other) noexcept {
    std::swap(shift_, other.shift_);
    std::swap(mask_, other.mask_);
    std::swap(lo_, other.lo_);
    std::swap(from_, other.from_);
    std::swap(hi_, other.hi_);
    std::swap(blank_, other.blank_);
    std::swap(table_, other.table_);
    std::swap(base_, other.base_);
    std::swap(first_, other.first_);
    std::swap(count_, other.count_);
    std::swap(room_, other.room_);
    std::swap(tail_, other.tail_);
    std::swap(epoch_, other.epoch_);
    std::swap(owner_, other.owner_);
  }

  std::int64_t begin() const { return lo_; }
  std::int64_t end() const { return hi_; }

  void push(Partial value) {
    if (!tail_) open();
    put(std::move(value));
  }

  // Appends n slots of one value; `blank` says that it is the blank one, of which whole chunks take no space.
  void fill(std::int64_t n, const Partial& value, bool blank) {
    if (n > 0 && blank && from_ == hi_) {  // nothing is stored: there is nothing to store
      drop_chunks(count_);
      turn_epoch();
      tail_ = nullptr;
      from_ = hi_ += n;
      return;
    }
    Partial copy = value;  // it may live in a chunk of ours
    while (n > 0) {
      if (!tail_ && n > mask_) {
        auto whole = static_cast<std::size_t>(n >> shift_);
        Chunk* same = blank ? nullptr : make_full(copy);
        rebase();
        reserve(whole);
        std::fill_n(table_.get() + count_, whole, same);
        count_ += whole;
        hi_ += static_cast<std::int64_t>(whole) << shift_;
        n &= mask_;
      } else {
        if (!tail_) open();
        for (auto room = std::min(n, mask_ + 1 - (hi_ & mask_)); room > 0; --room, --n) put(copy);
      }
    }
  }

  // Forgets the slots before i.
  void drop_before(std::int64_t i) {
    lo_ = std::max(lo_, std::min(i, hi_));
    if (from_ >= lo_) return;
    from_ = lo_;
    std::size_t kept = first_;
    while (kept < count_ && ((base_ + static_cast<std::int64_t>(kept) + 1) << shift_) <= from_) ++kept;
    if (kept == first_) return;
    drop_chunks(kept);
    turn_epoch();
  }

  const Partial& operator[](std::int64_t i) const {
    if (i < from_) return blank_;
    Chunk* chunk = table_[static_cast<std::size_t>((i >> shift_) - base_)];
    return chunk ? chunk->slots()[i & mask_] : blank_;
  }

  const Partial& blank() const { return blank_; }

  // Slots before this one are blank, all of them if it is the end.
  std::int64_t touched() const { return from_; }

  // Forgets everything; the next slot will have number `first`.
  void restart(std::int64_t first) {
    drop_chunks(count_);
    turn_epoch();
    tail_ = nullptr;
    lo_ = from_ = hi_ = first;
  }

  // visit(first, n, blank) for every stretch of [from, to), oldest first: n slots in a row at `first`, or n times blank.
  template <class Visit>
  void runs(std::int64_t from, std::int64_t to, Visit visit) const {
    if (from < from_) {
      auto blanks = std::min(from_, to) - from;
      visit(&blank_, static_cast<std::size_t>(blanks), true);
      from += blanks;
    }
    while (from < to) {
      auto n = std::min(to - from, mask_ + 1 - (from & mask_));
      Chunk* chunk = table_[static_cast<std::size_t>((from >> shift_) - base_)];
      visit(chunk ? chunk->slots() + (from & mask_) : &blank_, static_cast<std::size_t>(n), chunk == nullptr);
      from += n;
    }
  }

  std::size_t bytes() const {
    std::size_t total = sizeof(*this) + room_ * sizeof(Chunk*);
    for (std::size_t i = first_; i < count_; ++i)
      if (table_[i] && (i == first_ || table_[i] != table_[i - 1])) total += chunk_bytes();
    return total;
  }

  void check() const {
    require(lo_ <= from_ && from_ <= hi_, "I1: lo ", lo_, ", from ", from_, ", hi ", hi_);
    if (from_ == hi_) return;
    auto last = (hi_ - 1) >> shift_;
    require(base_ + static_cast<std::int64_t>(first_) <= from_ >> shift_, "I2: the table starts after slot ", from_);
    require(base_ + static_cast<std::int64_t>(count_) == last + 1, "I2: the table ends at chunk ",
            base_ + static_cast<std::int64_t>(count_), ", the last slot is in chunk ", last);
    if (owner_) require((tail_ == nullptr) == ((hi_ & mask_) == 0), "I3: slot ", hi_, " and the tail disagree");
  }

 private:
  std::size_t chunk_bytes() const { return sizeof(Chunk) + static_cast<std::size_t>(mask_ + 1) * sizeof(Partial); }

  void put(Partial value) {
    ::new (static_cast<void*>(tail_->slots() + (hi_ & mask_))) Partial(std::move(value));
    ++tail_->filled;
    if ((++hi_ & mask_) == 0) tail_ = nullptr;
  }

  // An empty table starts at the chunk of slot hi_.
  void rebase() {
    if (first_ < count_) return;
    table_.reset();
    room_ = first_ = count_ = 0;
    base_ = hi_ >> shift_;
  }

  // Makes the chunk that takes slot hi_; what lies before that slot in it is blank.
  void open() {
    rebase();
    Chunk* chunk = make();
    for (auto before = hi_ & mask_; before > 0; --before) ::new (static_cast<void*>(chunk->slots() + chunk->filled++)) Partial(blank_);
    reserve(1);
    table_[count_++] = tail_ = chunk;
  }

  Chunk* make() { return ::new (::operator new(chunk_bytes())) Chunk; }

  Chunk* make_full(const Partial& value) {
    Chunk* chunk = make();
    for (; chunk->filled <= static_cast<std::size_t>(mask_); ++chunk->filled)
      ::new (static_cast<void*>(chunk->slots() + chunk->filled)) Partial(value);
    return chunk;
  }

  // Room for `more` entries of the table. Views go on reading the old one, so it is replaced, not moved within.
  void reserve(std::size_t more) {
    if (count_ + more <= room_) return;
    auto live = count_ - first_;
    auto room = std::max<std::size_t>(4, 2 * live + more);
    std::shared_ptr<Chunk*[]> table(new Chunk*[room]);
    std::copy(table_.get() + first_, table_.get() + count_, table.get());
    table_ = std::move(table);
    base_ += static_cast<std::int64_t>(first_);
    first_ = 0;
    count_ = live;
    room_ = room;
  }

  // Leaves the chunks before entry `kept` to the epoch.
  void drop_chunks(std::size_t kept) {
    for (; first_ < kept; ++first_) {
      Chunk* chunk = table_[first_];
      bool shared = first_ + 1 < count_ && table_[first_ + 1] == chunk;
      if (chunk && !shared) epoch_->dropped.push_back(chunk);
    }
  }

  void turn_epoch() {
    if (epoch_->dropped.empty()) return;
    auto* next = new Epoch;
    next->holders = 2;  // us, and the epoch before
    epoch_->next = next;
    release(std::exchange(epoch_, next));
  }

  static void release(Epoch* epoch) {
    while (epoch && epoch->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      for (Chunk* chunk : epoch->dropped) {
        for (std::size_t i = 0; i < chunk->filled; ++i) chunk->slots()[i].~Partial();
        ::operator delete(chunk);
      }
      delete std::exchange(epoch, epoch->next);
    }
  }

  int shift_ = 0;
  std::int64_t mask_ = 0;
  std::int64_t lo_ = 0, from_ = 0, hi_ = 0;
  Partial blank_;
  std::shared_ptr<Chunk*[]> table_;
  std::int64_t base_ = 0;  // the number of the chunk at entry 0
  std::size_t first_ = 0, count_ = 0, room_ = 0;
  Chunk* tail_ = nullptr;
  Epoch* epoch_ = nullptr;
  bool owner_ = true;
};

}  // namespace sash
