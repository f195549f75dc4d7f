// The invariants of a BlockFiba, verified

#pragma once

#include <optional>

#include "block_fiba.hpp"

namespace sash::block {

template <class Window>
class Checker {
  using Key = typename Window::KeyType;
  using Partial = typename Window::Partial;
  using Leaf = typename Window::Leaf;
  using Inner = typename Window::Inner;

 public:
  explicit Checker(const Window& w) : w_(w) {}

  template <class Same>
  void run(Same same) {
    require(!w_.torn_, "the window is torn: an aggregation failed half way through a change");
    int h = w_.height_;
    require(static_cast<int>(w_.spine_.size()) == h + 1, "I4: the tree has ", h, " inner levels, its spines ", w_.spine_.size() - 1);
    if (w_.size_) {
      Whole whole = visit(h ? static_cast<const void*>(w_.root()) : w_.head_, h, true, true, nullptr, nullptr, same);
      require(static_cast<std::size_t>(whole.entries) == w_.size_, "I9: the tree holds ", whole.entries, " entries, the window counts ",
              w_.size_);
      require(w_.tail_->t[w_.tail_->n - 1] == w_.youngest_, "I9: the youngest key is not that of the tail's last entry");
      require(same(w_.query(), whole.sum), "I7: suffix, before and after do not combine to the window");
      check_spines(same);
      check_ends(same);
      check_gap(same);
    } else {
      require(h == 0 && !w_.gap_.open && (!w_.head_ || w_.head_->n == 0), "I9: an empty window has a tree");
      require(same(w_.query(), w_.one()), "I7: an empty window does not combine to the identity");
      if (w_.head_) ++leaves_;
    }
    for (auto [node, level] : w_.dead_) bury(node, level);
    if (w_.pools_.shared()) return;  // others have taken nodes too
    std::size_t leaves = w_.pools_->leaves.live(), inners = w_.pools_->inners.live();
    require(leaves_ == leaves, "I9: ", leaves_, " leaves in the tree or dead, ", leaves, " taken");
    require(inners_ == inners, "I9: ", inners_, " inner nodes in the tree or dead, ", inners, " taken");
  }

 private:
  struct Whole {
    Partial sum;
    std::int64_t entries;
  };

  // The fold of a subtree from its entries alone, checking I1 to I4 on the way; keys lie in [low, high).
  template <class Same>
  Whole visit(const void* node, int level, bool left, bool right, const Key* low, const Key* high, Same same) {
    if (level == 0) return visit_leaf(static_cast<const Leaf*>(node), left, right, low, high);
    auto* inner = static_cast<const Inner*>(node);
    ++inners_;
    bool root = left && right;
    require(inner->n >= (root ? 2 : Inner::least) && inner->n <= Inner::cap, "I2: a node of level ", level, " has ", inner->n, " children");
    require(left == (inner == w_.spine_[level].left), "I4: the left spine's node of level ", level, " is another");
    require(right == (inner == w_.spine_[level].right), "I4: the right spine's node of level ", level, " is another");
    require(left || !low || inner->key[0] == *low, "I1: a node of level ", level, " does not know its own separator");
    Partial sum = w_.one();
    std::int64_t entries = 0;
    for (int i = 0; i < inner->n; ++i) {
      const Key* from = i ? &inner->key[i] : low;
      const Key* to = i + 1 < inner->n ? &inner->key[i + 1] : high;
      require(!from || !to || *from < *to, "I1: the separators of a node of level ", level, " do not rise at child ", i);
      bool l = left && i == 0, r = right && i + 1 == inner->n;
      Whole child = visit(inner->child[i], level - 1, l, r, from, to, same);
      if (!l && !r && !owed(inner, i, level)) {
        require(same(inner->agg[i], child.sum), "I3: child ", i, " of a node of level ", level,
                " combines to something else than its parent says");
        require(inner->count[i] == child.entries, "I3: child ", i, " of a node of level ", level, " has ", child.entries,
                " entries, its parent says ", inner->count[i]);
      }
      sum = i ? w_.combine(sum, child.sum) : child.sum;
      entries += child.entries;
    }
    return {sum, entries};
  }

  Whole visit_leaf(const Leaf* leaf, bool left, bool right, const Key* low, const Key* high) {
    ++leaves_;
    require(left == (leaf == w_.head_) && right == (leaf == w_.tail_), "I4: head or tail is not the first or last leaf");
    int from = left ? w_.lo_ : 0;
    require(leaf->n <= Leaf::cap && leaf->n - from >= (left || right ? 1 : Leaf::least), "I2: a leaf holds ", leaf->n - from, " entries");
    for (int i = from; i < leaf->n; ++i) {
      require(i == from || leaf->t[i - 1] < leaf->t[i], "I1: a leaf's keys do not rise at entry ", i);
      require((!low || !(leaf->t[i] < *low)) && (!high || leaf->t[i] < *high), "I1: entry ", i, " of a leaf lies outside its separators");
    }
    return {w_.fold(leaf, from, leaf->n), leaf->n - from};
  }

  // Whether the open gap has not yet told this node of what it took in.
  bool owed(const Inner* node, int i, int level) const {
    if (!w_.gap_.open || !w_.gap_.debt || w_.gap_.leaf == w_.tail_ || level > w_.gap_.path.top) return false;
    return w_.gap_.path.at[level].node == node && w_.gap_.path.at[level].i == i;
  }

  template <class Same>
  void check_spines(Same same) const {
    int h = w_.height_;
    bool debt = w_.gap_.open && w_.gap_.debt && w_.gap_.leaf != w_.tail_;
    int left = debt && w_.gap_.path.left ? w_.gap_.path.top : 0;  // the level that is owed its fold, and those up to it their rest
    int right = debt && !w_.gap_.path.left ? w_.gap_.path.top : 0;
    for (int l = h; l > 0; --l) {
      const auto& s = w_.spine_[l];
      if (l < h) {
        require(l == left || same(s.left_fold, w_.fold(s.left, 1, s.left->n)), "I4: left_fold of level ", l);
        require(l <= left || same(s.left_rest, l == h - 1 ? s.left_fold : w_.combine(s.left_fold, w_.spine_[l + 1].left_rest)),
                "I4: left_rest of level ", l);
      }
      require(l == right || same(s.right_fold, w_.fold(s.right, l == h ? 1 : 0, s.right->n - 1)), "I4: right_fold of level ", l);
      require(l <= right || same(s.right_rest, l == h ? s.right_fold : w_.combine(w_.spine_[l + 1].right_rest, s.right_fold)),
              "I4: right_rest of level ", l);
    }
  }

  template <class Same>
  void check_ends(Same same) const {
    const Leaf* head = w_.head_;
    int h = w_.height_, lo = w_.lo_, turn = w_.turn_;
    require(lo < turn && turn <= head->n && (h == 0 || turn == head->n), "I5: oldest ", lo, ", turn ", turn, " in a head of ", head->n);
    Partial suffix = w_.one();
    for (int l = (w_.gap_.open && w_.gap_.path.left ? w_.gap_.path.top : h) - 1; l > 0; --l)
      suffix = w_.combine(w_.spine_[l].left_fold, suffix);
    for (int i = turn - 1; i >= lo; --i) {
      suffix = w_.combine(head->v[i], suffix);
      require(same(w_.suffixes_[i], suffix), "I5: suffix ", i, " of the head");
    }
    int start = w_.tail_start();
    require(w_.known_ >= start && w_.known_ <= w_.tail_->n, "I6: ", w_.known_, " prefixes of a tail of ", w_.tail_->n);
    for (int i = start; i < w_.known_; ++i)
      require(same(w_.prefixes_[i], w_.fold(w_.tail_, start, i + 1)), "I6: prefix ", i, " of the tail");
  }

  template <class Same>
  void check_gap(Same same) const {
    const auto& gap = w_.gap_;
    int h = w_.height_, start = w_.tail_start();
    if (!gap.open) {
      require(same(w_.after_, w_.fold(w_.tail_, start, w_.tail_->n)), "I7: after is not the tail");
      require(same(w_.before_, h ? w_.spine_[1].right_rest : w_.one()), "I7: before is not what lies between the left spine and the tail");
      return;
    }
    require(h > 0 && gap.leaf != w_.head_, "I8: the gap lies in the head");
    require(gap.p > 0 && gap.p <= gap.leaf->n && gap.leaf->t[gap.p - 1] == gap.low, "I8: the gap is not behind the entry of its low key");
    require(gap.p == gap.leaf->n || gap.leaf->t[gap.p] == gap.high, "I8: the gap is not before the entry of its high key");
    require(gap.path.leaf == gap.leaf, "I8: the gap's path leads elsewhere");
    // The path must still lead from a node of its spine to the leaf.
    const void* node = gap.leaf;
    int top = gap.path.top;
    for (int l = 1; l <= top; ++l) {
      auto [inner, i] = gap.path.at[l];
      require(i < inner->n && inner->child[i] == node, "I8: the gap's path is broken at level ", l);
      node = inner;
    }
    const auto& s = w_.spine_[top];
    require(top ? node == (gap.path.left ? s.left : s.right) : node == w_.tail_, "I8: the gap's path does not start at its spine");
    require(w_.known_ < w_.tail_->n, "I6: the last prefix of the tail is kept while the gap is open");
    // before and after, each on its own: of all that the suffixes do not cover, what lies up to the gap, and from it on.
    std::size_t covered = 0;
    Window::each_leaf(gap.path.left ? s.left->child[0] : w_.root()->child[0], (gap.path.left ? top : h) - 1,
                      [&](const Leaf*) { ++covered; });
    std::optional<Partial> before, after;
    bool passed = false;
    Window::each_leaf(w_.root(), h, [&](const Leaf* leaf) {
      if (covered > 0) return static_cast<void>(--covered);
      for (int i = 0; i < leaf->n; ++i) {
        auto& side = passed || (leaf == gap.leaf && i >= gap.p) ? after : before;
        side = side ? w_.combine(*side, leaf->v[i]) : leaf->v[i];
      }
      passed |= leaf == gap.leaf;
    });
    require(same(w_.before_, before ? *before : w_.one()), "I7: before is not what lies between the suffixes and the gap");
    require(same(w_.after_, after ? *after : w_.one()), "I7: after is not what lies behind the gap");
  }

  void bury(const void* node, int level) {
    if (level == 0) {
      ++leaves_;
      return;
    }
    ++inners_;
    auto* inner = static_cast<const Inner*>(node);
    for (int i = 0; i < inner->n; ++i) bury(inner->child[i], level - 1);
  }

  const Window& w_;
  std::size_t leaves_ = 0, inners_ = 0;
};

}  // namespace sash::block
