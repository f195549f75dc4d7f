// Ranges of a BlockFiba, and entries by their place
//
// The two ends of a range are followed down from the lowest node that holds both: to the fork together, then apart. What lies
// between them is, at every level, a row of children off the spines, so their partials are in their parents.
//
// A range over an open gap is cut there, and the gap stays open. What the tree's partials miss lies on the gap's own path; a range that
// ends or begins at the gap goes down along that path and takes the children beside it. All behind the gap is at hand.

#pragma once

#include <numeric>

#include "block_fiba.hpp"

namespace sash::block {

template <class Window>
class Range {
  using Key = typename Window::KeyType;
  using Partial = typename Window::Partial;
  using Leaf = typename Window::Leaf;
  using Inner = typename Window::Inner;

 public:
  explicit Range(Window& w) : w_(w) {}

  Partial query(const Key& from, const Key& to) {
    if (w_.size_ == 0 || to < w_.oldest() || w_.youngest_ < from) return w_.tree_.one();
    if (!(w_.oldest() < from) && !(to < w_.youngest_)) return w_.query();
    if (w_.tree_.height && !(from < w_.tree_.before_last(1)))  // within the tail; by way of between(), which would do, 8 ns longer
      return w_.tree_.fold(w_.tree_.tail, w_.tree_.lower(w_.tree_.tail, from), w_.tree_.upper(w_.tree_.tail, to));
    if (Window::asks && !(to < w_.youngest_) && (w_.asked_.holds(from) || set_finger(from))) {
      Partial sum = w_.asked_.suffix(w_.tree_, from);
      return w_.gap_.open ? w_.tree_.combine(sum, w_.gap_.after) : sum;
    }
    return over(from, to, true);
  }

  // Ranges with one end go from the shortest to the longest, each adding what lies before the one before it.
  std::vector<Partial> query_many(std::span<const Key> from, std::span<const Key> to) {
    std::vector<Partial> out(from.size(), w_.tree_.one());
    if (w_.size_ == 0) return out;
    auto same_end = [&](std::size_t a, std::size_t b) { return to[a] == to[b] || (!(to[a] < w_.youngest_) && !(to[b] < w_.youngest_)); };
    std::vector<std::size_t> order(from.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (!same_end(a, b)) return to[a] < to[b];
      return from[b] < from[a];
    });
    for (std::size_t k = 0; k < order.size(); ++k) {
      std::size_t i = order[k], shorter = k ? order[k - 1] : i;
      if (k == 0 || !same_end(i, shorter) || to[i] < from[shorter])
        out[i] = query(from[i], to[i]);
      else if (from[i] == from[shorter])
        out[i] = out[shorter];
      else
        out[i] = w_.tree_.combine(over(from[i], from[shorter], false), out[shorter]);
    }
    return out;
  }

 private:
  // Sets the finger for ranges to the youngest entry, where that is worth it; returns whether it did.
  bool set_finger(const Key& from) {
    const auto& gap = w_.gap_;
    if (w_.tree_.height == 0 || (gap.open && !(from < gap.leaf->t[0]))) return false;
    typename Window::Path path;
    Leaf* leaf = w_.tree_.find(from, path);
    if (!w_.asked_.worth(leaf)) return false;
    Key end = w_.tree_.end_of_leaf(path);
    w_.asked_.at(w_.tree_, leaf, w_.tree_.lower(leaf, from), from, end, between(end, gap.open ? gap.low : w_.youngest_, true));
    return true;
  }

  // Entries from <= key < to, or <= to if closed; from < to, or from <= to if closed.
  Partial over(const Key& from, const Key& to, bool closed) {
    const auto& gap = w_.gap_;
    if (!gap.open || to < gap.high || gap.low < from) return between(from, to, closed);
    bool to_the_end = closed && !(to < w_.youngest_);
    return w_.tree_.combine(between(from, gap.low, true), to_the_end ? gap.after : between(gap.high, to, closed));
  }

  // The same where no gap lies between.
  Partial between(const Key& from, const Key& to, bool closed) {
    int level = 0;
    void* node = w_.tree_.head;
    if (w_.tree_.height && from < w_.tree_.behind_first(1)) {
      // From the head up to somewhere near the tail: what lies between is at hand, however much it is.
      while (level < w_.tree_.height && to < w_.tree_.before_last(level + 1)) w_.tree_.probe.visit(1), ++level;
      if (level < w_.tree_.height) {
        node = w_.tree_.right_end(level);
        return w_.tree_.combine(w_.tree_.combine(from_head(from), w_.spines_.at[level + 1].right_rest),
                                after_fork(node, level, to, closed));
      }
      level = 0;
    }
    for (;; ++level) {
      if (level == w_.tree_.height) {
        node = w_.tree_.top();
        break;
      }
      w_.tree_.probe.visit(2);
      if (!(from < w_.tree_.before_last(level + 1))) {
        node = w_.tree_.right_end(level);
        break;
      }
      if (to < w_.tree_.behind_first(level + 1)) {
        node = w_.tree_.left_end(level);
        break;
      }
    }
    for (; level > 0; --level) {
      auto* inner = static_cast<Inner*>(node);
      w_.tree_.probe.visit();
      int i = child_of(*inner, from), k = child_of(*inner, to);
      if (i < k) {
        bool whole_left = level == w_.tree_.height && i == 0;
        Partial whole = whole_left && from < w_.tree_.behind_first(1) ? from_head(from) : before_fork(inner->child[i], level - 1, from);
        if (i + 1 < k)
          whole =
              w_.tree_.combine(whole, whole_left && k + 1 == inner->n ? w_.spines_.at[level].right_fold : w_.tree_.fold(inner, i + 1, k));
        return w_.tree_.combine(whole, after_fork(inner->child[k], level - 1, to, closed));
      }
      node = inner->child[i];
    }
    auto* leaf = static_cast<Leaf*>(node);
    int p = w_.tree_.lower(leaf, from), q = end(leaf, to, closed);
    if (w_.tree_.height == 0 && p < w_.spines_.turn && q > w_.spines_.turn)
      return w_.tree_.combine(w_.spines_.suffixes[p], up_to(q));  // both stacks
    return w_.tree_.fold(leaf, p, q);
  }

  // Entries of the root's first child from `from` on, which lies in the head: their suffix is at hand.
  Partial from_head(const Key& from) {
    int p = w_.tree_.lower(w_.tree_.head, from);
    if (p < w_.spines_.turn) return w_.spines_.suffixes[p];
    return w_.tree_.height > 1 ? w_.spines_.at[1].left_rest : w_.tree_.one();
  }

  // The first q > 0 entries of the tail: their prefix is at hand, or is from now on. While a gap is open that of the last is not kept.
  Partial up_to(int q) {
    Leaf* tail = w_.tree_.tail;
    if (q == tail->n && !w_.gap_.open) return w_.gap_.after;
    if (q < tail->n || !w_.gap_.open) {
      w_.spines_.learn(w_.tree_, q);
      return w_.spines_.prefixes[q - 1];
    }
    return q == 1 ? tail->v[0] : w_.tree_.combine(up_to(q - 1), tail->v[q - 1]);
  }

  // Entries of a subtree from `from` on.
  Partial before_fork(void* node, int level, const Key& from) {
    Partial sum = w_.tree_.one();
    bool none = true;
    auto prepend = [&](Partial part) {
      sum = none ? std::move(part) : w_.tree_.combine(part, sum);
      none = false;
    };
    for (; level > 0; --level) {
      auto* inner = static_cast<Inner*>(node);
      w_.tree_.probe.visit();
      int i = child_of(*inner, from);
      if (i == 0 && inner == w_.tree_.finger[level].left)
        prepend(w_.spines_.at[level].left_fold);
      else if (i + 1 < inner->n)
        prepend(w_.tree_.fold(inner, i + 1, inner->n));
      node = inner->child[i];
    }
    auto* leaf = static_cast<Leaf*>(node);
    int p = w_.tree_.lower(leaf, from);
    if (p < leaf->n) prepend(w_.tree_.fold(leaf, p, leaf->n));
    return sum;
  }

  // Entries of a subtree up to `to`.
  Partial after_fork(void* node, int level, const Key& to, bool closed) {
    Partial sum = w_.tree_.one();
    bool none = true;
    auto append = [&](Partial part) {
      sum = none ? std::move(part) : w_.tree_.combine(sum, part);
      none = false;
    };
    for (; level > 0; --level) {
      auto* inner = static_cast<Inner*>(node);
      w_.tree_.probe.visit();
      int k = child_of(*inner, to);
      if (k + 1 == inner->n && inner == w_.tree_.finger[level].right)
        append(w_.spines_.at[level].right_fold);
      else if (k > 0)
        append(w_.tree_.fold(inner, 0, k));
      node = inner->child[k];
    }
    auto* leaf = static_cast<Leaf*>(node);
    int p = end(leaf, to, closed);
    if (leaf == w_.tree_.tail && p > 0)
      append(up_to(p));
    else if (p > 0)
      append(w_.tree_.fold(leaf, 0, p));
    return sum;
  }

  int end(const Leaf* leaf, const Key& to, bool closed) const { return closed ? w_.tree_.upper(leaf, to) : w_.tree_.lower(leaf, to); }

  Window& w_;
};

}  // namespace sash::block

namespace sash {

// The first key at or after this one, null where there is none.
template <Monoid M, class Key, int LeafCap, int Fan>
const Key* BlockFiba<M, Key, LeafCap, Fan>::first_from(const Key& key) const {
  if (size_ == 0 || youngest_ < key) return nullptr;
  Path path;
  Leaf* leaf = tree_.find(key, path);
  int p = tree_.lower(leaf, key);
  if (p < leaf->n) return &leaf->t[p];
  for (int level = 1;; ++level) {  // the next leaf: there is one, for the youngest is not before key
    tree_.climb(path, level);
    auto [node, i] = path.at[level];
    if (i + 1 == node->n) continue;
    void* next = node->child[i + 1];
    while (--level > 0) next = static_cast<Inner*>(next)->child[0];
    return &static_cast<Leaf*>(next)->t[0];
  }
}

// The key of the entry n places before that of this key, or the oldest where there are fewer; key is in the window.
template <Monoid M, class Key, int LeafCap, int Fan>
Key BlockFiba<M, Key, LeafCap, Fan>::before(const Key& key, std::size_t n) {
  close_gap();
  Path path;
  Leaf* leaf = tree_.find(key, path);
  int first = tree_.first(leaf), p = block::lower(*leaf, first, key);
  auto there = static_cast<std::size_t>(p - first);
  if (there >= n) return leaf->t[p - static_cast<int>(n)];
  n -= there;
  if (leaf == tree_.head) return oldest();
  for (int level = 1;; ++level) {
    tree_.climb(path, level);
    auto [node, i] = path.at[level];
    for (int j = i - 1; j >= 0; --j)
      if (!passes(node, j, level, n)) return nth_last(node->child[j], level - 1, n);
    if (node == tree_.finger[level].left) return oldest();
  }
}

// Whether the entry n places before the end of child j lies before that child: n is then counted from where the child begins.
// The count of a child on the left spine is not kept; nothing lies before it.
template <Monoid M, class Key, int LeafCap, int Fan>
bool BlockFiba<M, Key, LeafCap, Fan>::passes(Inner* node, int j, int level, std::size_t& n) const {
  tree_.probe.visit();
  if (node->child[j] == tree_.left_end(level - 1)) return false;
  auto count = static_cast<std::size_t>(node->count[j]);
  if (count >= n) return false;
  n -= count;
  return true;
}

template <Monoid M, class Key, int LeafCap, int Fan>
Key BlockFiba<M, Key, LeafCap, Fan>::nth_last(void* node, int level, std::size_t n) const {
  for (; level > 0; --level) {
    auto* inner = static_cast<Inner*>(node);
    int j = inner->n - 1;
    while (passes(inner, j, level, n)) --j;
    node = inner->child[j];
  }
  auto* leaf = static_cast<Leaf*>(node);
  int first = tree_.first(leaf);
  return static_cast<std::size_t>(leaf->n - first) >= n ? leaf->t[leaf->n - static_cast<int>(n)] : leaf->t[first];
}

}  // namespace sash
