// Nodes of an aggregate B-tree, and where their memory comes from
//
// One block of memory per node; the arity is known at run time only, so the arrays follow the header:
//
//     | parent, n, level, place, agg | key 0 .. key s-1 | value 0 .. value s-1 |            a leaf
//     | parent, n, level, place, agg | key 0 .. key s-1 | value 0 .. value s-1 | child 0 .. child s | total |
//
// s = 2 * min_arity slots: one entry more than a node may keep, for the moment between an insert and the split.
// Only the first n slots hold constructed objects.
//
// A whole subtree is given back in O(1): it is put on a list, and taken apart node by node when memory is
// needed or, while more is waiting than the window holds, a few nodes at every operation.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace sash {

// Where a node is, which decides what its partial covers.
enum class Place : std::uint8_t {
  within,  // on neither spine: its whole subtree
  left,    // on the left spine: all below the root's first child, but for this node's own first child
  right,   // on the right spine: the mirror
  top      // the root: all but its first and last child
};

// Moves n objects to raw memory that may overlap, and leaves raw memory behind.
template <class T>
void relocate(T* to, T* from, std::size_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    std::memmove(static_cast<void*>(to), static_cast<const void*>(from), n * sizeof(T));
  } else {
    auto step = [&](std::size_t i) {
      ::new (static_cast<void*>(to + i)) T(std::move(from[i]));
      from[i].~T();
    };
    if (to < from) {
      for (std::size_t i = 0; i < n; ++i) step(i);
    } else if (from < to) {
      for (std::size_t i = n; i-- > 0;) step(i);
    }
  }
}

template <class Key, class Partial>
struct TreeNode {
  TreeNode* parent = nullptr;
  std::uint16_t n = 0;
  std::uint8_t level = 0;  // 0 is a leaf
  Place place = Place::within;
  Partial agg;

  explicit TreeNode(Partial identity) : agg(std::move(identity)) {}
};

// Makes, reads and recycles the nodes of one tree.
template <class Key, class Partial>
class NodePool {
 public:
  using Node = TreeNode<Key, Partial>;

  explicit NodePool(std::size_t min_arity) : slots_(2 * min_arity) {
    values_at_ = align(keys_at + slots_ * sizeof(Key), alignof(Partial));
    children_at_ = align(values_at_ + slots_ * sizeof(Partial), alignof(Node*));
    total_at_ = children_at_ + (slots_ + 1) * sizeof(Node*);
    bytes_[0] = align(values_at_ + slots_ * sizeof(Partial), alignof(Node));
    bytes_[1] = align(total_at_ + sizeof(std::uint64_t), alignof(Node));
  }
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;
  ~NodePool() {
    while (waiting_) take_apart();
    for (Link*& spare : spare_)
      while (spare) ::operator delete(std::exchange(spare, spare->next));
  }

  void swap(NodePool& other) {
    std::swap(slots_, other.slots_);
    std::swap(values_at_, other.values_at_);
    std::swap(children_at_, other.children_at_);
    std::swap(total_at_, other.total_at_);
    std::swap(bytes_, other.bytes_);
    std::swap(waiting_, other.waiting_);
    std::swap(entries_waiting_, other.entries_waiting_);
    std::swap(spare_, other.spare_);
    std::swap(spares_, other.spares_);
    std::swap(live_bytes_, other.live_bytes_);
  }

  std::size_t slots() const { return slots_; }
  Key* keys(const Node* y) const { return at<Key>(y, keys_at); }
  Partial* values(const Node* y) const { return at<Partial>(y, values_at_); }
  Node** children(const Node* y) const { return at<Node*>(y, children_at_); }
  // Entries in the subtree: kept for inner nodes, and right where their partial covers the same.
  std::uint64_t& total(const Node* y) const { return *at<std::uint64_t>(y, total_at_); }
  std::uint64_t entries(const Node* y) const { return y->level == 0 ? y->n : total(y); }

  Node* make(std::size_t level, Partial identity) {
    bool inner = level > 0;
    while (!spare_[inner] && waiting_) take_apart();
    void* memory;
    if (spare_[inner]) {
      memory = std::exchange(spare_[inner], spare_[inner]->next);
      --spares_[inner];
    } else {
      memory = ::operator new(bytes_[inner]);
      live_bytes_ += bytes_[inner];
    }
    Node* y = ::new (memory) Node(std::move(identity));
    y->level = static_cast<std::uint8_t>(level);
    return y;
  }

  // Gives back one node, with its n entries but without its children.
  void drop(Node* y) {
    bool inner = y->level > 0;
    std::destroy_n(keys(y), y->n);
    std::destroy_n(values(y), y->n);
    y->~Node();
    if (spares_[inner] < most_spares) {
      spare_[inner] = ::new (static_cast<void*>(y)) Link{spare_[inner]};
      ++spares_[inner];
    } else {
      live_bytes_ -= bytes_[inner];
      ::operator delete(y);
    }
  }

  // Gives back a whole subtree of so many entries, later.
  void defer(Node* y, std::uint64_t entries) {
    y->parent = std::exchange(waiting_, y);
    entries_waiting_ += entries;
  }

  // Keeps what waits within what the window holds, a few nodes at a time.
  void tend(std::size_t size) {
    for (int i = 0; i < 4 && waiting_ && entries_waiting_ > size; ++i) take_apart();
  }

  std::size_t bytes() const { return live_bytes_; }
  std::uint64_t entries_waiting() const { return entries_waiting_; }

 private:
  struct Link {
    Link* next;
  };

  static constexpr std::size_t align(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }
  static constexpr std::size_t keys_at = (sizeof(Node) + alignof(Key) - 1) / alignof(Key) * alignof(Key);
  static constexpr std::size_t most_spares = 32;
  static_assert(alignof(Key) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ && alignof(Partial) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  template <class T>
  static T* at(const Node* y, std::size_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(const_cast<Node*>(y)) + offset);
  }

  void take_apart() {
    Node* y = std::exchange(waiting_, waiting_->parent);
    if (y->level > 0)
      for (std::size_t i = 0; i <= y->n; ++i) children(y)[i]->parent = std::exchange(waiting_, children(y)[i]);
    entries_waiting_ -= y->n;
    drop(y);
  }

  std::size_t slots_, values_at_, children_at_, total_at_;
  std::size_t bytes_[2];
  Node* waiting_ = nullptr;  // roots of subtrees, linked by their parent pointer
  std::uint64_t entries_waiting_ = 0;
  Link* spare_[2] = {nullptr, nullptr};  // raw memory for leaves and for inner nodes
  std::size_t spares_[2] = {0, 0};
  std::size_t live_bytes_ = 0;
};

}  // namespace sash
