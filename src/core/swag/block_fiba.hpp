// BlockFiba
//
//   paper      our own layout of FiBA (fiba-2019, bulk-fiba-2023)
//   ordering   any: in order, late by any distance, in bulk
//   needs      a monoid; uses commutativity where it is there, never an inverse
//   time       d places from the nearer end: insert and evict O(log d) amortised, O(log n) worst; in order O(1) amortised;
//              again and again at one place O(1) amortised, whatever d; query at most 2 combines; a range O(log d + log length);
//              bulk_evict O(log m) amortised, O(log n) worst; bulk_insert O(log d + m (1 + log(d / m))) amortised
//   space      n partials in leaves, at most 4 n when every leaf is a quarter full; n / 48 or so in inner nodes; 2 leaves of partials
//
//       suffixes_[lo_]           before_              after_
//       | head_ and left spine | ... up to the gap >< from the gap to the end ... |
//
//   FiBA's idea, fingers and partials that depend on place, in another shape: leaves are blocks of LeafCap entries,
//   partials of children lie in their parent (block_tree.hpp), and besides the two ends there is a third finger, the gap:
//   a place between two entries of which all before and all after it is known, so that an insert there is one combine.
//   It rests at the tail, opens where late inserts follow one another, and what it owes to the tree is paid when it closes.
//
//   I1  entries lie in key order, and under the child whose separators hold them
//   I2  all leaves have the same depth; a leaf that is not the head or tail has at least LeafCap / 4 entries, an inner node that
//       is not the root at least Fan / 4 (and 2) children, the root at least 2
//   I3  a child off the spines has its partial and its number of entries in its parent, unless it is an ancestor of a gap in debt
//   I4  spine_ names the spines' nodes and holds the partials beside them, unless a gap in debt lies below
//   I5  suffixes_[i] is the head from i to turn_, then, if there are inner nodes, all that hangs from the left spine below the root
//   I6  prefixes_[i] is the tail up to i, for i < known_
//   I7  suffixes_[lo_] before_ after_ is the window; closed, after_ is the tail and before_ lies between
//   I8  the gap lies between low (the entry before it, in its leaf) and high, not in the head; where its path leaves the left
//       spine below the root, I5's suffixes end there, and before_ begins
//   I9  every node is in the tree, dead or free; size_ counts the entries

#pragma once

#include <bit>
#include <optional>
#include <span>
#include <stdexcept>

#include "../archive.hpp"
#include "../check.hpp"
#include "block_tree.hpp"

namespace sash {

namespace block {
template <class Window>
class Range;
template <class Window>
class BulkInsert;
template <class Window>
class Checker;

// Where a combine costs more than the memory it reads (Python callables, erased partials), smaller blocks ask for fewer of them:
// with delays U(0, 1,024), n = 2^16, 22 per round with 16 / 8, 47 with 64 / 16; in order 2.6 and 2.3.
template <class M>
inline constexpr bool costly = !std::is_trivially_copyable_v<typename M::Partial> || sizeof(typename M::Partial) > 64;
}  // namespace block

template <Monoid M, class Key = Time, int LeafCap = block::costly<M> ? 16 : 64, int Fan = block::costly<M> ? 8 : 16>
class BlockFiba : private block::Tree<M, Key, LeafCap, Fan> {
  using Tree = block::Tree<M, Key, LeafCap, Fan>;
  using typename Tree::Brood;
  using typename Tree::Inner;
  using typename Tree::Leaf;
  using typename Tree::Path;
  using typename Tree::Spine;

 public:
  using Partial = typename M::Partial;
  using KeyType = Key;

  explicit BlockFiba(M monoid) : Tree(std::move(monoid)) {}
  BlockFiba(BlockFiba&&) = default;
  BlockFiba& operator=(BlockFiba&&) = default;

  // Equal keys combine: the stored entry, then the new one.
  void insert(const Key& key, Partial v) {
    if (size_ == 0) return begin(key, std::move(v));
    if (youngest_ < key) {
      if (tail_->n == LeafCap) return extend(key, std::move(v));
      append(key, std::move(v));
    } else if (gap_.open && !(key < gap_.low) && key < gap_.high && gap_.leaf->n < LeafCap) {
      fill(key, std::move(v));
    } else if (key == youngest_ && tail_->n > tail_start()) {
      repeat(v);
    } else {
      late(key, std::move(v));
    }
  }

  // The oldest entry.
  void evict() {
    if (lo_ + 1 < turn_) {
      forget(lo_, lo_ + 1);
      ++lo_;
      --size_;
    } else {
      evict_last_of_head();
    }
  }

  // The entry of this key, anywhere; returns whether there was one.
  bool evict(const Key& key) {
    if (size_ == 0 || key < oldest() || youngest_ < key) return false;
    if (key == oldest()) return evict(), true;
    Tear<M> tear(torn_);
    close_gap();
    Path path;
    Leaf* leaf = find(key, path);
    int p = block::lower(*leaf, leaf == head_ ? lo_ : 0, key);
    if (p < leaf->n && leaf->t[p] == key) {
      erase(path, p);
      tear.mend();
      return true;
    }
    tear.mend();
    return false;
  }

  // All entries with a key up to this one; returns how many they were.
  std::size_t bulk_evict(const Key& key);

  // Keys must not fall; equal ones combine in the order given.
  void bulk_insert(std::span<const Key> keys, std::span<const Partial> partials) {
    block::BulkInsert<BlockFiba>(*this, keys, partials).run();
  }

  // All entries of another window, combined behind ours where keys are equal.
  void merge(const BlockFiba& other) {
    std::vector<Key> keys;
    std::vector<Partial> partials;
    other.for_each([&](const Key& key, const Partial& v) {
      keys.push_back(key);
      partials.push_back(v);
    });
    bulk_insert(keys, partials);
  }

  Partial query() const { return combine(combine(suffixes_[lo_], before_), after_); }

  // Entries with from <= key <= to.
  Partial query(const Key& from, const Key& to) { return block::Range<BlockFiba>(*this).query(from, to); }

  // Many such ranges at once; those that end together share what they have in common.
  std::vector<Partial> query_many(std::span<const Key> from, std::span<const Key> to) {
    return block::Range<BlockFiba>(*this).query_many(from, to);
  }

  // The first key at or after this one, null where there is none.
  const Key* first_from(const Key& key) const {
    if (size_ == 0 || youngest_ < key) return nullptr;
    Path path;
    Leaf* leaf = find(key, path);
    int p = block::lower(*leaf, leaf == head_ ? lo_ : 0, key);
    if (p < leaf->n) return &leaf->t[p];
    for (int level = 1;; ++level) {  // the next leaf: there is one, for the youngest is not before key
      climb(path, level);
      auto [node, i] = path.at[level];
      if (i + 1 == node->n) continue;
      void* next = node->child[i + 1];
      while (--level > 0) next = static_cast<Inner*>(next)->child[0];
      return &static_cast<Leaf*>(next)->t[0];
    }
  }

  std::size_t size() const { return size_; }
  const Key& oldest() const { return head_->t[lo_]; }
  const Key& youngest() const { return youngest_; }
  bool torn() const { return torn_; }
  const ProbeOf<M>& probe() const { return probe_; }
  std::size_t bytes() const { return leaves_.bytes() + inners_.bytes() + 2 * LeafCap * sizeof(Partial); }

  void clear() {
    dead_.clear();
    leaves_.clear();
    inners_.clear();
    head_ = tail_ = nullptr;
    forget_all();
    torn_ = false;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    if (size_) walk(height_ ? static_cast<const void*>(this->root()) : head_, height_, visit);
  }

  // Verifies I1 to I9; `same` compares two partials.
  template <class Same>
  void check(Same same) const {
    block::Checker<BlockFiba>(*this).run(same);
  }

  template <class Archive>
  void archive(Archive& ar) {
    auto n = static_cast<std::int64_t>(size_);
    ar.number(n);
    if constexpr (Archive::loading) {
      load(ar, n);
    } else {
      for_each([&](Key key, Partial v) {
        archive_key(ar, key);
        ar.partial(v);
      });
    }
  }

 private:
  friend class block::Range<BlockFiba>;
  friend class block::BulkInsert<BlockFiba>;
  friend class block::Checker<BlockFiba>;

  using Tree::adopt, Tree::after_, Tree::before_, Tree::climb, Tree::combine, Tree::dead_, Tree::find, Tree::find_end, Tree::fold;
  using Tree::head_, Tree::height_, Tree::inners_, Tree::known_, Tree::leaves_, Tree::lo_, Tree::mend, Tree::monoid_, Tree::one;
  using Tree::prefix, Tree::prefixes_, Tree::probe_, Tree::reclaim, Tree::refresh, Tree::settle, Tree::spine_, Tree::suffix;
  using Tree::suffixes_, Tree::tail_, Tree::tail_start, Tree::turn_;

  // ---- in order

  void begin(const Key& key, Partial v) {
    if (!head_) head_ = tail_ = this->new_leaf();
    head_->t[0] = youngest_ = key;
    head_->v[0] = v;
    suffixes_[0] = std::move(v);
    head_->n = turn_ = known_ = 1;
    lo_ = 0;
    size_ = 1;
  }

  void append(const Key& key, Partial v) {
    Partial sum = combine(after_, v);
    int n = tail_->n;
    tail_->t[n] = youngest_ = key;
    tail_->v[n] = std::move(v);
    if (known_ == n) {  // false while the gap is open
      prefixes_[n] = sum;
      known_ = n + 1;
    }
    after_ = std::move(sum);
    tail_->n = n + 1;
    ++size_;
  }

  // The youngest entry again.
  void repeat(const Partial& v) {
    int last = tail_->n - 1;
    Partial sum = combine(after_, v);
    tail_->v[last] = combine(tail_->v[last], v);
    if (known_ > last) prefixes_[last] = sum;
    after_ = std::move(sum);
  }

  // An append when the tail is full: a new tail beside it.
  void extend(const Key& key, Partial v) {
    if (height_ == 0 && lo_ >= LeafCap / 4) {
      this->settle_head();
      return append(key, std::move(v));
    }
    close_gap();
    if (height_ && !tail_late_ && spine_[1].right->n < Fan) return extend_in_place(key, std::move(v));
    Tear<M> tear(torn_);
    Path path;
    find_end(height_ == 0, path);
    if (height_ == 0) this->settle_head();
    Leaf* tail = this->new_leaf();
    // Where inserts come a little late, the newest quarter goes along: the next late ones find it in the new tail.
    if (tail_late_) block::pour(*tail_, *tail, -LeafCap / 4, one());
    block::open(*tail, tail->n, 1);
    tail->t[tail->n - 1] = youngest_ = key;
    tail->v[tail->n - 1] = std::move(v);
    ++size_;
    grow(path, tail, true);
    tail_late_ = false;
    tear.mend();
  }

  // The same with room in the parent: two combines, done before anything changes.
  void extend_in_place(const Key& key, Partial v) {
    Spine& s = spine_[1];
    Inner* node = s.right;
    int n = node->n;
    Partial folded = n - 1 > (height_ == 1 ? 1 : 0) ? combine(s.right_fold, after_) : after_;
    Partial rest = height_ == 1 ? folded : combine(spine_[2].right_rest, folded);
    Leaf* tail = this->new_leaf();
    tail->t[0] = youngest_ = key;
    tail->v[0] = v;
    tail->n = 1;
    node->agg[n - 1] = std::move(after_);
    node->count[n - 1] = tail_->n;
    node->key[n] = key;
    node->child[n] = tail;
    node->n = n + 1;
    tail_ = tail;
    s.right_fold = std::move(folded);
    before_ = s.right_rest = std::move(rest);
    prefixes_[0] = v;
    known_ = 1;
    after_ = std::move(v);
    ++size_;
  }

  // Slots of the head whose entries have left.
  void forget(int from, int to) {
    if constexpr (!std::is_trivially_destructible_v<Partial>) {
      head_->release(from, to, one());
      std::fill(suffixes_.begin() + from, suffixes_.begin() + to, block::nothing(one()));
    }
  }

  void forget_all() {
    height_ = 0;
    spine_.resize(1, this->blank());
    gap_.open = false;
    lo_ = turn_ = known_ = 0;
    size_ = 0;
    tail_late_ = false;
    before_ = after_ = one();
    std::fill(suffixes_.begin(), suffixes_.end(), block::nothing(one()));
    std::fill(prefixes_.begin(), prefixes_.end(), block::nothing(one()));
    suffixes_[0] = one();
  }

  void evict_last_of_head() {
    if (size_ == 1) {
      head_->release(0, head_->n, one());
      head_->n = 0;
      return forget_all();
    }
    Tear<M> tear(torn_);
    forget(lo_, lo_ + 1);
    ++lo_;
    --size_;
    next_head();
    tear.mend();
  }

  // The head has no entry left before its turn: turn it, or leave it.
  void next_head() {
    if (height_ == 0) {
      turn_ = head_->n;
      suffix(turn_ - 1);
      return prefix(turn_);
    }
    if (gap_.path.left || height_ == 1 || spine_[1].left->n <= Inner::least) close_gap();  // what follows may reach its path
    Path path;
    find_end(true, path);
    drop_leaf(path);
  }

  // The leaf of the path is empty.
  void drop_leaf(Path& path) {
    climb(path, 1);
    auto [parent, i] = path.at[1];
    this->free_leaf(path.leaf);
    block::close(*parent, i, 1, one());
    this->touch(path, parent, 1);
    (path.left ? path.left_from : path.right_from) = 0;
    refresh(path, settle(path, 1));
    mend(path);
  }

  // ---- the gap

  struct Gap {
    bool open = false;
    bool debt = false;  // entries were inserted that the tree's partials do not know
    Leaf* leaf = nullptr;
    int p = 0;  // the gap is before entry p
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
    if (leaf == tail_) this->unlearn(gap_.p - 1);
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
    this->unlearn(tail_->n - 1);
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
        this->unlearn(tail_->n - 1);
      });
      suffix(turn_ - 1);
      undo.done();
    }
    before_ = spine_[1].right_rest;
    after_ = prefixes_[known_ - 1];
    gap_.open = false;
    streak_ = 0;
  }

  // ---- late

  void late(const Key& key, Partial v) {
    Tear<M> tear(torn_);
    close_gap();
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
      split(path, p, key, std::move(v));
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
        this->unlearn(p);
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

  // The second insert in a row that lies right behind the one before opens the gap.
  void follow(const Path& path, int p) {
    bool next = path.leaf == last_leaf_ && p == last_p_ + 1;
    last_leaf_ = path.leaf;
    last_p_ = p;
    streak_ = next ? streak_ + 1 : 0;
    if (streak_ >= 1) try_gap(path, p + 1);
  }

  void try_gap(const Path& path, int p) {
    if (path.leaf != head_ && (path.leaf != tail_ || p < tail_->n)) open_gap(path, p);
  }

  // An insert into a full leaf. Where inserts follow one another the leaf is cut at the insert, near an edge so that
  // the edge stays small, else in halves.
  void split(Path& path, int p, const Key& key, Partial v) {
    Leaf* leaf = path.leaf;
    if (leaf == head_ && lo_ > 0) {  // one leaf, and free slots in front of both stacks
      p -= lo_;
      this->settle_head();
      block::open(*leaf, p, 1);
      put(leaf, p, key, v);
      return prefix(p);
    }
    constexpr int quarter = LeafCap / 4;
    bool next = leaf == last_leaf_ && p == last_p_ + 1;
    int s = next                     ? std::clamp(p, quarter, LeafCap - quarter)
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
    if (!next) return;
    Path again;
    find(key, again);
    try_gap(again, last_p_ + 1);
  }

  // A new leaf behind the path's, which has changed too.
  void grow(Path& path, Leaf* leaf, bool is_tail) {
    probe_.restructure();
    brood_.clear();
    brood_.push_back({leaf->t[0], leaf, leaf->n, is_tail ? one() : fold(leaf, 0, leaf->n)});
    this->touch(path, path.leaf, 0);
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

  void cut(const Key& key);
  Tear<M> tear() { return Tear<M>(torn_); }

  // ---- whole windows

  template <class Visit>
  void walk(const void* node, int level, Visit& visit) const {
    if (level == 0) {
      auto* leaf = static_cast<const Leaf*>(node);
      for (int i = leaf == head_ ? lo_ : 0; i < leaf->n; ++i) visit(leaf->t[i], leaf->v[i]);
    } else {
      auto* inner = static_cast<const Inner*>(node);
      for (int i = 0; i < inner->n; ++i) walk(inner->child[i], level - 1, visit);
    }
  }

  template <class Archive>
  static void archive_key(Archive& ar, Key& key) {
    if constexpr (requires { key.archive(ar); }) {
      key.archive(ar);
    } else {
      auto bits = std::bit_cast<std::int64_t>(key);
      ar.number(bits);
      key = std::bit_cast<Key>(bits);
    }
  }

  template <class Archive>
  void load(Archive& ar, std::int64_t n) {
    clear();
    if (n < 0 || static_cast<std::size_t>(n) > ar.partials_left())
      throw std::invalid_argument("the stored window's size does not fit its entries");
    for (; n > 0; --n) {
      Key key{};
      Partial v = one();
      archive_key(ar, key);
      ar.partial(v);
      if (size_ && !(youngest_ < key)) throw std::invalid_argument("the stored window's times do not rise");
      insert(key, std::move(v));
    }
  }

  Key youngest_{};
  std::size_t size_ = 0;
  Gap gap_;
  Leaf* last_leaf_ = nullptr;  // where the last late insert went
  int last_p_ = 0;
  int streak_ = 0;
  bool tail_late_ = false;  // the tail has taken in late inserts
  bool torn_ = false;
  Brood brood_;
};

}  // namespace sash

#include "block_bulk.hpp"
#include "block_check.hpp"
#include "block_range.hpp"
