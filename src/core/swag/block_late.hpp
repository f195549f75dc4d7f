// BlockFiba away from its ends: inserts and evictions anywhere
//
// A late insert climbs from the nearer end, goes down to its leaf, and sums up what it changed on the way back to the spine. Where such
// inserts follow one another the gap opens (block_gap.hpp).

#pragma once

#include "block_fiba.hpp"

namespace sash {

template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::late(const Key& key, Partial v) {
  bool running = gap_.takes(key) && gap_.leaf->n == LeafCap;
  close_gap();
  asked_.forget();
  Tear<M> tear(torn_);
  Path path;
  Leaf* leaf = tree_.find(key, path);
  bool at_head = leaf == tree_.head;
  int p = tree_.lower(leaf, key);
  if (p < leaf->n && leaf->t[p] == key) {
    leaf->v[p] = tree_.combine(leaf->v[p], v);
    account(path, p, v, false);
  } else if (at_head && tree_.lo > 0 && (tree_.height || p < spines_.turn)) {  // the free slots are in front
    std::move(leaf->t + tree_.lo, leaf->t + p, leaf->t + tree_.lo - 1);
    std::move(leaf->v.at + tree_.lo, leaf->v.at + p, leaf->v.at + tree_.lo - 1);
    --tree_.lo;
    put(leaf, --p, key, v);
    spines_.suffix(tree_, p);
  } else if (leaf->n < LeafCap) {
    block::open(*leaf, p, 1);
    put(leaf, p, key, v);
    if (at_head && (tree_.height || p < spines_.turn)) {
      auto at = spines_.suffixes.begin();
      std::move_backward(at + p, at + spines_.turn, at + spines_.turn + 1);
      ++spines_.turn;
      if (!tree_.height) spines_.known = spines_.turn;
    }
    account(path, p, v, true);
  } else {
    split(path, p, key, std::move(v), running);
    return tear.mend();
  }
  if (gap_.follows(leaf, p)) try_gap(path, p + 1);
  tear.mend();
}

template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::put(Leaf* leaf, int p, const Key& key, const Partial& v) {
  leaf->t[p] = key;
  leaf->v[p] = v;
  ++size_;
}

// Entry p of the path's leaf has taken in v, or is v itself.
template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::account(Path& path, int p, const Partial& v, bool fresh) {
  bool at_head = path.leaf == tree_.head && (tree_.height || p < spines_.turn);
  if (!at_head && path.leaf == tree_.tail) tail_late_ = true;
  if constexpr (is_commutative<M>) {
    auto take_in = [&](Partial& sum) { sum = tree_.combine(sum, v); };
    if (at_head) {
      if (fresh) spines_.suffix(tree_, p, p, spines_.beside_head(tree_));
      for (int i = tree_.lo; i < p + !fresh; ++i) take_in(spines_.suffixes[i]);
    } else if (path.leaf == tree_.tail) {
      take_in(gap_.after);
      spines_.unlearn(tree_, p);
    } else {
      for (int l = path.top; l > 0; --l) {
        auto [node, i] = path.at[l];
        take_in(node->agg[i]);
        node->count[i] += fresh;
        take_in(path.left ? spines_.at[l].left_rest : spines_.at[l].right_rest);
      }
      take_in(path.left ? spines_.at[path.top].left_fold : spines_.at[path.top].right_fold);
      if (path.left)
        for (int i = tree_.lo; i < spines_.turn; ++i) take_in(spines_.suffixes[i]);
      else
        take_in(gap_.before);
    }
  } else {
    if (at_head) return spines_.suffix(tree_, p);
    if (path.leaf == tree_.tail) return prefix(p);
    tree_.refresh(path, 0);
    mend(path);
  }
}

template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::try_gap(const Path& path, int p) {
  if (path.leaf != tree_.head && (path.leaf != tree_.tail || p < tree_.tail->n)) gap_.open_at(tree_, spines_, path, p);
}

// An insert into a full leaf. Where the gap was running the leaf is cut at the insert and the gap goes on; near an edge
// it is cut so that the edge stays small; else in halves.
template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::split(Path& path, int p, const Key& key, Partial v, bool running) {
  Leaf* leaf = path.leaf;
  if (leaf == tree_.head && tree_.lo > 0) {  // one leaf, and free slots in front of both stacks
    p -= tree_.lo;
    spines_.settle_head(tree_);
    block::open(*leaf, p, 1);
    put(leaf, p, key, v);
    return prefix(p);
  }
  constexpr int quarter = LeafCap / 4;
  int s = running                  ? std::clamp(p, quarter, LeafCap - quarter)
          : p >= LeafCap - quarter ? LeafCap - quarter
          : p < quarter            ? quarter
                                   : LeafCap / 2;
  Leaf* right = tree_.new_leaf();
  block::pour(*leaf, *right, s - LeafCap, tree_.one());
  Leaf* into = p <= s ? leaf : right;
  gap_.last_leaf = into;
  gap_.last_p = p <= s ? p : p - s;
  block::open(*into, gap_.last_p, 1);
  put(into, gap_.last_p, key, v);
  grow(path, right, leaf == tree_.tail);
  if (!running) return;
  Path again;
  tree_.find(key, again);
  try_gap(again, gap_.last_p + 1);
}

// A new leaf behind the path's, which has changed too.
template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::grow(Path& path, Leaf* leaf, bool is_tail) {
  tree_.probe.restructure();
  brood_.clear();
  brood_.push_back({leaf->t[0], leaf, leaf->n, is_tail ? tree_.one() : tree_.fold(leaf, 0, leaf->n)});
  tree_.touch(path, path.leaf, 0);
  tree_.refresh(path, adopt(path, 1, brood_));
  mend(path);
}

template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::erase(Path& path, int p) {
  Leaf* leaf = path.leaf;
  asked_.forget();
  --size_;
  if (leaf == tree_.head && (tree_.height || p < spines_.turn)) {
    std::move_backward(leaf->t + tree_.lo, leaf->t + p, leaf->t + p + 1);
    std::move_backward(leaf->v.at + tree_.lo, leaf->v.at + p, leaf->v.at + p + 1);
    spines_.forget(tree_, tree_.lo, tree_.lo + 1);
    ++tree_.lo;
    spines_.suffix(tree_, p);
    if (!tree_.height) youngest_ = leaf->t[leaf->n - 1];
    return;  // never the head's last one: that is the oldest
  }
  block::close(*leaf, p, 1, tree_.one());
  if (leaf == tree_.tail) {
    if (leaf->n == 0)
      drop_leaf(path);
    else
      prefix(p);
    youngest_ = tree_.tail->t[tree_.tail->n - 1];
  } else {
    tree_.refresh(path, settle(path, 0));
    mend(path);
  }
}

// The leaf of the path is empty.
template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::drop_leaf(Path& path) {
  if (path.leaf == asked_.leaf) asked_.forget();
  tree_.reclaim(2);
  tree_.climb(path, 1);
  auto [parent, i] = path.at[1];
  tree_.free_leaf(path.leaf);
  block::close(*parent, i, 1, tree_.one());
  tree_.touch(path, parent, 1);
  (path.left ? path.left_from : path.right_from) = 0;
  tree_.refresh(path, settle(path, 1));
  mend(path);
}

}  // namespace sash
