// FiBA, the finger B-tree aggregator
//
//   paper      fiba-2019; bulk operations by bulk-fiba-2023
//   ordering   any
//   needs      a monoid; neither inverse nor commutativity
//   time       d places from the nearer end: insert and evict O(log d) amortised, O(log n) worst; at the ends O(1) amortised
//              query at most 2 combines; a range O(log d_from + log d_to + log n_sub)
//              bulk evict of m O(log m) amortised, O(log n) worst; bulk insert O(log d + m (1 + log d/m)) amortised
//   space      n + nodes partials, nodes < n / (min_arity - 1)
//
//                       [ g   o ]                         top: g, hi..n, o
//              .-----------'|'-----------.
//           [ c   f ]    [ i..m ]      [ q   t ]          left: c de f         right: p q rs t
//          .---'|'---.     ...       .----'|'----.
//      [ a b ] [d e]  ..           [ p ] [ r s ] [ u v ]  left: a b, cdef      right: pq..t, u v
//      finger                                     finger  query = left finger, top, right finger
//
//   I1  all leaves are at level 0, a child one level below its parent, which it points to
//   I2  keys ascend, within a node and across nodes
//   I3  a node has min_arity to 2 * min_arity children (a leaf: as if), the root at least 2; entries are one fewer
//   I4  places: the root is top, first children from it on are left, last ones right, all others within
//   I5  a node within: agg covers its subtree, and an inner one's total counts its entries
//   I6  the root: agg covers its values and its children but the first and the last
//   I7  a node on the left: agg covers its values and children but the first, then its parent's agg unless that is the root;
//       on the right the mirror
//   I8  the fingers are the first and the last leaf; size is the number of entries

#pragma once

#include <bit>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../monoid.hpp"
#include "fiba_node.hpp"

namespace sash {

// With fingers = false every node, the root too, stores the partial of its subtree: see btree.hpp.
template <Monoid M, class Key = Time, bool fingers = true>
class Fiba {
 public:
  using Partial = typename M::Partial;

  static constexpr std::size_t default_min_arity = 8;

  explicit Fiba(M monoid, std::size_t min_arity = default_min_arity) : monoid_(std::move(monoid)), pool_(require_arity(min_arity)) {
    start();
  }

  Fiba(const Fiba& other) : Fiba(other.monoid_, other.min_arity()) {
    merge(other);
    torn_ = other.torn_;
  }
  Fiba(Fiba&& other) : Fiba(other.monoid_, other.min_arity()) { swap(other); }
  Fiba& operator=(Fiba other) {
    swap(other);
    return *this;
  }
  ~Fiba() { pool_.defer(root_, size_); }

  void swap(Fiba& other) {
    std::swap(monoid_, other.monoid_);
    pool_.swap(other.pool_);
    std::swap(root_, other.root_);
    std::swap(left_, other.left_);
    std::swap(right_, other.right_);
    std::swap(size_, other.size_);
    std::swap(torn_, other.torn_);
  }

  std::size_t size() const { return size_; }
  std::size_t min_arity() const { return pool_.slots() / 2; }
  const Key& oldest() const { return keys(left_)[0]; }
  const Key& youngest() const { return keys(right_)[right_->n - 1]; }
  bool torn() const { return torn_; }
  const ProbeOf<M>& probe() const { return probe_; }
  // Bytes of all nodes, those that wait to be taken apart included.
  std::size_t bytes() const { return pool_.bytes(); }

  void clear() {
    NodePool<Key, Partial> fresh(min_arity());
    pool_.defer(root_, size_);
    pool_.swap(fresh);
    start();
  }

  // An entry of that key takes the new value in on its right.
  void insert(const Key& key, Partial value) {
    if (fingers && right_->n > 0 && keys(right_)[right_->n - 1] < key && right_->n + 1u < slots()) {
      // In order, with room: one combine, and a combine that throws has changed nothing.
      Partial agg = monoid_.combine(right_->agg, value);
      place(right_, right_->n, key, std::move(value));
      right_->agg = std::move(agg);
      ++size_;
      return;
    }
    Spot at = find(key);
    if (at.hit) {
      Partial both = monoid_.combine(values(at.node)[at.i], value);
      Tear<M> tear(torn_);
      values(at.node)[at.i] = std::move(both);
      Path path(at.node);
      repair(path);
      tear.mend();
    } else {
      Tear<M> tear(torn_);
      place(at.node, at.i, key, std::move(value));
      ++size_;
      rebalance_after_insert(at.node);
      tear.mend();
    }
    pool_.tend(size_);
  }

  // Removes the oldest entry, if there is one.
  void evict() {
    if (size_ == 0) return;
    if (fingers && (left_->n >= min_arity() || left_ == root_)) {
      Partial agg = left_->n == 1 ? monoid_.identity() : fold_values(values(left_), 1, left_->n);
      if (left_ != root_ && left_->parent != root_) agg = monoid_.combine(agg, left_->parent->agg);
      remove(left_, 0);
      left_->agg = std::move(agg);
      --size_;
      pool_.tend(size_);
      return;
    }
    evict_at({left_, 0, true});
  }

  // Removes the entry of that key, wherever it is; false if there is none.
  bool evict(const Key& key) {
    Spot at = find(key);
    if (!at.hit) return false;
    evict_at(at);
    return true;
  }

  // Removes every entry up to and including that key.
  void bulk_evict(const Key& key);

  // Inserts entries whose keys do not decrease; equal keys combine in their order.
  void bulk_insert(std::span<const Key> keys, std::span<const Partial> values);

  // Takes in every entry of another tree, in time order; where both have a key, this one's value is on the left.
  void merge(const Fiba& other) {
    std::vector<Key> keys;
    std::vector<Partial> values;
    keys.reserve(other.size_);
    values.reserve(other.size_);
    other.for_each([&](const Key& key, const Partial& value) {
      keys.push_back(key);
      values.push_back(value);
    });
    bulk_insert(keys, values);
  }

  Partial query() const {
    if (!fingers || root_->level == 0) return root_->agg;
    return monoid_.combine(monoid_.combine(left_->agg, root_->agg), right_->agg);
  }

  // The entries from one key to another, both included.
  Partial query(const Key& from, const Key& to) const;

  // Many such ranges at once.
  std::vector<Partial> query_many(std::span<const Key> from, std::span<const Key> to) const;

  // The first key at or after this one, null where there is none.
  const Key* first_from(const Key& key) const {
    const Node* y = lowest_with(key, key);
    const Key* found = y != root_ && y->place == Place::left ? &keys(y->parent)[0] : nullptr;
    for (;;) {
      probe_.visit();
      std::size_t i = rank(y, key);
      if (i < y->n) found = &keys(y)[i];
      if (y->level == 0) return found;
      y = children(y)[i];
    }
  }

  template <class Visit>
  void for_each(Visit visit) const {
    walk(root_, visit);
  }

  // The entries in order; loading builds from them.
  template <class Archive>
  void archive(Archive& ar) {
    auto arity = static_cast<std::int64_t>(min_arity()), n = static_cast<std::int64_t>(size_);
    ar.number(arity);
    ar.number(n);
    if constexpr (Archive::loading) {
      if (arity < 2 || arity > largest_min_arity) throw std::invalid_argument("a stored window's min_arity is out of bounds");
      if (n < 0 || static_cast<std::size_t>(n) > ar.partials_left()) throw std::invalid_argument("the stored window ends too early");
      std::vector<Key> keys(static_cast<std::size_t>(n));
      std::vector<Partial> values(keys.size(), monoid_.identity());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        archive_key(ar, keys[i]);
        ar.partial(values[i]);
        if (i > 0 && !(keys[i - 1] < keys[i])) throw std::invalid_argument("the stored window's entries are out of order");
      }
      Fiba loaded(monoid_, static_cast<std::size_t>(arity));
      loaded.bulk_insert(keys, values);
      swap(loaded);
    } else {
      for_each([&](const Key& key, const Partial& value) {
        Key k = key;
        Partial v = value;
        archive_key(ar, k);
        ar.partial(v);
      });
    }
  }

  // Verifies I1 to I8; `same` compares two partials.
  template <class Same>
  void check(Same same) const {
    const Key* last = nullptr;
    std::uint64_t entries = check_below(root_, Place::top, last, same);
    require(root_->parent == nullptr, "I1: the root has a parent");
    require(entries == size_, "I8: the tree holds ", entries, " entries, size is ", size_);
    require(left_ == leaf_below(root_, false) && right_ == leaf_below(root_, true), "I8: a finger is not at the end of its spine");
  }

 private:
  using Node = TreeNode<Key, Partial>;
  static constexpr std::int64_t largest_min_arity = 4096;

  struct Spot {
    Node* node;
    std::size_t i;
    bool hit;
  };

  // What an operation touched: the highest node, and whether nodes of the spines were among them.
  struct Path {
    Node* top;
    bool left = false, right = false;
    explicit Path(Node* y) { rise(y); }
    void rise(Node* y) {
      touch(y);
      top = y;
    }
    void touch(Node* y) {
      left |= y->place == Place::left;
      right |= y->place == Place::right;
    }
  };

  static std::size_t require_arity(std::size_t min_arity) {
    if (min_arity < 2 || min_arity > largest_min_arity) throw std::invalid_argument("min_arity must be from 2 to 4096");
    return min_arity;
  }

  std::size_t slots() const { return pool_.slots(); }
  Key* keys(const Node* y) const { return pool_.keys(y); }
  Partial* values(const Node* y) const { return pool_.values(y); }
  Node** children(const Node* y) const { return pool_.children(y); }

  void start() {
    root_ = left_ = right_ = pool_.make(0, monoid_.identity());
    root_->place = fingers ? Place::top : Place::within;
    size_ = 0;
    torn_ = false;
  }

  // ---- search ----

  // Keys below, and keys not above. Counting them all beats a search that stops: its one branch is foreseen.
  std::size_t rank(const Node* y, const Key& key) const {
    std::size_t i = 0;
    for (const Key *k = keys(y), *end = k + y->n; k != end; ++k) i += *k < key;
    return i;
  }
  std::size_t rank_after(const Node* y, const Key& key) const {
    std::size_t i = 0;
    for (const Key *k = keys(y), *end = k + y->n; k != end; ++k) i += !(key < *k);
    return i;
  }

  // The lowest node of a spine whose subtree holds all of [from, to]: climbs from both ends at once.
  Node* lowest_with(const Key& from, const Key& to) const {
    if constexpr (!fingers) return root_;
    Node *l = left_, *r = right_;
    while (r != root_) {
      probe_.visit(2);
      if (keys(r->parent)[r->parent->n - 1] < from) return r;
      if (to < keys(l->parent)[0]) return l;
      l = l->parent, r = r->parent;
    }
    return root_;
  }

  Spot find(const Key& key) const {
    Node* y = lowest_with(key, key);
    for (;;) {
      probe_.visit();
      std::size_t i = rank(y, key);
      if (i < y->n && keys(y)[i] == key) return {y, i, true};
      if (y->level == 0) return {y, i, false};
      y = children(y)[i];
    }
  }

  static std::size_t index_in(Node* const* children, const Node* y) {
    std::size_t i = 0;
    while (children[i] != y) ++i;
    return i;
  }

  Node* leaf_below(Node* y, bool last) const {
    while (y->level > 0) y = children(y)[last ? y->n : 0];
    return y;
  }

  // ---- partials ----

  Partial fold_values(const Partial* v, std::size_t from, std::size_t to) const {
    Partial sum = v[from];
    while (++from < to) sum = monoid_.combine(sum, v[from]);
    return sum;
  }

  // The values of a node and its children from `first` to `last`, each child before the value of its index.
  Partial fold(const Node* y, bool first, bool last) const {
    const Partial* v = values(y);
    if (y->level == 0) return y->n == 0 ? monoid_.identity() : fold_values(v, 0, y->n);
    Node** c = children(y);
    Partial sum = first ? monoid_.combine(c[0]->agg, v[0]) : v[0];
    for (std::size_t i = 1; i < y->n; ++i) sum = monoid_.combine(sum, monoid_.combine(c[i]->agg, v[i]));
    return last ? monoid_.combine(sum, c[y->n]->agg) : sum;
  }

  void refresh(Node* y) {
    probe_.visit();
    switch (y->place) {
      case Place::within:
        y->agg = fold(y, true, true);
        if (y->level > 0) {
          std::uint64_t total = y->n;
          for (std::size_t i = 0; i <= y->n; ++i) total += pool_.entries(children(y)[i]);
          pool_.total(y) = total;
        }
        break;
      case Place::top:
        y->agg = fold(y, false, false);
        break;
      case Place::left: {
        Partial own = fold(y, false, true);
        y->agg = y->parent == root_ ? std::move(own) : monoid_.combine(own, y->parent->agg);
        break;
      }
      case Place::right: {
        Partial own = fold(y, true, false);
        y->agg = y->parent == root_ ? std::move(own) : monoid_.combine(y->parent->agg, own);
        break;
      }
    }
  }

  void refresh_within(Node* y) {
    if (y->place == Place::within) refresh(y);
  }

  // Repairs partials from the top of a path up to a spine or the root, at least up to `level`, and from there down the spines.
  void repair(Path path, std::size_t level = 0) {
    while (path.top != root_ && (path.top->place == Place::within || path.top->level < level)) {
      refresh_within(path.top);
      path.rise(path.top->parent);
    }
    Node* top = path.top;
    refresh(top);
    if (top->place == Place::left || (top->place == Place::top && path.left))
      for (Node* y = top; y->level > 0;) refresh(y = children(y)[0]);
    if (top->place == Place::right || (top->place == Place::top && path.right))
      for (Node* y = top; y->level > 0;) refresh(y = children(y)[y->n]);
  }

  // ---- one entry in, one entry out ----

  void place(Node* y, std::size_t i, const Key& key, Partial&& value) {
    Key* k = keys(y);
    Partial* v = values(y);
    relocate(k + i + 1, k + i, y->n - i);
    relocate(v + i + 1, v + i, y->n - i);
    ::new (static_cast<void*>(k + i)) Key(key);
    ::new (static_cast<void*>(v + i)) Partial(std::move(value));
    ++y->n;
  }

  void remove(Node* y, std::size_t i) {
    Key* k = keys(y);
    Partial* v = values(y);
    k[i].~Key();
    v[i].~Partial();
    --y->n;
    relocate(k + i, k + i + 1, y->n - i);
    relocate(v + i, v + i + 1, y->n - i);
  }

  void remove_front(Node* y, std::size_t k) {  // with the children before them
    std::destroy_n(keys(y), k);
    std::destroy_n(values(y), k);
    y->n = static_cast<std::uint16_t>(y->n - k);
    relocate(keys(y), keys(y) + k, y->n);
    relocate(values(y), values(y) + k, y->n);
    if (y->level > 0) relocate(children(y), children(y) + k, y->n + 1u);
  }

  void place_child(Node* y, std::size_t i, Node* child) {  // entries were placed before
    Node** c = children(y);
    relocate(c + i + 1, c + i, y->n - i);
    c[i] = child;
    child->parent = y;
  }

  void remove_child(Node* y, std::size_t i) {  // entries were removed before
    Node** c = children(y);
    relocate(c + i, c + i + 1, y->n + 1 - i);
  }

  void adopt(Node* y, std::size_t from, std::size_t to) {
    for (; from < to; ++from) children(y)[from]->parent = y;
  }

  // ---- rebalancing, after the fact ----

  void rebalance_after_insert(Node* y) {
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

  void grow() {
    Node* top = pool_.make(root_->level + 1u, monoid_.identity());
    if constexpr (fingers) {
      top->place = Place::top;
      root_->place = Place::left;
    }
    children(top)[0] = root_;
    root_->parent = top;
    root_ = top;
  }

  // The right half of an overfull node becomes a node of its own, the entry between goes up.
  void split(Node* y) {
    probe_.restructure();
    Node* p = y->parent;
    bool only = p->n == 0;  // the root just grew
    Node* z = pool_.make(y->level, monoid_.identity());
    std::size_t keep = min_arity(), at = index_in(children(p), y);
    place(p, at, keys(y)[keep], std::move(values(y)[keep]));
    place_child(p, at + 1, z);
    take_tail(y, keep + 1, z);
    remove(y, keep);
    if (fingers && (only || y->place == Place::right)) {
      z->place = Place::right;
      if (!only) y->place = Place::within;
    }
    if (y == right_) right_ = z;
    refresh_within(y);
    refresh_within(z);
  }

  // Entries from `from` on, and the children after them, go to an empty node.
  void take_tail(Node* y, std::size_t from, Node* z) {
    std::size_t n = y->n - from;
    relocate(keys(z), keys(y) + from, n);
    relocate(values(z), values(y) + from, n);
    if (y->level > 0) {
      relocate(children(z), children(y) + from, n + 1);
      z->n = static_cast<std::uint16_t>(n);
      adopt(z, 0, n + 1);
    }
    z->n = static_cast<std::uint16_t>(n);
    y->n = static_cast<std::uint16_t>(from);
  }

  void evict_at(Spot at) {
    Tear<M> tear(torn_);
    std::size_t level = at.node->level;
    Node* leaf = at.node;
    if (level == 0) {
      remove(leaf, at.i);
    } else {
      // The neighbour in time takes the place of an entry in an inner node, and leaves its leaf instead.
      Node* after = children(at.node)[at.i + 1];
      bool next = after->n >= min_arity();
      leaf = leaf_below(next ? after : children(at.node)[at.i], !next);
      std::size_t i = next ? 0 : leaf->n - 1u;
      keys(at.node)[at.i] = std::move(keys(leaf)[i]);
      values(at.node)[at.i] = std::move(values(leaf)[i]);
      remove(leaf, i);
    }
    --size_;
    rebalance_after_evict(leaf, level);
    tear.mend();
    pool_.tend(size_);
  }

  void rebalance_after_evict(Node* y, std::size_t level) {
    Path path(y);
    while (y != root_ && y->n + 1u < min_arity()) {
      Node* p = y->parent;
      std::size_t i = index_in(children(p), y);
      Node* before = i > 0 ? children(p)[i - 1] : nullptr;
      Node* after = i < p->n ? children(p)[i + 1] : nullptr;
      if (after && after->n >= min_arity()) {
        path.touch(after);
        move_from_right(p, i, y, after);
      } else if (before && before->n >= min_arity()) {
        path.touch(before);
        move_from_left(p, i - 1, before, y);
      } else {
        path.touch(after ? after : before);
        Node* merged = after ? merge(p, i, y, after) : merge(p, i - 1, before, y);
        if (p == root_ && p->n == 0) {
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

  // Entry i of p, between l and r, comes down to the end of l, the first of r goes up, and r's first child over.
  void move_from_right(Node* p, std::size_t i, Node* l, Node* r) {
    probe_.restructure();
    place(l, l->n, keys(p)[i], std::move(values(p)[i]));
    keys(p)[i] = std::move(keys(r)[0]);
    values(p)[i] = std::move(values(r)[0]);
    remove(r, 0);
    if (l->level > 0) {
      place_child(l, l->n, children(r)[0]);
      remove_child(r, 0);
    }
    refresh_within(l);
    refresh_within(r);
  }

  void move_from_left(Node* p, std::size_t i, Node* l, Node* r) {
    probe_.restructure();
    std::size_t last = l->n - 1u;
    place(r, 0, keys(p)[i], std::move(values(p)[i]));
    keys(p)[i] = std::move(keys(l)[last]);
    values(p)[i] = std::move(values(l)[last]);
    remove(l, last);
    if (r->level > 0) place_child(r, 0, children(l)[last + 1]);
    refresh_within(l);
    refresh_within(r);
  }

  // l takes in entry i of p and all of its right neighbour r, which goes.
  Node* merge(Node* p, std::size_t i, Node* l, Node* r) {
    probe_.restructure();
    place(l, l->n, keys(p)[i], std::move(values(p)[i]));
    std::size_t n = l->n;
    relocate(keys(l) + n, keys(r), r->n);
    relocate(values(l) + n, values(r), r->n);
    if (l->level > 0) {
      relocate(children(l) + n, children(r), r->n + 1u);
      adopt(l, n, n + r->n + 1);
    }
    l->n = static_cast<std::uint16_t>(n + r->n);
    if (r->place == Place::right) l->place = Place::right;
    if (r == right_) right_ = l;
    r->n = 0;
    pool_.drop(r);
    remove(p, i);
    remove_child(p, i + 1);
    refresh_within(l);
    return l;
  }

  // The root's only child becomes the root.
  void shrink(Node* child) {
    pool_.drop(root_);
    root_ = child;
    child->parent = nullptr;
    child->place = fingers ? Place::top : Place::within;
  }

  // ---- bulk evict: see fiba_bulk_evict.hpp ----

  // A node on the boundary, the number of its entries that go, and the entry between it and its right neighbour.
  struct Cut {
    Node* node;
    std::size_t i;
    Node* ancestor;
    std::size_t entry;
    Node* neighbour;  // of the root there is none
  };
  enum class Outcome { kept, filled, gone };
  static constexpr std::size_t most_levels = 64;

  void make_root(Node* y);
  std::size_t search_cuts(Node* y, const Key& key, Cut* cuts) const;
  Cut cut_beyond(Node* y) const;
  Outcome evict_level(const Cut& cut, Outcome below);
  void move_batch(const Cut& cut, std::size_t k);
  void merge_into_neighbour(const Cut& cut);
  void refresh_spines(Node* high, bool right);
  std::uint64_t entries_below(const Node* y) const;

  // ---- bulk insert: see fiba_bulk_insert.hpp ----

  struct Treelet {
    Key key;
    Partial value;
    Node* child;  // the one after the entry; none at the leaves
  };
  struct Event {
    Node* target;
    std::size_t first, last;  // its treelets
  };
  struct Level {
    std::vector<Treelet> treelets;
    std::vector<Event> events;

    // The last `count` treelets go to that node, or, if there are none, something below it or in it changed.
    void add(Node* target, std::size_t count) {
      if (events.empty() || events.back().target != target) events.push_back({target, treelets.size() - count, 0});
      events.back().last = treelets.size();
    }
    void clear() {
      treelets.clear();
      events.clear();
    }
  };

  void search_sites(std::span<const Key> keys, std::span<const Partial> values, Level& level);
  std::size_t fill_leaf(Node* y, std::size_t i, const Key* limit, std::span<const Key> keys, std::span<const Partial> values, std::size_t j,
                        Level& level);
  void interleave(Node* y, Treelet* treelets, std::size_t count);
  Node* interleave_and_split(Node* y, Treelet* treelets, std::size_t count, Level& next);

  // ---- ranges: see fiba_range.hpp ----

  template <bool from>
  class Chain;
  Partial fold_between(const Node* y, std::size_t i, std::size_t j) const;
  Partial fold_from(const Node* y, std::size_t i) const;
  Partial fold_to(const Node* y, std::size_t j) const;

  // ---- all entries ----

  template <class Visit>
  void walk(const Node* y, Visit& visit) const {
    for (std::size_t i = 0; i < y->n; ++i) {
      if (y->level > 0) walk(children(y)[i], visit);
      visit(keys(y)[i], values(y)[i]);
    }
    if (y->level > 0) walk(children(y)[y->n], visit);
  }

  template <class Archive>
  static void archive_key(Archive& ar, Key& key) {
    if constexpr (std::is_floating_point_v<Key>) {
      auto bits = std::bit_cast<std::int64_t>(static_cast<double>(key));
      ar.number(bits);
      key = static_cast<Key>(std::bit_cast<double>(bits));
    } else if constexpr (std::is_integral_v<Key>) {
      auto number = static_cast<std::int64_t>(key);
      ar.number(number);
      key = static_cast<Key>(number);
    } else {
      key.archive(ar);
    }
  }

  // Checks y and all below it; `last` is the key before. Returns the number of entries.
  template <class Same>
  std::uint64_t check_below(const Node* y, Place place, const Key*& last, Same& same) const {
    std::size_t least = y == root_ ? (y->level > 0 ? 1 : 0) : min_arity() - 1;
    require(y->n >= least && y->n < slots(), "I3: a node at level ", int(y->level), " has ", y->n, " entries, min_arity is ", min_arity());
    require(y->place == (fingers ? place : Place::within), "I4: a node at level ", int(y->level), " is in place ", int(y->place), ", not ",
            int(place));
    std::uint64_t entries = y->n;
    for (std::size_t i = 0; i <= y->n; ++i) {
      if (y->level > 0) {
        const Node* child = children(y)[i];
        require(child->parent == y && child->level + 1 == y->level, "I1: child ", i, " at level ", int(child->level),
                " of a node at level ", int(y->level), " is at a wrong level or has another parent");
        bool first = i == 0 && (place == Place::top || place == Place::left),
             end = i == y->n && (place == Place::top || place == Place::right);
        entries += check_below(child, first ? Place::left : end ? Place::right : Place::within, last, same);
      }
      if (i == y->n) break;
      require(last == nullptr || *last < keys(y)[i], "I2: entry ", i, " of a node at level ", int(y->level),
              " is not after the one before it");
      last = &keys(y)[i];
    }
    check_agg(y, same);
    require(y->place != Place::within || pool_.entries(y) == entries, "I5: a node at level ", int(y->level), " counts ", pool_.entries(y),
            " entries for ", entries);
    return entries;
  }

  template <class Same>
  void check_agg(const Node* y, Same& same) const {
    bool below_root = y->parent == root_;
    switch (y->place) {
      case Place::within:
        return require(same(y->agg, fold(y, true, true)), "I5: the partial of a node within, at level ", int(y->level));
      case Place::top:
        return require(same(y->agg, fold(y, false, false)), "I6: the partial of the root, at level ", int(y->level));
      case Place::left: {
        Partial own = fold(y, false, true);
        return require(same(y->agg, below_root ? own : monoid_.combine(own, y->parent->agg)), "I7: the partial of the left spine at level ",
                       int(y->level));
      }
      case Place::right: {
        Partial own = fold(y, true, false);
        return require(same(y->agg, below_root ? own : monoid_.combine(y->parent->agg, own)),
                       "I7: the partial of the right spine at level ", int(y->level));
      }
    }
  }

  M monoid_;
  NodePool<Key, Partial> pool_;
  Node* root_;
  Node* left_;  // fingers
  Node* right_;
  std::size_t size_ = 0;
  bool torn_ = false;
  [[no_unique_address]] ProbeOf<M> probe_;
};

}  // namespace sash

#include "fiba_bulk_evict.hpp"
#include "fiba_bulk_insert.hpp"
#include "fiba_range.hpp"
