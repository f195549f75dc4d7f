// BlockFiba
//
//   paper      our own layout of FiBA (fiba-2019, bulk-fiba-2023)
//   ordering   any: in order, late by any distance, in bulk
//   needs      a monoid; uses commutativity where it is there, never an inverse
//   time       d places from the nearer end: insert and evict O(log d) amortised, O(log n) worst; in order O(1) amortised;
//              again and again at one place O(1 + log d / LeafCap) amortised; query at most 2 combines; a range O(log d + log length);
//              bulk_evict O(log m) amortised, O(log n) worst; bulk_insert O(log d + m (1 + log(d / m))) amortised
//   space      n partials in leaves, at most 4 n when every leaf is a quarter full; n / 48 or so in inner nodes; 2 leaves of partials
//
//   block_nodes   leaves of LeafCap entries, inner nodes of Fan children; partials of children lie in their parent
//   block_tree    fingers at both ends, the partials beside the spines, search from the nearer end
//   block_shape   splits, merges, and subtrees that were cut off
//   block_late    inserts and evictions anywhere, and a third finger that roams: the gap
//   block_bulk, block_range, block_check
//
//       suffixes_[lo_]           before_              after_
//       | head_ and left spine | ... up to the gap >< from the gap to the end ... |
//
//   FiBA's idea, fingers and partials that depend on place, in another shape. An append is one combine, an eviction of the oldest
//   one increment, an insert into the gap a shift and one combine, wherever it is.
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
#include <limits>
#include <span>
#include <stdexcept>

#include "../archive.hpp"
#include "../check.hpp"
#include "block_late.hpp"

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
class BlockFiba : private block::Late<M, Key, LeafCap, Fan> {
  using Base = block::Late<M, Key, LeafCap, Fan>;
  using typename Base::Brood;
  using typename Base::Inner;
  using typename Base::Leaf;
  using typename Base::Path;
  using typename Base::Spine;

 public:
  using Partial = typename M::Partial;
  using KeyType = Key;

  using Pools = block::Pools<Leaf, Inner>;

  explicit BlockFiba(M monoid) : Base(std::move(monoid)) {}
  // A window among many that take their nodes from the same pools, which outlive it.
  BlockFiba(M monoid, Pools& shared) : Base(std::move(monoid), &shared) {}
  BlockFiba(BlockFiba&&) = default;
  BlockFiba& operator=(BlockFiba&&) = default;
  ~BlockFiba() {
    if (pools_.shared()) give_back();
  }

  // Equal keys combine: the stored entry, then the new one.
  void insert(const Key& key, Partial v) {
    if (size_ == 0) return begin(key, std::move(v));
    if (youngest_ < key) {
      if (tail_->n == LeafCap) return extend(key, std::move(v));
      append(key, std::move(v));
    } else if (gap_.open && !(key < gap_.low) && key < gap_.high && gap_.leaf->n < LeafCap) {
      this->fill(key, std::move(v));
    } else if (key == youngest_ && tail_->n > tail_start()) {
      repeat(v);
    } else {
      this->late(key, std::move(v));
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
    Path path;
    Leaf* leaf = find(key, path);
    int p = block::lower(*leaf, leaf == head_ ? lo_ : 0, key);
    if (p == leaf->n || !(leaf->t[p] == key)) return false;
    close_gap();
    Tear<M> tear(torn_);
    this->erase(path, p);
    tear.mend();
    return true;
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

  // The key of the entry n places before that of this key, or the oldest where there are fewer; key is in the window.
  Key before(const Key& key, std::size_t n) {
    close_gap();
    Path path;
    Leaf* leaf = find(key, path);
    int first = leaf == head_ ? lo_ : 0, p = block::lower(*leaf, first, key);
    auto there = static_cast<std::size_t>(p - first);
    if (there >= n) return leaf->t[p - static_cast<int>(n)];
    n -= there;
    if (leaf == head_) return oldest();
    for (int level = 1;; ++level) {
      climb(path, level);
      auto [node, i] = path.at[level];
      for (int j = i - 1; j >= 0; --j)
        if (!passes(node, j, level, n)) return nth_last(node->child[j], level - 1, n);
      if (node == spine_[level].left) return oldest();
    }
  }

  std::size_t size() const { return size_; }
  const Key& oldest() const {
    if (may_throw<M> && torn_) return youngest_;  // the head may be gone
    return head_->t[lo_];
  }
  const Key& youngest() const { return youngest_; }
  bool torn() const { return torn_; }
  const ProbeOf<M>& probe() const { return probe_; }
  // Without nodes from pools that others use too.
  std::size_t bytes() const {
    std::size_t nodes = pools_.shared() ? 0 : pools_->leaves.bytes() + pools_->inners.bytes();
    return nodes + sizeof(*this) + 2 * LeafCap * sizeof(Partial) + spine_.capacity() * sizeof(Spine);
  }

  void clear() {
    if (pools_.shared()) {
      give_back();
    } else {
      dead_.clear();
      pools_->leaves.clear();
      pools_->inners.clear();
    }
    head_ = tail_ = nullptr;
    forget_all();
    torn_ = false;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    if (size_ == 0) return;
    this->each_leaf(height_ ? static_cast<const void*>(this->root()) : head_, height_, [&](const Leaf* leaf) {
      for (int i = leaf == head_ ? lo_ : 0; i < leaf->n; ++i) visit(leaf->t[i], leaf->v[i]);
    });
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

  using Base::after_, Base::before_, Base::climb, Base::close_gap, Base::combine, Base::dead_, Base::find, Base::find_end, Base::fold;
  using Base::forget, Base::gap_, Base::head_, Base::height_, Base::known_, Base::learn_prefixes, Base::lo_, Base::mend;
  using Base::monoid_, Base::one, Base::pools_, Base::prefix, Base::prefixes_, Base::probe_, Base::reclaim, Base::settle, Base::size_,
      Base::spine_;
  using Base::suffix, Base::suffixes_, Base::tail_, Base::tail_late_, Base::tail_start, Base::torn_, Base::turn_, Base::youngest_;

  // Whether the entry n places before the end of child j lies before that child: n is then counted from where the child begins.
  // The count of a child on the left spine is not kept; nothing lies before it.
  bool passes(Inner* node, int j, int level, std::size_t& n) const {
    probe_.visit();
    if (node->child[j] == (level > 1 ? static_cast<void*>(spine_[level - 1].left) : head_)) return false;
    auto count = static_cast<std::size_t>(node->count[j]);
    if (count >= n) return false;
    n -= count;
    return true;
  }

  Key nth_last(void* node, int level, std::size_t n) const {
    for (; level > 0; --level) {
      auto* inner = static_cast<Inner*>(node);
      int j = inner->n - 1;
      while (passes(inner, j, level, n)) --j;
      node = inner->child[j];
    }
    auto* leaf = static_cast<Leaf*>(node);
    int first = leaf == head_ ? lo_ : 0;
    return static_cast<std::size_t>(leaf->n - first) >= n ? leaf->t[leaf->n - static_cast<int>(n)] : leaf->t[first];
  }

  void give_back() {
    if (head_) this->bury(height_ ? static_cast<void*>(this->root()) : head_, height_);
    head_ = nullptr;
    reclaim(std::numeric_limits<int>::max());
  }

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
    this->grow(path, tail, true);
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
    this->drop_leaf(path);
  }

  void cut(const Key& key);
  Tear<M> tear() { return Tear<M>(torn_); }

  // ---- whole windows

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
};

}  // namespace sash

#include "block_bulk.hpp"
#include "block_check.hpp"
#include "block_range.hpp"
