// How BlockFiba keeps its shape
//
// A node that overflows is dealt out over siblings, which its parent adopts; one that runs low is merged with a sibling or
// levelled out with it. Both go up along a path and note there which levels of the spines they touched; mend() mends those.
//
//   full (Fan + 1)   in halves, or at an edge of its parent 3/4 to 1/4: a window that grows there leaves full nodes behind
//   low (< Fan / 4)  merged if both fit into one node, else evened out
//
// With a Fan of 8 and more, two restructurings of a node lie two changes of it apart on average, so a level is restructured at most
// half as often as the one below it.

#pragma once

#include "block_fiba.hpp"

namespace sash {

// Gives the node of the path at `level` new children behind the one the path took, whose own content has
// changed. A node that overflows is dealt out over siblings, which go up in turn. Returns the highest level touched.
template <Monoid M, class Key, int LeafCap, int Fan>
int BlockFiba<M, Key, LeafCap, Fan>::adopt(Path& path, int level, Brood& brood) {
  for (;; ++level) {
    if (level > tree_.height) sprout(path);
    tree_.climb(path, level);
    auto [node, i] = path.at[level];
    if (node->child[i] != tree_.left_end(level - 1)) tree_.sum_up(node, i, level);
    tree_.touch(path, node, level);
    int k = static_cast<int>(brood.size());
    if (node->n + k <= Fan) {
      block::open(*node, i + 1, k);
      for (int j = 0; j < k; ++j) tree_.set(node, i + 1 + j, brood[j]);
      return level;
    }
    auto& all = tree_.scratch(level);
    all.clear();
    for (int j = 0; j < node->n; ++j) {
      all.push_back(tree_.get(node, j));
      if (j == i)
        for (auto& c : brood) all.push_back(std::move(c));
    }
    tree_.deal(node, level, all, brood, i + 1 == node->n ? 1 : i == 0 ? -1 : 0);
  }
}

// A new root above the old one.
template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::sprout(Path& path) {
  void* old = tree_.top();
  Inner* node = tree_.pools->inners.take(tree_.one());
  node->n = 1;
  node->child[0] = old;
  spines_.grow(tree_.one());
  tree_.finger.push_back({node, node});
  ++tree_.height;
  path.left_from = path.right_from = 0;  // the old root has become a node of the left spine
}

// Restores arities from the node of the path at `level` up. Returns the highest level touched.
template <Monoid M, class Key, int LeafCap, int Fan>
int BlockFiba<M, Key, LeafCap, Fan>::settle(Path& path, int level) {
  for (;; ++level) {
    if (level == tree_.height) {
      if (level && tree_.root()->n == 1) return wither(path);
      return level;
    }
    if (level ? path.at[level].node->n >= Inner::least : path.leaf->n >= Leaf::least || tree_.on_spine(path.leaf, 0)) return level;
    tree_.climb(path, level + 1);
    auto& [parent, i] = path.at[level + 1];
    int k = i + 1 < parent->n ? i : i - 1;
    bool merged = level_out(path, parent, k, level);
    tree_.touch(path, parent, level + 1);
    if (merged && k < i) i = k;
    if (level)
      path.at[level].node = static_cast<Inner*>(parent->child[i]);
    else
      path.leaf = static_cast<Leaf*>(parent->child[i]);
    if (!merged) return level + 1;
  }
}

// Merges children k and k + 1 of parent, nodes of `level`, or shares their content out evenly. Returns whether they merged.
template <Monoid M, class Key, int LeafCap, int Fan>
bool BlockFiba<M, Key, LeafCap, Fan>::level_out(Path& path, Inner* parent, int k, int level) {
  tree_.probe.restructure();
  if (level)
    return level_out(path, parent, k, level, static_cast<Inner*>(parent->child[k]), static_cast<Inner*>(parent->child[k + 1]),
                     tree_.pools->inners);
  auto* a = static_cast<Leaf*>(parent->child[k]);
  if (a == tree_.head) spines_.settle_head(tree_);
  return level_out(path, parent, k, level, a, static_cast<Leaf*>(parent->child[k + 1]), tree_.pools->leaves);
}

template <Monoid M, class Key, int LeafCap, int Fan>
template <class Node>
bool BlockFiba<M, Key, LeafCap, Fan>::level_out(Path& path, Inner* parent, int k, int level, Node* a, Node* b, SlabPool<Node>& pool) {
  tree_.touch(path, a, level);
  tree_.touch(path, b, level);
  bool left = a == tree_.left_end(level), right = b == tree_.right_end(level);
  bool merge = a->n + b->n <= Node::cap;
  if (merge) {
    block::pour(*a, *b, b->n, tree_.one());
    pool.give(b);
    block::close(*parent, k + 1, 1, tree_.one());
    if (right) tree_.set_right_end(a, level);
    if (!left && !right) tree_.sum_up(parent, k, level + 1);
  } else {
    block::pour(*a, *b, (a->n + b->n + 1) / 2 - a->n, tree_.one());
    parent->key[k + 1] = b->first();
    if (!left) tree_.sum_up(parent, k, level + 1);
    if (!right) tree_.sum_up(parent, k + 1, level + 1);
  }
  return merge;
}

// A root with one child makes way for it.
template <Monoid M, class Key, int LeafCap, int Fan>
int BlockFiba<M, Key, LeafCap, Fan>::wither(Path& path) {
  while (tree_.height && tree_.root()->n == 1) {
    void* child = tree_.root()->child[0];
    tree_.free_inner(tree_.root());
    tree_.finger.pop_back();
    spines_.at.pop_back();
    --tree_.height;
    if (tree_.height) {
      tree_.finger.back().left = tree_.finger.back().right = static_cast<Inner*>(child);
    } else {
      if (child != tree_.head) tree_.lo = 0;
      tree_.head = tree_.tail = static_cast<Leaf*>(child);
    }
  }
  tree_.touch_all(path);
  return tree_.height;
}

}  // namespace sash
