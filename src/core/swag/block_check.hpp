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
    int h = w_.tree_.height;
    require(w_.tree_.finger.size() == static_cast<std::size_t>(h) + 1 && w_.spines_.at.size() == w_.tree_.finger.size(),
            "I4: the tree has ", h, " inner levels, its spines ", w_.tree_.finger.size() - 1);
    if (w_.size_) {
      Whole whole = visit(w_.tree_.top(), h, true, true, nullptr, nullptr, same);
      require(static_cast<std::size_t>(whole.entries) == w_.size_, "I9: the tree holds ", whole.entries, " entries, the window counts ",
              w_.size_);
      require(w_.tree_.tail->t[w_.tree_.tail->n - 1] == w_.youngest_, "I9: the youngest key is not that of the tail's last entry");
      require(same(w_.query(), whole.sum), "I7: suffix, before and after do not combine to the window");
      check_spines(same);
      check_ends(same);
      check_gap(same);
      check_asked(same);
    } else {
      require(h == 0 && !w_.gap_.open && (!w_.tree_.head || w_.tree_.head->n == 0), "I9: an empty window has a tree");
      require(same(w_.query(), w_.tree_.one()), "I7: an empty window does not combine to the identity");
      if (w_.tree_.head) ++leaves_;
    }
    for (auto [node, level] : w_.tree_.dead) bury(node, level);
    if (w_.tree_.pools.shared()) return;  // others have taken nodes too
    std::size_t leaves = w_.tree_.pools->leaves.live(), inners = w_.tree_.pools->inners.live();
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
    require(left == (inner == w_.tree_.finger[level].left), "I4: the left spine's node of level ", level, " is another");
    require(right == (inner == w_.tree_.finger[level].right), "I4: the right spine's node of level ", level, " is another");
    require(left || !low || inner->key[0] == *low, "I1: a node of level ", level, " does not know its own separator");
    Partial sum = w_.tree_.one();
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
      sum = i ? w_.tree_.combine(sum, child.sum) : child.sum;
      entries += child.entries;
    }
    return {sum, entries};
  }

  Whole visit_leaf(const Leaf* leaf, bool left, bool right, const Key* low, const Key* high) {
    ++leaves_;
    require(left == (leaf == w_.tree_.head) && right == (leaf == w_.tree_.tail), "I4: head or tail is not the first or last leaf");
    int from = left ? w_.tree_.lo : 0;
    require(leaf->n <= Leaf::cap && leaf->n - from >= (left || right ? 1 : Leaf::least), "I2: a leaf holds ", leaf->n - from, " entries");
    for (int i = from; i < leaf->n; ++i) {
      require(i == from || leaf->t[i - 1] < leaf->t[i], "I1: a leaf's keys do not rise at entry ", i);
      require((!low || !(leaf->t[i] < *low)) && (!high || leaf->t[i] < *high), "I1: entry ", i, " of a leaf lies outside its separators");
    }
    return {w_.tree_.fold(leaf, from, leaf->n), leaf->n - from};
  }

  // Whether the open gap has not yet told this node of what it took in.
  bool owed(const Inner* node, int i, int level) const {
    if (!w_.gap_.open || !w_.gap_.debt || w_.gap_.leaf == w_.tree_.tail || level > w_.gap_.path.top) return false;
    return w_.gap_.path.at[level].node == node && w_.gap_.path.at[level].i == i;
  }

  template <class Same>
  void check_spines(Same same) const {
    int h = w_.tree_.height;
    bool debt = w_.gap_.open && w_.gap_.debt && w_.gap_.leaf != w_.tree_.tail;
    int left = debt && w_.gap_.path.left ? w_.gap_.path.top : 0;  // the level that is owed its fold, and those up to it their rest
    int right = debt && !w_.gap_.path.left ? w_.gap_.path.top : 0;
    for (int l = h; l > 0; --l) {
      const auto& s = w_.spines_.at[l];
      auto [first, last] = w_.tree_.finger[l];
      if (l < h) {
        require(l == left || same(s.left_fold, w_.tree_.fold(first, 1, first->n)), "I4: left_fold of level ", l);
        require(l <= left || same(s.left_rest, l == h - 1 ? s.left_fold : w_.tree_.combine(s.left_fold, w_.spines_.at[l + 1].left_rest)),
                "I4: left_rest of level ", l);
      }
      require(l == right || same(s.right_fold, w_.tree_.fold(last, l == h ? 1 : 0, last->n - 1)), "I4: right_fold of level ", l);
      require(l <= right || same(s.right_rest, l == h ? s.right_fold : w_.tree_.combine(w_.spines_.at[l + 1].right_rest, s.right_fold)),
              "I4: right_rest of level ", l);
    }
  }

  template <class Same>
  void check_ends(Same same) const {
    const Leaf* head = w_.tree_.head;
    int h = w_.tree_.height, lo = w_.tree_.lo, turn = w_.spines_.turn;
    require(lo < turn && turn <= head->n && (h == 0 || turn == head->n), "I5: oldest ", lo, ", turn ", turn, " in a head of ", head->n);
    Partial suffix = w_.tree_.one();
    for (int l = (w_.gap_.open && w_.gap_.path.left ? w_.gap_.path.top : h) - 1; l > 0; --l)
      suffix = w_.tree_.combine(w_.spines_.at[l].left_fold, suffix);
    for (int i = turn - 1; i >= lo; --i) {
      suffix = w_.tree_.combine(head->v[i], suffix);
      require(same(w_.spines_.suffixes[i], suffix), "I5: suffix ", i, " of the head");
    }
    int start = w_.spines_.tail_start(w_.tree_);
    require(w_.spines_.known >= start && w_.spines_.known <= w_.tree_.tail->n, "I6: ", w_.spines_.known, " prefixes of a tail of ",
            w_.tree_.tail->n);
    for (int i = start; i < w_.spines_.known; ++i)
      require(same(w_.spines_.prefixes[i], w_.tree_.fold(w_.tree_.tail, start, i + 1)), "I6: prefix ", i, " of the tail");
  }

  template <class Same>
  void check_gap(Same same) const {
    const auto& gap = w_.gap_;
    int h = w_.tree_.height, start = w_.spines_.tail_start(w_.tree_);
    if (!gap.open) {
      require(same(w_.gap_.after, w_.tree_.fold(w_.tree_.tail, start, w_.tree_.tail->n)), "I7: after is not the tail");
      require(same(w_.gap_.before, h ? w_.spines_.at[1].right_rest : w_.tree_.one()),
              "I7: before is not what lies between the left spine and the tail");
      return;
    }
    require(h > 0 && gap.leaf != w_.tree_.head, "I8: the gap lies in the head");
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
    require(node == (gap.path.left ? w_.tree_.left_end(top) : w_.tree_.right_end(top)), "I8: the gap's path does not start at its spine");
    require(w_.spines_.known < w_.tree_.tail->n, "I6: the last prefix of the tail is kept while the gap is open");
    // before and after, each on its own: of all that the suffixes do not cover, what lies up to the gap, and from it on.
    std::size_t covered = 0;
    w_.tree_.each_leaf((gap.path.left ? w_.tree_.finger[top].left : w_.tree_.root())->child[0], (gap.path.left ? top : h) - 1,
                       [&](const Leaf*) { ++covered; });
    std::optional<Partial> before, after;
    bool passed = false;
    w_.tree_.each_leaf(w_.tree_.root(), h, [&](const Leaf* leaf) {
      if (covered > 0) return static_cast<void>(--covered);
      for (int i = 0; i < leaf->n; ++i) {
        auto& side = passed || (leaf == gap.leaf && i >= gap.p) ? after : before;
        side = side ? w_.tree_.combine(*side, leaf->v[i]) : leaf->v[i];
      }
      passed |= leaf == gap.leaf;
    });
    require(same(w_.gap_.before, before ? *before : w_.tree_.one()), "I7: before is not what lies between the suffixes and the gap");
    require(same(w_.gap_.after, after ? *after : w_.tree_.one()), "I7: after is not what lies behind the gap");
  }

  template <class Same>
  void check_asked(Same same) const {
    const auto& asked = w_.asked_;
    if (!asked.set) return;
    const Key& end = w_.gap_.open ? w_.gap_.low : w_.youngest_;
    int from = std::max(asked.first, w_.tree_.first(asked.leaf));
    std::optional<Partial> sum;
    bool reached = false;
    w_.tree_.each_leaf(w_.tree_.top(), w_.tree_.height, [&](const Leaf* leaf) {
      reached |= leaf == asked.leaf;
      for (int i = leaf == asked.leaf ? from : 0; reached && i < leaf->n && !(end < leaf->t[i]); ++i)
        sum = sum ? w_.tree_.combine(*sum, leaf->v[i]) : leaf->v[i];
    });
    require(reached, "I10: the finger of ranges is at a leaf that is not in the tree");
    require(sum && same(w_.tree_.combine(asked.suffixes[from], asked.since), *sum),
            "I10: the finger of ranges does not lead up to the gap");
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
