// B-tree with plain aggregates
//
//   paper      fiba-2019, section 3.1 (its baseline)
//   ordering   any
//   needs      a monoid; neither inverse nor commutativity
//   time       insert and evict O(log n) always; query no combine; a range O(log n)
//   space      n + nodes partials, nodes < n / (min_arity - 1)
//
//                  [ ab..u | g   o ]
//              .---------'|'---------.
//       [ ab..f | c ]  [ hi..n | k ]  [ pq..u | s ]      every partial covers its node's subtree: query = the root's
//
//   Fiba without what makes it Fiba: search starts at the root, and every change is carried up to the root.
//   Nodes, splits, merges, moves, bulk operations and the invariants I1 to I3, I5 and I8 are Fiba's.

#pragma once

#include "fiba.hpp"

namespace sash {

template <Monoid M, class Key = Time>
class BTree : public Fiba<M, Key, false> {
 public:
  using Fiba<M, Key, false>::Fiba;
};

}  // namespace sash
