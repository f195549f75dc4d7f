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

// An entry for a node, and the child after it; none at the leaves.
template <Monoid M, class Key, bool fingers>
struct Fiba<M, Key, fingers>::Treelet {
  Key key;
  Partial value;
  Node* child;
};

template <Monoid M, class Key, bool fingers>
struct Fiba<M, Key, fingers>::Level {
  struct Event {
    Node* target;
    std::size_t first, last;  // its treelets
  };
  std::vector<Treelet> treelets;
  std::vector<Event> events;

  // The last `count` treelets go to that node; if there are none, its partial is stale.
  void add(Node* target, std::size_t count) {
    if (events.empty() || events.back().target != target) events.push_back({target, treelets.size() - count, 0});
    events.back().last = treelets.size();
  }
  void clear() {
    treelets.clear();
    events.clear();
  }
};

// Partials of nodes within and of the root, from the bottom up. Where combine may throw they wait until the tree is a tree again.
template <Monoid M, class Key, bool fingers>
class Fiba<M, Key, fingers>::Stale {
 public:
  explicit Stale(Fiba& tree) : tree_(tree) {}
  void add(Node* y) {
    if constexpr (may_throw<M>)
      nodes_.push_back(y);
    else
      tree_.refresh(y);
  }
  void refresh() {
    for (Node* y : nodes_) tree_.refresh(y);
  }

 private:
  Fiba& tree_;
  std::vector<Node*> nodes_;
};

template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::bulk_insert(std::span<const Key> keys, std::span<const Partial> values) {
  if (keys.size() < 2) {
    if (keys.size() == 1) insert(keys[0], values[0]);
    return;
  }
  Tear<M> tear(torn_);
  Level now, above;  // they swap at every level, and keep their memory
  Stale stale(*this);
  now.treelets.reserve(keys.size());
  search_sites(keys, values, now);
  size_ += now.treelets.size();
  Node *high_left = nullptr, *high_right = nullptr;
  for (std::size_t level = 0; !now.events.empty(); ++level) {
    for (const auto& event : now.events) {
      Node *y = event.target, *last = y;
      if (y->level > level) {
        probe_.reach("bulk insert: ride along");
        above.add(y, 0);
        continue;
      }
      probe_.visit();
      std::size_t count = event.last - event.first;
      if (count == 0)
        probe_.reach("bulk insert: recompute only");
      else if (y->n + count < slots())
        interleave(y, now.treelets.data() + event.first, count);
      else
        last = interleave_and_split(y, now.treelets.data() + event.first, count, above, stale);
      if (y->place == Place::left) high_left = y;
      if (last->place == Place::right) high_right = last;
      if (last == y && (y->place == Place::within || y == root_)) {
        stale.add(y);
        if (y != root_) above.add(y->parent, 0);
      }
    }
    std::swap(now, above);
    above.clear();
  }
  stale.refresh();
  if (high_left) refresh_left(high_left);
  if (high_right) refresh_right(high_right);
  tear.mend();
  nodes_.tend(size_);
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
        j = fill_leaf({y, i, false}, step.limit, new_keys, new_values, j, level);
        break;
      }
      if (i < y->n && keys(y)[i] == key) {
        probe_.reach("bulk insert: hit in an inner node");
        Partial& value = values(y)[i];
        value = monoid_.combine(value, new_values[j++]);
        level.add(y, 0);
        break;
      }
      path[++depth] = {children(y)[i], i < y->n ? &keys(y)[i] : step.limit};
    }
  }
}

// Deals with all new keys below `limit` from the next one on, which all belong to one leaf; returns the next one after them.
template <Monoid M, class Key, bool fingers>
std::size_t Fiba<M, Key, fingers>::fill_leaf(Spot at, const Key* limit, std::span<const Key> new_keys, std::span<const Partial> new_values,
                                             std::size_t next, Level& level) {
  auto [y, i, hit] = at;
  std::size_t before = level.treelets.size();
  for (; next < new_keys.size() && !(limit && !(new_keys[next] < *limit)); ++next) {
    const Key& key = new_keys[next];
    while (i < y->n && keys(y)[i] < key) ++i;
    if (i < y->n && keys(y)[i] == key) {
      probe_.reach("bulk insert: hit in a leaf");
      values(y)[i] = monoid_.combine(values(y)[i], new_values[next]);
    } else if (level.treelets.size() > before && level.treelets.back().key == key) {
      probe_.reach("bulk insert: repeat in the batch");
      Partial& value = level.treelets.back().value;
      value = monoid_.combine(value, new_values[next]);
    } else {
      level.treelets.push_back({key, new_values[next], nullptr});
    }
  }
  level.add(y, level.treelets.size() - before);
  return next;
}

// Treelets that fit go in from the back, so that nothing is moved twice.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::interleave(Node* y, Treelet* treelets, std::size_t count) {
  probe_.reach("bulk insert: small");
  std::size_t i = y->n, to = i + count;
  y->n = static_cast<std::uint16_t>(to);
  for (; count > 0; --to) {
    if (i > 0 && treelets[count - 1].key < keys(y)[i - 1]) {
      if (y->level > 0) children(y)[to] = children(y)[i];
      --i;
      relocate(keys(y) + to - 1, keys(y) + i, 1);
      relocate(values(y) + to - 1, values(y) + i, 1);
    } else {
      Treelet& treelet = treelets[--count];
      nodes_.put(y, to - 1, std::move(treelet.key), std::move(treelet.value));
      if (y->level > 0) {
        children(y)[to] = treelet.child;
        treelet.child->parent = y;
      }
    }
  }
}

// The entries of y and the treelets, in order, fill y and new nodes after it; the entries between them go up. Returns the last node.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::interleave_and_split(Node* y, Treelet* treelets, std::size_t count, Level& above, Stale& stale) -> Node* {
  probe_.reach("bulk insert: split");
  bool was_last = y->place == Place::right || (fingers && y == root_);
  if (y == root_) grow();
  if (y->place == Place::right) y->place = Place::within;
  Node* old = nodes_.make(y->level, monoid_.identity());
  nodes_.take_tail(y, 0, old);

  std::size_t i = 0, j = 0;
  Node* child = y->level > 0 ? children(old)[0] : nullptr;  // the one after the last entry that was taken
  auto take = [&](auto&& put) {
    if (j == count || (i < old->n && keys(old)[i] < treelets[j].key)) {
      put(std::move(keys(old)[i]), std::move(values(old)[i]));
      ++i;
      if (y->level > 0) child = children(old)[i];
    } else {
      put(std::move(treelets[j].key), std::move(treelets[j].value));
      child = treelets[j++].child;
    }
  };
  auto put_child = [&](Node* piece, std::size_t at) {
    if (!child) return;
    children(piece)[at] = child;
    child->parent = piece;
  };
  std::size_t pieces = 0;
  Node* piece = y;
  for (std::size_t arity = old->n + count + 1;;) {
    probe_.restructure();
    std::size_t share = arity > slots() ? min_arity() + 1 : arity;
    put_child(piece, 0);
    for (std::size_t at = 0; at + 1 < share; ++at) {
      take([&](Key&& key, Partial&& value) { nodes_.put(piece, at, std::move(key), std::move(value)); });
      put_child(piece, at + 1);
    }
    piece->n = static_cast<std::uint16_t>(share - 1);
    arity -= share;
    if (arity == 0) break;
    if (piece->place == Place::within) stale.add(piece);
    piece = nodes_.make(y->level, monoid_.identity());
    piece->parent = y->parent;
    take([&](Key&& key, Partial&& value) { above.treelets.push_back({std::move(key), std::move(value), piece}); });
    ++pieces;
  }
  if (was_last)
    piece->place = Place::right;
  else
    stale.add(piece);
  if (y == right_) right_ = piece;
  above.add(y->parent, pieces);
  nodes_.drop(old);
  return piece;
}

}  // namespace sash
