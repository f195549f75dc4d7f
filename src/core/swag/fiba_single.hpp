// FiBA's single insert and evict (fiba-2019, section 3.3)
//
// The entry goes in or out where it belongs; then, from there up, nodes that are too full are split, those too empty get an entry from a
// sibling or are merged with it; then partials are repaired: up to a spine, and from there down to the finger.

#pragma once

#include "fiba.hpp"

namespace sash {

// What an operation touched: the highest node, and whether nodes of the spines were among the others.
template <Monoid M, class Key, bool fingers>
struct Fiba<M, Key, fingers>::Path {
  Node* top;
  bool left = false, right = false;

  explicit Path(Node* y) { rise(y); }
  void rise(Node* y) {
    touch(y);
    top = y;
  }
  void touch(const Node* y) {
    left |= y->place == Place::left;
    right |= y->place == Place::right;
  }
};

// Combines a value into the entry of its key.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::take_in(Spot at, const Partial& value) {
  Partial& stored = values(at.node)[at.i];
  Partial both = monoid_.combine(stored, value);
  if (is_end(at.node)) {
    std::swap(stored, both);
    Rollback undo(monoid_, [&] { std::swap(stored, both); });
    refresh(at.node);
    undo.done();
    return;
  }
  Tear<M> tear(torn_);
  stored = std::move(both);
  repair(Path(at.node));
  tear.mend();
}

template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::insert_at(Spot at, const Key& key, Partial&& value) {
  Node* y = at.node;
  nodes_.place(y, at.i, key, std::move(value));
  if (is_end(y) && y->n < slots()) {
    Rollback undo(monoid_, [&] { nodes_.remove(y, at.i); });
    refresh(y);
    undo.done();
    ++size_;
    return;
  }
  Tear<M> tear(torn_);
  ++size_;
  rebalance_after_insert(y);
  tear.mend();
}

template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::evict_at(Spot at) {
  Node* leaf = at.node;
  if (is_end(leaf) && (leaf->n >= min_arity() || leaf == root_)) {
    if constexpr (may_throw<M>) {
      Key key = std::move(keys(leaf)[at.i]);
      Partial value = std::move(values(leaf)[at.i]);
      nodes_.remove(leaf, at.i);
      Rollback undo(monoid_, [&] { nodes_.place(leaf, at.i, key, std::move(value)); });
      refresh(leaf);
      undo.done();
    } else {
      nodes_.remove(leaf, at.i);
      refresh(leaf);
    }
    --size_;
    nodes_.tend(size_);
    return;
  }
  Tear<M> tear(torn_);
  std::size_t level = leaf->level;
  if (level > 0) {
    probe_.reach("evict inner");
    // The neighbour in time takes the place of an entry of an inner node, and leaves its leaf instead.
    Node* after = children(at.node)[at.i + 1];
    bool next = after->n >= min_arity();
    leaf = leaf_below(next ? after : children(at.node)[at.i], !next);
    std::size_t i = next ? 0 : leaf->n - 1u;
    keys(at.node)[at.i] = std::move(keys(leaf)[i]);
    values(at.node)[at.i] = std::move(values(leaf)[i]);
    at.i = i;
  }
  nodes_.remove(leaf, at.i);
  --size_;
  rebalance_after_evict(leaf, level);
  tear.mend();
  nodes_.tend(size_);
}

template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::rebalance_after_insert(Node* y) {
  Path path(y);
  while (y->n == slots()) {
    if (y == root_) {
      grow();
      path.left = path.right = true;
    }
    split(y);
    path.rise(y = y->parent);
  }
  repair(path);
}

// Partials are to be repaired up to `level` at least, where a value was replaced.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::rebalance_after_evict(Node* y, std::size_t level) {
  Path path(y);
  while (y != root_ && y->n + 1u < min_arity()) {
    Node* p = y->parent;
    std::size_t i = nodes_.index_of(y);
    Node* before = i > 0 ? children(p)[i - 1] : nullptr;
    Node* after = i < p->n ? children(p)[i + 1] : nullptr;
    // Either sibling will do; one with entries to spare is better, since a move ends the loop.
    bool move_before = before && before->n >= min_arity(), move_after = after && after->n >= min_arity();
    bool take_after = after && (move_after || !move_before);
    Pair pair = take_after ? Pair{y, after, p, i} : Pair{before, y, p, i - 1};
    path.touch(take_after ? after : before);
    if (take_after ? move_after : move_before) {
      probe_.restructure();
      probe_.reach(take_after ? "move from the right" : "move from the left");
      take_after ? nodes_.move_left(pair, 1) : nodes_.move_right(pair);
      refresh_within(pair.left);
      refresh_within(pair.right);
    } else {
      Node* merged = merge_siblings(pair);
      if (p == root_ && p->n == 0) {
        probe_.reach("height decrease");
        shrink(merged);
        path.left = path.right = true;
        path.top = merged;
        break;
      }
    }
    path.rise(y = p);
  }
  repair(path, level);
}

// Partials from the top of the path up to a spine, or the root, or `level`, and from there down the spines that were touched.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::repair(Path path, std::size_t level) {
  while (path.top != root_ && (path.top->place == Place::within || path.top->level < level)) {
    refresh_within(path.top);
    path.rise(path.top->parent);
  }
  Node* top = path.top;
  if (top != root_) return top->place == Place::left ? refresh_left(top) : refresh_right(top);
  refresh(root_);
  if (!fingers || root_->level == 0) return;
  if (path.left) refresh_left(children(root_)[0]);
  if (path.right) refresh_right(children(root_)[root_->n]);
}

template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::grow() {
  probe_.reach("height increase");
  Node* top = nodes_.make(root_->level + 1u, monoid_.identity());
  if (fingers) {
    top->place = Place::top;
    root_->place = Place::left;
  }
  children(top)[0] = root_;
  root_->parent = top;
  root_ = top;
}

// The right half of an overfull node becomes a node of its own, the entry between them goes up.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::split(Node* y) {
  probe_.restructure();
  probe_.reach("split");
  Node* p = y->parent;
  bool was_root = p->n == 0, was_last = was_root || y->place == Place::right;
  std::size_t i = nodes_.index_of(y), middle = min_arity();
  Node* z = nodes_.make(y->level, monoid_.identity());
  nodes_.take_tail(y, middle + 1, z);
  nodes_.place(p, i, keys(y)[middle], std::move(values(y)[middle]));
  nodes_.place_child(p, i + 1, z);
  nodes_.remove(y, middle);
  if (fingers && was_last) {
    z->place = Place::right;
    if (!was_root) y->place = Place::within;
  }
  if (y == right_) right_ = z;
  refresh_within(y);
  refresh_within(z);
}

// The right one takes in the left one, which goes.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::merge_siblings(const Pair& pair) -> Node* {
  probe_.restructure();
  probe_.reach("merge");
  nodes_.merge(pair);
  if (pair.left->place == Place::left) pair.right->place = Place::left;
  if (pair.left == left_) left_ = pair.right;
  nodes_.drop(pair.left);
  nodes_.remove(pair.above, pair.entry);
  nodes_.remove_child(pair.above, pair.entry);
  refresh_within(pair.right);
  return pair.right;
}

// The root's only child becomes the root.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::shrink(Node* child) {
  nodes_.drop(root_);
  root_ = child;
  child->parent = nullptr;
  child->place = fingers ? Place::top : Place::within;
}

}  // namespace sash
