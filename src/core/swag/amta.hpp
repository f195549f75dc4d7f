// AMTA: amortised monoid tree aggregator
//
//   paper      Villalba, Berral, Carrera, TPDS 2019 (named in daba-2021, section 8)
//   ordering   in order
//   needs      a monoid; neither inverse nor commutativity
//   time       insert amortised 2 combines, evict amortised O(1), at worst O(log n); query 1; evict_many O(log n) for any number
//   space      2n partials and O(log n), in rings that double and halve
//
//       begin        split            end
//       | . : :: ::::|:: :::::::: :: .|     perfect trees over stream positions (dyadic.hpp)
//       '-- left_ ---'---- right_ ----'     each with the combination from it up to the split, or from the split through it
//
//   Eviction cuts the left edge: whole trees go, the one that is cut leaves its right halves. When left_ is
//   used up, the trees of right_ go over to it: Two-Stacks, with trees for items.
//
//   I1  left_ tiles [begin, split) and right_ tiles [split, end), without gaps, with intervals of D1 and D2 of dyadic.hpp
//   I2  a tree of left_ holds the combination from it up to the split
//   I3  a tree of right_ holds the combination from the split through it
//   I4  no two neighbours in right_ are halves of one interval

#pragma once

#include <utility>
#include <vector>

#include "../dyadic.hpp"

namespace sash {

template <Monoid M>
class Amta {
 public:
  using Partial = typename M::Partial;

  explicit Amta(M monoid) : monoid_(std::move(monoid)) {}

  void insert(Partial v) {
    Position p = forest_.end();
    forest_.append(monoid_, std::move(v));
    Rollback undo(monoid_, [this] { forest_.retract(); });
    std::size_t keep = right_.size(), level = 0;
    for (; keep > 0 && completes(right_[keep - 1], p, level); --keep, ++level) p = right_[keep - 1].begin;
    const Partial& tree = forest_.at(level, p);
    Tree merged{p, level, keep ? monoid_.combine(right_[keep - 1].sum, tree) : tree};
    undo.done();
    right_.erase(right_.begin() + static_cast<std::ptrdiff_t>(keep), right_.end());
    right_.push_back(std::move(merged));
  }

  void evict() { evict_many(1); }

  // Drops the k oldest. New trees are combined before old ones go: a combine that throws has changed nothing.
  void evict_many(std::size_t k) {
    Position begin = forest_.begin() + static_cast<Position>(k);
    cut_.clear();
    if (begin < split_) {
      std::size_t keep = left_.size();
      while (end_of(left_[keep - 1]) <= begin) --keep;
      Position edge = left_[keep - 1].begin;
      if (edge < begin) {
        --keep;
        cut(left_[keep].level, edge, begin, keep ? &left_[keep - 1].sum : nullptr);
      }
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(keep), left_.end());
      for (Tree& tree : cut_) left_.push_back(std::move(tree));
    } else {
      for (std::size_t i = right_.size(); i-- > 0 && end_of(right_[i]) > begin;) cut(right_[i].level, right_[i].begin, begin, nullptr);
      left_.swap(cut_);
      right_.clear();
      split_ = forest_.end();
    }
    forest_.drop_before(begin);
  }

  Partial query() const {
    if (right_.empty()) return left_.empty() ? monoid_.identity() : left_.back().sum;
    return left_.empty() ? right_.back().sum : monoid_.combine(left_.back().sum, right_.back().sum);
  }

  std::size_t size() const { return forest_.size(); }
  bool torn() const { return false; }

  void clear() {
    forest_.restart(0);
    left_.clear();
    right_.clear();
    split_ = 0;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (Position p = forest_.begin(); p < forest_.end(); ++p) visit(forest_.item(p));
  }

  template <class Archive>
  void archive(Archive& ar) {
    forest_.archive(ar, monoid_);
    ar.number(split_);
    archive_trees(ar, left_);
    archive_trees(ar, right_);
    if constexpr (Archive::loading) {
      require_sound([this] { check_tiles(); });
      for (std::size_t i = 0; i < left_.size(); ++i) left_[i].sum = i ? monoid_.combine(tree(left_[i]), left_[i - 1].sum) : tree(left_[i]);
      for (std::size_t i = 0; i < right_.size(); ++i)
        right_[i].sum = i ? monoid_.combine(right_[i - 1].sum, tree(right_[i])) : tree(right_[i]);
    }
  }

  // Verifies I1 to I4, and the items if values are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    forest_.check(monoid_, values, same);
    check_tiles();
    Partial sum = monoid_.identity();
    for (const Tree& t : left_) {
      sum = monoid_.combine(tree(t), sum);
      require(same(t.sum, sum), "I2: the tree at ", t.begin, " is not the combination from it up to the split (", split_, ")");
    }
    sum = monoid_.identity();
    for (const Tree& t : right_) {
      sum = monoid_.combine(sum, tree(t));
      require(same(t.sum, sum), "I3: the tree at ", t.begin, " is not the combination from the split (", split_, ") through it");
    }
  }

 private:
  struct Tree {
    Position begin;
    std::size_t level;
    Partial sum;
  };

  const Partial& tree(const Tree& t) const { return forest_.at(t.level, t.begin); }
  Position end_of(const Tree& t) const { return t.begin + forest_.size_of(t.level); }

  // Whether t and the interval of the same level at p are the two halves of one.
  bool completes(const Tree& t, Position p, std::size_t level) const {
    return t.level == level && end_of(t) == p && t.begin % forest_.size_of(level + 1) == 0;
  }

  // Adds to cut_, youngest first, what is left from `begin` on of the tree at p; `after` is the combination behind it.
  void cut(std::size_t level, Position p, Position begin, const Partial* after) {
    auto add = [&](Position at) {
      const Partial* behind = cut_.empty() ? after : &cut_.back().sum;
      cut_.push_back({at, level, behind ? monoid_.combine(forest_.at(level, at), *behind) : forest_.at(level, at)});
    };
    while (p < begin) {
      --level;
      Position half = p + forest_.size_of(level);
      if (begin < half)
        add(half);
      else
        p = half;
    }
    add(p);
  }

  // Trees as their levels: their places follow.
  template <class Archive>
  void archive_trees(Archive& ar, std::vector<Tree>& trees) {
    auto n = static_cast<std::int64_t>(trees.size());
    ar.number(n);
    if constexpr (Archive::loading) {
      if (n < 0 || n > 128) throw std::invalid_argument("a stored window has an impossible number of trees");
      trees.assign(static_cast<std::size_t>(n), {0, 0, monoid_.identity()});
    }
    for (Tree& t : trees) {
      auto level = static_cast<std::int64_t>(t.level);
      ar.number(t.begin);
      ar.number(level);
      if (level < 0 || level > 62) throw std::invalid_argument("a stored window has a tree of an impossible size");
      t.level = static_cast<std::size_t>(level);
    }
  }

  void check_tiles() const {
    Position p = forest_.begin();
    auto tile = [&](const Tree& t, Position stop) {
      require(t.begin == p && p % forest_.size_of(t.level) == 0 && end_of(t) <= stop, "I1: no tree of level ", t.level, " fits at ", p,
              " before ", stop);
      p = end_of(t);
    };
    require(p <= split_ && split_ <= forest_.end(), "I1: the split (", split_, ") lies outside the window");
    for (std::size_t i = left_.size(); i-- > 0;) tile(left_[i], split_);
    require(p == split_, "I1: the left trees end at ", p, ", before the split (", split_, ")");
    for (const Tree& t : right_) tile(t, forest_.end());
    require(p == forest_.end(), "I1: the right trees end at ", p, ", before the end (", forest_.end(), ")");
    for (std::size_t i = 1; i < right_.size(); ++i)
      require(!completes(right_[i - 1], right_[i].begin, right_[i].level), "I4: the trees at ", right_[i - 1].begin, " and ",
              right_[i].begin, " are halves of one");
  }

  M monoid_;
  Dyadic<M> forest_;
  std::vector<Tree> left_;   // youngest first: the oldest leaves at the back
  std::vector<Tree> right_;  // oldest first
  std::vector<Tree> cut_;    // trees under construction, kept for their room
  Position split_ = 0;
};

}  // namespace sash
