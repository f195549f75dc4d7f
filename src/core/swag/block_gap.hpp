// The gap of a BlockFiba: the finger that roams
//
// Late items often follow one another at one place: a source that lags behind the others by an hour is late by an hour with every item.
// Where two inserts were neighbours, a gap is opened behind them. All before the gap and all behind it is known, so the next insert there
// is a shift in one leaf and one combine. The partials above that leaf are not told meanwhile: that is the gap's debt, paid when it closes.
//
// An example: sums, every value is its own time, blocks of six.
//
//                          root  agg[1]
//            .---------------+---------------.
//       head [10 20 30]  [40 50 80]      tail [90 95]
//
//   operation    middle leaf             suffix   before   after   agg[1]
//   (closed)     40 50 80                    60      170     185      170   before: all between head and tail; after: the tail
//   insert 60    40 50 60 80                 60      230     185      230   searched for, summed up
//   insert 61    40 50 60 61 >< 80           60      211     265      291   behind the last insert: the gap opens, 61 <= its keys < 80
//   insert 62    40 50 60 61 62 >< 80        60      273     265      291   one combine, 211 + 62; agg[1] misses 62
//   append 100   (the tail is 90 95 100)     60      273     365      291   one combine, 265 + 100
//   query                                    60    + 273   + 365            = 698
//   evict        (the head is 20 30)         50      273     365      291   one step to the next suffix
//   insert 45    40 45 50 60 61 62 80        50      398     285      398   elsewhere: the gap closes, agg[1] is folded anew, 45 goes in
//
// A gap whose path leaves the left spine below the root has the rest of that spine in `after`; the suffixes end where the path leaves.

#pragma once

#include <optional>

#include "block_spines.hpp"

namespace sash::block {

template <class Tree, class Key>
struct Gap {
  using Partial = typename Tree::Partial;
  using Leaf = typename Tree::Leaf;
  using Path = typename Tree::Path;

  explicit Gap(const Partial& one) : before(one), after(one) {}

  bool takes(const Key& key) const { return open && !(key < low) && key < high; }

  // Inserts into the gap, whose leaf has room; returns whether it is an entry of its own.
  bool fill(const Tree& tree, Spines<Tree>& spines, const Key& key, Partial v) {
    Partial sum = tree.combine(before, v);
    bool fresh = !(low == key);
    if (fresh) {
      block::open(*leaf, p, 1);
      leaf->t[p] = low = key;
      leaf->v[p] = std::move(v);
      ++p;
    } else {
      leaf->v[p - 1] = tree.combine(leaf->v[p - 1], v);
    }
    before = std::move(sum);
    debt = true;
    ++taken;
    if (leaf == tree.tail) spines.unlearn(tree, p - 1);
    return fresh;
  }

  // Opens the gap before entry q of the path's leaf, which is not the head.
  void open_at(const Tree& tree, Spines<Tree>& spines, const Path& way, int q) {
    Leaf* into = way.leaf;
    int top = way.top;
    Partial earlier = tree.fold(into, 0, q), later = tree.fold(into, q, into->n);
    for (int l = 1; l <= top; ++l) {
      auto [node, i] = way.at[l];
      bool on_left = l == top && (way.left || l == tree.height), on_right = l == top && !way.left;
      earlier = tree.combine(tree.fold(node, on_left, i), earlier);
      later = tree.combine(later, tree.fold(node, i + 1, node->n - on_right));
    }
    if (way.left) {  // the suffixes end where the path leaves the left spine
      if (top + 1 < tree.height) later = tree.combine(later, spines.at[top + 1].left_rest);
      later = tree.combine(tree.combine(later, before), after);
      std::optional<Partial> beside;
      for (int l = 1; l < top; ++l) beside = beside ? tree.combine(*beside, spines.at[l].left_fold) : spines.at[l].left_fold;
      spines.suffix(tree, spines.turn - 1, tree.lo, beside ? &*beside : nullptr);
    } else {
      if (top < tree.height) earlier = tree.combine(spines.at[top + 1].right_rest, earlier);
      for (int l = top - 1; l >= 1; --l) later = tree.combine(later, spines.at[l].right_fold);
      if (into != tree.tail) later = tree.combine(later, after);
    }
    leaf = into;
    p = q;
    low = leaf->t[p - 1];
    high = p < leaf->n ? leaf->t[p] : tree.end_of_leaf(way);
    path = way;
    debt = false;
    taken = 0;
    spines.unlearn(tree, tree.tail->n - 1);
    before = std::move(earlier);
    after = std::move(later);
    open = true;
  }

  // Pays what the gap owes to the tree. If combine throws, the gap is as before, still in debt.
  void close(Tree& tree, Spines<Tree>& spines) {
    if (!open) return;
    int top = path.top;
    if (debt && leaf != tree.tail) {
      tree.refresh(path, 0);
      path.left ? spines.mend_left(tree, top, top) : spines.mend_right(tree, top, top);
    }
    spines.learn(tree, tree.tail->n);
    if (path.left) {
      std::vector<Partial> kept = spines.suffixes;
      Rollback undo(tree.monoid, [&] {
        spines.suffixes.swap(kept);
        spines.unlearn(tree, tree.tail->n - 1);
      });
      spines.suffix(tree, spines.turn - 1);
      undo.done();
    }
    rest(tree, spines);
    open = false;
    streak = 0;
    patience = taken >= 4 ? 1 : std::min(2 * patience, Leaf::cap);  // a gap that does not pay is opened ever later
  }

  // Closed, the gap lies at the tail.
  void rest(const Tree& tree, const Spines<Tree>& spines) {
    before = spines.before_tail(tree);
    after = spines.tail(tree);
  }

  // A late insert went to entry q of a leaf. Right behind the one before, it says to open the gap; from a later one on, where gaps did
  // not pay.
  bool follows(Leaf* into, int q) {
    bool next = into == last_leaf && q == last_p + 1;
    last_leaf = into;
    last_p = q;
    streak = next ? streak + 1 : 0;
    return streak >= patience;
  }

  bool open = false;
  bool debt = false;  // entries were inserted that the tree's partials do not know
  Leaf* leaf = nullptr;
  int p = 0;      // the gap is before entry p
  int taken = 0;  // inserts since it was opened
  Key low{}, high{};
  Path path;
  Partial before, after;  // what lies between the suffixes and the gap, and from the gap on

  Leaf* last_leaf = nullptr;  // where the last late insert went
  int last_p = 0;
  int streak = 0;    // how many of them lay right behind the one before
  int patience = 1;  // how many of those open the gap
};

}  // namespace sash::block
