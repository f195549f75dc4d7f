// Nodes of an aggregate B-tree: their layout, what is done to their entries, and where their memory comes from
//
// One block of memory per node. The arity is known at run time only, so the arrays follow the header:
//
//     | parent n level place agg | key 0 .. s-1 | value 0 .. s-1 |                           a leaf
//     | parent n level place agg | key 0 .. s-1 | value 0 .. s-1 | child 0 .. s | total |    an inner node
//
// s = 2 * min_arity slots, one entry more than a node may keep: for the moment between an insert and the split. Only the first n slots hold
// objects. (An arity known at compile time was 2 to 3 % faster, for as many copies of the code as arities.)
//
// A whole subtree is given back in O(1): it waits on a list, and is taken apart node by node when memory is needed or, as long as more
// entries wait than the window holds, a few nodes at every operation.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "../check.hpp"

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
class TreeNodes {
 public:
  struct Node {
    Node* parent = nullptr;
    std::uint16_t n = 0;     // entries; an inner node has n + 1 children
    std::uint8_t level = 0;  // 0 is a leaf
    Place place = Place::within;
    Partial agg;

    explicit Node(Partial identity) : agg(std::move(identity)) {}
  };

  // Neighbours at one level, and the entry between them: in their parent, or in their nearest common ancestor.
  struct Pair {
    Node *left, *right;
    Node* above;
    std::size_t entry;
  };

  explicit TreeNodes(std::size_t min_arity) : slots_(2 * min_arity) {
    values_at_ = align(keys_at + slots_ * sizeof(Key), alignof(Partial));
    children_at_ = align(values_at_ + slots_ * sizeof(Partial), alignof(Node*));
    total_at_ = children_at_ + (slots_ + 1) * sizeof(Node*);
    bytes_[0] = align(values_at_ + slots_ * sizeof(Partial), alignof(Node));
    bytes_[1] = align(total_at_ + sizeof(std::uint64_t), alignof(Node));
  }
  TreeNodes(const TreeNodes&) = delete;
  TreeNodes& operator=(const TreeNodes&) = delete;
  ~TreeNodes() {
    tend_all();
    for (Link*& spare : spare_)
      while (spare) ::operator delete(std::exchange(spare, spare->next));
  }

  void swap(TreeNodes& other) {
    std::swap(slots_, other.slots_);
    std::swap(values_at_, other.values_at_);
    std::swap(children_at_, other.children_at_);
    std::swap(total_at_, other.total_at_);
    std::swap(bytes_, other.bytes_);
    std::swap(waiting_, other.waiting_);
    std::swap(entries_waiting_, other.entries_waiting_);
    std::swap(spare_, other.spare_);
    std::swap(spares_, other.spares_);
    std::swap(bytes_held_, other.bytes_held_);
  }

  std::size_t slots() const { return slots_; }
  Key* keys(const Node* y) const { return at<Key>(y, keys_at); }
  Partial* values(const Node* y) const { return at<Partial>(y, values_at_); }
  Node** children(const Node* y) const { return at<Node*>(y, children_at_); }
  // Entries of the subtree, kept by inner nodes: it is up to date wherever their partial covers the subtree.
  std::uint64_t& total(const Node* y) const { return *at<std::uint64_t>(y, total_at_); }
  std::uint64_t entries(const Node* y) const { return y->level == 0 ? y->n : total(y); }

  void recount(Node* y) {
    Node** c = children(y);
    std::uint64_t entries = y->n;
    if (y->level == 1)
      for (std::size_t i = 0; i <= y->n; ++i) entries += c[i]->n;
    else
      for (std::size_t i = 0; i <= y->n; ++i) entries += total(c[i]);
    total(y) = entries;
  }

  // ---- entries, and the children beside them ----

  void place(Node* y, std::size_t i, const Key& key, Partial&& value) {
    Key* k = keys(y);
    Partial* v = values(y);
    relocate(k + i + 1, k + i, y->n - i);
    relocate(v + i + 1, v + i, y->n - i);
    put(y, i, Key(key), std::move(value));
    ++y->n;
  }

  void remove(Node* y, std::size_t i) {
    Key* k = keys(y);
    Partial* v = values(y);
    std::destroy_at(k + i);
    std::destroy_at(v + i);
    --y->n;
    relocate(k + i, k + i + 1, y->n - i);
    relocate(v + i, v + i + 1, y->n - i);
  }

  // Fills a slot beyond the entries.
  void put(Node* y, std::size_t i, Key&& key, Partial&& value) {
    ::new (static_cast<void*>(keys(y) + i)) Key(std::move(key));
    ::new (static_cast<void*>(values(y) + i)) Partial(std::move(value));
  }

  // For a place and a remove of the entry beside the child, which come first.
  void place_child(Node* y, std::size_t i, Node* child) {
    Node** c = children(y);
    relocate(c + i + 1, c + i, y->n - i);
    c[i] = child;
    child->parent = y;
  }
  void remove_child(Node* y, std::size_t i) {
    Node** c = children(y);
    relocate(c + i, c + i + 1, y->n + 1 - i);
  }

  std::size_t index_of(const Node* child) const {
    Node** c = children(child->parent);
    std::size_t i = 0;
    while (c[i] != child) ++i;
    return i;
  }

  // The first k entries go, with the children before them.
  void remove_front(Node* y, std::size_t k) {
    std::destroy_n(keys(y), k);
    std::destroy_n(values(y), k);
    y->n = narrow(y->n - k);
    relocate(keys(y), keys(y) + k, y->n);
    relocate(values(y), values(y) + k, y->n);
    if (y->level > 0) relocate(children(y), children(y) + k, y->n + 1u);
  }

  // Entries from i on and the children after them go to an empty node, with the child before them.
  void take_tail(Node* y, std::size_t i, Node* z) {
    z->n = narrow(y->n - i);
    y->n = narrow(i);
    relocate(keys(z), keys(y) + i, z->n);
    relocate(values(z), values(y) + i, z->n);
    if (y->level > 0) {
      relocate(children(z), children(y) + i, z->n + 1u);
      adopt(z, 0, z->n + 1u);
    }
  }

  // k entries go over to the left, by way of the entry between, with the children before them.
  void move_left(const Pair& pair, std::size_t k) {
    Node *l = pair.left, *r = pair.right;
    Key& key = keys(pair.above)[pair.entry];
    Partial& value = values(pair.above)[pair.entry];
    std::size_t n = l->n, rest = r->n - k;
    put(l, n, std::move(key), std::move(value));
    relocate(keys(l) + n + 1, keys(r), k - 1);
    relocate(values(l) + n + 1, values(r), k - 1);
    key = std::move(keys(r)[k - 1]);
    value = std::move(values(r)[k - 1]);
    std::destroy_at(keys(r) + k - 1);
    std::destroy_at(values(r) + k - 1);
    relocate(keys(r), keys(r) + k, rest);
    relocate(values(r), values(r) + k, rest);
    if (l->level > 0) {
      relocate(children(l) + n + 1, children(r), k);
      relocate(children(r), children(r) + k, rest + 1);
      adopt(l, n + 1, n + 1 + k);
    }
    l->n = narrow(n + k);
    r->n = narrow(rest);
  }

  // One entry goes over to the right.
  void move_right(const Pair& pair) {
    Node *l = pair.left, *r = pair.right;
    Key& key = keys(pair.above)[pair.entry];
    Partial& value = values(pair.above)[pair.entry];
    std::size_t last = l->n - 1u;
    place(r, 0, key, std::move(value));
    key = std::move(keys(l)[last]);
    value = std::move(values(l)[last]);
    remove(l, last);
    if (r->level > 0) place_child(r, 0, children(l)[last + 1]);
  }

  // The right one takes in the left one and the entry between, which is left without its value, as the left one is without entries.
  void merge(const Pair& pair) {
    Node *l = pair.left, *r = pair.right;
    std::size_t n = l->n + 1u;
    put(l, l->n, std::move(keys(pair.above)[pair.entry]), std::move(values(pair.above)[pair.entry]));
    relocate(keys(r) + n, keys(r), r->n);
    relocate(values(r) + n, values(r), r->n);
    relocate(keys(r), keys(l), n);
    relocate(values(r), values(l), n);
    if (r->level > 0) {
      relocate(children(r) + n, children(r), r->n + 1u);
      relocate(children(r), children(l), n);
      adopt(r, 0, n);
    }
    r->n = narrow(r->n + n);
    l->n = 0;
  }

  // ---- memory ----

  Node* make(std::size_t level, Partial identity) {
    bool inner = level > 0;
    // A leaf may be a few levels down in what waits; further than that, a new one is cheaper.
    for (int i = 0; i < 4 && !spare_[inner] && (waiting_[inner] || waiting_[1]); ++i) take_apart(waiting_[inner] ? inner : true);
    void* memory;
    if (spare_[inner]) {
      memory = std::exchange(spare_[inner], spare_[inner]->next);
      --spares_[inner];
    } else {
      memory = ::operator new(bytes_[inner]);
      bytes_held_ += bytes_[inner];
    }
    Node* y = ::new (memory) Node(std::move(identity));
    y->level = static_cast<std::uint8_t>(level);
    return y;
  }

  // Gives back one node and its entries, not its children.
  void drop(Node* y) {
    bool inner = y->level > 0;
    std::destroy_n(keys(y), y->n);
    std::destroy_n(values(y), y->n);
    y->~Node();
    if (spares_[inner] < most_spares) {
      spare_[inner] = ::new (static_cast<void*>(y)) Link{spare_[inner]};
      ++spares_[inner];
    } else {
      bytes_held_ -= bytes_[inner];
      ::operator delete(y);
    }
  }

  // Gives back a subtree of so many entries, later.
  void defer(Node* y, std::uint64_t entries) {
    wait(y);
    entries_waiting_ += entries;
  }

  // What waits for reuse is kept within what the window holds.
  void tend(std::size_t size) {
    if (entries_waiting_ <= size) return;
    for (int i = 0; i < 4 && (waiting_[0] || waiting_[1]); ++i) take_apart(waiting_[0] == nullptr);
  }

  void tend_all() {
    while (waiting_[0] || waiting_[1]) take_apart(waiting_[0] == nullptr);
  }

  std::size_t bytes_held() const { return bytes_held_; }

  void check() const {
    std::uint64_t entries = 0;
    for (const Node* list : waiting_)
      for (const Node* y = list; y; y = y->parent) entries += count(y);
    require(entries == entries_waiting_, "free list: ", entries, " entries wait, ", entries_waiting_, " were counted");
  }

 private:
  struct Link {
    Link* next;
  };

  static constexpr std::size_t align(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }
  static constexpr std::size_t keys_at = (sizeof(Node) + alignof(Key) - 1) / alignof(Key) * alignof(Key);
  static constexpr std::size_t most_spares = 32;
  static_assert(alignof(Key) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ && alignof(Partial) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  static std::uint16_t narrow(std::size_t n) { return static_cast<std::uint16_t>(n); }

  template <class T>
  static T* at(const Node* y, std::size_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(const_cast<Node*>(y)) + offset);
  }

  void adopt(Node* y, std::size_t from, std::size_t to) {
    for (; from < to; ++from) children(y)[from]->parent = y;
  }

  void wait(Node* y) { y->parent = std::exchange(waiting_[y->level > 0], y); }

  void take_apart(bool inner) {
    Node* y = std::exchange(waiting_[inner], waiting_[inner]->parent);
    if (inner)
      for (std::size_t i = 0; i <= y->n; ++i) wait(children(y)[i]);
    entries_waiting_ -= y->n;
    drop(y);
  }

  std::uint64_t count(const Node* y) const {
    std::uint64_t entries = y->n;
    if (y->level > 0)
      for (std::size_t i = 0; i <= y->n; ++i) entries += count(children(y)[i]);
    return entries;
  }

  std::size_t slots_, values_at_, children_at_, total_at_;
  std::size_t bytes_[2];                   // of a leaf and of an inner node
  Node* waiting_[2] = {nullptr, nullptr};  // leaves, and roots of subtrees, linked by their parent pointers
  std::uint64_t entries_waiting_ = 0;
  Link* spare_[2] = {nullptr, nullptr};
  std::size_t spares_[2] = {0, 0};
  std::size_t bytes_held_ = 0;
};

}  // namespace sash
