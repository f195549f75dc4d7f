// FiBA's bulk evict (bulk-fiba-2023, section 4): the tree is cut along the boundary between what goes and what stays
//
//   search   from the nearer finger to the lowest spine node whose subtree holds the boundary, and down from there: one Cut per level
//   up       at each level, entries and children left of the path go; what the node lacks it gets from its right neighbour, or it is
//            merged into it. Beyond the search, only as long as a merge took a child away
//   down     the left spine; the right one if the root changed, or a node below its last child
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

// A node on the boundary with its right neighbour (of the root there is none), and how many of its entries go.
template <Monoid M, class Key, bool fingers>
struct Fiba<M, Key, fingers>::Cut : Pair {
  std::size_t go = 0;
};

template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::bulk_evict(const Key& key) {
  if (size_ == 0 || key < oldest()) return;
  if (!(key < youngest())) {
    probe_.reach("bulk evict: everything");
    nodes_.defer(root_, size_);
    start();
    nodes_.tend(size_);
    return;
  }
  if (std::size_t k = rank_after(left_, key); k < left_->n) {
    if (evict_in_place(k)) return;
    if (k == 1) return evict_at({left_, 0, true});
  }
  Tear<M> tear(torn_);
  Node* high = lowest_with(key, key);  // will be the highest node whose partial changes
  if constexpr (!fingers)
    while (high->level > 0 && keys(high)[high->n - 1] < key) high = children(high)[high->n];
  bool right = high != root_ && keys(high->parent)[high->parent->n - 1] < key;
  if (right) make_root(high);

  Cut cuts[most_levels];
  Node* stale[2 * most_levels];  // nodes within, from the bottom up; combine may throw, so it waits until the tree is a tree again
  std::size_t stales = 0, at = search_cuts(high, key, cuts);
  for (Outcome outcome = Outcome::kept;;) {
    Cut cut = cuts[at];
    outcome = evict_level(cut, outcome);
    if (cut.right == nullptr) {
      high = root_;
      if (root_->n == 0 && root_->level > 0) {
        probe_.restructure();
        probe_.reach("bulk evict: make child root");
        shrink(high = children(root_)[0]);
        right = true;
      }
      break;
    }
    bool gone = outcome == Outcome::gone;
    right |= cut.right->place == Place::right;
    high = outcome == Outcome::kept && !right ? cut.left : cut.above;
    if (fingers) (gone ? cut.right : cut.left)->place = Place::left;
    if (cut.right->place == Place::within) stale[stales++] = cut.right;
    if (!gone && !fingers) stale[stales++] = cut.left;
    if (at > 0)
      --at;
    else if (gone) {
      probe_.reach("bulk evict: beyond the boundary");
      cuts[0] = cut_beyond(cut.above);
    } else
      break;
  }
  for (left_ = high; left_->level > 0;) {
    left_ = children(left_)[0];
    if (fingers) left_->place = Place::left;
  }
  if (right)
    for (right_ = high; right_->level > 0;) {
      right_ = children(right_)[right_->n];
      if (fingers) right_->place = Place::right;
    }
  for (std::size_t i = 0; i < stales; ++i) refresh(stale[i]);
  fingers ? refresh_left(high) : refresh(root_);
  if (fingers && right && high->level > 0) refresh_right(children(high)[high->n]);
  tear.mend();
  nodes_.tend(size_);
}

// Everything above and left of a node of the right spine goes, and it becomes the root.
template <Monoid M, class Key, bool fingers>
void Fiba<M, Key, fingers>::make_root(Node* y) {
  probe_.restructure();
  probe_.reach("bulk evict: make node root");
  std::uint64_t stay = entries_below(y);
  nodes_.remove(y->parent, y->parent->n - 1u);  // and with it the last child, which is y
  nodes_.defer(root_, size_ - stay - 1);
  size_ = stay;
  root_ = y;
  y->parent = nullptr;
  y->place = fingers ? Place::top : Place::within;
}

// Makes a Cut for every level from y down, but stops at an entry of that key. Returns the index of the lowest.
template <Monoid M, class Key, bool fingers>
std::size_t Fiba<M, Key, fingers>::search_cuts(Node* y, const Key& key, Cut* cuts) const {
  Cut cut = cut_beyond(y);
  for (std::size_t at = 0;; ++at) {
    probe_.visit();
    y = cut.left;
    cut.go = rank_after(y, key);
    cuts[at] = cut;
    bool match = cut.go > 0 && keys(y)[cut.go - 1] == key;
    if (match && y->level > 0) probe_.reach("bulk evict: stop at a match");
    if (match || y->level == 0) return at;
    if (cut.go < y->n)
      cut = {{children(y)[cut.go], children(y)[cut.go + 1], y, cut.go}};
    else
      cut = {{children(y)[cut.go], children(cut.right)[0], cut.above, cut.entry}};
  }
}

// A node of the left spine none of whose own entries go.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::cut_beyond(Node* y) const -> Cut {
  if (y == root_) return {{y, nullptr, nullptr, 0}};
  return {{y, children(y->parent)[1], y->parent, 0}};
}

// Evicts at one level and repairs the arity there; `below` says what became of the child on the path.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::evict_level(const Cut& cut, Outcome below) -> Outcome {
  Node* y = cut.left;
  std::size_t go = cut.go;
  size_ -= go;
  if (y->level > 0) {
    for (std::size_t i = 0; i < go; ++i) {
      std::uint64_t entries = entries_below(children(y)[i]);
      size_ -= entries;
      nodes_.defer(children(y)[i], entries);
    }
  }
  if (below == Outcome::gone) {
    if (go == y->n) {
      probe_.reach("bulk evict: nothing left of a node");
      nodes_.drop(y);
      return Outcome::gone;
    }
    ++go;  // the entry after the child went with it
  }
  nodes_.remove_front(y, go);
  std::size_t least = min_arity() - 1;
  if (cut.right == nullptr || y->n >= least) return Outcome::kept;
  std::size_t lacks = least - y->n, spare = cut.right->n - least;
  bool siblings = cut.right->parent == cut.above;
  probe_.restructure();
  if (lacks <= spare) {
    probe_.reach(lacks > 1 ? "bulk evict: move of several" : "bulk evict: move of one");
    probe_.reach(siblings ? "bulk evict: move from a sibling" : "bulk evict: move from no sibling");
    nodes_.move_left(cut, lacks);
    return Outcome::filled;
  }
  probe_.reach(siblings ? "bulk evict: merge into a sibling" : "bulk evict: merge into no sibling");
  nodes_.merge(cut);
  nodes_.drop(y);
  return Outcome::gone;
}

// Entries of a subtree wherever it is: on a spine, only the nodes beside it know theirs.
template <Monoid M, class Key, bool fingers>
std::uint64_t Fiba<M, Key, fingers>::entries_below(const Node* y) const {
  std::uint64_t entries = 0;
  while (y->level > 0 && y->place != Place::within) {
    std::size_t spine = y->place == Place::left ? 0 : y->n;
    entries += y->n;
    for (std::size_t i = 0; i <= y->n; ++i)
      if (i != spine) entries += nodes_.entries(children(y)[i]);
    y = children(y)[spine];
  }
  return entries + nodes_.entries(y);
}

}  // namespace sash
