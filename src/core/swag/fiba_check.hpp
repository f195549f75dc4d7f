// FiBA's invariants, and its bytes

#pragma once

#include <bit>

#include "../check.hpp"
#include "fiba.hpp"

namespace sash {

template <Monoid M, class Key, bool fingers>
template <class Same>
void Fiba<M, Key, fingers>::check(Same same) const {
  const Key* last = nullptr;
  std::uint64_t entries = check_below(root_, Place::top, last, same);
  require(root_->parent == nullptr, "I1: the root has a parent");
  require(left_ == leaf_below(root_, false), "I8: the left finger is not the first leaf");
  require(right_ == leaf_below(root_, true), "I8: the right finger is not the last leaf");
  require(entries == size_, "I8: the tree holds ", entries, " entries, size is ", size_);
  nodes_.check();
}

// Checks a node that should be in that place, and all below it; `last` is the key before them. Returns the number of entries.
template <Monoid M, class Key, bool fingers>
template <class Same>
std::uint64_t Fiba<M, Key, fingers>::check_below(const Node* y, Place place, const Key*& last, Same& same) const {
  int level = y->level;
  std::size_t least = y == root_ ? std::size_t(level > 0) : min_arity() - 1;
  require(y->n >= least && y->n < slots(), "I3: a node at level ", level, " has ", y->n, " entries, min_arity is ", min_arity());
  require(y->place == (fingers ? place : Place::within), "I4: a node at level ", level, " says its place is ", int(y->place), ", it is ",
          int(place));
  std::uint64_t entries = y->n;
  for (std::size_t i = 0; i <= y->n; ++i) {
    if (level > 0) {
      const Node* child = children(y)[i];
      require(child->level + 1 == level, "I1: child ", i, " of a node at level ", level, " is at level ", int(child->level));
      require(child->parent == y, "I1: child ", i, " of a node at level ", level, " points to another parent");
      bool first = i == 0 && (place == Place::top || place == Place::left),
           end = i == y->n && (place == Place::top || place == Place::right);
      entries += check_below(child, first ? Place::left : end ? Place::right : Place::within, last, same);
    }
    if (i == y->n) break;
    require(last == nullptr || *last < keys(y)[i], "I2: entry ", i, " of a node at level ", level, " is not after the one before it");
    last = &keys(y)[i];
  }
  static constexpr const char* names[] = {"I5: a node within", "I7: a node on the left", "I7: a node on the right", "I6: the root"};
  require(same(y->agg, covered(y)), names[int(y->place)], ", at level ", level, ", stores another partial than its parts combine to");
  require(y->place != Place::within || nodes_.entries(y) == entries, "I5: a node at level ", level, " counts ", nodes_.entries(y),
          " entries for ", entries);
  return entries;
}

template <class Archive, class Key>
void archive_key(Archive& ar, Key& key) {
  if constexpr (std::is_floating_point_v<Key>) {
    auto bits = std::bit_cast<std::int64_t>(static_cast<double>(key));
    ar.number(bits);
    key = static_cast<Key>(std::bit_cast<double>(bits));
  } else if constexpr (std::is_integral_v<Key>) {
    auto number = static_cast<std::int64_t>(key);
    ar.number(number);
    key = static_cast<Key>(number);
  } else {
    key.archive(ar);
  }
}

template <Monoid M, class Key, bool fingers>
template <class Archive>
void Fiba<M, Key, fingers>::archive(Archive& ar) {
  auto arity = static_cast<std::int64_t>(min_arity()), n = static_cast<std::int64_t>(size_);
  ar.number(arity);
  ar.number(n);
  if constexpr (Archive::loading) {
    if (arity < 2 || arity > static_cast<std::int64_t>(largest_min_arity))
      throw std::invalid_argument("the stored window's min_arity is out of bounds");
    if (n < 0 || static_cast<std::size_t>(n) > ar.partials_left()) throw std::invalid_argument("the stored window ends too early");
    std::vector<Key> keys(static_cast<std::size_t>(n));
    std::vector<Partial> values(keys.size(), monoid_.identity());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      archive_key(ar, keys[i]);
      ar.partial(values[i]);
      if (i > 0 && !(keys[i - 1] < keys[i])) throw std::invalid_argument("the stored window's entries are out of order");
    }
    Fiba loaded(monoid_, static_cast<std::size_t>(arity));
    loaded.bulk_insert(keys, values);
    swap(loaded);
  } else {
    for_each([&](const Key& key, const Partial& value) {
      Key k = key;
      Partial v = value;
      archive_key(ar, k);
      ar.partial(v);
    });
  }
}

}  // namespace sash
