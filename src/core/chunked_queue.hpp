// A queue of linked chunks
//
// Push at the back, pop at the front, and iterators that move one place at a time and stay valid while
// their element lives. Chunks are linked; there is no directory to grow, and one spare chunk is kept, so
// no operation ever costs more than one allocation: the worst case of DABA stays constant.
//
//   first_ -> [ . . a b c d ] <-> [ e f g h i j ] <-> [ k l . . . . ] <- last_     spare_ -> [ ]
//                   ^ begin                                 ^ end

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

namespace sash {

template <class T>
class ChunkedQueue {
  // About 4 KiB of elements, to hide the cost of a link; a queue's first chunk is small, for the sake of a
  // million short queues side by side.
  static constexpr std::size_t full = sizeof(T) >= 256 ? 16 : 4096 / sizeof(T);
  static constexpr std::size_t small = full < 16 ? full : 16;

  struct alignas(std::max_align_t) Chunk {
    Chunk* before = nullptr;
    Chunk* after = nullptr;
    T* stop;  // one past the last slot
    T* start() { return reinterpret_cast<T*>(this + 1); }
  };
  static_assert(alignof(T) <= alignof(std::max_align_t));

 public:
  // A place in the queue: an element, or the end. The end iterator stays at the end only until the next push.
  class iterator {
   public:
    iterator() = default;
    T& operator*() const { return *at_; }
    T* operator->() const { return at_; }
    bool operator==(const iterator& other) const { return at_ == other.at_; }
    iterator& operator++() {
      if (++at_ == chunk_->stop) {
        chunk_ = chunk_->after;
        at_ = chunk_->start();
      }
      return *this;
    }
    iterator& operator--() {
      if (at_ == chunk_->start()) {
        chunk_ = chunk_->before;
        at_ = chunk_->stop;
      }
      --at_;
      return *this;
    }
    // The element before this place, without a copy of the iterator: read whole just after one of its words was stored, it
    // makes the processor wait for the store.
    T& before() const { return (at_ == chunk_->start() ? chunk_->before->stop : at_)[-1]; }
    iterator next() const {
      iterator i = *this;
      return ++i;
    }
    iterator prev() const {
      iterator i = *this;
      return --i;
    }

   private:
    friend class ChunkedQueue;
    iterator(Chunk* chunk, T* at) : chunk_(chunk), at_(at) {}
    Chunk* chunk_ = nullptr;
    T* at_ = nullptr;
  };

  ChunkedQueue() { start(); }
  ChunkedQueue(const ChunkedQueue& other) : ChunkedQueue() {
    for (auto i = other.begin(); i != other.end(); ++i) push_back(*i);
  }
  ChunkedQueue(ChunkedQueue&& other) : ChunkedQueue() { swap(other); }
  ChunkedQueue& operator=(ChunkedQueue other) {
    swap(other);
    return *this;
  }
  ~ChunkedQueue() { release(); }

  void swap(ChunkedQueue& other) {
    std::swap(front_, other.front_);
    std::swap(back_, other.back_);
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(spare_, other.spare_);
    std::swap(size_, other.size_);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  iterator begin() const { return iterator(first_, front_); }
  iterator end() const { return iterator(last_, back_); }
  T& front() const { return *front_; }
  T& back() const { return end().before(); }

  void push_back(T value) {
    T* next = back_ + 1;
    bool full = next == last_->stop;
    if (full && !last_->after) append_chunk();  // first, so that an allocation that fails changes nothing
    ::new (static_cast<void*>(back_)) T(std::move(value));
    back_ = next;
    if (full) {  // the end never rests on a chunk's stop
      last_ = last_->after;
      back_ = last_->start();
    }
    ++size_;
  }

  void pop_front() {
    front_->~T();
    if (++front_ == first_->stop) {
      Chunk* left = std::exchange(first_, first_->after);
      front_ = first_->start();
      retire(left);
    }
    --size_;
  }

  void pop_back() {
    if (back_ == last_->start()) {
      // The chunk just left stays linked, for the next push; what follows it goes.
      ::operator delete(std::exchange(last_->after, nullptr));
      last_ = last_->before;
      back_ = last_->stop;
    }
    (--back_)->~T();
    --size_;
  }

  void clear() {
    release();
    start();
  }

  // Saves or loads every element; `blank` is any element to load into.
  template <class Archive>
  void archive(Archive& ar, const T& blank) {
    archive_each(ar, blank, [&ar](T& value) { ar.partial(value); });
  }

  // The same where an element is more than one partial: visit(element) saves or loads its parts.
  template <class Archive, class Visit>
  void archive_each(Archive& ar, const T& blank, Visit visit) {
    auto n = static_cast<std::int64_t>(size_);
    ar.number(n);
    if constexpr (Archive::loading) {
      clear();
      for (; n > 0; --n) {
        T value = blank;
        visit(value);
        push_back(std::move(value));
      }
    } else {
      for (auto i = begin(); i != end(); ++i) visit(*i);
    }
  }

  // The distance of a place from the front, O(n / chunk): for archives and checks.
  std::size_t index_of(iterator p) const {
    std::size_t before = 0;
    Chunk* c = first_;
    T* from = front_;
    for (; c != p.chunk_; c = c->after, from = c->start()) before += static_cast<std::size_t>(c->stop - from);
    return before + static_cast<std::size_t>(p.at_ - from);
  }

  iterator at(std::size_t index) const {
    iterator p = begin();
    for (; index > 0; --index) ++p;
    return p;
  }

  // Saves or loads a place as its distance from the front.
  template <class Archive>
  void archive_place(Archive& ar, iterator& p) {
    auto index = Archive::loading ? 0 : static_cast<std::int64_t>(index_of(p));
    ar.number(index);
    if constexpr (Archive::loading) {
      if (index < 0 || static_cast<std::size_t>(index) > size_) throw std::invalid_argument("a stored place lies outside its queue");
      p = at(static_cast<std::size_t>(index));
    }
  }

  // Bytes held, for tests of memory that is given back.
  std::size_t bytes() const {
    std::size_t total = 0;
    for (Chunk* c = first_; c; c = c->after) total += bytes_of(c);
    return total + (spare_ ? bytes_of(spare_) : 0);
  }

 private:
  static std::size_t bytes_of(Chunk* c) { return sizeof(Chunk) + static_cast<std::size_t>(c->stop - c->start()) * sizeof(T); }

  // Out of line and static, as is everything rare: a queue that lives in a loop may then stay in registers.
  [[gnu::noinline]] static Chunk* make(std::size_t slots) {
    auto* c = ::new (::operator new(sizeof(Chunk) + slots * sizeof(T))) Chunk;
    c->stop = c->start() + slots;
    return c;
  }

  void start() {
    first_ = last_ = make(small);
    front_ = back_ = first_->start();
    spare_ = nullptr;
    size_ = 0;
  }

  void append_chunk() {
    Chunk* c = std::exchange(spare_, nullptr);
    if (!c) c = make(full);
    c->before = last_;
    c->after = nullptr;
    last_->after = c;
  }

  void retire(Chunk* chunk) {
    first_->before = nullptr;
    if (spare_ == nullptr && static_cast<std::size_t>(chunk->stop - chunk->start()) == full) {
      spare_ = chunk;
    } else {
      ::operator delete(chunk);
    }
  }

  void release() {
    for (iterator i = begin(); i != end(); ++i) i->~T();
    for (Chunk* c = first_; c;) ::operator delete(std::exchange(c, c->after));
    ::operator delete(spare_);
  }

  T *front_, *back_;
  Chunk *first_, *last_;
  Chunk* spare_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sash
