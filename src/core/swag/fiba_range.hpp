// FiBA's range queries (fiba-2019, section 4), one or many at a time
//
// A range is: what is in it below child i, entries i to j - 1 with the children between them, what is in it below child j, where the paths
// of its two ends part. The paths are chains: at each level a chain adds the entries on the inner side of it, each with the child beyond.
//
//                      [ . i . j ]               children strictly between two chains are never on a spine,
//                        /     \                 so their partials cover their subtrees
//               [ . . . i ]   [ j . . . ]
//                      /         \                                                                       .
//              [ . from ]       [ to . ]
//
// Many ranges share what their chains have in common: in the order of their starts, and then of their ends, a chain keeps what it combined
// at each level for as long as its path goes through the same place there.

#pragma once

#include <algorithm>
#include <numeric>
#include <optional>

#include "fiba.hpp"

namespace sash {

template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::query(const Key& from, const Key& to) const -> Partial {
  const Node* y = lowest_with(from, to);
  for (;;) {
    probe_.visit();
    std::size_t i = rank(y, from), j = rank_after(y, to);
    if (i < j) {
      Partial sum = fold_between(y, i, j);
      if (y->level == 0) return sum;
      for (const Node* l = children(y)[i];; l = children(l)[i]) {
        probe_.visit();
        i = rank(l, from);
        if (i < l->n) sum = monoid_.combine(fold_from(l, i), sum);
        if (l->level == 0) break;
      }
      for (const Node* r = children(y)[j];; r = children(r)[j]) {
        probe_.visit();
        j = rank_after(r, to);
        if (j > 0) sum = monoid_.combine(sum, fold_to(r, j));
        if (r->level == 0) break;
      }
      return sum;
    }
    if (y->level == 0) return monoid_.identity();
    y = children(y)[i];
  }
}

// The path from the root to one end of a range, for keys that do not decrease.
template <Monoid M, class Key, bool fingers>
template <bool from>
class Fiba<M, Key, fingers>::Chain {
 public:
  struct Step {
    const Node* node;
    const Key* limit;  // the first key after its subtree
    std::size_t i;     // where the path goes on
    std::optional<Partial> part;
  };

  explicit Chain(const Fiba& tree) : tree_(tree), steps_(tree.root_->level + 1u) {
    steps_[0].node = tree.root_;
    steps_[0].limit = nullptr;
  }

  // By level of the node.
  Step& at(std::size_t level) { return steps_[tree_.root_->level - level]; }

  void seek(const Key& key) {
    while (steps_[depth_].limit && passes(key, *steps_[depth_].limit)) --depth_;
    for (;; ++depth_) {
      tree_.probe_.visit();
      Step& step = steps_[depth_];
      step.i = from ? tree_.rank(step.node, key) : tree_.rank_after(step.node, key);
      step.part.reset();
      if (step.node->level == 0) return;
      steps_[depth_ + 1].node = tree_.children(step.node)[step.i];
      steps_[depth_ + 1].limit = step.i < step.node->n ? &tree_.keys(step.node)[step.i] : step.limit;
    }
  }

  // Adds to the sum what the chain holds at a level.
  void add(std::size_t level, Partial& sum) {
    Step& step = at(level);
    if (step.i == (from ? step.node->n : 0)) return;
    if (!step.part) step.part = from ? tree_.fold_from(step.node, step.i) : tree_.fold_to(step.node, step.i);
    sum = from ? tree_.monoid_.combine(*step.part, sum) : tree_.monoid_.combine(sum, *step.part);
  }

 private:
  static bool passes(const Key& key, const Key& limit) { return from ? limit < key : !(key < limit); }

  const Fiba& tree_;
  std::vector<Step> steps_;
  std::size_t depth_ = 0;
};

template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::query_many(std::span<const Key> from, std::span<const Key> to) const -> std::vector<Partial> {
  std::vector<Partial> sums(from.size(), monoid_.identity());
  std::vector<std::uint8_t> open(from.size(), 0);  // levels below the entries that lie between both chains
  std::vector<std::size_t> order(from.size());
  std::iota(order.begin(), order.end(), 0);

  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return from[a] < from[b]; });
  Chain<true> starts(*this);
  for (std::size_t r : order) {
    starts.seek(from[r]);
    std::size_t level = 0;  // where the path of the end parts from this one
    while (starts.at(level).limit && !(to[r] < *starts.at(level).limit)) ++level;
    auto& meet = starts.at(level);
    std::size_t j = rank_after(meet.node, to[r]);
    if (j <= meet.i) continue;
    sums[r] = fold_between(meet.node, meet.i, j);
    open[r] = static_cast<std::uint8_t>(level);
    while (level-- > 0) starts.add(level, sums[r]);
  }

  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return to[a] < to[b]; });
  Chain<false> ends(*this);
  for (std::size_t r : order) {
    if (open[r] == 0) continue;
    ends.seek(to[r]);
    for (std::size_t level = open[r]; level-- > 0;) ends.add(level, sums[r]);
  }
  return sums;
}

// Entries i to j - 1 and the children between them.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::fold_between(const Node* y, std::size_t i, std::size_t j) const -> Partial {
  const Partial* v = values(y);
  if (y->level == 0) return fold_values(v, i, j);
  Node** c = children(y);
  Partial sum = v[i];
  while (++i < j) sum = monoid_.combine(sum, monoid_.combine(c[i]->agg, v[i]));
  return sum;
}

// Entries from i on, each with the child after it.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::fold_from(const Node* y, std::size_t i) const -> Partial {
  Partial sum = fold_between(y, i, y->n);
  return y->level == 0 ? sum : monoid_.combine(sum, children(y)[y->n]->agg);
}

// Entries up to j, each with the child before it.
template <Monoid M, class Key, bool fingers>
auto Fiba<M, Key, fingers>::fold_to(const Node* y, std::size_t j) const -> Partial {
  Partial sum = fold_between(y, 0, j);
  return y->level == 0 ? sum : monoid_.combine(children(y)[0]->agg, sum);
}

}  // namespace sash
