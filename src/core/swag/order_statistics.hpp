// Order statistics
//
//   paper      tutorial-2017, section 4.3
//   ordering   any
//   needs      numbers; only median-like aggregations
//   time       insert, evict and select O(log n); distinct O(1)
//   space      n times in a map, and a counted B-tree of the different values
//
//       by time   t0:7  t1:3  t2:7  t3:9 ...        what leaves next
//       by size   3 x 1 | 7 x 2 | 9 x 1 ...         select(i) walks down by the counts
//
//   I1  the values in a leaf ascend, and no value is twice in the tree; each has a count of at least 1
//   I2  all values of child i are <= bound i, and those of child i + 1 above it
//   I3  a node's count of a child is the sum of the counts in it
//   I4  all leaves are at one depth, and every node but the root is at least a quarter full
//   I5  the tree holds the values of the entries that are not null, as often as they occur

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "../adapters/by_time.hpp"
#include "../check.hpp"

namespace sash {

// A multiset of keys that knows how many are below each: a B-tree with counts, split and refilled on the way down.
class CountedTree {
 public:
  using Key = std::uint64_t;

  void insert(Key key) {
    if (!root_) root_ = std::make_unique<Node>(true);
    if (root_->size == most) {
      auto top = std::make_unique<Node>(false);
      top->counts[0] = size_;
      top->children[0] = std::move(root_);
      top->size = 1;
      root_ = std::move(top);
      split(*root_, 0);
    }
    ++size_;
    for (Node* node = root_.get();;) {
      std::size_t i = node->find(key);
      if (node->leaf) {
        if (i < node->size && node->keys[i] == key) {
          ++node->counts[i];
        } else {
          node->open(i);
          node->keys[i] = key;
          node->counts[i] = 1;
          ++distinct_;
        }
        return;
      }
      if (node->children[i]->size == most) {
        split(*node, i);
        if (key > node->keys[i]) ++i;
      }
      ++node->counts[i];
      node = node->children[i].get();
    }
  }

  // One of the keys that are equal to this; it must be there.
  void erase(Key key) {
    --size_;
    for (Node* node = root_.get();;) {
      std::size_t i = node->find(key);
      if (node->leaf) {
        if (--node->counts[i] == 0) {
          node->close(i);
          --distinct_;
        }
        break;
      }
      if (node->children[i]->size <= least) i = refill(*node, i, key);
      --node->counts[i];
      node = node->children[i].get();
    }
    if (!root_->leaf && root_->size == 1) root_ = std::move(root_->children[0]);
  }

  // The key with exactly i smaller ones before it, in sorted order from 0.
  Key select(std::uint64_t i) const {
    for (const Node* node = root_.get();;) {
      std::size_t at = 0;
      while (i >= node->counts[at]) i -= node->counts[at++];
      if (node->leaf) return node->keys[at];
      node = node->children[at].get();
    }
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t distinct() const { return distinct_; }
  void clear() {
    root_.reset();
    size_ = distinct_ = 0;
  }

  void check() const {
    if (!root_) return require(size_ == 0 && distinct_ == 0, "I3: an empty tree says it holds ", size_, " values");
    std::uint64_t different = 0;
    int depth = -1;
    Key last = 0;
    bool first = true;
    std::uint64_t total = check(*root_, true, 0, depth, different, last, first);
    require(total == size_, "I3: the tree holds ", total, " values and says ", size_);
    require(different == distinct_, "I3: the tree holds ", different, " different values and says ", distinct_);
  }

 private:
  static constexpr std::size_t most = 32, least = most / 4;

  // In a leaf keys are values; in an inner node keys[i] bounds child i from above, and the last one has none.
  struct Node {
    explicit Node(bool is_leaf) : leaf(is_leaf) {}
    bool leaf;
    std::uint16_t size = 0;
    Key keys[most] = {};
    std::uint64_t counts[most] = {};
    std::unique_ptr<Node> children[most];

    std::size_t find(Key key) const {
      std::size_t end = leaf ? size : size - 1u;
      return static_cast<std::size_t>(std::lower_bound(keys, keys + end, key) - keys);
    }
    void open(std::size_t i) {
      std::memmove(keys + i + 1, keys + i, (size - i) * sizeof(Key));
      std::memmove(counts + i + 1, counts + i, (size - i) * sizeof(std::uint64_t));
      if (!leaf) std::move_backward(children + i, children + size, children + size + 1);
      ++size;
    }
    void close(std::size_t i) {
      --size;
      std::memmove(keys + i, keys + i + 1, (size - i) * sizeof(Key));
      std::memmove(counts + i, counts + i + 1, (size - i) * sizeof(std::uint64_t));
      if (!leaf) std::move(children + i + 1, children + size + 1, children + i);
    }
    std::uint64_t total() const {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < size; ++i) sum += counts[i];
      return sum;
    }
  };

  // Appends entries [from, to) of one node to another.
  static void append(Node& target, Node& source, std::size_t from, std::size_t to) {
    std::memcpy(target.keys + target.size, source.keys + from, (to - from) * sizeof(Key));
    std::memcpy(target.counts + target.size, source.counts + from, (to - from) * sizeof(std::uint64_t));
    if (!source.leaf) std::move(source.children + from, source.children + to, target.children + target.size);
    target.size = static_cast<std::uint16_t>(target.size + to - from);
  }

  static void split(Node& parent, std::size_t i) {
    Node& left = *parent.children[i];
    auto right = std::make_unique<Node>(left.leaf);
    append(*right, left, most / 2, most);
    left.size = most / 2;
    Key bound = left.keys[most / 2 - 1];
    std::uint64_t moved = right->total();
    parent.open(i + 1);
    parent.keys[i + 1] = parent.keys[i];
    parent.keys[i] = bound;
    parent.counts[i + 1] = moved;
    parent.counts[i] -= moved;
    parent.children[i + 1] = std::move(right);
  }

  // Gives child i more than the least, from a sibling or by joining one; says where the key's child is now.
  static std::size_t refill(Node& parent, std::size_t i, Key key) {
    std::size_t left = i > 0 ? i - 1 : i, right = left + 1;
    Node &a = *parent.children[left], &b = *parent.children[right];
    if (!a.leaf) a.keys[a.size - 1] = parent.keys[left];  // between siblings, the last child has a bound too
    if (a.size + b.size <= most * 3 / 4) {
      append(a, b, 0, b.size);
      parent.counts[left] += parent.counts[right];
      parent.keys[left] = parent.keys[right];
      parent.children[right].reset();
      parent.close(right);
      return left;
    }
    std::uint64_t moved = 0;
    if (a.size < b.size) {
      std::size_t take = (b.size - a.size + 1u) / 2;
      for (std::size_t k = 0; k < take; ++k) moved += b.counts[k];
      append(a, b, 0, take);
      std::memmove(b.keys, b.keys + take, (b.size - take) * sizeof(Key));
      std::memmove(b.counts, b.counts + take, (b.size - take) * sizeof(std::uint64_t));
      if (!b.leaf) std::move(b.children + take, b.children + b.size, b.children);
      b.size = static_cast<std::uint16_t>(b.size - take);
      parent.counts[left] += moved;
      parent.counts[right] -= moved;
    } else {
      std::size_t take = (a.size - b.size + 1u) / 2;
      std::memmove(b.keys + take, b.keys, b.size * sizeof(Key));
      std::memmove(b.counts + take, b.counts, b.size * sizeof(std::uint64_t));
      if (!b.leaf) std::move_backward(b.children, b.children + b.size, b.children + b.size + take);
      std::size_t from = a.size - take;
      std::memcpy(b.keys, a.keys + from, take * sizeof(Key));
      std::memcpy(b.counts, a.counts + from, take * sizeof(std::uint64_t));
      if (!b.leaf) std::move(a.children + from, a.children + a.size, b.children);
      for (std::size_t k = 0; k < take; ++k) moved += b.counts[k];
      b.size = static_cast<std::uint16_t>(b.size + take);
      a.size = static_cast<std::uint16_t>(from);
      parent.counts[left] -= moved;
      parent.counts[right] += moved;
    }
    parent.keys[left] = a.keys[a.size - 1];
    return key <= parent.keys[left] ? left : right;
  }

  static std::uint64_t check(const Node& node, bool root, int level, int& depth, std::uint64_t& different, Key& last, bool& first) {
    require(root || node.size >= least, "I4: a node at depth ", level, " has ", node.size, " entries, at least ", least, " are due");
    std::uint64_t total = 0;
    if (node.leaf) {
      require(depth < 0 || depth == level, "I4: leaves are at the depths ", depth, " and ", level);
      depth = level;
      for (std::size_t i = 0; i < node.size; ++i) {
        require(first || node.keys[i] > last, "I1: the value ", node.keys[i], " follows ", last);
        require(node.counts[i] > 0, "I1: the value ", node.keys[i], " is counted 0 times");
        last = node.keys[i];
        first = false;
        total += node.counts[i];
      }
      different += node.size;
      return total;
    }
    for (std::size_t i = 0; i < node.size; ++i) {
      std::uint64_t below = check(*node.children[i], false, level + 1, depth, different, last, first);
      require(below == node.counts[i], "I3: a child holds ", below, " values and is counted as ", node.counts[i]);
      if (i + 1u < node.size) require(last <= node.keys[i], "I2: the value ", last, " is above its bound ", node.keys[i]);
      total += below;
    }
    return total;
  }

  std::unique_ptr<Node> root_;
  std::uint64_t size_ = 0, distinct_ = 0;
};

class OrderStatistics {
 public:
  struct Entry {
    std::uint64_t key;
    bool null;
  };

  void insert(Time t, Entry entry) {
    // A time that is not late goes to the end of the map in constant time.
    entries_.emplace_hint(entries_.end(), TimeSeq{t, seq_++}, entry);
    if (!entry.null) tree_.insert(entry.key);
  }
  void evict() { leave(entries_.begin()); }
  bool evict(Time t) {
    auto found = entries_.lower_bound(TimeSeq{t, INT64_MIN});
    if (found == entries_.end() || found->first.time != t) return false;
    leave(found);
    return true;
  }
  void bulk_evict(Time t) {
    while (!entries_.empty() && entries_.begin()->first.time <= t) evict();
  }

  std::size_t size() const { return entries_.size(); }
  Time oldest() const { return entries_.begin()->first.time; }
  Time youngest() const { return entries_.rbegin()->first.time; }
  const CountedTree& values() const { return tree_; }  // of the entries that are not null
  const std::map<TimeSeq, Entry>& entries() const { return entries_; }

  void clear() {
    entries_.clear();
    tree_.clear();
    seq_ = 0;
  }

  // Gives every value another key of the same order.
  template <class Change>
  void rekey(Change change) {
    tree_.clear();
    for (auto& [at, entry] : entries_)
      if (!entry.null) tree_.insert(entry.key = change(entry.key));
  }

  void check() const {
    tree_.check();
    std::vector<std::uint64_t> keys;
    for (auto& [at, entry] : entries_)
      if (!entry.null) keys.push_back(entry.key);
    std::sort(keys.begin(), keys.end());
    require(keys.size() == tree_.size(), "I5: ", keys.size(), " entries are not null, the tree holds ", tree_.size(), " values");
    for (std::size_t i = 0; i < keys.size(); ++i)
      require(tree_.select(i) == keys[i], "I5: value ", i, " of the tree is not that of the entries");
  }

 private:
  void leave(std::map<TimeSeq, Entry>::iterator which) {
    if (!which->second.null) tree_.erase(which->second.key);
    entries_.erase(which);
  }

  std::map<TimeSeq, Entry> entries_;
  CountedTree tree_;
  std::int64_t seq_ = 0;
};

}  // namespace sash
