// The nodes of BlockFiba: blocks of entries, and blocks of children
//
// Both are parallel columns with a length, so that moving things about (a split, a merge, a borrow, a run of
// insertions) is written once, over columns.
//
//   Leaf    t  t0 t1 t2 ...     the times, rising          Inner   key    -  k1 k2 ...     child i holds key[i] <= t < key[i + 1]
//           v  v0 v1 v2 ...     their partials                     child  c0 c1 c2 ...
//                                                                  count  entries under each child
//                                                                  agg    the partial of each child

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace sash::block {

// What a slot without an entry holds: the cheapest partial there is; nothing reads it.
template <class Partial>
Partial nothing(const Partial& one) {
  if constexpr (std::is_default_constructible_v<Partial>)
    return Partial();
  else
    return one;
}

// N partials, alive as long as the node.
template <class Partial, int N>
struct Row {
  union {
    Partial at[N];
  };
  explicit Row(const Partial& one) { std::uninitialized_fill_n(at, N, nothing(one)); }
  ~Row()
    requires std::is_trivially_destructible_v<Partial>
  = default;
  ~Row() { std::destroy_n(at, N); }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  Partial& operator[](int i) { return at[i]; }
  const Partial& operator[](int i) const { return at[i]; }
};

template <class Key, class Partial, int Cap>
struct Leaf {
  static constexpr int cap = Cap;
  static constexpr int least = Cap / 4;

  std::int32_t n = 0;
  std::int32_t slab = 0;
  Key t[Cap];
  Row<Partial, Cap> v;

  explicit Leaf(const Partial& one) : v(one) {}

  const Key& first() const { return t[0]; }
  template <class F>
  void columns(Leaf& other, F f) {
    f(t, other.t);
    f(v.at, other.v.at);
  }
  void release(int from, int to, const Partial& one) {
    if constexpr (!std::is_trivially_destructible_v<Partial>) std::fill(v.at + from, v.at + to, nothing(one));
  }
};

template <class Key, class Partial, int Cap>
struct Inner {
  static constexpr int cap = Cap;
  static constexpr int least = Cap / 4 < 2 ? 2 : Cap / 4;

  std::int32_t n = 0;
  std::int32_t slab = 0;
  Key key[Cap];
  void* child[Cap];
  std::int64_t count[Cap];
  Row<Partial, Cap> agg;

  explicit Inner(const Partial& one) : agg(one) {}

  const Key& first() const { return key[0]; }
  template <class F>
  void columns(Inner& other, F f) {
    f(key, other.key);
    f(child, other.child);
    f(count, other.count);
    f(agg.at, other.agg.at);
  }
  void release(int from, int to, const Partial& one) {
    if constexpr (!std::is_trivially_destructible_v<Partial>) std::fill(agg.at + from, agg.at + to, nothing(one));
  }
};

// Makes room for k things before place i.
template <class Node>
void open(Node& node, int i, int k) {
  if (k == 0) return;  // a move onto itself may lose what is moved
  node.columns(node, [&](auto* c, auto*) { std::move_backward(c + i, c + node.n, c + node.n + k); });
  node.n += k;
}

// Takes k things away from place i on.
template <class Node, class Partial>
void close(Node& node, int i, int k, const Partial& one) {
  if (k == 0) return;
  node.columns(node, [&](auto* c, auto*) { std::move(c + i + k, c + node.n, c + i); });
  node.n -= k;
  node.release(node.n, node.n + k, one);
}

// Moves the k first things of b behind those of a, or the -k last of a before those of b.
template <class Node, class Partial>
void pour(Node& a, Node& b, int k, const Partial& one) {
  if (k > 0) {
    a.columns(b, [&](auto* to, auto* from) { std::move(from, from + k, to + a.n); });
    a.n += k;
    close(b, 0, k, one);
  } else if (k < 0) {
    open(b, 0, -k);
    a.n += k;
    a.columns(b, [&](auto* from, auto* to) { std::move(from + a.n, from + a.n - k, to); });
    a.release(a.n, a.n - k, one);
  }
}

// Asks for a whole node at once: its lines come in parallel, where a search would wait for one after another.
template <class Node>
void prefetch(const Node* node) {
  auto* line = reinterpret_cast<const char*>(node);
  for (std::size_t at = 0; at < std::min(sizeof(Node), std::size_t{2048}); at += 64) __builtin_prefetch(line + at);
}

// The first place in [from, n) whose time is not before key.
template <class Leaf, class Key>
int lower(const Leaf& leaf, int from, const Key& key) {
  const Key* t = leaf.t + from;
  for (int len = leaf.n - from; len > 0;) {
    int half = (len + 1) / 2;
    t += t[half - 1] < key ? half : 0;
    len -= half;
  }
  return static_cast<int>(t - leaf.t);
}

// The first place in [from, n) whose time is after key.
template <class Leaf, class Key>
int upper(const Leaf& leaf, int from, const Key& key) {
  return static_cast<int>(std::upper_bound(leaf.t + from, leaf.t + leaf.n, key) - leaf.t);
}

// The child that key belongs to.
template <class Inner, class Key>
int child_of(const Inner& node, const Key& key) {
  int i = 0;
  for (int k = 1; k < node.n; ++k) i += !(key < node.key[k]);
  return i;
}

}  // namespace sash::block
