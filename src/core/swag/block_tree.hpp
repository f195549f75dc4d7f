// The tree under BlockFiba: nodes, fingers at both ends, search from the nearer end
//
// A B+-tree of blocks. A finger names the first and the last node of every level, so that a search climbs from the nearer end and goes
// down from where the key is: O(log d). No node knows its parent: a path is recorded on the way down, and above a finger's node is the
// finger of the next level.
//
//                         root                       finger[2].left = finger[2].right
//              .-----------+------------.
//            left         ...         right          finger[1]
//         .----+---.               .----+---.
//       head      ...             ...      tail      entries of the head before `lo` have left
//
// A child off the spines has its partial and its number of entries in its parent. A child on a spine has neither there: block_spines.hpp
// keeps what lies beside a spine.

#pragma once

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "../monoid.hpp"
#include "../slab_pool.hpp"
#include "block_nodes.hpp"

namespace sash::block {

// Where the nodes come from: a window's own pools, or pools that many windows share, so that many small ones are not many heaps.
template <class Leaf, class Inner>
struct Pools {
  SlabPool<Leaf> leaves;
  SlabPool<Inner> inners;
};

template <class Leaf, class Inner>
class PoolsOf {
 public:
  explicit PoolsOf(Pools<Leaf, Inner>* shared) : own_(shared ? nullptr : new Pools<Leaf, Inner>), used_(shared ? shared : own_.get()) {}
  PoolsOf(PoolsOf&& other) noexcept : own_(std::move(other.own_)), used_(std::exchange(other.used_, nullptr)) {}
  PoolsOf& operator=(PoolsOf&& other) noexcept {
    own_.swap(other.own_);
    std::swap(used_, other.used_);
    return *this;
  }
  Pools<Leaf, Inner>* operator->() const { return used_; }
  bool shared() const { return used_ && !own_; }

 private:
  std::unique_ptr<Pools<Leaf, Inner>> own_;
  Pools<Leaf, Inner>* used_;
};

// A probe that many windows share is found through the monoid.
template <class M>
ProbeOf<M> probe_of(const M& monoid) {
  if constexpr (std::is_constructible_v<ProbeOf<M>, const M&>)
    return ProbeOf<M>(monoid);
  else
    return {};
}

template <Monoid M, class Key, int LeafCap, int Fan>
class Tree {
  static_assert(LeafCap >= 4 && Fan >= 4, "a split must leave both halves at least a quarter full");

 public:
  using Partial = typename M::Partial;
  using Leaf = block::Leaf<Key, Partial, LeafCap>;
  using Inner = block::Inner<Key, Partial, Fan>;

  struct Finger {
    Inner* left = nullptr;
    Inner* right = nullptr;
  };

  // From a leaf up: at[l] is a node of level l and the child of it that was taken. Known up to `top`, where the
  // path meets a spine; climb() goes on along that spine. Beside it, which levels of the spines must be mended.
  struct Path {
    static constexpr int highest = Inner::least > 2 ? 32 : 60, clean = 1 << 20;
    struct Step {
      Inner* node;
      int i;
    } at[highest];
    Leaf* leaf;
    int top = 0;
    bool left = false;
    int high = 0, left_from = clean, right_from = clean;

    void* node(int level) const { return level ? static_cast<void*>(at[level].node) : leaf; }
  };

  // A child on its way into a parent.
  struct Child {
    Key key;
    void* node;
    std::int64_t count;
    Partial agg;
  };
  using Brood = std::vector<Child>;

  explicit Tree(M m, Pools<Leaf, Inner>* shared) : monoid(std::move(m)), probe(probe_of(monoid)), pools(shared) { finger.emplace_back(); }

  // ---- partials

  Partial one() const { return monoid.identity(); }
  Partial combine(const Partial& a, const Partial& b) const { return monoid.combine(a, b); }

  Partial fold(const Partial* v, int from, int to) const {
    if (from >= to) return one();
    if constexpr (requires { monoid.fold(v, 1); }) {
      return monoid.fold(v + from, to - from);
    } else if constexpr (std::is_trivially_copyable_v<Partial> && sizeof(Partial) <= 16 && !may_throw<M>) {
      // Four runs at a time, for a combine waits for the one before it.
      if (int q = (to - from) / 4; q >= 2) {
        const Partial *va = v + from, *vb = va + q, *vc = vb + q, *vd = vc + q;
        Partial a = *va, b = *vb, c = *vc, d = *vd;
        for (int i = 1; i < q; ++i) a = combine(a, va[i]), b = combine(b, vb[i]), c = combine(c, vc[i]), d = combine(d, vd[i]);
        for (int i = from + 4 * q; i < to; ++i) d = combine(d, v[i]);
        return combine(combine(a, b), combine(c, d));
      }
    }
    Partial sum = v[from];
    for (int i = from + 1; i < to; ++i) sum = combine(sum, v[i]);
    return sum;
  }
  Partial fold(const Inner* node, int from, int to) const { return fold(node->agg.at, from, to); }
  Partial fold(const Leaf* leaf, int from, int to) const { return fold(leaf->v.at, from, to); }

  static std::int64_t count(const Inner* node, int from, int to) {
    std::int64_t sum = 0;
    for (int i = from; i < to; ++i) sum += node->count[i];
    return sum;
  }

  // The partial of child i of parent, a node of `level`, from what is in the child.
  void sum_up(Inner* parent, int i, int level) const {
    if (level == 1) {
      auto* leaf = static_cast<Leaf*>(parent->child[i]);
      parent->agg[i] = fold(leaf, 0, leaf->n);
      parent->count[i] = leaf->n;
    } else {
      auto* node = static_cast<Inner*>(parent->child[i]);
      parent->agg[i] = fold(node, 0, node->n);
      parent->count[i] = count(node, 0, node->n);
    }
  }

  // ---- places

  // The first and the last node of a level; the one node of the highest.
  void* left_end(int level) const { return level ? static_cast<void*>(finger[level].left) : head; }
  void* right_end(int level) const { return level ? static_cast<void*>(finger[level].right) : tail; }
  void set_right_end(Inner* node, int level) { finger[level].right = node; }
  void set_right_end(Leaf* leaf, int) { tail = leaf; }
  void* top() const { return left_end(height); }
  Inner* root() const { return finger[height].left; }
  bool on_spine(const void* node, int level) const { return node == left_end(level) || node == right_end(level); }

  // The separator before the last child of a level's last node, and the one behind the first child of its first node.
  const Key& before_last(int level) const { return finger[level].right->key[finger[level].right->n - 1]; }
  const Key& behind_first(int level) const { return finger[level].left->key[1]; }

  // The place of a leaf's first entry that has not left, and the first places not before a key and after it.
  int first(const Leaf* leaf) const { return leaf == head ? lo : 0; }
  int lower(const Leaf* leaf, const Key& key) const { return block::lower(*leaf, first(leaf), key); }
  int upper(const Leaf* leaf, const Key& key) const { return block::upper(*leaf, first(leaf), key); }

  // The leaf that key belongs to, from the nearer end.
  Leaf* find(const Key& key, Path& path) const {
    void* node = nullptr;
    int level = 0;
    for (;; ++level) {
      if (level == height) {
        node = top();
        break;
      }
      if (!(key < before_last(level + 1))) {
        node = right_end(level);
        break;
      }
      if (key < behind_first(level + 1)) {
        node = left_end(level);
        path.left = true;
        break;
      }
      probe.visit(2);
    }
    path.top = level;
    for (; level > 0; --level) {
      auto* inner = static_cast<Inner*>(node);
      int i = child_of(*inner, key);
      path.at[level] = {inner, i};
      node = inner->child[i];
      if (level > 1)
        prefetch(static_cast<Inner*>(node));
      else
        prefetch(static_cast<Leaf*>(node));
      probe.visit();
    }
    return path.leaf = static_cast<Leaf*>(node);
  }

  // The path of the first or the last leaf.
  void find_end(bool left, Path& path) const {
    path.top = 0;
    path.left = left;
    path.leaf = left ? head : tail;
  }

  void climb(Path& path, int level) const {
    while (path.top < level) {
      Inner* node = path.left ? finger[path.top + 1].left : finger[path.top + 1].right;
      path.at[++path.top] = {node, path.left ? 0 : node->n - 1};
    }
  }

  // The separator behind the path's leaf, which is not the tail.
  const Key& end_of_leaf(const Path& path) const {
    for (int l = 1; l <= path.top; ++l) {
      auto [node, i] = path.at[l];
      if (i + 1 < node->n) return node->key[i + 1];
    }
    return behind_first(path.top + 1);
  }

  // Every leaf under a node, in order. (noipa: GCC 12.2 at -O2 takes some instances of this walk for pure, and drops them with
  // what their visitor gathers. Either -fno-ipa-modref or -fno-ipa-pure-const alone does not stop it; both together do.)
  template <class Visit>
  [[gnu::noipa]] static void each_leaf(const void* node, int level, Visit visit) {
    struct {
      const Inner* node;
      int i;
    } at[Path::highest];
    for (int l = level;;) {
      for (; l > 0; --l) {
        at[l] = {static_cast<const Inner*>(node), 0};
        node = at[l].node->child[0];
      }
      visit(static_cast<const Leaf*>(node));
      do {
        if (++l > level) return;
      } while (++at[l].i == at[l].node->n);
      node = at[l].node->child[at[l].i];
      --l;
    }
  }

  // ---- which levels of the spines an operation has touched

  void touch(Path& path, const void* node, int level) const {
    path.high = std::max(path.high, level);
    if (node == left_end(level) && level < height) path.left_from = std::min(path.left_from, level);
    if (node == right_end(level)) path.right_from = std::min(path.right_from, level);
  }
  void touch_all(Path& path) const {
    path.high = height;
    path.left_from = path.right_from = 0;
  }

  // Sums up from a changed node to where the path meets a spine.
  void refresh(Path& path, int level) const {
    if (level == height) return;
    touch(path, path.node(level), level);
    while (!on_spine(path.node(level), level)) {
      climb(path, level + 1);
      auto [parent, i] = path.at[++level];
      sum_up(parent, i, level);
      touch(path, parent, level);
    }
  }

  // ---- children dealt out over nodes

  static Child get(Inner* node, int i) { return {node->key[i], node->child[i], node->count[i], std::move(node->agg[i])}; }
  static void set(Inner* node, int i, Child& c) {
    node->key[i] = c.key;
    node->child[i] = c.node;
    node->count[i] = c.count;
    node->agg[i] = std::move(c.agg);
  }

  Brood& scratch(int level) {
    if (static_cast<int>(scratch_.size()) <= level) scratch_.resize(level + 1);
    return scratch_[level];
  }

  // Deals children out over node and as many new siblings as it takes; at an edge of the tree the node that
  // time moves away from is left fuller.
  void deal(Inner* node, int level, Brood& all, Brood& siblings, int edge) {
    siblings.clear();
    int c = static_cast<int>(all.size()), fill = Fan * 3 / 4;
    int parts = c <= Fan ? 1 : (c + fill - 1) / fill;
    bool last_on_spine = node == finger[level].right;
    probe.restructure(static_cast<std::size_t>(parts - 1));
    for (int part = 0, from = 0; part < parts; ++part) {
      int to = c * (part + 1) / parts;
      if (parts == 2 && c == Fan + 1 && part == 0) to = edge > 0 ? fill : edge < 0 ? c - fill : (c + 1) / 2;
      Inner* into = part ? pools->inners.take(one()) : node;
      into->release(0, into->n, one());
      into->n = to - from;
      for (int j = from; j < to; ++j) set(into, j - from, all[j]);
      if (part) {
        bool spine = last_on_spine && part == parts - 1;
        siblings.push_back({into->key[0], into, count(into, 0, into->n), spine ? one() : fold(into, 0, into->n)});
      }
      from = to;
    }
  }

  // ---- nodes come and go; subtrees cut off whole are buried, and taken apart a few leaves at a time by later operations

  Leaf* new_leaf() {
    reclaim(4);
    return pools->leaves.take(one());
  }
  void free_leaf(Leaf* leaf) {
    leaf->release(0, leaf->n, one());
    pools->leaves.give(leaf);
  }
  void free_inner(Inner* node) {
    node->release(0, node->n, one());
    pools->inners.give(node);
  }

  void bury(void* node, int level) { dead.push_back({node, level}); }
  void reclaim(int leaves) {
    while (leaves > 0 && !dead.empty()) {
      auto [node, level] = dead.back();
      dead.pop_back();
      if (level == 0) {
        free_leaf(static_cast<Leaf*>(node));
        --leaves;
      } else {
        auto* inner = static_cast<Inner*>(node);
        for (int i = 0; i < inner->n; ++i) bury(inner->child[i], level - 1);
        free_inner(inner);
      }
    }
  }

  M monoid;
  [[no_unique_address]] ProbeOf<M> probe;
  PoolsOf<Leaf, Inner> pools;

  int height = 0;              // the root's level; 0: one leaf
  std::vector<Finger> finger;  // [0] unused: its nodes are head and tail
  Leaf* head = nullptr;
  Leaf* tail = nullptr;
  int lo = 0;  // the head's oldest entry

  struct Dead {
    void* node;
    int level;
  };
  std::vector<Dead> dead;

 private:
  std::vector<Brood> scratch_;
};

}  // namespace sash::block
