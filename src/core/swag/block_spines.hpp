// What BlockFiba keeps beside its spines
//
// A child on a spine has no partial in its parent, or an insert at an end would change one at every level. What hangs beside a spine is
// kept here instead, level by level; what is in the two end leaves, entry by entry:
//
//                         root
//              .-----------+------------.            at[l].left_fold    children 1.. of the left node
//            left         ...         right          at[l].left_rest    left_fold of l, l + 1, ... up to below the root
//         .----+---.               .----+---.        at[l].right_fold   children ..n-2 of the right node; root: 1..n-2
//       head      ...             ...      tail      at[l].right_rest   right_fold of the root, ..., l + 1, l
//     [suffixes]                      [prefixes]
//
//   suffixes[i]   the head from entry i on, and all that is beside the left spine
//   prefixes[i]   the tail up to entry i
//
// So a change at an end touches the ends alone, and one at distance d the O(log d) levels below where its path
// leaves a spine. A window of one leaf is two stacks in it: suffixes up to `turn`, prefixes from there.

#pragma once

#include "block_tree.hpp"

namespace sash::block {

template <class Tree>
class Spines {
 public:
  using Partial = typename Tree::Partial;
  using Leaf = typename Tree::Leaf;
  using Inner = typename Tree::Inner;

  struct Level {
    Partial left_fold, left_rest, right_fold, right_rest;
  };

  Spines(const Partial& one, int leaf_cap) : suffixes(static_cast<std::size_t>(leaf_cap), nothing(one)), prefixes(suffixes) {
    suffixes[0] = one;
    grow(one);
  }

  void grow(const Partial& one) { at.push_back({one, one, one, one}); }

  void clear(const Partial& one) {
    at.erase(at.begin() + 1, at.end());
    turn = known = 0;
    std::fill(suffixes.begin(), suffixes.end(), nothing(one));
    std::fill(prefixes.begin(), prefixes.end(), nothing(one));
    suffixes[0] = one;
  }

  // ---- the levels, mended from the highest that changed down to the lowest, with the fingers

  void mend_left(Tree& tree, int high, int from) {
    for (int l = std::min(high, tree.height - 1); l > 0; --l) {
      if (l >= from) {
        Inner*& left = tree.finger[l].left;
        left = static_cast<Inner*>(tree.finger[l + 1].left->child[0]);
        at[l].left_fold = tree.fold(left, 1, left->n);
      }
      at[l].left_rest = l == tree.height - 1 ? at[l].left_fold : tree.combine(at[l].left_fold, at[l + 1].left_rest);
    }
  }

  void mend_right(Tree& tree, int high, int from) {
    for (int l = std::min(high, tree.height); l > 0; --l) {
      if (l >= from) {
        Inner*& right = tree.finger[l].right;
        if (l < tree.height) right = static_cast<Inner*>(tree.finger[l + 1].right->child[tree.finger[l + 1].right->n - 1]);
        at[l].right_fold = tree.fold(right, l == tree.height ? 1 : 0, right->n - 1);
      }
      at[l].right_rest = l == tree.height ? at[l].right_fold : tree.combine(at[l + 1].right_rest, at[l].right_fold);
    }
  }

  // What the left spine carries below the root, null if nothing.
  const Partial* beside_head(const Tree& tree) const { return tree.height > 1 ? &at[1].left_rest : nullptr; }
  // What lies between the root's first child and the tail.
  Partial before_tail(const Tree& tree) const { return tree.height ? at[1].right_rest : tree.one(); }

  // ---- the ends

  // Suffixes of the head from entry p down to the oldest.
  void suffix(const Tree& tree, int p) { suffix(tree, p, tree.lo, beside_head(tree)); }
  void suffix(const Tree& tree, int p, int to, const Partial* beside) {
    for (int i = p; i >= to; --i) {
      if (i + 1 < turn)
        suffixes[i] = tree.combine(tree.head->v[i], suffixes[i + 1]);
      else
        suffixes[i] = beside ? tree.combine(tree.head->v[i], *beside) : tree.head->v[i];
    }
  }

  int tail_start(const Tree& tree) const { return tree.height ? 0 : turn; }

  // Prefixes of the tail up to entry q; those from p on are forgotten.
  void learn(const Tree& tree, int q) {
    for (int start = tail_start(tree); known < q; ++known)
      prefixes[known] = known > start ? tree.combine(prefixes[known - 1], tree.tail->v[known]) : tree.tail->v[known];
  }
  void unlearn(const Tree& tree, int p) { known = std::max(tail_start(tree), std::min(known, p)); }
  // The tail, whose prefixes are known.
  Partial tail(const Tree& tree) const { return known > tail_start(tree) ? prefixes[known - 1] : tree.one(); }

  // The head's entries to the front of its block.
  void settle_head(Tree& tree) {
    int& lo = tree.lo;
    if (lo == 0) return;
    bool one_leaf = tree.tail == tree.head;
    if (one_leaf) known = std::max(known - lo, turn - lo);
    std::move(suffixes.begin() + lo, suffixes.begin() + turn, suffixes.begin());
    if (one_leaf) std::move(prefixes.begin() + turn, prefixes.begin() + known + lo, prefixes.begin() + turn - lo);
    block::close(*tree.head, 0, lo, tree.one());
    turn -= lo;
    lo = 0;
  }

  // Slots of the head whose entries have left.
  void forget(const Tree& tree, int from, int to) {
    if constexpr (!std::is_trivially_destructible_v<Partial>) {
      tree.head->release(from, to, tree.one());
      std::fill(suffixes.begin() + from, suffixes.begin() + to, nothing(tree.one()));
    }
  }

  std::vector<Level> at;          // [0] unused
  int turn = 0;                   // suffixes cover [lo, turn) of the head: all of it, or one of two stacks
  int known = 0;                  // prefixes hold for the tail's entries before this one
  std::vector<Partial> suffixes;  // with lo < turn whenever there is an entry
  std::vector<Partial> prefixes;
};

}  // namespace sash::block
