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
  reclaim(4);
  if (size_ == 0 || key < oldest()) return 0;
  if (!(key < youngest_)) {
    this->bury(height_ ? static_cast<void*>(this->root()) : head_, height_);
    head_ = tail_ = nullptr;
    forget_all();
    return was;
  }
  int p = block::upper(*head_, lo_, key);
  if (p < turn_) {
    forget(lo_, p);
    size_ -= static_cast<std::size_t>(p - lo_);
    lo_ = p;
    return was - size_;
  }
  Tear<M> tear(torn_);
  if (height_ == 0 || key < spine_[1].left->key[1]) {
    head_->release(lo_, p, one());
    size_ -= static_cast<std::size_t>(p - lo_);
    lo_ = p;
    next_head();
  } else {
    cut(key);
  }
  tear.mend();
  return was - size_;
}

template <Monoid M, class Key, int LeafCap, int Fan>
void BlockFiba<M, Key, LeafCap, Fan>::cut(const Key& key) {
  if (gap_.path.left) close_gap();  // the counts of its path are among what it owes
  std::int64_t gone = head_->n - lo_;
  int level = 1, height = height_;
  for (; level < height_ && !(key < spine_[level + 1].left->key[1]); ++level)
    gone += this->count(spine_[level].left, 1, spine_[level].left->n);
  probe_.visit(static_cast<std::size_t>(2 * level));
  Inner* node = spine_[level].left;
  // A gap beyond the root's first child is reached by a change of the root only.
  if (level == height_ || node->n - block::child_of(*node, key) <= Inner::least) close_gap();

  Path path;
  path.left = true;
  path.top = level;
  path.left_from = 0;
  Leaf* leaf = nullptr;
  for (bool spine = true; !leaf; spine = false) {
    int i = block::child_of(*node, key);
    gone += this->count(node, spine ? 1 : 0, i);
    for (int k = 0; k < i; ++k) this->bury(node->child[k], level - 1);
    block::close(*node, 0, i, one());
    spine_[level].left = node;
    path.at[level] = {node, 0};
    this->touch(path, node, level);
    void* down = node->child[0];
    if (level < height_ && node->n <= Inner::least) {
      climb(path, level + 1);
      Inner* parent = path.at[level + 1].node;
      bool merged = this->level_out(path, parent, 0, level);
      this->touch(path, parent, level + 1);
      if (merged) settle(path, level + 1);
    } else if (level == height_ && node->n == 1) {
      this->wither(path);
    }
    if (--level > 0)
      node = static_cast<Inner*>(down);
    else
      leaf = static_cast<Leaf*>(down);
  }
  head_ = leaf;
  lo_ = block::upper(*leaf, 0, key);
  size_ -= static_cast<std::size_t>(gone + lo_);
  leaf->release(0, lo_, one());
  if (lo_ == leaf->n) {
    this->free_leaf(leaf);
    block::close(*path.at[1].node, 0, 1, one());
    settle(path, 1);
  }
  if (height_ != height) this->touch_all(path);
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
    Rollback tear(w_.monoid_, [&] { w_.torn_ |= done > 0; });
    if (late > 1) {
      insert_late(late);
      done = late;
    }
    for (; done < keys_.size(); ++done) w_.insert(keys_[done], partials_[done]);
    tear.done();
  }

 private:
  // The first `n` of the batch, none of them younger than the window.
  void insert_late(std::size_t n) {
    Tear tear = w_.tear();
    w_.close_gap();
    typename Window::Path path;
    int level = 0;
    for (; level < w_.height_; ++level) {
      const auto& above = w_.spine_[level + 1];
      if (!(keys_[0] < above.right->key[above.right->n - 1])) break;
      if ((path.left = keys_[n - 1] < above.left->key[1])) break;
      w_.probe_.visit(2);
    }
    path.top = 0;
    w_.climb(path, level);
    bool root = level == w_.height_;
    if (path.left || root) path.left_from = 0;
    if (!path.left || root) path.right_from = 0;
    path.high = level;
    Brood brood;
    if (level)
      grow(path.at[level].node, level, 0, n, brood);
    else
      grow(path.left ? w_.head_ : w_.tail_, 0, n, brood);
    if (!brood.empty()) w_.refresh(path, w_.adopt(path, level + 1, brood));
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
    w_.probe_.visit();
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
      bool left = node->child[i] == (level > 1 ? static_cast<void*>(w_.spine_[level - 1].left) : w_.head_);
      bool right = node->child[i] == (level > 1 ? static_cast<void*>(w_.spine_[level - 1].right) : w_.tail_);
      if (!left && !(right && brood.empty())) w_.sum_up(node, i, level);
      if (!brood.empty()) {
        more += brood.size();
        extras.push_back({i, std::move(brood)});
      }
      from = end;
    }
    if (more == 0) return;
    Brood& all = w_.scratch(level);
    all.clear();
    auto extra = extras.begin();
    for (int i = 0; i < node->n; ++i) {
      all.push_back(w_.get(node, i));
      if (extra == extras.end() || extra->behind != i) continue;
      for (auto& c : extra->brood) all.push_back(std::move(c));
      ++extra;
    }
    w_.deal(node, level, all, siblings, 0);
  }

  void grow(Leaf* leaf, std::size_t from, std::size_t to, Brood& siblings) {
    if (leaf == w_.head_) w_.settle_head();
    w_.probe_.visit();
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
    bool tail = leaf == w_.tail_;
    w_.probe_.restructure(static_cast<std::size_t>(parts - 1));
    for (int part = 0, begin = 0; part < parts; ++part) {
      auto end = static_cast<int>(static_cast<std::int64_t>(n) * (part + 1) / parts);
      Leaf* into = part ? w_.new_leaf() : leaf;
      std::copy(times_.begin() + begin, times_.begin() + end, into->t);
      std::move(values_.begin() + begin, values_.begin() + end, into->v.at);
      into->release(end - begin, std::max(end - begin, into->n), w_.one());
      into->n = end - begin;
      if (part) siblings.push_back({into->t[0], into, into->n, tail && part == parts - 1 ? w_.one() : w_.fold(into, 0, into->n)});
      begin = end;
    }
  }

  void push(const Key& key, Partial v) {
    if (!times_.empty() && times_.back() == key) {
      values_.back() = w_.combine(values_.back(), v);
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
