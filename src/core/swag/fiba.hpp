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

#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../monoid.hpp"
#include "fiba_node.hpp"

namespace sash {

// With fingers = false every node, the root too, stores the partial of its subtree: see btree.hpp.
template <Monoid M, class Key = Time, bool fingers = true>
class Fiba {
 public:
  using Partial = typename M::Partial;

  // 8 was the fastest on the whole for sums, by 0 to 30 %; callables want few combines: 2 takes 10 per round in order, 8 takes 23.
  static constexpr std::size_t default_min_arity = may_throw<M> ? 2 : 8;
  static constexpr std::size_t largest_min_arity = 4096;

  explicit Fiba(M monoid, std::size_t min_arity = default_min_arity) : monoid_(std::move(monoid)), nodes_(checked(min_arity)) { start(); }
  Fiba(const Fiba& other) : Fiba(other.monoid_, other.min_arity()) {
    merge(other);
    torn_ = other.torn_;
  }
  Fiba(Fiba&& other) : Fiba(other.monoid_, other.min_arity()) { swap(other); }
  Fiba& operator=(Fiba other) {
    swap(other);
    return *this;
  }
  ~Fiba() { nodes_.defer(root_, size_); }

  void swap(Fiba& other) {
    std::swap(monoid_, other.monoid_);
    nodes_.swap(other.nodes_);
    std::swap(root_, other.root_);
    std::swap(left_, other.left_);
    std::swap(right_, other.right_);
    std::swap(size_, other.size_);
    std::swap(torn_, other.torn_);
  }

  std::size_t size() const { return size_; }
  std::size_t min_arity() const { return nodes_.slots() / 2; }
  const Key& oldest() const { return keys(left_)[0]; }
  const Key& youngest() const { return keys(right_)[right_->n - 1]; }
  bool torn() const { return torn_; }
  const ProbeOf<M>& probe() const { return probe_; }
  // Bytes of all nodes, those that wait to be reused included.
  std::size_t bytes() const { return nodes_.bytes_held(); }
  // Takes apart at once what waits to be reused, in time linear in it.
  void trim() { nodes_.tend_all(); }

  void clear() {
    TreeNodes<Key, Partial> fresh(min_arity());
    nodes_.defer(root_, size_);
    nodes_.swap(fresh);
    start();
  }

  // An entry of that key takes the new value in on its right.
  void insert(const Key& key, Partial value) {
    if (fingers && size_ > 0 && youngest() < key && right_->n + 1u < slots()) {  // in order, with room: one combine
      Partial agg = monoid_.combine(right_->agg, value);
      nodes_.place(right_, right_->n, key, std::move(value));
      right_->agg = std::move(agg);
      ++size_;
      return;
    }
    Spot at = find(key);
    if (at.hit)
      take_in(at, value);
    else
      insert_at(at, key, std::move(value));
    nodes_.tend(size_);
  }

  // Removes the oldest entry, if there is one.
  void evict() {
    if (size_ > 0 && !evict_in_place(1)) evict_at({left_, 0, true});
  }

  // Removes the entry of that key, wherever it is; false if there is none.
  bool evict(const Key& key) {
    Spot at = find(key);
    if (at.hit) evict_at(at);
    return at.hit;
  }

  // Removes every entry up to and including that key.
  void bulk_evict(const Key& key);

  // Inserts entries whose keys do not decrease; values of equal keys are combined in their order.
  void bulk_insert(std::span<const Key> keys, std::span<const Partial> values);

  // Takes in every entry of another tree; where both have a key, this one's value is on the left.
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

  // The entries from one key to another, both included; many such ranges at once.
  Partial query(const Key& from, const Key& to) const;
  std::vector<Partial> query_many(std::span<const Key> from, std::span<const Key> to) const;

  // The first key at or after this one, null where there is none.
  const Key* first_from(const Key& key) const {
    const Node* y = lowest_with(key, key);
    const Key* found = y->place == Place::left ? &keys(y->parent)[0] : nullptr;
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

  // Visits nodes from the root down: level, place, keys, partial.
  template <class Visit>
  void for_each_node(Visit visit) const {
    walk_nodes(root_, visit);
  }

  // The entries in order; loading builds from them in O(n).
  template <class Archive>
  void archive(Archive& ar);

  // Verifies I1 to I8 and the list of nodes that wait; `same` compares two partials.
  template <class Same>
  void check(Same same) const;

 private:
  using Node = typename TreeNodes<Key, Partial>::Node;
  using Pair = typename TreeNodes<Key, Partial>::Pair;

  struct Spot {
    Node* node;
    std::size_t i;
    bool hit;
  };

  static std::size_t checked(std::size_t min_arity) {
    if (min_arity < 2 || min_arity > largest_min_arity) throw std::invalid_argument("min_arity must be from 2 to 4096");
    return min_arity;
  }

  std::size_t slots() const { return nodes_.slots(); }
  Key* keys(const Node* y) const { return nodes_.keys(y); }
  Partial* values(const Node* y) const { return nodes_.values(y); }
  Node** children(const Node* y) const { return nodes_.children(y); }

  void start() {
    root_ = left_ = right_ = nodes_.make(0, monoid_.identity());
    root_->place = fingers ? Place::top : Place::within;
    size_ = 0;
    torn_ = false;
  }

  template <class Visit>
  void walk(const Node* y, Visit& visit) const {
    for (std::size_t i = 0; i < y->n; ++i) {
      if (y->level > 0) walk(children(y)[i], visit);
      visit(std::as_const(keys(y)[i]), std::as_const(values(y)[i]));
    }
    if (y->level > 0) walk(children(y)[y->n], visit);
  }

  template <class Visit>
  void walk_nodes(const Node* y, Visit& visit) const {
    static constexpr const char* names[] = {"within", "left", "right", "top"};
    visit(int(y->level), names[int(y->place)], std::span<const Key>(keys(y), y->n), std::as_const(y->agg));
    if (y->level > 0)
      for (std::size_t i = 0; i <= y->n; ++i) walk_nodes(children(y)[i], visit);
  }

  // ---- search ----

  // Keys below, and keys not above. Counting all of them beats a search that stops: its one branch is foreseen.
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

  // The lowest node of a spine whose subtree is the place for all of [from, to]: climbs from both ends at once.
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

  Node* leaf_below(Node* y, bool last) const {
    while (y->level > 0) y = children(y)[last ? y->n : 0];
    return y;
  }

  // ---- partials ----

  // Values from i on, up to j. (Two sums side by side, joined at the end, were 5 to 10 % slower.)
  Partial fold_values(const Partial* v, std::size_t i, std::size_t j) const {
    Partial sum = v[i];
    while (++i < j) sum = monoid_.combine(sum, v[i]);
    return sum;
  }

  // All entries, all children between them, and the first and the last child if asked for.
  Partial fold(const Node* y, bool first, bool last) const {
    const Partial* v = values(y);
    if (y->level == 0) return y->n == 0 ? monoid_.identity() : fold_values(v, 0, y->n);
    Node** c = children(y);
    Partial sum = first ? monoid_.combine(c[0]->agg, v[0]) : v[0];
    for (std::size_t i = 1; i < y->n; ++i) sum = monoid_.combine(sum, monoid_.combine(c[i]->agg, v[i]));
    return last ? monoid_.combine(sum, c[y->n]->agg) : sum;
  }

  // What the partial of a node in its place covers, given that all it is made of is right.
  Partial covered(const Node* y) const {
    switch (y->place) {
      case Place::left:
        return y->parent == root_ ? fold(y, false, true) : monoid_.combine(fold(y, false, true), y->parent->agg);
      case Place::right:
        return y->parent == root_ ? fold(y, true, false) : monoid_.combine(y->parent->agg, fold(y, true, false));
      case Place::top:
        return fold(y, false, false);
      default:
        return fold(y, true, true);
    }
  }

  void refresh(Node* y) {
    probe_.visit();
    y->agg = covered(y);
    if (y->place == Place::within && y->level > 0) nodes_.recount(y);
  }

  void refresh_within(Node* y) {
    if (y->place == Place::within) refresh(y);
  }

  // Down a spine, from its highest node that changed.
  void refresh_left(Node* y) {
    for (refresh(y); y->level > 0; refresh(y)) y = children(y)[0];
  }
  void refresh_right(Node* y) {
    for (refresh(y); y->level > 0; refresh(y)) y = children(y)[y->n];
  }

  // No other partial depends on this node's.
  bool is_end(const Node* y) const { return y->level == 0 && y->place != Place::within; }

  // The k oldest entries, if the first leaf has them and enough others: nothing else changes. (Evicting one by way of evict_at,
  // which would do, a round in order took 10 % longer.)
  bool evict_in_place(std::size_t k) {
    if (!is_end(left_) || left_->n < k || (left_->n - k + 1 < min_arity() && left_ != root_)) return false;
    Partial agg = left_->n == k ? monoid_.identity() : fold_values(values(left_), k, left_->n);
    if (left_ != root_ && left_->parent != root_) agg = monoid_.combine(agg, left_->parent->agg);
    nodes_.remove_front(left_, k);
    left_->agg = std::move(agg);
    size_ -= k;
    nodes_.tend(size_);
    return true;
  }

  // ---- one entry: see fiba_single.hpp ----

  struct Path;
  void take_in(Spot at, const Partial& value);
  void insert_at(Spot at, const Key& key, Partial&& value);
  void evict_at(Spot at);
  void rebalance_after_insert(Node* y);
  void rebalance_after_evict(Node* y, std::size_t level);
  void repair(Path path, std::size_t level = 0);
  void grow();
  void split(Node* y);
  Node* merge_siblings(const Pair& pair);
  void shrink(Node* child);

  // ---- bulk evict: see fiba_bulk_evict.hpp ----

  struct Cut;
  enum class Outcome { kept, filled, gone };
  static constexpr std::size_t most_levels = 64;
  void make_root(Node* y);
  std::size_t search_cuts(Node* y, const Key& key, Cut* cuts) const;
  Cut cut_beyond(Node* y) const;
  Outcome evict_level(const Cut& cut, Outcome below);
  std::uint64_t entries_below(const Node* y) const;

  // ---- bulk insert: see fiba_bulk_insert.hpp ----

  struct Treelet;
  struct Level;
  class Stale;
  void search_sites(std::span<const Key> new_keys, std::span<const Partial> new_values, Level& level);
  std::size_t fill_leaf(Spot at, const Key* limit, std::span<const Key> new_keys, std::span<const Partial> new_values, std::size_t next,
                        Level& level);
  void interleave(Node* y, Treelet* treelets, std::size_t count);
  Node* interleave_and_split(Node* y, Treelet* treelets, std::size_t count, Level& above, Stale& stale);

  // ---- ranges: see fiba_range.hpp; checks: see fiba_check.hpp ----

  template <bool from>
  class Chain;
  Partial fold_between(const Node* y, std::size_t i, std::size_t j) const;
  Partial fold_from(const Node* y, std::size_t i) const;
  Partial fold_to(const Node* y, std::size_t j) const;
  template <class Same>
  std::uint64_t check_below(const Node* y, Place place, const Key*& last, Same& same) const;

  M monoid_;
  TreeNodes<Key, Partial> nodes_;
  Node* root_;
  Node* left_;  // the fingers
  Node* right_;
  std::size_t size_ = 0;
  bool torn_ = false;
  [[no_unique_address]] ProbeOf<M> probe_;
};

}  // namespace sash

#include "fiba_bulk_evict.hpp"
#include "fiba_bulk_insert.hpp"
#include "fiba_check.hpp"
#include "fiba_range.hpp"
#include "fiba_single.hpp"
