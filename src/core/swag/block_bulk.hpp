// BlockFiba in bulk: a cut along a boundary, and runs dealt out over leaves
//
//   bulk_evict    climbs the left spine to the level that holds the boundary, then goes down along it. Children before the
//                 boundary are buried whole, and counted by their counts; a node left with too few is levelled out
//                 with its right sibling before the one below it is cut, so that a sibling is always there.
//   bulk_insert   climbs to the level that holds the batch, then goes down only where it has entries. A leaf is merged with
//                 all its part of the batch and dealt out over as many leaves as it takes; a node above is summed up and
//                 dealt out once.

#pragma once

#include "block_fiba.hpp"

namespace sash {

template <Monoid M, class Key, int LeafCap, int Fan>
std::size_t BlockFiba<M, Key, LeafCap, Fan>::bulk_evict(const Key& key) {
  std::size_t was = size_;
  if (!tree_.dead.empty()) tree_.reclaim(4);
  if (size_ == 0 || key < oldest()) return 0;
  if (tree_.lo + 1 < spines_.turn && key < tree_.head->t[tree_.lo + 1]) return evict(), 1;
  if (!(key < youngest_)) {
    tree_.bury(tree_.top(), tree_.height);
    tree_.head = tree_.tail = nullptr;
    forget_all();
    return was;
  }
  int p = tree_.upper(tree_.head, key);
  if (p < spines_.turn) {
    spines_.forget(tree_, tree_.lo, p);
    size_ -= static_cast<std::size_t>(p - tree_.lo);
    tree_.lo = p;
    return was - size_;
  }
  Tear<M> tear(torn_);
  if (tree_.height == 0 || key < tree_.behind_first(1)) {
    tree_.head->release(tree_.lo, p, tree_.one());
    size_ -= static_cast<std::size_t>(p - tree_.lo);
    tree_.lo = p;
    next_head();
  } else {
    cut(key);
  }
  tear.mend();
  return was - size_;
}

template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::cut(const Key& key) {
  asked_.forget();
  if (gap_.path.left) close_gap();  // the counts of its path are among what it owes
  std::int64_t gone = tree_.head->n - tree_.lo;
  int level = 1, height = tree_.height;
  for (; level < tree_.height && !(key < tree_.behind_first(level + 1)); ++level)
    gone += tree_.count(tree_.finger[level].left, 1, tree_.finger[level].left->n);
  tree_.probe.visit(static_cast<std::size_t>(2 * level));
  Inner* node = tree_.finger[level].left;
  // A gap beyond the root's first child is reached by a change of the root only.
  if (level == tree_.height || node->n - block::child_of(*node, key) <= Inner::least) close_gap();

  Path path;
  path.left = true;
  path.top = level;
  path.left_from = 0;
  Leaf* leaf = nullptr;
  for (bool spine = true; !leaf; spine = false) {
    int i = block::child_of(*node, key);
    gone += tree_.count(node, spine ? 1 : 0, i);
    for (int k = 0; k < i; ++k) tree_.bury(node->child[k], level - 1);
    block::close(*node, 0, i, tree_.one());
    tree_.finger[level].left = node;
    path.at[level] = {node, 0};
    tree_.touch(path, node, level);
    void* down = node->child[0];
    if (level < tree_.height && node->n <= Inner::least) {
      tree_.climb(path, level + 1);
      Inner* parent = path.at[level + 1].node;
      bool merged = level_out(path, parent, 0, level);
      tree_.touch(path, parent, level + 1);
      if (merged) settle(path, level + 1);
    } else if (level == tree_.height && node->n == 1) {
      wither(path);
    }
    if (--level > 0)
      node = static_cast<Inner*>(down);
    else
      leaf = static_cast<Leaf*>(down);
  }
  tree_.head = leaf;
  tree_.lo = block::upper(*leaf, 0, key);
  size_ -= static_cast<std::size_t>(gone + tree_.lo);
  leaf->release(0, tree_.lo, tree_.one());
  if (tree_.lo == leaf->n) {
    tree_.free_leaf(leaf);
    block::close(*path.at[1].node, 0, 1, tree_.one());
    settle(path, 1);
  }
  if (tree_.height != height) tree_.touch_all(path);
  mend(path);
}

namespace block {

template <class Window>
class BulkInsert {
  using Key = typename Window::KeyType;
  using Partial = typename Window::Partial;
  using Leaf = typename Window::Leaf;
  using Inner = typename Window::Inner;
  using Brood = typename Window::Brood;

 public:
  BulkInsert(Window& w, std::span<const Key> keys, std::span<const Partial> partials) : w_(w), keys_(keys), partials_(partials) {}

  void run() {
    std::size_t late =
        w_.size_ == 0 ? 0 : static_cast<std::size_t>(std::upper_bound(keys_.begin(), keys_.end(), w_.youngest_) - keys_.begin());
    std::size_t done = 0;
    Rollback tear(w_.tree_.monoid, [&] { w_.torn_ |= done > 0; });
    // A few go in one by one: they may fall into the gap, which a bulk would close.
    while (done < late && (late - done <= few || w_.gap_.takes(keys_[done]))) w_.insert(keys_[done], partials_[done]), ++done;
    if (done < late) {
      insert_late(done, late);
      done = late;
    }
    for (; done < keys_.size(); ++done) w_.insert(keys_[done], partials_[done]);
    tear.done();
  }

 private:
  static constexpr std::size_t few = 16;

  // Keys [from, to), none of them younger than the window.
  void insert_late(std::size_t from, std::size_t to) {
    Tear<decltype(w_.tree_.monoid)> tear(w_.torn_);
    w_.close_gap();
    w_.asked_.forget();
    typename Window::Path path;
    int level = 0;
    for (; level < w_.tree_.height; ++level) {
      if (!(keys_[from] < w_.tree_.before_last(level + 1))) break;
      if ((path.left = keys_[to - 1] < w_.tree_.behind_first(level + 1))) break;
      w_.tree_.probe.visit(2);
    }
    path.top = 0;
    w_.tree_.climb(path, level);
    bool root = level == w_.tree_.height;
    if (path.left || root) path.left_from = 0;
    if (!path.left || root) path.right_from = 0;
    path.high = level;
    Brood brood;
    if (level)
      grow(path.at[level].node, level, from, to, brood);
    else
      grow(path.left ? w_.tree_.head : w_.tree_.tail, from, to, brood);
    if (!brood.empty()) w_.tree_.refresh(path, w_.adopt(path, level + 1, brood));
    w_.mend(path);
    tear.mend();
  }

  // Puts keys [from, to) under a node; what it can't hold becomes its siblings.
  void grow(Inner* node, int level, std::size_t from, std::size_t to, Brood& siblings) {
    struct Extra {
      int behind;
      Brood brood;
    };
    std::vector<Extra> extras;
    std::size_t more = 0;
    w_.tree_.probe.visit();
    while (from < to) {
      int i = child_of(*node, keys_[from]);
      std::size_t end = to;
      if (i + 1 < node->n)
        end = static_cast<std::size_t>(std::lower_bound(keys_.begin() + from, keys_.begin() + to, node->key[i + 1]) - keys_.begin());
      Brood brood;
      if (level > 1)
        grow(static_cast<Inner*>(node->child[i]), level - 1, from, end, brood);
      else
        grow(static_cast<Leaf*>(node->child[i]), from, end, brood);
      bool left = node->child[i] == w_.tree_.left_end(level - 1);
      bool right = node->child[i] == w_.tree_.right_end(level - 1);
      if (!left && !(right && brood.empty())) w_.tree_.sum_up(node, i, level);
      if (!brood.empty()) {
        more += brood.size();
        extras.push_back({i, std::move(brood)});
      }
      from = end;
    }
    if (more == 0) return;
    Brood& all = w_.tree_.scratch(level);
    all.clear();
    auto extra = extras.begin();
    for (int i = 0; i < node->n; ++i) {
      all.push_back(w_.tree_.get(node, i));
      if (extra == extras.end() || extra->behind != i) continue;
      for (auto& c : extra->brood) all.push_back(std::move(c));
      ++extra;
    }
    w_.tree_.deal(node, level, all, siblings, 0);
  }

  void grow(Leaf* leaf, std::size_t from, std::size_t to, Brood& siblings) {
    if (leaf == w_.tree_.head) w_.spines_.settle_head(w_.tree_);
    w_.tree_.probe.visit();
    times_.clear();
    values_.clear();
    int i = 0;
    std::size_t j = from;
    while (i < leaf->n || j < to) {
      if (i < leaf->n && (j == to || !(keys_[j] < leaf->t[i]))) {
        push(leaf->t[i], std::move(leaf->v[i]));
        ++i;
      } else {
        push(keys_[j], partials_[j]);
        ++j;
      }
    }
    int n = static_cast<int>(times_.size()), fill = Leaf::cap * 3 / 4;
    w_.size_ += static_cast<std::size_t>(n - leaf->n);
    int parts = n <= Leaf::cap ? 1 : (n + fill - 1) / fill;
    bool tail = leaf == w_.tree_.tail;
    w_.tree_.probe.restructure(static_cast<std::size_t>(parts - 1));
    for (int part = 0, begin = 0; part < parts; ++part) {
      auto end = static_cast<int>(static_cast<std::int64_t>(n) * (part + 1) / parts);
      Leaf* into = part ? w_.tree_.new_leaf() : leaf;
      std::copy(times_.begin() + begin, times_.begin() + end, into->t);
      std::move(values_.begin() + begin, values_.begin() + end, into->v.at);
      into->release(end - begin, std::max(end - begin, into->n), w_.tree_.one());
      into->n = end - begin;
      if (part)
        siblings.push_back({into->t[0], into, into->n, tail && part == parts - 1 ? w_.tree_.one() : w_.tree_.fold(into, 0, into->n)});
      begin = end;
    }
  }

  void push(const Key& key, Partial v) {
    if (!times_.empty() && times_.back() == key) {
      values_.back() = w_.tree_.combine(values_.back(), v);
    } else {
      times_.push_back(key);
      values_.push_back(std::move(v));
    }
  }

  Window& w_;
  std::span<const Key> keys_;
  std::span<const Partial> partials_;
  std::vector<Key> times_;
  std::vector<Partial> values_;
};

}  // namespace block
}  // namespace sash
