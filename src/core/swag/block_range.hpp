// Ranges of a BlockFiba
//
// The two ends of a range are followed down from the lowest node that holds both: to the fork together, then apart. What lies
// between them is, at every level, a row of children off the spines, so their partials are in their parents.

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
    if (w_.size_ == 0 || to < w_.oldest() || w_.youngest_ < from) return w_.one();
    if (!(w_.oldest() < from) && !(to < w_.youngest_)) return w_.query();
    w_.close_gap();
    return between(from, to, true);
  }

  // Ranges with one end go from the shortest to the longest, each adding what lies before the one before it.
  std::vector<Partial> query_many(std::span<const Key> from, std::span<const Key> to) {
    std::vector<Partial> out(from.size(), w_.one());
    if (w_.size_ == 0) return out;
    w_.close_gap();
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
        out[i] = w_.combine(between(from[i], from[shorter], false), out[shorter]);
    }
    return out;
  }

 private:
  // Entries from <= key < to, or <= to if closed; from < to, or from <= to if closed.
  Partial between(const Key& from, const Key& to, bool closed) {
    int level = 0;
    void* node = w_.head_;
    if (w_.height_ && from < w_.spine_[1].left->key[1]) {
      // From the head up to somewhere near the tail: what lies between is at hand, however much it is.
      while (level < w_.height_ && to < w_.spine_[level + 1].right->key[w_.spine_[level + 1].right->n - 1]) w_.probe_.visit(1), ++level;
      if (level < w_.height_) {
        node = level ? static_cast<void*>(w_.spine_[level].right) : w_.tail_;
        return w_.combine(w_.combine(from_head(from), w_.spine_[level + 1].right_rest), after_fork(node, level, to, closed));
      }
      level = 0;
    }
    for (;; ++level) {
      if (level == w_.height_) {
        if (level) node = w_.root();
        break;
      }
      const auto& above = w_.spine_[level + 1];
      w_.probe_.visit(2);
      if (!(from < above.right->key[above.right->n - 1])) {
        node = level ? static_cast<void*>(w_.spine_[level].right) : w_.tail_;
        break;
      }
      if (to < above.left->key[1]) {
        node = level ? static_cast<void*>(w_.spine_[level].left) : w_.head_;
        break;
      }
    }
    for (; level > 0; --level) {
      auto* inner = static_cast<Inner*>(node);
      w_.probe_.visit();
      int i = child_of(*inner, from), k = child_of(*inner, to);
      if (i < k) {
        bool whole_left = level == w_.height_ && i == 0;
        Partial whole = whole_left && from < w_.spine_[1].left->key[1] ? from_head(from) : before_fork(inner->child[i], level - 1, from);
        if (i + 1 < k) whole = w_.combine(whole, whole_left && k + 1 == inner->n ? w_.spine_[level].right_fold : w_.fold(inner, i + 1, k));
        return w_.combine(whole, after_fork(inner->child[k], level - 1, to, closed));
      }
      node = inner->child[i];
    }
    auto* leaf = static_cast<Leaf*>(node);
    int p = begin(leaf, from), q = end(leaf, to, closed);
    if (w_.height_ == 0 && p < w_.turn_ && q > w_.turn_) return w_.combine(w_.suffixes_[p], up_to(q));  // both stacks
    return w_.fold(leaf, p, q);
  }

  // Entries of the root's first child from `from` on, which lies in the head: their suffix is at hand.
  Partial from_head(const Key& from) {
    int p = begin(w_.head_, from);
    if (p < w_.turn_) return w_.suffixes_[p];
    return w_.height_ > 1 ? w_.spine_[1].left_rest : w_.one();
  }

  // The first q entries of the tail: their prefix is at hand, or is from now on.
  const Partial& up_to(int q) {
    if (q > w_.known_) w_.learn_prefixes();
    return w_.prefixes_[q - 1];
  }

  // Entries of a subtree from `from` on.
  Partial before_fork(void* node, int level, const Key& from) {
    Partial sum = w_.one();
    bool none = true;
    auto prepend = [&](Partial part) {
      sum = none ? std::move(part) : w_.combine(part, sum);
      none = false;
    };
    for (; level > 0; --level) {
      auto* inner = static_cast<Inner*>(node);
      w_.probe_.visit();
      int i = child_of(*inner, from);
      if (i == 0 && inner == w_.spine_[level].left)
        prepend(w_.spine_[level].left_fold);
      else if (i + 1 < inner->n)
        prepend(w_.fold(inner, i + 1, inner->n));
      node = inner->child[i];
    }
    auto* leaf = static_cast<Leaf*>(node);
    int p = begin(leaf, from);
    if (p < leaf->n) prepend(w_.fold(leaf, p, leaf->n));
    return sum;
  }

  // Entries of a subtree up to `to`.
  Partial after_fork(void* node, int level, const Key& to, bool closed) {
    Partial sum = w_.one();
    bool none = true;
    auto append = [&](Partial part) {
      sum = none ? std::move(part) : w_.combine(sum, part);
      none = false;
    };
    for (; level > 0; --level) {
      auto* inner = static_cast<Inner*>(node);
      w_.probe_.visit();
      int k = child_of(*inner, to);
      if (k + 1 == inner->n && inner == w_.spine_[level].right)
        append(w_.spine_[level].right_fold);
      else if (k > 0)
        append(w_.fold(inner, 0, k));
      node = inner->child[k];
    }
    auto* leaf = static_cast<Leaf*>(node);
    int p = end(leaf, to, closed);
    if (leaf == w_.tail_ && p == leaf->n)
      append(w_.after_);
    else if (leaf == w_.tail_ && p > 0)
      append(up_to(p));
    else if (p > 0)
      append(w_.fold(leaf, 0, p));
    return sum;
  }

  int begin(const Leaf* leaf, const Key& from) const { return lower(*leaf, leaf == w_.head_ ? w_.lo_ : 0, from); }
  int end(const Leaf* leaf, const Key& to, bool closed) const {
    int first = leaf == w_.head_ ? w_.lo_ : 0;
    return closed ? upper(*leaf, first, to) : lower(*leaf, first, to);
  }

  Window& w_;
};

}  // namespace sash::block
