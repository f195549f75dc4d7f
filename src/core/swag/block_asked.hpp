// Where a BlockFiba is asked: a finger at the start of ranges that reach to the youngest entry
//
// Two windows of one stream share a tree: the long one is the whole window, the short one the range from its own oldest entry on. That
// entry moves on by a few places from question to question, so the suffixes of its leaf are kept, as those of the head are:
//
//     suffixes[i]                                    since               after, while the gap is open
//     | leaf from entry i on ... up to the gap then | inserted there since | ... to the end |
//
// An insert into the gap, or at the end where no gap is open, is one combine more. Any other change forgets the finger; so does a
// range that starts in another leaf. It is set where two ranges in a row start in one leaf, and from the first on where it has paid.

#pragma once

#include "block_gap.hpp"

namespace sash::block {

template <class Tree, class Key>
struct Asked {
  using Partial = typename Tree::Partial;
  using Leaf = typename Tree::Leaf;

  explicit Asked(const Partial& one) : since(one) {}

  void forget() {
    set = false;
    last = nullptr;
  }

  // An insert where the suffixes ended.
  void take_in(const Tree& tree, const Partial& v) { since = tree.combine(since, v); }

  // Whether a range that starts in this leaf is worth setting the finger.
  bool worth(Leaf* in) {
    if (set) patience = uses >= 8 ? 0 : 1;
    uses = 0;
    set = false;
    streak = in == last ? streak + 1 : 0;
    last = in;
    return streak >= patience;
  }

  // Sets the finger for ranges that start at a key or later in a leaf, at its entry p; `beyond` is what lies between the leaf and the gap.
  void at(const Tree& tree, Leaf* in, int p, const Key& from, const Key& behind, Partial beyond) {
    suffixes.resize(Leaf::cap + 1, nothing(tree.one()));
    leaf = in;
    first = place = p;
    start = from;
    end = behind;
    suffixes[leaf->n] = std::move(beyond);
    for (int i = leaf->n - 1; i >= p; --i) suffixes[i] = tree.combine(leaf->v[i], suffixes[i + 1]);
    since = tree.one();
    set = true;
  }

  bool holds(const Key& from) const { return set && !(from < start) && from < end; }

  // From a key on that the finger holds, up to the gap.
  Partial suffix(const Tree& tree, const Key& from) {
    place += place < leaf->n && leaf->t[place] < from;  // mostly the next entry, or the same
    if ((place < leaf->n && leaf->t[place] < from) || (place > first && !(leaf->t[place - 1] < from)))
      place = block::lower(*leaf, first, from);
    ++uses;
    return tree.combine(suffixes[place], since);
  }

  bool set = false;
  Leaf* leaf = nullptr;
  int first = 0, place = 0;  // entries from `first` on have suffixes; the last question began at `place`
  Key start{}, end{};        // the range that it was set for, and the separator behind the leaf
  std::vector<Partial> suffixes;
  Partial since;

  Leaf* last = nullptr;  // where the last range began that did not find the finger
  int streak = 0, patience = 1, uses = 0;
};

}  // namespace sash::block
