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
//   Its parts:                                                            What is done with them:
//   tree_     block_nodes, block_tree: blocks, fingers at both ends         block_late    inserts and evictions anywhere
//   spines_   block_spines: the partials beside the spines and in the ends  block_shape   splits, merges, roots that come and go
//   gap_      block_gap: a third finger that roams                          block_bulk, block_range, block_check
//   asked_    block_asked: a fourth, where ranges begin
//
//       suffixes[lo]             before                after
//       | head and left spine | ... up to the gap >< from the gap to the end ... |
//
//   FiBA's idea, fingers and partials that depend on place, in another shape. An append is one combine, an eviction of the oldest
//   one increment, an insert into the gap a shift and one combine, wherever it is.
//
//   I1  entries lie in key order, and under the child whose separators hold them
//   I2  all leaves have the same depth; a leaf that is not the head or tail has at least LeafCap / 4 entries, an inner node that
//       is not the root at least Fan / 4 (and 2) children, the root at least 2
//   I3  a child off the spines has its partial and its number of entries in its parent, unless it is an ancestor of a gap in debt
//   I4  the fingers are the spines' nodes, and spines_ holds the partials beside them, unless a gap in debt lies below
//   I5  suffixes[i] is the head from i to turn, then, if there are inner nodes, all that hangs from the left spine below the root
//   I6  prefixes[i] is the tail up to i, for i < known
//   I7  suffixes[lo] before after is the window; closed, after is the tail and before lies between
//   I8  the gap lies between low (the entry before it, in its leaf) and high, not in the head; where its path leaves the left
//       spine below the root, I5's suffixes end there, and before begins
//   I9  every node is in the tree, dead or free; size_ counts the entries
//   I10 asked_, where it is set, holds its leaf from each entry on up to the gap, or up to the youngest entry where none is open

#pragma once

#include <bit>
#include <limits>
#include <span>
#include <stdexcept>

#include "../archive.hpp"
#include "../check.hpp"
#include "block_asked.hpp"

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
class BlockFiba {
  using Tree = block::Tree<M, Key, LeafCap, Fan>;
  using Spines = block::Spines<Tree>;
  using Gap = block::Gap<Tree, Key>;
  using Asked = block::Asked<Tree, Key>;
  using Leaf = typename Tree::Leaf;
  using Inner = typename Tree::Inner;
  using Path = typename Tree::Path;
  using Brood = typename Tree::Brood;

  // Where combine may throw, ranges keep no finger: an insert would have one more step to take back.
  static constexpr bool asks = !may_throw<M>;

 public:
  using Partial = typename M::Partial;
  using KeyType = Key;
  using Pools = block::Pools<Leaf, Inner>;

  explicit BlockFiba(M monoid) : BlockFiba(std::move(monoid), nullptr) {}
  // A window among many that take their nodes from the same pools, which outlive it.
  BlockFiba(M monoid, Pools& shared) : BlockFiba(std::move(monoid), &shared) {}
  BlockFiba(BlockFiba&&) = default;
  BlockFiba& operator=(BlockFiba&&) = default;
  ~BlockFiba() {
    if (tree_.pools.shared()) give_back();
  }

  // Equal keys combine: the stored entry, then the new one.
  void insert(const Key& key, Partial v) {
    if (size_ == 0) return begin(key, std::move(v));
    if (youngest_ < key) {
      if (tree_.tail->n == LeafCap) return extend(key, std::move(v));
      append(key, std::move(v));
    } else if (gap_.takes(key) && gap_.leaf->n < LeafCap) {
      if (asks && asked_.set) asked_.take_in(tree_, v);
      size_ += gap_.fill(tree_, spines_, key, std::move(v));
    } else if (key == youngest_ && tree_.tail->n > spines_.tail_start(tree_)) {
      repeat(v);
    } else {
      late(key, std::move(v));
    }
  }

  // The oldest entry.
  void evict() {
    if (tree_.lo + 1 < spines_.turn) {
      spines_.forget(tree_, tree_.lo, tree_.lo + 1);
      ++tree_.lo;
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
    Leaf* leaf = tree_.find(key, path);
    int p = tree_.lower(leaf, key);
    if (p == leaf->n || !(leaf->t[p] == key)) return false;
    close_gap();
    Tear<M> tear(torn_);
    erase(path, p);
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

  Partial query() const { return tree_.combine(tree_.combine(spines_.suffixes[tree_.lo], gap_.before), gap_.after); }

  // Entries with from <= key <= to.
  Partial query(const Key& from, const Key& to) { return block::Range<BlockFiba>(*this).query(from, to); }

  // Many such ranges at once; those that end together share what they have in common.
  std::vector<Partial> query_many(std::span<const Key> from, std::span<const Key> to) {
    return block::Range<BlockFiba>(*this).query_many(from, to);
  }

  // The first key at or after this one, null where there is none.
  const Key* first_from(const Key& key) const;

  // The key of the entry n places before that of this key, or the oldest where there are fewer; key is in the window.
  Key before(const Key& key, std::size_t n);

  std::size_t size() const { return size_; }
  const Key& oldest() const {
    if (may_throw<M> && torn_) return youngest_;  // the head may be gone
    return tree_.head->t[tree_.lo];
  }
  const Key& youngest() const { return youngest_; }
  bool torn() const { return torn_; }
  const ProbeOf<M>& probe() const { return tree_.probe; }
  // Without nodes from pools that others use too.
  std::size_t bytes() const {
    std::size_t nodes = tree_.pools.shared() ? 0 : tree_.pools->leaves.bytes() + tree_.pools->inners.bytes();
    return nodes + sizeof(*this) + 2 * LeafCap * sizeof(Partial) +
           spines_.at.capacity() * (sizeof(typename Spines::Level) + sizeof(typename Tree::Finger));
  }

  void clear() {
    if (tree_.pools.shared()) {
      give_back();
    } else {
      tree_.dead.clear();
      tree_.pools->leaves.clear();
      tree_.pools->inners.clear();
    }
    tree_.head = tree_.tail = nullptr;
    forget_all();
    torn_ = false;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    if (size_ == 0) return;
    tree_.each_leaf(tree_.top(), tree_.height, [&](const Leaf* leaf) {
      for (int i = tree_.first(leaf); i < leaf->n; ++i) visit(leaf->t[i], leaf->v[i]);
    });
  }

  // Verifies I1 to I10; `same` compares two partials.
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

  BlockFiba(M monoid, Pools* shared)
      : tree_(std::move(monoid), shared), spines_(tree_.one(), LeafCap), gap_(tree_.one()), asked_(tree_.one()) {}

  void give_back() {
    if (tree_.head) tree_.bury(tree_.top(), tree_.height);
    tree_.head = nullptr;
    tree_.reclaim(std::numeric_limits<int>::max());
  }

  // ---- in order

  void begin(const Key& key, Partial v) {
    if (!tree_.head) tree_.head = tree_.tail = tree_.new_leaf();
    tree_.head->t[0] = youngest_ = key;
    tree_.head->v[0] = v;
    spines_.suffixes[0] = std::move(v);
    tree_.head->n = spines_.turn = spines_.known = 1;
    tree_.lo = 0;
    size_ = 1;
  }

  void append(const Key& key, Partial v) {
    if (asks && asked_.set && !gap_.open) asked_.take_in(tree_, v);
    Partial sum = tree_.combine(gap_.after, v);
    int n = tree_.tail->n;
    tree_.tail->t[n] = youngest_ = key;
    tree_.tail->v[n] = std::move(v);
    if (spines_.known == n) {  // false while the gap is open
      spines_.prefixes[n] = sum;
      spines_.known = n + 1;
    }
    gap_.after = std::move(sum);
    tree_.tail->n = n + 1;
    ++size_;
  }

  // The youngest entry again.
  void repeat(const Partial& v) {
    if (asks && asked_.set && !gap_.open) asked_.take_in(tree_, v);
    int last = tree_.tail->n - 1;
    Partial sum = tree_.combine(gap_.after, v);
    tree_.tail->v[last] = tree_.combine(tree_.tail->v[last], v);
    if (spines_.known > last) spines_.prefixes[last] = sum;
    gap_.after = std::move(sum);
  }

  // An append when the tail is full: a new tail beside it.
  void extend(const Key& key, Partial v) {
    if (tree_.height == 0 && tree_.lo >= LeafCap / 4) {
      spines_.settle_head(tree_);
      return append(key, std::move(v));
    }
    close_gap();
    if (asks && asked_.set) asked_.take_in(tree_, v);
    if (tree_.height && !tail_late_ && tree_.finger[1].right->n < Fan) return extend_in_place(key, std::move(v));
    Tear<M> tear(torn_);
    Path path;
    tree_.find_end(tree_.height == 0, path);
    if (tree_.height == 0) spines_.settle_head(tree_);
    Leaf* tail = tree_.new_leaf();
    // Where inserts come a little late, the newest quarter goes along: the next late ones find it in the new tail.
    if (tail_late_) block::pour(*tree_.tail, *tail, -LeafCap / 4, tree_.one());
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
    auto& s = spines_.at[1];
    Inner* node = tree_.finger[1].right;
    int n = node->n;
    Partial folded = n - 1 > (tree_.height == 1 ? 1 : 0) ? tree_.combine(s.right_fold, gap_.after) : gap_.after;
    Partial rest = tree_.height == 1 ? folded : tree_.combine(spines_.at[2].right_rest, folded);
    Leaf* tail = tree_.new_leaf();
    tail->t[0] = youngest_ = key;
    tail->v[0] = v;
    tail->n = 1;
    node->agg[n - 1] = std::move(gap_.after);
    node->count[n - 1] = tree_.tail->n;
    node->key[n] = key;
    node->child[n] = tail;
    node->n = n + 1;
    tree_.tail = tail;
    s.right_fold = std::move(folded);
    gap_.before = s.right_rest = std::move(rest);
    spines_.prefixes[0] = v;
    spines_.known = 1;
    gap_.after = std::move(v);
    ++size_;
  }

  void forget_all() {
    tree_.height = tree_.lo = 0;
    tree_.finger.resize(1);
    spines_.clear(tree_.one());
    gap_.open = false;
    asked_.forget();
    gap_.before = gap_.after = tree_.one();
    size_ = 0;
    tail_late_ = false;
  }

  void evict_last_of_head() {
    if (size_ == 1) {
      tree_.head->release(0, tree_.head->n, tree_.one());
      tree_.head->n = 0;
      return forget_all();
    }
    Tear<M> tear(torn_);
    spines_.forget(tree_, tree_.lo, tree_.lo + 1);
    ++tree_.lo;
    --size_;
    next_head();
    tear.mend();
  }

  // The head has no entry left before its turn: turn it, or leave it.
  void next_head() {
    if (tree_.height == 0) {
      spines_.turn = tree_.head->n;
      spines_.suffix(tree_, spines_.turn - 1);
      return prefix(spines_.turn);
    }
    if (gap_.path.left || tree_.height == 1 || tree_.finger[1].left->n <= Inner::least) close_gap();  // what follows may reach its path
    Path path;
    tree_.find_end(true, path);
    drop_leaf(path);
  }

  // ---- partials: what an operation touched is noted in its path, bottom up, then mended, top down

  void mend(Path& path) {
    if (path.left_from <= path.high) mend_left(path.high, path.left_from);
    if (path.right_from <= path.high) mend_right(path.high, path.right_from);
  }

  void mend_left(int high, int from) {
    spines_.mend_left(tree_, high, from);
    if (from == 0) {
      if (tree_.height) {
        auto* head = static_cast<Leaf*>(tree_.finger[1].left->child[0]);
        if (head != tree_.head) tree_.lo = 0;
        tree_.head = head;
        block::prefetch(static_cast<Leaf*>(tree_.finger[1].left->child[1]));  // the next head
      }
      spines_.turn = tree_.head->n;
    }
    spines_.suffix(tree_, spines_.turn - 1);
  }

  void mend_right(int high, int from) {
    spines_.mend_right(tree_, high, from);
    if (from == 0) {
      tree_.tail = tree_.height ? static_cast<Leaf*>(tree_.finger[1].right->child[tree_.finger[1].right->n - 1]) : tree_.head;
      prefix(spines_.tail_start(tree_));
    }
    gap_.before = spines_.before_tail(tree_);
  }

  // Prefixes of the tail from entry p on.
  void prefix(int p) {
    spines_.unlearn(tree_, p);
    spines_.learn(tree_, tree_.tail->n);
    gap_.after = spines_.tail(tree_);
  }

  void close_gap() {
    if (!gap_.open) return;
    asked_.forget();
    gap_.close(tree_, spines_);
  }

  // ---- anywhere: see block_late.hpp

  void late(const Key& key, Partial v);
  void put(Leaf* leaf, int p, const Key& key, const Partial& v);
  void account(Path& path, int p, const Partial& v, bool fresh);
  void try_gap(const Path& path, int p);
  void split(Path& path, int p, const Key& key, Partial v, bool running);
  void grow(Path& path, Leaf* leaf, bool is_tail);
  void erase(Path& path, int p);
  void drop_leaf(Path& path);

  // ---- arities: see block_shape.hpp

  int adopt(Path& path, int level, Brood& brood);
  void sprout(Path& path);
  int settle(Path& path, int level);
  bool level_out(Path& path, Inner* parent, int k, int level);
  template <class Node>
  bool level_out(Path& path, Inner* parent, int k, int level, Node* a, Node* b, SlabPool<Node>& pool);
  int wither(Path& path);

  // ---- in bulk: see block_bulk.hpp; by place: see block_range.hpp

  void cut(const Key& key);
  bool passes(Inner* node, int j, int level, std::size_t& n) const;
  Key nth_last(void* node, int level, std::size_t n) const;

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
      Partial v = tree_.one();
      archive_key(ar, key);
      ar.partial(v);
      if (size_ && !(youngest_ < key)) throw std::invalid_argument("the stored window's times do not rise");
      insert(key, std::move(v));
    }
  }

  Tree tree_;
  Spines spines_;
  Gap gap_;
  Asked asked_;

  std::size_t size_ = 0;
  Key youngest_{};
  bool torn_ = false;
  bool tail_late_ = false;  // the tail has taken in late inserts
  Brood brood_;             // what grow() gives to the tree
};

}  // namespace sash

#include "block_bulk.hpp"
#include "block_check.hpp"
#include "block_late.hpp"
#include "block_range.hpp"
#include "block_shape.hpp"
