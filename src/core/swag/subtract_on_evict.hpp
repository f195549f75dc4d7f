// Subtract on Evict
//
//   paper      tutorial-2017, section 4.2
//   ordering   in order
//   needs      an inverse
//   time       insert and evict 1 combine or inverse, query none; all worst case (see below for floats)
//   space      n + 1 partials
//
//       | v0 | v1 | v2 | v3 |      whole = v0 v1 v2 v3, from which evict takes v0 away on the left
//
//   Among floats there are items that can't be taken away again: NaN, infinities. A monoid that has such
//   items says so with removable(partial) and must commute; they are kept apart in a Two-Stacks Lite of their own, so that
//   they leave with their item, and if the whole itself overflows, evict folds what is left.
//
//   I1  slots_ holds the partial of each item, oldest first
//   I2  whole_ is the combination of all slots that are removable
//   I3  apart_ holds the slots that are not, in order

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../chunked_queue.hpp"
#include "../monoid.hpp"
#include "two_stacks_lite.hpp"

namespace sash {

template <Invertible M>
class SubtractOnEvict {
 public:
  using Partial = typename M::Partial;

  explicit SubtractOnEvict(M monoid) : monoid_(std::move(monoid)), whole_(monoid_.identity()) {}

  void insert(Partial v) {
    slots_.push_back(v);
    Rollback undo(monoid_, [this] { slots_.pop_back(); });
    if (removable(v)) [[likely]]
      whole_ = monoid_.combine(whole_, v);
    else
      set_apart(v);
    undo.done();
  }

  void evict() {
    const Partial& oldest = slots_.front();
    if (removable(oldest)) [[likely]] {
      Partial whole = size() == 1 ? monoid_.identity() : monoid_.inverse(whole_, oldest);  // alone, it takes all rounding with it
      if (!removable(whole)) [[unlikely]]
        whole = fold(slots_.begin().next());
      whole_ = std::move(whole);
    } else {
      apart_->evict();
      if (apart_->size() == 0) apart_.reset();
    }
    slots_.pop_front();
  }

  Partial query() const {
    if (apart_) [[unlikely]]
      return monoid_.combine(whole_, apart_->query());
    return whole_;
  }

  std::size_t size() const { return slots_.size(); }
  bool torn() const { return false; }

  void clear() {
    slots_.clear();
    apart_.reset();
    whole_ = monoid_.identity();
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (auto p = slots_.begin(); p != slots_.end(); ++p) visit(*p);
  }

  template <class Archive>
  void archive(Archive& ar) {
    slots_.archive(ar, monoid_.identity());
    ar.partial(whole_);
    if constexpr (Archive::loading) {
      apart_.reset();
      for_each([this](const Partial& v) {
        if (!removable(v)) set_apart(v);
      });
    }
  }

  // Verifies I1 to I3, I1 if the values of the window are given, oldest first; `same` compares two partials.
  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    require(values.empty() || values.size() == size(), "I1: the window holds ", size(), " slots for ", values.size(), " values");
    std::size_t i = 0, apart = 0;
    for_each([&](const Partial& v) {
      require(values.empty() || same(v, values[i]), "I1: slot ", i, " is not its own value");
      apart += !removable(v);
      ++i;
    });
    std::size_t held = apart_ ? apart_->size() : 0;
    require(held == apart, "I3: ", held, " items are kept apart, ", apart, " are not removable");
    // Where some items are not removable, the others are floats, and drift is what was asked for; Python's may be floats too.
    if constexpr (!partly && !may_throw<M>)
      require(same(whole_, fold(slots_.begin())), "I2: the whole is not the combination of all slots");
  }

 private:
  static constexpr bool partly = requires(const M m, const Partial& p) {
    { m.removable(p) } -> std::convertible_to<bool>;
  };

  bool removable(const Partial& p) const {
    if constexpr (partly) return monoid_.removable(p);
    return true;
  }

  void set_apart(const Partial& v) {
    if (!apart_) apart_ = std::make_unique<TwoStacksLite<M>>(monoid_);
    apart_->insert(v);
  }

  Partial fold(typename ChunkedQueue<Partial>::iterator from) const {
    Partial whole = monoid_.identity();
    for (; from != slots_.end(); ++from)
      if (removable(*from)) whole = monoid_.combine(whole, *from);
    return whole;
  }

  M monoid_;
  ChunkedQueue<Partial> slots_;
  Partial whole_;
  std::unique_ptr<TwoStacksLite<M>> apart_;  // none as long as it would be empty
};

}  // namespace sash
