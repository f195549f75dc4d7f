// FlatFAT (the Reactive Aggregator)
//
//   paper      Tangwongsan, Hirzel, Schneider, Wu, VLDB 2015; tutorial-2017, section 4.4
//   ordering   in order; evicts at any position
//   needs      a monoid; neither inverse nor commutativity
//   time       insert and evict at most log n combines and amortised O(1) for growth; query 1, O(log n) where the window wraps;
//              ranges O(log n)
//   space      2n partials, in a flat tree that doubles and halves
//
//                     1                      the window is a ring over the leaves: here c d . . . . a b, and
//              2             3               the combination is that of the suffix a b, then of the prefix c d,
//          4      5      6       7           never the root
//        c  d   .  .   .  .   a  b
//
//   I1  inner node i is the combination of the nodes 2i and 2i + 1; `items` counts the leaves in use below
//   I2  a leaf in use holds its own value, and lies between front and back; all others are empty

#pragma once

#include <bit>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../monoid.hpp"
#include "../ring.hpp"

namespace sash {

template <Monoid M>
class FlatFat {
 public:
  using Partial = typename M::Partial;

  explicit FlatFat(M monoid) : monoid_(std::move(monoid)) { clear(); }

  void insert(Partial v) {
    if (back_ - front_ == static_cast<Position>(capacity_)) rebuild(2 * size());
    rewrite(slot(back_), {std::move(v), 1});
    ++back_;
  }

  void evict() { evict(0); }

  // Evicts the i-th oldest. Elsewhere than at the ends it leaves an empty leaf, which the next rebuilding drops.
  void evict(std::size_t i) {
    if (capacity_ > least && size() - 1 < capacity_ / 4) rebuild(2 * size());
    Position p = select(i);
    bool oldest = i == 0, youngest = i + 1 == size();
    rewrite(slot(p), empty());
    if (youngest) back_ = p;
    if (oldest) front_ = p + 1;
    if (size() == 0) back_ = front_;
  }

  Partial query() const {
    if (front_ == back_ || slot(front_) <= slot(back_ - 1)) return tree_[1].partial;
    return between(slot(front_), slot(back_ - 1));
  }

  // Positions count from the oldest, both ends included.
  Partial query(std::size_t first, std::size_t last) const { return between(slot(select(first)), slot(select(last))); }

  std::size_t size() const { return tree_[1].items; }
  bool torn() const { return false; }

  void clear() {
    capacity_ = least;
    tree_.assign(2 * capacity_, empty());
    front_ = back_ = 0;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (Position p = front_; p < back_; ++p)
      if (leaf(p).items) visit(leaf(p).partial);
  }

  template <class Archive>
  void archive(Archive& ar) {
    auto n = static_cast<std::int64_t>(size());
    bool holes = back_ - front_ != n;
    auto capacity = static_cast<std::int64_t>(capacity_);
    auto first = static_cast<std::int64_t>(holes ? 0 : slot(front_));
    for (auto* number : {&n, &capacity, &first}) ar.number(*number);
    if constexpr (Archive::loading) {
      std::vector<Node> leaves;
      for (std::int64_t i = 0; i < n; ++i) {
        leaves.push_back({monoid_.identity(), 1});
        ar.partial(leaves.back().partial);
      }
      auto wide = static_cast<std::size_t>(capacity);
      bool sound =
          capacity >= n && std::has_single_bit(wide) && (wide == least || wide / 4 <= leaves.size()) && 0 <= first && first < capacity;
      if (!sound) throw std::invalid_argument("the stored window is damaged: its tree has an impossible size");
      build(std::move(leaves), wide, first);
    } else {
      for_each([&ar](const Partial& v) { ar.partial(const_cast<Partial&>(v)); });
    }
  }

  // Verifies I1 and I2, the latter if the values of the window are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    for (std::size_t i = 1; i < capacity_; ++i) {
      Node node = join(tree_[2 * i], tree_[2 * i + 1]);
      require(tree_[i].items == node.items, "I1: node ", i, " counts ", tree_[i].items, " items of ", node.items);
      require(same(tree_[i].partial, node.partial), "I1: node ", i, " is not the combination of its children");
    }
    require(values.empty() || values.size() == size(), "I2: the window holds ", size(), " items for ", values.size(), " values");
    std::size_t i = 0;
    for_each([&](const Partial& v) {
      require(values.empty() || same(v, values[i]), "I2: item ", i, " is not its own value");
      ++i;
    });
    require(i == size(), "I2: ", i, " of ", size(), " items lie between front and back");
  }

 private:
  struct Node {
    Partial partial;
    std::size_t items;
  };
  static constexpr std::size_t least = 4;

  Node empty() const { return {monoid_.identity(), 0}; }
  std::size_t slot(Position p) const { return static_cast<std::size_t>(p) & (capacity_ - 1); }
  const Node& leaf(Position p) const { return tree_[capacity_ + slot(p)]; }

  Node join(const Node& a, const Node& b) const {
    if (a.items == 0) return b;
    if (b.items == 0) return a;
    return {monoid_.combine(a.partial, b.partial), a.items + b.items};
  }

  // Takes the combination in as it is made: of large partials a copy costs as much as a combine.
  void combine_children(std::size_t i) {
    Node &node = tree_[i], &a = tree_[2 * i], &b = tree_[2 * i + 1];
    node.items = a.items + b.items;
    if (a.items == 0 || b.items == 0)
      node.partial = a.items ? a.partial : b.partial;
    else
      node.partial = monoid_.combine(a.partial, b.partial);
  }

  // A leaf and the nodes above it. Where combine may throw, all are combined before one is stored: then nothing has changed.
  void rewrite(std::size_t slot, Node leaf) {
    if constexpr (!may_throw<M>) {
      std::size_t i = capacity_ + slot;
      tree_[i] = std::move(leaf);
      while ((i /= 2) > 0) combine_children(i);
      return;
    }
    path_.clear();
    path_.push_back(std::move(leaf));
    for (std::size_t i = capacity_ + slot; i > 1; i /= 2)
      path_.push_back(i % 2 ? join(tree_[i - 1], path_.back()) : join(path_.back(), tree_[i + 1]));
    std::size_t i = capacity_ + slot;
    for (Node& node : path_) tree_[i] = std::move(node), i /= 2;
    path_.clear();
  }

  void rebuild(std::size_t wanted) {
    std::vector<Node> leaves;
    for_each([&leaves](const Partial& v) { leaves.push_back({v, 1}); });
    std::size_t capacity = least;
    while (capacity < wanted) capacity *= 2;
    build(std::move(leaves), capacity, 0);
  }

  // A tree of this capacity, with the leaves from slot `first` on.
  void build(std::vector<Node> leaves, std::size_t capacity, Position first) {
    std::vector<Node> tree(2 * capacity, empty());
    auto n = static_cast<Position>(leaves.size());
    for (Position p = 0; p < n; ++p)
      tree[capacity + (static_cast<std::size_t>(first + p) & (capacity - 1))] = std::move(leaves[static_cast<std::size_t>(p)]);
    for (std::size_t i = capacity - 1; i > 0; --i) tree[i] = join(tree[2 * i], tree[2 * i + 1]);
    tree_ = std::move(tree);
    capacity_ = capacity;
    front_ = first;
    back_ = first + n;
  }

  // The i-th oldest item's position: by counting, if there are empty leaves before the last.
  Position select(std::size_t i) const {
    if (back_ - front_ == static_cast<Position>(size())) return front_ + static_cast<Position>(i);
    std::size_t start = slot(front_), rank = i;
    for (std::size_t node = capacity_ + start; node > 1; node /= 2)
      if (node % 2) rank += tree_[node - 1].items;  // items that lie before the front in the tree are the youngest
    rank %= size();
    std::size_t node = 1;
    while (node < capacity_) {
      node *= 2;
      if (rank >= tree_[node].items) rank -= tree_[node++].items;
    }
    return front_ + static_cast<Position>((node - capacity_ - start) & (capacity_ - 1));
  }

  // Slots a to b; where they wrap, a to the last and then the first to b.
  Partial between(std::size_t a, std::size_t b) const {
    if (a <= b) return range(a, b).partial;
    return join(range(a, capacity_ - 1), range(0, b)).partial;
  }

  Node range(std::size_t a, std::size_t b) const {
    Node left = empty(), right = empty();
    std::size_t from = capacity_ + a, to = capacity_ + b + 1;
    for (; from < to; from /= 2, to /= 2) {
      if (from % 2) left = join(left, tree_[from++]);
      if (to % 2) right = join(tree_[--to], right);
    }
    return join(left, right);
  }

  M monoid_;
  std::size_t capacity_;    // leaves, a power of two
  std::vector<Node> tree_;  // the root at 1, the leaves from capacity_ on
  Position front_, back_;   // back_ is one past the youngest
  std::vector<Node> path_;  // nodes under construction, kept for their room
};

}  // namespace sash
