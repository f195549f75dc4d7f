// The writer wheel
//
//   paper      uwheel-2024, section 3.3, algorithm 1, with its tick put right: a slot is cleared as it is handed on,
//              and what leaves the overflow wheel is placed after the head moved, so it lands in its own slot
//   needs      a monoid; a mutable form of its partials is used where it has one
//   time       insert O(1), 1 combine; a tick O(1); a gap of n ticks O(n / 16), whatever n once nothing is ahead
//   space      write_ahead partials, and one per tick that is further ahead
//
//       head_ = slot of tick now_
//         v
//   | e f . a b c d |        a ring of any size: slots of [now_, now_ + write_ahead)
//   ticks from now_ + write_ahead on wait in the overflow wheel
//
//   I1  slot (head_ + i) mod write_ahead holds what has arrived for tick now_ + i, in order of arrival
//   I2  a slot is marked where anything has arrived for it, and holds the identity where nothing has
//   I3  all entries of the overflow wheel are at or after now_ + write_ahead

#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "overflow.hpp"
#include "ticks.hpp"

namespace sash {

// The paper's combine_mutable and freeze: a partial that is still open may have another form, which takes in
// others in place (a list that is appended to instead of copied).
template <class M>
concept HasMutable = Monoid<M> && requires(const M m, typename M::Partial p, typename M::Mutable open) {
  { m.thaw(std::move(p)) } -> std::convertible_to<typename M::Mutable>;
  m.absorb(open, std::move(p));
  { m.freeze(std::move(open)) } -> std::convertible_to<typename M::Partial>;
};

template <Monoid M>
class WriterWheel {
 public:
  using Partial = typename M::Partial;

  WriterWheel(M monoid, Tick now, std::size_t write_ahead)
      : monoid_(std::move(monoid)),
        now_(now),
        slots_(write_ahead, closed()),
        marks_(write_ahead, 0),
        overflow_(monoid_, now + static_cast<Tick>(write_ahead)) {}

  Tick now() const { return now_; }
  std::size_t write_ahead() const { return slots_.size(); }

  // Adds to the tick that lies `ahead` of now.
  void insert(std::uint64_t ahead, Partial value) {
    if (ahead >= slots_.size()) return overflow_.insert(now_ + static_cast<Tick>(ahead), std::move(value));
    std::size_t i = at(ahead);
    if constexpr (HasMutable<M>) {
      if (marks_[i])
        monoid_.absorb(slots_[i], std::move(value));
      else
        slots_[i] = monoid_.thaw(std::move(value));
    } else if constexpr (std::is_trivially_copyable_v<Partial>) {
      slots_[i] = monoid_.combine(slots_[i], value);  // with the identity first: no branch to guess wrong
    } else {
      slots_[i] = marks_[i] ? monoid_.combine(slots_[i], value) : std::move(value);
    }
    marks_[i] = 1;
  }

  // How many ticks from now on, of the next `limit`, are certainly empty.
  Tick quiet(Tick limit) const {
    auto ring = static_cast<Tick>(slots_.size());
    auto ahead = static_cast<std::size_t>(std::min(limit, ring));
    std::size_t before_wrap = std::min(ahead, slots_.size() - head_);
    if (auto* mark = std::memchr(marks_.data() + head_, 1, before_wrap))
      return static_cast<Tick>(static_cast<const std::uint8_t*>(mark) - marks_.data()) - static_cast<Tick>(head_);
    if (auto* mark = std::memchr(marks_.data(), 1, ahead - before_wrap))
      return static_cast<Tick>(before_wrap) + static_cast<Tick>(static_cast<const std::uint8_t*>(mark) - marks_.data());
    if (limit <= ring || overflow_.empty()) return limit;
    return std::min(limit, overflow_.quiet_until() - now_);
  }

  bool marked() const { return marks_[head_]; }

  // Hands on the partial of tick now, and moves on by one.
  Partial tick() {
    Partial value = frozen(std::exchange(slots_[head_], closed()));
    marks_[head_] = 0;
    skip(1);
    return value;
  }

  // Moves on over n ticks that are empty.
  void skip(Tick n) {
    now_ += n;
    head_ = at(static_cast<std::size_t>(n) < slots_.size() ? static_cast<std::size_t>(n) : static_cast<std::size_t>(n) % slots_.size());
    overflow_.advance(now_ + static_cast<Tick>(slots_.size()),
                      [this](Tick t, Partial&& value) { insert(static_cast<std::uint64_t>(t - now_), std::move(value)); });
  }

  // visit(tick, partial) for everything that has arrived; of one tick in order of arrival.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (marks_[at(i)]) visit(now_ + static_cast<Tick>(i), frozen(slots_[at(i)]));
    overflow_.for_each(visit);
  }

  std::size_t bytes() const { return slots_.size() * (sizeof(slots_[0]) + 1) + overflow_.size() * (sizeof(Partial) + sizeof(Tick)); }

  void check() const {
    require(head_ < slots_.size() && marks_.size() == slots_.size(), "I1: the head ", head_, " lies outside the ring");
    overflow_.check();
    overflow_.for_each([&](Tick t, const Partial&) {
      require(t >= now_ + static_cast<Tick>(slots_.size()), "I3: tick ", t, " waits in the overflow wheel, now is ", now_);
    });
  }

 private:
  struct ItsMutable {
    template <class N>
    static auto of() {
      if constexpr (HasMutable<N>)
        return std::type_identity<typename N::Mutable>{};
      else
        return std::type_identity<typename N::Partial>{};
    }
  };
  using Open = typename decltype(ItsMutable::template of<M>())::type;

  Open closed() const {
    if constexpr (HasMutable<M>)
      return monoid_.thaw(monoid_.identity());
    else
      return monoid_.identity();
  }
  Partial frozen(Open open) const {
    if constexpr (HasMutable<M>)
      return monoid_.freeze(std::move(open));
    else
      return open;
  }

  std::size_t at(std::size_t ahead) const {
    std::size_t i = head_ + ahead;
    return i < slots_.size() ? i : i - slots_.size();
  }

  M monoid_;
  Tick now_;
  std::size_t head_ = 0;
  std::vector<Open> slots_;
  std::vector<std::uint8_t> marks_;
  OverflowWheel<M> overflow_;
};

}  // namespace sash
