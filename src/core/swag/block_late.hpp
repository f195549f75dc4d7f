// BlockFiba away from its ends: late inserts, evictions anywhere, and the roaming finger
//
// A late insert climbs, descends, and sums up what it changed. Where such inserts follow one another a gap is opened between two
// entries: all before it and all after it is known, so that an insert there is a shift in one leaf and one combine. What
// the tree's partials miss meanwhile is the gap's debt, paid when it closes.
//
//       suffixes_[lo_]             before_                after_
//       | head_, left spine | ... up to the gap >< from the gap to the end ... |
//
// A gap whose path leaves the left spine below the root takes the rest of that spine into after_.

#pragma once

#include <optional>

#include "block_shape.hpp"

namespace sash::block {

template <Monoid M, class Key, int LeafCap, int Fan>
class Late : protected Shape<M, Key, LeafCap, Fan> {
 protected:
  using Base = Shape<M, Key, LeafCap, Fan>;
  using Base::adopt, Base::after_, Base::before_, Base::Base, Base::climb, Base::combine, Base::find, Base::fold, Base::head_,
      Base::height_;
  using Base::known_, Base::lo_, Base::mend, Base::monoid_, Base::one, Base::prefix, Base::prefixes_, Base::probe_, Base::refresh;
  using Base::settle, Base::settle_head, Base::size_, Base::spine_, Base::suffix, Base::suffixes_, Base::tail_, Base::torn_, Base::touch;
  using Base::turn_, Base::unlearn, Base::youngest_;
  using typename Base::Brood;
  using typename Base::Inner;
  using typename Base::Leaf;
  using typename Base::Partial;
  using typename Base::Path;

  struct Gap {
    bool open = false;
    bool debt = false;  // entries were inserted that the tree's partials do not know
    Leaf* leaf = nullptr;
    int p = 0;      // the gap is before entry p
    int taken = 0;  // inserts since it was opened
    Key low{}, high{};
    Path path;
  };

  void fill(const Key& key, Partial v) {
    Leaf* leaf = gap_.leaf;
    Partial sum = combine(before_, v);
    if (gap_.low == key) {
      leaf->v[gap_.p - 1] = combine(leaf->v[gap_.p - 1], v);
    } else {
      block::open(*leaf, gap_.p, 1);
      leaf->t[gap_.p] = gap_.low = key;
      leaf->v[gap_.p] = std::move(v);
      ++gap_.p;
      ++size_;
    }
    before_ = std::move(sum);
    gap_.debt = true;
    ++gap_.taken;
    if (leaf == tail_) unlearn(gap_.p - 1);
  }

  // The separator behind the path's leaf, which is not the tail.
  const Key& end_of_leaf(const Path& path) const {
    for (int l = 1; l <= path.top; ++l) {
      auto [node, i] = path.at[l];
      if (i + 1 < node->n) return node->key[i + 1];
    }
    return spine_[path.top + 1].left->key[1];
  }

  // Opens the gap before entry p of the path's leaf, which is not the head.
  void open_gap(const Path& path, int p) {
    Leaf* leaf = path.leaf;
    int top = path.top;
    Partial before = fold(leaf, 0, p), after = fold(leaf, p, leaf->n);
    for (int l = 1; l <= top; ++l) {
      auto [node, i] = path.at[l];
      bool on_left = l == top && (path.left || l == height_), on_right = l == top && !path.left;
      before = combine(fold(node, on_left, i), before);
      after = combine(after, fold(node, i + 1, node->n - on_right));
    }
    if (path.left) {  // the suffixes end where the path leaves the left spine
      if (top + 1 < height_) after = combine(after, spine_[top + 1].left_rest);
      after = combine(combine(after, before_), after_);
      std::optional<Partial> beside;
      for (int l = 1; l < top; ++l) beside = beside ? combine(*beside, spine_[l].left_fold) : spine_[l].left_fold;
      suffix(turn_ - 1, lo_, beside ? &*beside : nullptr);
    } else {
      if (top < height_) before = combine(spine_[top + 1].right_rest, before);
      for (int l = top - 1; l >= 1; --l) after = combine(after, spine_[l].right_fold);
      if (leaf != tail_) after = combine(after, after_);
    }
    gap_.leaf = leaf;
    gap_.p = p;
    gap_.low = leaf->t[p - 1];
    gap_.high = p < leaf->n ? leaf->t[p] : end_of_leaf(path);
    gap_.path = path;
    gap_.debt = false;
    gap_.taken = 0;
    unlearn(tail_->n - 1);
    before_ = std::move(before);
    after_ = std::move(after);
    gap_.open = true;
  }

  // Pays what the gap owes to the tree. If combine throws, the gap is as before, still in debt.
  void close_gap() {
    if (!gap_.open) return;
    int top = gap_.path.top;
    bool left = gap_.path.left;
    if (gap_.debt && gap_.leaf != tail_) {
      refresh(gap_.path, 0);
      left ? this->mend_left_spine(top, top) : this->mend_right_spine(top, top);
    }
    this->learn_prefixes();
    if (left) {
      std::vector<Partial> kept = suffixes_;
      Rollback undo(monoid_, [&] {
        suffixes_.swap(kept);
        unlearn(tail_->n - 1);
      });
      suffix(turn_ - 1);
      undo.done();
    }
    before_ = spine_[1].right_rest;
    after_ = prefixes_[known_ - 1];
    gap_.open = false;
    streak_ = 0;
    patience_ = gap_.taken >= 4 ? 1 : std::min(2 * patience_, LeafCap);  // a gap that does not pay is opened ever later
  }

  void late(const Key& key, Partial v) {
    bool running = gap_.open && gap_.leaf->n == LeafCap && !(key < gap_.low) && key < gap_.high;
    close_gap();
    Tear<M> tear(torn_);
    Path path;
    Leaf* leaf = find(key, path);
    bool at_head = leaf == head_;
    int p = block::lower(*leaf, at_head ? lo_ : 0, key);
    if (p < leaf->n && leaf->t[p] == key) {
      leaf->v[p] = combine(leaf->v[p], v);
      account(path, p, v, false);
    } else if (at_head && lo_ > 0 && (height_ || p < turn_)) {  // the free slots are in front
      std::move(leaf->t + lo_, leaf->t + p, leaf->t + lo_ - 1);
      std::move(leaf->v.at + lo_, leaf->v.at + p, leaf->v.at + lo_ - 1);
      --lo_;
      put(leaf, --p, key, v);
      suffix(p);
    } else if (leaf->n < LeafCap) {
      block::open(*leaf, p, 1);
      put(leaf, p, key, v);
      if (at_head && (height_ || p < turn_)) {
        std::move_backward(suffixes_.begin() + p, suffixes_.begin() + turn_, suffixes_.begin() + turn_ + 1);
        ++turn_;
        if (!height_) known_ = turn_;
      }
      account(path, p, v, true);
    } else {
      split(path, p, key, std::move(v), running);
      return tear.mend();
    }
    follow(path, p);
    tear.mend();
  }

  void put(Leaf* leaf, int p, const Key& key, const Partial& v) {
    leaf->t[p] = key;
    leaf->v[p] = v;
    ++size_;
  }

  // Entry p of the path's leaf has taken in v, or is v itself.
  void account(Path& path, int p, const Partial& v, bool fresh) {
    bool at_head = path.leaf == head_ && (height_ || p < turn_);
    if (!at_head && path.leaf == tail_) tail_late_ = true;
    if constexpr (is_commutative<M>) {
      auto take_in = [&](Partial& sum) { sum = combine(sum, v); };
      if (at_head) {
        if (fresh) suffix(p, p, this->beside_head());
        for (int i = lo_; i < p + !fresh; ++i) take_in(suffixes_[i]);
      } else if (path.leaf == tail_) {
        take_in(after_);
        unlearn(p);
      } else {
        for (int l = path.top; l > 0; --l) {
          auto [node, i] = path.at[l];
          take_in(node->agg[i]);
          node->count[i] += fresh;
          take_in(path.left ? spine_[l].left_rest : spine_[l].right_rest);
        }
        take_in(path.left ? spine_[path.top].left_fold : spine_[path.top].right_fold);
        if (path.left)
          for (int i = lo_; i < turn_; ++i) take_in(suffixes_[i]);
        else
          take_in(before_);
      }
    } else {
      if (at_head) return suffix(p);
      if (path.leaf == tail_) return prefix(p);
      refresh(path, 0);
      mend(path);
    }
  }

  // An insert right behind the one before opens the gap; from the second on, where such gaps did not pay.
  void follow(const Path& path, int p) {
    bool next = path.leaf == last_leaf_ && p == last_p_ + 1;
    last_leaf_ = path.leaf;
    last_p_ = p;
    streak_ = next ? streak_ + 1 : 0;
    if (streak_ >= patience_) try_gap(path, p + 1);
  }

  void try_gap(const Path& path, int p) {
    if (path.leaf != head_ && (path.leaf != tail_ || p < tail_->n)) open_gap(path, p);
  }

  // An insert into a full leaf. Where the gap was running the leaf is cut at the insert and the gap goes on; near an edge
  // it is cut so that the edge stays small; else in halves.
  void split(Path& path, int p, const Key& key, Partial v, bool running) {
    Leaf* leaf = path.leaf;
    if (leaf == head_ && lo_ > 0) {  // one leaf, and free slots in front of both stacks
      p -= lo_;
      settle_head();
      block::open(*leaf, p, 1);
      put(leaf, p, key, v);
      return prefix(p);
    }
    constexpr int quarter = LeafCap / 4;
    int s = running                  ? std::clamp(p, quarter, LeafCap - quarter)
            : p >= LeafCap - quarter ? LeafCap - quarter
            : p < quarter            ? quarter
                                     : LeafCap / 2;
    Leaf* right = this->new_leaf();
    block::pour(*leaf, *right, s - LeafCap, one());
    Leaf* into = p <= s ? leaf : right;
    last_leaf_ = into;
    last_p_ = p <= s ? p : p - s;
    block::open(*into, last_p_, 1);
    put(into, last_p_, key, v);
    grow(path, right, leaf == tail_);
    if (!running) return;
    Path again;
    find(key, again);
    try_gap(again, last_p_ + 1);
  }

  // A new leaf behind the path's, which has changed too.
  void grow(Path& path, Leaf* leaf, bool is_tail) {
    probe_.restructure();
    brood_.clear();
    brood_.push_back({leaf->t[0], leaf, leaf->n, is_tail ? one() : fold(leaf, 0, leaf->n)});
    touch(path, path.leaf, 0);
    refresh(path, adopt(path, 1, brood_));
    mend(path);
  }

  void erase(Path& path, int p) {
    Leaf* leaf = path.leaf;
    --size_;
    if (leaf == head_ && (height_ || p < turn_)) {
      std::move_backward(leaf->t + lo_, leaf->t + p, leaf->t + p + 1);
      std::move_backward(leaf->v.at + lo_, leaf->v.at + p, leaf->v.at + p + 1);
      forget(lo_, lo_ + 1);
      ++lo_;
      suffix(p);
      if (!height_) youngest_ = leaf->t[leaf->n - 1];
      return;  // never the head's last one: that is the oldest
    }
    block::close(*leaf, p, 1, one());
    if (leaf == tail_) {
      if (leaf->n == 0)
        drop_leaf(path);
      else
        prefix(p);
      youngest_ = tail_->t[tail_->n - 1];
    } else {
      refresh(path, settle(path, 0));
      mend(path);
    }
  }

  // The leaf of the path is empty.
  void drop_leaf(Path& path) {
    this->reclaim(2);
    climb(path, 1);
    auto [parent, i] = path.at[1];
    this->free_leaf(path.leaf);
    block::close(*parent, i, 1, one());
    touch(path, parent, 1);
    (path.left ? path.left_from : path.right_from) = 0;
    refresh(path, settle(path, 1));
    mend(path);
  }

  // Slots of the head whose entries have left.
  void forget(int from, int to) {
    if constexpr (!std::is_trivially_destructible_v<Partial>) {
      head_->release(from, to, one());
      std::fill(suffixes_.begin() + from, suffixes_.begin() + to, block::nothing(one()));
    }
  }

  Gap gap_;
  Leaf* last_leaf_ = nullptr;  // where the last late insert went
  int last_p_ = 0;
  int streak_ = 0;          // how many of them lay right behind the one before
  int patience_ = 1;        // how many of those open the gap
  bool tail_late_ = false;  // the tail has taken in late inserts
  Brood brood_;
};

}  // namespace sash::block
