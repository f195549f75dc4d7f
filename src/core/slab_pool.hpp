// A pool of equal nodes
//
// Nodes live in slabs: the first holds one node, each next one twice as many up to 2 MiB, so that a million
// small windows stay small and a large one lies in few huge pages. A node is built when it is first taken and
// stays built while its slab lives: taking it again costs a link. Of the slabs whose nodes were all given back one is kept,
// for a window that slides gives back one slab while it fills another; the others are returned to the system.
//
// Needs of a node: a constructor from `const Seed&`, and two ints of its own, `n` (free: the link) and `slab`.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace sash {

template <class Node>
class SlabPool {
  static constexpr std::size_t huge = std::size_t{2} << 20;
  static constexpr std::int32_t most = static_cast<std::int32_t>(std::max<std::size_t>(1, huge / sizeof(Node)));
  static constexpr std::int32_t none = -1;

 public:
  SlabPool() = default;
  SlabPool(SlabPool&& other) noexcept { swap(other); }
  SlabPool& operator=(SlabPool&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SlabPool() { clear(); }

  template <class Seed>
  Node* take(const Seed& seed) {
    if (at_ == none || slabs_[at_].live == slabs_[at_].room) choose();
    Slab& slab = slabs_[at_];
    Node* node;
    if (slab.free != none) {
      node = slab.nodes + slab.free;
      slab.free = node->n;
      node->n = 0;
    } else {
      node = ::new (static_cast<void*>(slab.nodes + slab.built)) Node(seed);
      ++slab.built;
      node->slab = at_;
    }
    ++slab.live;
    ++live_;
    return node;
  }

  void give(Node* node) {
    std::int32_t k = node->slab;
    Slab& slab = slabs_[k];
    node->n = slab.free;
    slab.free = static_cast<std::int32_t>(node - slab.nodes);
    --slab.live;
    --live_;
    if (k == at_) return;
    if (slab.live == 0) {
      if (spare_ != none && spare_ != k && slabs_[spare_].live == 0) return release(k);
      spare_ = k;
    }
    if (!slab.listed) list(k);
  }

  void clear() {
    for (std::size_t k = 0; k < slabs_.size(); ++k)
      if (slabs_[k].nodes) release(static_cast<std::int32_t>(k));
    slabs_.clear();
    roomy_.clear();
    vacant_.clear();
    at_ = spare_ = none;
    live_ = 0;
  }

  std::size_t live() const { return live_; }

  std::size_t bytes() const {
    std::size_t total = 0;
    for (const Slab& s : slabs_)
      if (s.nodes) total += static_cast<std::size_t>(s.room) * sizeof(Node);
    return total;
  }

 private:
  struct Slab {
    Node* nodes = nullptr;
    std::int32_t room = 0, built = 0, live = 0;
    std::int32_t free = none;  // the last node given back
    bool listed = false;       // in roomy_
  };

  void swap(SlabPool& other) {
    std::swap(slabs_, other.slabs_);
    std::swap(roomy_, other.roomy_);
    std::swap(vacant_, other.vacant_);
    std::swap(at_, other.at_);
    std::swap(spare_, other.spare_);
    std::swap(live_, other.live_);
  }

  void list(std::int32_t k) {
    roomy_.push_back(k);
    slabs_[k].listed = true;
  }

  // The slab to take from: the one a node was given back to last, else a new one.
  void choose() {
    while (!roomy_.empty()) {
      at_ = roomy_.back();
      roomy_.pop_back();
      slabs_[at_].listed = false;
      if (!slabs_[at_].nodes)
        vacant_.push_back(at_);  // released while it was listed
      else if (slabs_[at_].live < slabs_[at_].room)
        return;
    }
    auto room = static_cast<std::int32_t>(std::clamp<std::size_t>(live_, 1, most));
    Slab slab;
    slab.nodes = static_cast<Node*>(allocate(room));
    slab.room = room;
    if (vacant_.empty()) {
      vacant_.push_back(static_cast<std::int32_t>(slabs_.size()));
      slabs_.emplace_back();
    }
    at_ = vacant_.back();
    vacant_.pop_back();
    slabs_[at_] = slab;
  }

  void release(std::int32_t k) {
    Slab& slab = slabs_[k];
    if constexpr (!std::is_trivially_destructible_v<Node>) std::destroy_n(slab.nodes, slab.built);
    ::operator delete(static_cast<void*>(slab.nodes), std::align_val_t(alignment(slab.room)));
    bool listed = slab.listed;
    slab = Slab{};
    slab.listed = listed;  // choose() skips it when it comes up
    if (!listed) vacant_.push_back(k);
  }

  static std::size_t alignment(std::int32_t room) { return room == most ? huge : std::max<std::size_t>(64, alignof(Node)); }

  static void* allocate(std::int32_t room) {
    auto bytes = static_cast<std::size_t>(room) * sizeof(Node);
    void* memory = ::operator new(bytes, std::align_val_t(alignment(room)));
#ifdef __linux__
    if (room == most) ::madvise(memory, bytes, MADV_HUGEPAGE);  // advice only: no error matters
#endif
    return memory;
  }

  std::vector<Slab> slabs_;
  std::vector<std::int32_t> roomy_;   // slabs with room besides at_
  std::vector<std::int32_t> vacant_;  // places in slabs_ to use again
  std::int32_t at_ = none;            // nodes are taken from this one
  std::int32_t spare_ = none;         // the last one that was emptied; perhaps in use again
  std::size_t live_ = 0;
};

}  // namespace sash
