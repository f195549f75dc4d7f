// The tree under BlockFiba, with fingers at both of its ends
//
// A B+-tree whose partials depend on where a node lies: a child off the spines has its partial in its parent; a
// child on a spine has none there. What is beside the spines is kept here instead, level by level:
//
//                         root
//              .-----------+------------.            spine_[l].left_fold    children 1.. of the left node
//           left_1        ...        right_1         spine_[l].left_rest    left_fold of l, l + 1, ... up to below the root
//         .----+---.               .----+---.        spine_[l].right_fold   children ..n-2 of the right node; root: 1..n-2
//       head_     ...             ...     tail_      spine_[l].right_rest   right_fold of the root, ..., l + 1, l
//      [suffixes_]                    [prefixes_]
//
//   suffixes_[i]   head_ from entry i on, and all that is beside the left spine
//   prefixes_[i]   tail_ up to entry i
//
// So a change at an end touches the ends alone, and one at distance d the O(log d) levels below where its path
// leaves a spine. No node knows its parent: a path is recorded on the way down, and above a spine's node is the spine.

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

 protected:
  using Leaf = block::Leaf<Key, Partial, LeafCap>;
  using Inner = block::Inner<Key, Partial, Fan>;

  struct Spine {
    Inner* left;
    Inner* right;
    Partial left_fold, left_rest, right_fold, right_rest;
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
  };

  explicit Tree(M monoid, Pools<Leaf, Inner>* shared = nullptr)
      : monoid_(std::move(monoid)),
        probe_(probe_of(monoid_)),
        pools_(shared),
        suffixes_(LeafCap, nothing(one())),
        prefixes_(suffixes_),
        before_(one()),
        after_(one()) {
    suffixes_[0] = one();
    spine_.push_back(blank());
  }

  Partial one() const { return monoid_.identity(); }
  Partial combine(const Partial& a, const Partial& b) const { return monoid_.combine(a, b); }

  Partial fold(const Partial* v, int from, int to) const {
    if (from >= to) return one();
    if constexpr (requires { monoid_.fold(v, 1); }) {
      return monoid_.fold(v + from, to - from);
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

  Inner* root() const { return spine_[height_].left; }
  bool on_spine(const void* node, int level) const {
    return level ? node == spine_[level].left || node == spine_[level].right : node == head_ || node == tail_;
  }

  // ---- finding

  // The leaf that key belongs to, from the nearer end.
  Leaf* find(const Key& key, Path& path) const {
    void* node = head_;
    int level = 0;
    for (;; ++level) {
      if (level == height_) {
        if (level) node = root();
        break;
      }
      const Spine& above = spine_[level + 1];
      if (!(key < above.right->key[above.right->n - 1])) {
        node = level ? static_cast<void*>(spine_[level].right) : tail_;
        break;
      }
      if (key < above.left->key[1]) {
        node = level ? static_cast<void*>(spine_[level].left) : head_;
        path.left = true;
        break;
      }
      probe_.visit(2);
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
      probe_.visit();
    }
    return path.leaf = static_cast<Leaf*>(node);
  }

  // The path of the first or the last leaf.
  void find_end(bool left, Path& path) const {
    path.top = 0;
    path.left = left;
    path.leaf = left ? head_ : tail_;
  }

  void climb(Path& path, int level) const {
    while (path.top < level) {
      Inner* node = path.left ? spine_[path.top + 1].left : spine_[path.top + 1].right;
      path.at[++path.top] = {node, path.left ? 0 : node->n - 1};
    }
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

  // ---- mending partials: what changed is noted in the path, bottom up, then mended, top down

  void touch(Path& path, const void* node, int level) const {
    path.high = std::max(path.high, level);
    if (node == (level ? static_cast<void*>(spine_[level].left) : head_) && level < height_)
      path.left_from = std::min(path.left_from, level);
    if (node == (level ? static_cast<void*>(spine_[level].right) : tail_)) path.right_from = std::min(path.right_from, level);
  }
  void touch_all(Path& path) const {
    path.high = height_;
    path.left_from = path.right_from = 0;
  }

  // The partial of child i of parent, from what is in the child.
  void sum_up(Inner* parent, int i, int level) {
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

  // From a changed node up to where the path meets a spine.
  void refresh(Path& path, int level) {
    if (level == height_) return;
    touch(path, level ? static_cast<void*>(path.at[level].node) : path.leaf, level);
    while (!on_spine(level ? static_cast<void*>(path.at[level].node) : path.leaf, level)) {
      climb(path, level + 1);
      auto [parent, i] = path.at[++level];
      sum_up(parent, i, level);
      touch(path, parent, level);
    }
  }

  void mend(Path& path) {
    if (path.left_from <= path.high) mend_left(path.high, path.left_from);
    if (path.right_from <= path.high) mend_right(path.high, path.right_from);
  }

  void mend_left(int high, int from) {
    mend_left_spine(high, from);
    if (from == 0 && height_) {
      auto* head = static_cast<Leaf*>(spine_[1].left->child[0]);
      if (head != head_) lo_ = 0;
      head_ = head;
    }
    if (from == 0) {
      turn_ = head_->n;
      if (height_) prefetch(static_cast<Leaf*>(spine_[1].left->child[1]));  // the next head
    }
    suffix(turn_ - 1);
  }

  void mend_left_spine(int high, int from) {
    for (int l = std::min(high, height_ - 1); l > 0; --l) {
      Spine& s = spine_[l];
      if (l >= from) {
        s.left = static_cast<Inner*>(spine_[l + 1].left->child[0]);
        s.left_fold = fold(s.left, 1, s.left->n);
      }
      s.left_rest = l == height_ - 1 ? s.left_fold : combine(s.left_fold, spine_[l + 1].left_rest);
    }
  }

  void mend_right(int high, int from) {
    mend_right_spine(high, from);
    if (from == 0) {
      tail_ = height_ ? static_cast<Leaf*>(spine_[1].right->child[spine_[1].right->n - 1]) : head_;
      prefix(tail_start());
    }
    before_ = height_ ? spine_[1].right_rest : one();
  }

  void mend_right_spine(int high, int from) {
    for (int l = std::min(high, height_); l > 0; --l) {
      Spine& s = spine_[l];
      if (l >= from) {
        if (l < height_) s.right = static_cast<Inner*>(spine_[l + 1].right->child[spine_[l + 1].right->n - 1]);
        s.right_fold = fold(s.right, l == height_ ? 1 : 0, s.right->n - 1);
      }
      s.right_rest = l == height_ ? s.right_fold : combine(spine_[l + 1].right_rest, s.right_fold);
    }
  }

  // Suffixes of the head from entry p down to the oldest.
  void suffix(int p) { suffix(p, lo_, beside_head()); }
  void suffix(int p, int to, const Partial* beside) {
    for (int i = p; i >= to; --i) {
      if (i + 1 < turn_)
        suffixes_[i] = combine(head_->v[i], suffixes_[i + 1]);
      else
        suffixes_[i] = beside ? combine(head_->v[i], *beside) : head_->v[i];
    }
  }
  // What the left spine carries below the root, null if nothing.
  const Partial* beside_head() const { return height_ > 1 ? &spine_[1].left_rest : nullptr; }

  // A window of one leaf is two stacks: suffixes up to turn_, prefixes from there.
  int tail_start() const { return height_ ? 0 : turn_; }

  // Prefixes of the tail from entry p on.
  void prefix(int p) {
    unlearn(p);
    learn_prefixes();
    after_ = known_ > tail_start() ? prefixes_[known_ - 1] : one();
  }
  void unlearn(int p) { known_ = std::max(tail_start(), std::min(known_, p)); }
  void learn_prefixes() {
    for (int start = tail_start(); known_ < tail_->n; ++known_)
      prefixes_[known_] = known_ > start ? combine(prefixes_[known_ - 1], tail_->v[known_]) : tail_->v[known_];
  }

  // The head's entries to the front of its block.
  void settle_head() {
    if (lo_ == 0) return;
    if (tail_ == head_) known_ = std::max(known_ - lo_, turn_ - lo_);
    std::move(suffixes_.begin() + lo_, suffixes_.begin() + turn_, suffixes_.begin());
    if (tail_ == head_) std::move(prefixes_.begin() + turn_, prefixes_.begin() + known_ + lo_, prefixes_.begin() + turn_ - lo_);
    block::close(*head_, 0, lo_, one());
    turn_ -= lo_;
    lo_ = 0;
  }

  Spine blank() const { return {nullptr, nullptr, one(), one(), one(), one()}; }

  M monoid_;
  [[no_unique_address]] ProbeOf<M> probe_;
  PoolsOf<Leaf, Inner> pools_;

  int height_ = 0;            // the root's level; 0: one leaf
  std::vector<Spine> spine_;  // [0] unused

  Leaf* head_ = nullptr;
  Leaf* tail_ = nullptr;
  int lo_ = 0;                     // the head's oldest entry
  int turn_ = 0;                   // suffixes_ cover [lo_, turn_) of the head: all of it, or one of two stacks
  int known_ = 0;                  // prefixes_ hold for the tail's entries before this one
  std::vector<Partial> suffixes_;  // with lo_ < turn_ whenever there is an entry
  std::vector<Partial> prefixes_;
  Partial before_, after_;  // the window is suffixes_[lo_], before_, after_

  std::size_t size_ = 0;
  Key youngest_{};
  bool torn_ = false;
};

}  // namespace sash::block
