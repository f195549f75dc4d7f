// FiBA's bulk evict (bulk-fiba-2023, section 4): the tree is cut along the boundary between what goes and what stays
//
//   search   from the nearer finger to the lowest spine node whose subtree holds the boundary, and down from there: one Cut per level
//   up       at each level, entries and children left of the path go; what the node lacks it takes from its right neighbour, or it is
//            merged into it. Beyond the search, only as long as a merge took a child away
//   down     the left spine; the right one if the root changed, or a node below its end of the root
//
//               [ . a . ]           a: the entry of the ancestor between node and neighbour, which need not be siblings
//              /         \                                                                                                  .
//          [ x x ]     [ ... ]      x goes; a node with nothing left is dropped when its last child is merged away
//               \       /
//         [ x x e ]  [ e0 e1 .. ]   move 2:  [ e a e0 ], e1 goes up in place of a;    merge:  [ e a e0 e1 .. ]
//           node      neighbour

#pragma once

#include "fiba.hpp"

namespace sash {

template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::bulk_evict(const Key& key) {
  if (size_ == 0 || key < oldest()) return;
  if (!(key < youngest())) {
    pool_.defer(root_, size_);
    start();
    pool_.tend(size_);
    return;
  }
  Tear<M> tear(torn_);
  Node* high = lowest_with(key, key);  // will be the highest node changed
  if constexpr (!fingers)
    while (high->level > 0 && keys(high)[high->n - 1] < key) high = children(high)[high->n];
  bool right = high != root_ && keys(high->parent)[high->parent->n - 1] < key;
  if (right) make_root(high);

  Cut cuts[most_levels];
  std::size_t at = search_cuts(high, key, cuts);
  for (Outcome below = Outcome::kept;;) {
    Cut cut = cuts[at];
    Outcome outcome = evict_level(cut, below);
    if (cut.neighbour == nullptr) {  // the root
      high = root_;
      if (root_->n == 0 && root_->level > 0) {
        shrink(high = children(root_)[0]);  // make child root
        right = true;
      }
      break;
    }
    bool gone = outcome == Outcome::gone;
    right = right || cut.neighbour->place == Place::right;
    high = outcome == Outcome::kept && !right ? cut.node : cut.ancestor;
    if (fingers) (gone ? cut.neighbour : cut.node)->place = Place::left;
    refresh_within(cut.neighbour);
    if (!gone) refresh_within(cut.node);
    below = outcome;
    if (at > 0)
      --at;
    else if (gone)
      cuts[0] = cut_beyond(cut.ancestor);
    else
      break;
  }
  refresh_spines(high, right);
  tear.mend();
  pool_.tend(size_);
}

// Everything above and left of a node of the right spine goes, which leaves it as the root.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::make_root(Node* y) {
  probe_.restructure();
  std::uint64_t stay = entries_below(y);
  remove(y->parent, y->parent->n - 1u);  // with it its last child, y, is no longer one
  pool_.defer(root_, size_ - stay - 1);
  root_ = y;
  y->parent = nullptr;
  y->place = fingers ? Place::top : Place::within;
  size_ = stay;
}

// Fills in a Cut for every level from y down, stops early at an entry of that key. Returns the index of the lowest.
template <Monoid M, class Key, bool fingers>
std::size_t Fiba<M, Key, fingers>::search_cuts(Node* y, const Key& key, Cut* cuts) const {
  Cut cut = cut_beyond(y);
  for (std::size_t at = 0;; ++at) {
    probe_.visit();
    y = cut.node;
    cut.i = rank_after(y, key);
    cuts[at] = cut;
    if (y->level == 0 || (cut.i > 0 && keys(y)[cut.i - 1] == key)) return at;
    cut.node = children(y)[cut.i];
    if (cut.i < y->n) {
      cut.ancestor = y;
      cut.entry = cut.i;
      cut.neighbour = children(y)[cut.i + 1];
    } else {
      cut.neighbour = children(cut.neighbour)[0];
    }
  }
}

// A node of the left spine of which nothing goes but perhaps its first child.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::cut_beyond(Node* y) const -> Cut {
  if (y == root_) return {y, 0, nullptr, 0, nullptr};
  return {y, 0, y->parent, 0, children(y->parent)[1]};
}

// Evicts at one level and repairs the arity there; `below` is what became of the child on the path.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::evict_level(const Cut& cut, Outcome below) -> Outcome {
  Node* y = cut.node;
  std::size_t go = cut.i;
  size_ -= go;
  if (y->level > 0) {
    for (std::size_t i = 0; i < go; ++i) {
      std::uint64_t entries = entries_below(children(y)[i]);
      size_ -= entries;
      pool_.defer(children(y)[i], entries);
    }
  }
  if (below == Outcome::gone) {
    if (go == y->n) {
      pool_.drop(y);
      return Outcome::gone;
    }
    ++go;  // the entry after the child went with it
  }
  remove_front(y, go);
  std::size_t least = min_arity() - 1;
  if (cut.neighbour == nullptr || y->n >= least) return Outcome::kept;
  std::size_t lacking = least - y->n;
  if (lacking <= cut.neighbour->n - least) {
    move_batch(cut, lacking);
    return Outcome::filled;
  }
  merge_into_neighbour(cut);
  return Outcome::gone;
}

// k entries come over from the neighbour, with the children before them, by way of the entry of the ancestor.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::move_batch(const Cut& cut, std::size_t k) {
  probe_.restructure();
  Node *y = cut.node, *z = cut.neighbour;
  Key& key = keys(cut.ancestor)[cut.entry];
  Partial& value = values(cut.ancestor)[cut.entry];
  place(y, y->n, key, std::move(value));
  std::size_t n = y->n;
  relocate(keys(y) + n, keys(z), k - 1);
  relocate(values(y) + n, values(z), k - 1);
  key = std::move(keys(z)[k - 1]);
  value = std::move(values(z)[k - 1]);
  std::destroy_at(keys(z) + k - 1);
  std::destroy_at(values(z) + k - 1);
  std::size_t rest = z->n - k;
  relocate(keys(z), keys(z) + k, rest);
  relocate(values(z), values(z) + k, rest);
  if (y->level > 0) {
    relocate(children(y) + n, children(z), k);
    relocate(children(z), children(z) + k, rest + 1);
    adopt(y, n, n + k);
  }
  y->n = static_cast<std::uint16_t>(n + k - 1);
  z->n = static_cast<std::uint16_t>(rest);
}

// The neighbour takes in, on its left, what the node has and the entry of the ancestor between them.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::merge_into_neighbour(const Cut& cut) {
  probe_.restructure();
  Node *y = cut.node, *z = cut.neighbour;
  place(y, y->n, keys(cut.ancestor)[cut.entry], std::move(values(cut.ancestor)[cut.entry]));
  std::size_t n = y->n;
  relocate(keys(z) + n, keys(z), z->n);
  relocate(values(z) + n, values(z), z->n);
  relocate(keys(z), keys(y), n);
  relocate(values(z), values(y), n);
  if (y->level > 0) {
    relocate(children(z) + n, children(z), z->n + 1u);
    relocate(children(z), children(y), n);
    adopt(z, 0, n);
  }
  z->n = static_cast<std::uint16_t>(z->n + n);
  y->n = 0;
  pool_.drop(y);
}

// From the highest node changed down the left spine, and the right one if asked: places, partials, fingers.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::refresh_spines(Node* high, bool right) {
  refresh(high);
  if constexpr (fingers) {
    Node* y = high;
    while (y->level > 0) {
      y = children(y)[0];
      y->place = Place::left;
      refresh(y);
    }
    left_ = y;
    if (!right) return;
    for (y = high; y->level > 0;) {
      y = children(y)[y->n];
      y->place = Place::right;
      refresh(y);
    }
    right_ = y;
  } else {
    left_ = leaf_below(root_, false);
    right_ = leaf_below(root_, true);
  }
}

// Entries of a subtree wherever it is; on a spine only the nodes off it know theirs.
template <Monoid M, class Key, bool fingers>
std::uint64_t Fiba<M, Key, fingers>::entries_below(const Node* y) const {
  std::uint64_t entries = 0;
  while (y->level > 0 && y->place != Place::within) {
    bool left = y->place == Place::left;
    entries += y->n;
    for (std::size_t i = left; i < y->n + std::size_t(left); ++i) entries += pool_.entries(children(y)[i]);
    y = children(y)[left ? 0 : y->n];
  }
  return entries + pool_.entries(y);
}

}  // namespace sash
