// How the tree under BlockFiba keeps its shape
//
// A node that overflows is dealt out over siblings, which its parent adopts; one that runs low is merged with a sibling or
// levelled out with it. Both go up along a path and note there which levels of the spines they touched (block_tree.hpp mends
// those). A subtree that is cut off is buried whole: later operations take it apart, a few leaves each.
//
//   full (Fan + 1)   in halves, or at an edge of its parent 3/4 to 1/4: a window that grows there leaves full nodes behind
//   low (< Fan / 4)  merged if both fit into one node, else evened out
//
// With a Fan of 8 and more, two restructurings of a node lie two changes of it apart on average, so a level is restructured at most
// half as often as the one below it.

#pragma once

#include "block_tree.hpp"

namespace sash::block {

template <Monoid M, class Key, int LeafCap, int Fan>
class Shape : protected Tree<M, Key, LeafCap, Fan> {
 protected:
  using Base = Tree<M, Key, LeafCap, Fan>;
  using Base::Base, Base::climb, Base::count, Base::fold, Base::head_, Base::height_, Base::lo_, Base::one, Base::pools_;
  using Base::on_spine, Base::probe_, Base::root, Base::settle_head, Base::spine_, Base::sum_up, Base::tail_, Base::touch;
  using typename Base::Inner;
  using typename Base::Leaf;
  using typename Base::Partial;
  using typename Base::Path;

  // A child on its way into a parent.
  struct Child {
    Key key;
    void* node;
    std::int64_t count;
    Partial agg;
  };
  using Brood = std::vector<Child>;

  // Gives the node of the path at `level` new children behind the one the path took, whose own content has
  // changed. A node that overflows is dealt out over siblings, which go up in turn. Returns the highest level touched.
  int adopt(Path& path, int level, Brood& brood) {
    for (;; ++level) {
      if (level > height_) sprout(path);
      climb(path, level);
      auto [node, i] = path.at[level];
      if (node->child[i] != (level > 1 ? static_cast<void*>(spine_[level - 1].left) : head_)) sum_up(node, i, level);
      touch(path, node, level);
      int k = static_cast<int>(brood.size());
      if (node->n + k <= Fan) {
        block::open(*node, i + 1, k);
        for (int j = 0; j < k; ++j) set(node, i + 1 + j, brood[j]);
        return level;
      }
      auto& all = scratch(level);
      all.clear();
      for (int j = 0; j < node->n; ++j) {
        all.push_back(get(node, j));
        if (j == i)
          for (Child& c : brood) all.push_back(std::move(c));
      }
      deal(node, level, all, brood, i + 1 == node->n ? 1 : i == 0 ? -1 : 0);
    }
  }

  // Deals children out over node and as many new siblings as it takes; at an edge of the tree the node that
  // time moves away from is left fuller.
  void deal(Inner* node, int level, Brood& all, Brood& siblings, int edge) {
    siblings.clear();
    int c = static_cast<int>(all.size()), fill = Fan * 3 / 4;
    int parts = c <= Fan ? 1 : (c + fill - 1) / fill;
    bool last_on_spine = node == spine_[level].right;
    probe_.restructure(static_cast<std::size_t>(parts - 1));
    for (int part = 0, from = 0; part < parts; ++part) {
      int to = c * (part + 1) / parts;
      if (parts == 2 && c == Fan + 1 && part == 0) to = edge > 0 ? fill : edge < 0 ? c - fill : (c + 1) / 2;
      Inner* into = part ? pools_->inners.take(one()) : node;
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

  Child get(Inner* node, int i) { return {node->key[i], node->child[i], node->count[i], std::move(node->agg[i])}; }
  void set(Inner* node, int i, Child& c) {
    node->key[i] = c.key;
    node->child[i] = c.node;
    node->count[i] = c.count;
    node->agg[i] = std::move(c.agg);
  }

  Brood& scratch(int level) {
    if (static_cast<int>(scratch_.size()) <= level) scratch_.resize(level + 1);
    return scratch_[level];
  }

  // A new root above the old one.
  void sprout(Path& path) {
    void* old = height_ ? static_cast<void*>(root()) : head_;
    Inner* node = pools_->inners.take(one());
    node->n = 1;
    node->child[0] = old;
    spine_.push_back(this->blank());
    ++height_;
    spine_[height_].left = spine_[height_].right = node;
    path.left_from = path.right_from = 0;  // the old root has become a node of the left spine
  }

  // ---- shrinking

  // Restores arities from the node of the path at `level` up. Returns the highest level touched.
  int settle(Path& path, int level) {
    for (;; ++level) {
      if (level == height_) {
        if (level && root()->n == 1) return wither(path);
        return level;
      }
      void* node = level ? static_cast<void*>(path.at[level].node) : path.leaf;
      if (level ? path.at[level].node->n >= Inner::least : path.leaf->n >= Leaf::least || on_spine(node, 0)) return level;
      climb(path, level + 1);
      auto& [parent, i] = path.at[level + 1];
      int k = i + 1 < parent->n ? i : i - 1;
      bool merged = level_out(path, parent, k, level);
      touch(path, parent, level + 1);
      if (merged && k < i) i = k;
      if (level)
        path.at[level].node = static_cast<Inner*>(parent->child[i]);
      else
        path.leaf = static_cast<Leaf*>(parent->child[i]);
      if (!merged) return level + 1;
    }
  }

  // Merges children k and k + 1 of parent, nodes of `level`, or shares their content out evenly. Returns whether they merged.
  bool level_out(Path& path, Inner* parent, int k, int level) {
    probe_.restructure();
    if (level)
      return level_out(path, parent, k, level, static_cast<Inner*>(parent->child[k]), static_cast<Inner*>(parent->child[k + 1]),
                       pools_->inners);
    auto* a = static_cast<Leaf*>(parent->child[k]);
    if (a == head_) settle_head();
    return level_out(path, parent, k, level, a, static_cast<Leaf*>(parent->child[k + 1]), pools_->leaves);
  }

  template <class Node>
  bool level_out(Path& path, Inner* parent, int k, int level, Node* a, Node* b, SlabPool<Node>& pool) {
    touch(path, a, level);
    touch(path, b, level);
    bool left = level ? a == static_cast<void*>(spine_[level].left) : a == static_cast<void*>(head_);
    bool right = level ? b == static_cast<void*>(spine_[level].right) : b == static_cast<void*>(tail_);
    bool merge = a->n + b->n <= Node::cap;
    if (merge) {
      block::pour(*a, *b, b->n, one());
      pool.give(b);
      block::close(*parent, k + 1, 1, one());
      if (right && level) spine_[level].right = static_cast<Inner*>(static_cast<void*>(a));
      if (right && !level) tail_ = static_cast<Leaf*>(static_cast<void*>(a));
      if (!left && !right) sum_up(parent, k, level + 1);
    } else {
      block::pour(*a, *b, (a->n + b->n + 1) / 2 - a->n, one());
      parent->key[k + 1] = b->first();
      if (!left) sum_up(parent, k, level + 1);
      if (!right) sum_up(parent, k + 1, level + 1);
    }
    return merge;
  }

  // A root with one child makes way for it.
  int wither(Path& path) {
    while (height_ && root()->n == 1) {
      void* child = root()->child[0];
      root()->release(0, 1, one());
      pools_->inners.give(root());
      spine_.pop_back();
      --height_;
      if (height_)
        spine_[height_].left = spine_[height_].right = static_cast<Inner*>(child);
      else {
        if (child != head_) lo_ = 0;
        head_ = tail_ = static_cast<Leaf*>(child);
      }
    }
    this->touch_all(path);
    return height_;
  }

  Leaf* new_leaf() {
    reclaim(4);
    return pools_->leaves.take(one());
  }

  void free_leaf(Leaf* leaf) {
    leaf->release(0, leaf->n, one());
    pools_->leaves.give(leaf);
  }

  // ---- the dead: subtrees cut off whole, taken apart a few leaves at a time by later operations

  void bury(void* node, int level) { dead_.push_back({node, level}); }

  void reclaim(int leaves) {
    while (leaves > 0 && !dead_.empty()) {
      auto [node, level] = dead_.back();
      dead_.pop_back();
      if (level == 0) {
        free_leaf(static_cast<Leaf*>(node));
        --leaves;
      } else {
        auto* inner = static_cast<Inner*>(node);
        for (int i = 0; i < inner->n; ++i) bury(inner->child[i], level - 1);
        inner->release(0, inner->n, one());
        pools_->inners.give(inner);
      }
    }
  }

 private:
  struct Dead {
    void* node;
    int level;
  };
  std::vector<Brood> scratch_;

 protected:
  std::vector<Dead> dead_;
};

}  // namespace sash::block
