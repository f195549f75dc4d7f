// Coarse-grained windows: items that leave together are one entry
//
//   paper   fiba-2019, section 5.3.2 (there with FiBA; any in-order algorithm will do)
//
//       grain 4      [ a b c d ] [ e f g h ] [ i j . . ]
//                      one entry of the algorithm   open_: combined as they come, entered when full
//
//   C1  the algorithm holds one partial per full slice
//   C2  open_ is the combination of the filled_ < grain_ items after it
//
// A window that is asked every g items needs an insert and an evict per g items, not per item: one combine for each of the others.

#pragma once

#include <stdexcept>
#include <utility>

#include "../monoid.hpp"

namespace sash {

template <class Algorithm, Monoid M>
class Coarse {
 public:
  using Partial = typename M::Partial;

  Coarse(Algorithm algorithm, M monoid, std::size_t grain)
      : monoid_(std::move(monoid)), algorithm_(std::move(algorithm)), open_(monoid_.identity()), grain_(grain) {
    if (grain == 0) throw std::invalid_argument("a slice needs a grain of at least 1 item");
  }

  void insert(Partial v) {
    open_ = monoid_.combine(open_, v);
    if (++filled_ < grain_) return;
    algorithm_.insert(std::move(open_));
    open_ = monoid_.identity();
    filled_ = 0;
  }

  // The oldest slice, all of its items.
  void evict() { algorithm_.evict(); }

  Partial query() const { return monoid_.combine(algorithm_.query(), open_); }

  std::size_t size() const { return algorithm_.size() * grain_ + filled_; }
  std::size_t slices() const { return algorithm_.size(); }

 private:
  M monoid_;
  Algorithm algorithm_;
  Partial open_;
  std::size_t grain_, filled_ = 0;
};

}  // namespace sash
