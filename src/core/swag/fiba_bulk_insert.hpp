// FiBA's bulk insert (bulk-fiba-2023, section 5): all new entries go up the tree together, level by level
//
//   search   the leaf of the first key by the finger, of each later one by way of the nearest common ancestor; a key that is in the
//            window already takes its value in on the spot
//   up       an Event says: this node takes in these treelets (an entry and the child after it), or none and its partial is stale. All that
//            concerns a node is one event, since events are in the order of keys; one for a higher node rides along until its level. A node
//            that overflows is split into nodes of min_arity + 1 children and one of min_arity to 2 * min_arity (claim 1), and the
//            entries between them are treelets of the next level
//   down     each spine from the highest of its nodes that changed

#pragma once

#include "fiba.hpp"

namespace sash {

template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::bulk_insert(std::span<const Key> keys, std::span<const Partial> values) {
  if (keys.size() < 2) {
    if (keys.size() == 1) insert(keys[0], values[0]);
    return;
  }
  Tear<M> tear(torn_);
  Level now, next;  // they swap at every level, and keep their memory
  now.treelets.reserve(keys.size());
  search_sites(keys, values, now);
  size_ += now.treelets.size();
  Node *high_left = nullptr, *high_right = nullptr;
  for (std::size_t level = 0; !now.events.empty(); ++level) {
    for (const Event& event : now.events) {
      Node* y = event.target;
      if (y->level > level) {
        next.add(y, 0);
        continue;
      }
      probe_.visit();
      Node* last = y;
      std::size_t count = event.last - event.first;
      if (y->n + count < slots())
        interleave(y, now.treelets.data() + event.first, count);
      else
        last = interleave_and_split(y, now.treelets.data() + event.first, count, next);
      if (y->place == Place::left) high_left = y;
      if (last->place == Place::right) high_right = last;
      if (last == y) {
        if (y->place == Place::within || y->place == Place::top) refresh(y);
        if (y->place == Place::within && y != root_) next.add(y->parent, 0);
      }
    }
    std::swap(now, next);
    next.clear();
  }
  if (high_left)
    for (Node* y = high_left;; y = children(y)[0]) {
      refresh(y);
      if (y->level == 0) break;
    }
  if (high_right)
    for (Node* y = high_right;; y = children(y)[y->n]) {
      refresh(y);
      if (y->level == 0) break;
    }
  tear.mend();
  pool_.tend(size_);
}

// Finds where each key goes; changes no node but for the values of keys that are there already.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::search_sites(std::span<const Key> new_keys, std::span<const Partial> new_values, Level& level) {
  struct Step {
    Node* node;
    const Key* limit;  // the first key after its subtree; none after the last
  };
  Step path[most_levels];
  auto spine_step = [&](Node* y) { return Step{y, fingers && y->place == Place::left ? &keys(y->parent)[0] : nullptr}; };
  std::size_t depth = 0;
  path[0] = spine_step(lowest_with(new_keys[0], new_keys[0]));
  for (std::size_t j = 0; j < new_keys.size();) {
    const Key& key = new_keys[j];
    while (path[depth].limit && !(key < *path[depth].limit)) {
      probe_.visit();
      if (depth > 0)
        --depth;
      else
        path[0] = spine_step(path[0].node->parent);
    }
    for (;;) {
      probe_.visit();
      Step& step = path[depth];
      Node* y = step.node;
      std::size_t i = rank(y, key);
      if (y->level == 0) {
        j = fill_leaf(y, i, step.limit, new_keys, new_values, j, level);
        break;
      }
      if (i < y->n && keys(y)[i] == key) {
        Partial& value = values(y)[i];
        value = monoid_.combine(value, new_values[j++]);
        level.add(y, 0);
        break;
      }
      path[++depth] = {children(y)[i], i < y->n ? &keys(y)[i] : step.limit};
    }
  }
}

// Deals with all new keys below `limit` from the j-th on, which belong to leaf y; the first of them is at or before the i-th there.
template <Monoid M, class Key, bool fingers>
std::size_t Fiba<M, Key, fingers>::fill_leaf(Node* y, std::size_t i, const Key* limit, std::span<const Key> new_keys,
                                             std::span<const Partial> new_values, std::size_t j, Level& level) {
  std::size_t before = level.treelets.size();
  for (; j < new_keys.size() && !(limit && !(new_keys[j] < *limit)); ++j) {
    while (i < y->n && keys(y)[i] < new_keys[j]) ++i;
    if (i < y->n && keys(y)[i] == new_keys[j]) {
      values(y)[i] = monoid_.combine(values(y)[i], new_values[j]);
    } else if (level.treelets.size() > before && level.treelets.back().key == new_keys[j]) {
      Partial& value = level.treelets.back().value;
      value = monoid_.combine(value, new_values[j]);
    } else {
      level.treelets.push_back({new_keys[j], new_values[j], nullptr});
    }
  }
  level.add(y, level.treelets.size() - before);
  return j;
}

// Treelets that fit go in from the back, so that nothing is moved twice.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::interleave(Node* y, Treelet* treelets, std::size_t count) {
  std::size_t i = y->n;
  y->n = static_cast<std::uint16_t>(y->n + count);
  for (std::size_t to = y->n; count > 0; --to) {
    Node* child;
    if (i > 0 && treelets[count - 1].key < keys(y)[i - 1]) {
      --i;
      relocate(keys(y) + to - 1, keys(y) + i, 1);
      relocate(values(y) + to - 1, values(y) + i, 1);
      child = y->level > 0 ? children(y)[i + 1] : nullptr;
    } else {
      Treelet& treelet = treelets[--count];
      ::new (static_cast<void*>(keys(y) + to - 1)) Key(std::move(treelet.key));
      ::new (static_cast<void*>(values(y) + to - 1)) Partial(std::move(treelet.value));
      child = treelet.child;
      if (child) child->parent = y;
    }
    if (y->level > 0) children(y)[to] = child;
  }
}

// The entries of y and the treelets, in order, become y and new nodes after it; the entries between go to the next level. Returns the last.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::interleave_and_split(Node* y, Treelet* treelets, std::size_t count, Level& next) -> Node* {
  bool was_root = y == root_;
  if (was_root) grow();
  Node* old = pool_.make(y->level, monoid_.identity());
  take_tail(y, 0, old);
  std::size_t arity = old->n + count + 1, i = 0;
  Treelet* stop = treelets + count;
  Node* piece = y;
  Place last_place = was_root && fingers ? Place::right : y->place == Place::right ? Place::right : Place::within;
  if (y->place == Place::right) y->place = Place::within;
  Node* child = y->level > 0 ? children(old)[0] : nullptr;  // the one before the next entry
  auto put_child = [&](std::size_t at) {
    if (!child) return;
    children(piece)[at] = child;
    child->parent = piece;
  };
  auto emit = [&](auto&& sink) {
    if (treelets == stop || (i < old->n && keys(old)[i] < treelets->key)) {
      child = old->level > 0 ? children(old)[i + 1] : nullptr;
      sink(keys(old)[i], values(old)[i]);
      ++i;
    } else {
      child = treelets->child;
      sink(treelets->key, treelets->value);
      ++treelets;
    }
  };
  std::size_t pieces = 0;
  for (;;) {
    probe_.restructure();
    std::size_t share = arity > slots() ? min_arity() + 1 : arity;
    put_child(0);
    for (std::size_t to = 0; to + 1 < share; ++to) {
      emit([&](Key& key, Partial& value) {
        ::new (static_cast<void*>(keys(piece) + to)) Key(std::move(key));
        ::new (static_cast<void*>(values(piece) + to)) Partial(std::move(value));
      });
      put_child(to + 1);
    }
    piece->n = static_cast<std::uint16_t>(share - 1);
    arity -= share;
    if (arity == 0) break;
    refresh_within(piece);
    Node* after = pool_.make(y->level, monoid_.identity());
    after->parent = y->parent;
    emit([&](Key& key, Partial& value) { next.treelets.push_back({std::move(key), std::move(value), after}); });
    ++pieces;
    piece = after;
  }
  piece->place = last_place;
  refresh_within(piece);
  if (y == right_) right_ = piece;
  next.add(y->parent, pieces);
  pool_.drop(old);
  return piece;
}

}  // namespace sash
