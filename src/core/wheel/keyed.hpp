// Keyed wheels: one clock, many keys, each as large as what it holds
//
//   paper      uwheel-2024, section 6 names it as future work; the layout is ours
//   ordering   any, at or after the watermark, for all keys alike
//   needs      a monoid
//   time       insert O(1) combines; a query of a key as the wheel's plans cost, less the slots that hold nothing
//   space      a slot and its number per slot that holds something; a key of one slot takes about 100 bytes
//
//   clock      one timeline: which slots of which level are closed and held, for every key
//   all        a wheel of all keys together, for questions over all of them
//   key        its ticks with entries, open and closed alike, by number; once there are more than a few, or once ticks may be
//              dropped, coarser levels too, made when somebody looks or when the clock has moved far enough
//
//   I1  a key's ticks hold everything that arrived for it, but what retention dropped after it went into the coarser levels
//   I2  a key's coarser levels hold what its ticks before `synced` do, slots that are closed apart from those that are open

#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fold.hpp"
#include "merge.hpp"
#include "sparse.hpp"
#include "wheel.hpp"

namespace sash {

template <Monoid M>
class KeyedWheels {
 public:
  using Partial = typename M::Partial;

  // A key of up to `few` slots in a range folds them without asking coarser levels, which it need not even have.
  KeyedWheels(M monoid, const WheelSettings& settings) : monoid_(std::move(monoid)), all_(monoid_, settings), few_(settings.few) {
    for (auto& level : settings.levels) {
      if (level.prefix) throw std::invalid_argument("keyed wheels have plain levels");
      if (level.retain) turn_ = std::min(turn_, level.retain * level.size);
    }
  }

  std::size_t size() const { return keys_.size(); }
  const Wheel<M>& all() const { return all_; }
  bool torn() const { return torn_ || all_.torn(); }

  // Keys are numbered from 0 by the caller.
  void grow(std::size_t keys) {
    if (keys > keys_.size()) keys_.resize(keys);
  }

  void refuse() { all_.refuse(); }

  // An item, or what has been combined of a whole tick before: that is late once its tick is closed. If a combine throws, nothing
  // has changed.
  enum Kind : std::uint8_t { item, slice };
  bool insert(std::uint32_t key, Time t, Partial value, Kind kind = item) {
    auto& view = all_.view();
    if (t < (kind == slice ? view.closed() : view.watermark)) return all_.refuse(), false;
    keys_[key].ticks.add(monoid_, tick_of(t), value, [&] { all_.take(t, value); });
    return true;
  }

  // lift(i) gives the partial of row i; returns how many were late. Keys lie far apart in memory: what a row will touch is
  // fetched while earlier rows are at work.
  template <class Lift>
  std::size_t insert_many(const std::uint32_t* keys, const Time* times, std::size_t n, Kind kind, Lift lift) {
    std::size_t late = 0;
    constexpr std::size_t block = 64;
    for (std::size_t from = 0; from < n; from += block) {
      std::size_t to = std::min(n, from + block);
      for (std::size_t i = from; i < to; ++i) __builtin_prefetch(&keys_[keys[i]], 1);
      for (std::size_t i = from; i < to; ++i) {
        __builtin_prefetch(keys_[keys[i]].ticks.tail(), 1);
        __builtin_prefetch(keys_[keys[i]].ticks.tail_partial(), 1);
      }
      for (std::size_t i = from; i < to; ++i) late += !insert(keys[i], times[i], lift(i), kind);
    }
    return late;
  }

  void advance(Time to) {
    results_.clear();
    all_.advance(to, false, results_);
    if (line().now < sweep_ || turn_ == never) return;
    for (Key& key : keys_) sync(key);
    sweep_ = line().now + turn_;
  }

  // A range that was found to be held, for any key.
  struct Range {
    Tick from, to;
    Plan plan;
  };
  // [from, to), or RangeRefused as by a wheel.
  Range range(Time from, Time to) const {
    auto& view = all_.view();
    auto [a, b] = view.ticks(from, to);
    Range out{a, b, line().choose(a, b, {})};
    if (!out.plan.works())
      throw RangeRefused(RangeRefused::not_retained, view.time(out.plan.cover.missing_from), view.time(out.plan.cover.missing_to));
    return out;
  }

  // What a key holds of a range; nothing if nothing arrived for it there.
  std::optional<Partial> query(std::uint32_t k, const Range& range) {
    Key& key = keys_[k];
    key.ticks.sort(monoid_);
    std::size_t first = key.ticks.lower(range.from), last = key.ticks.lower(range.to);
    if (line().levels[0].lo <= range.from && last - first <= few_) return fold(key.ticks, first, last);
    sync(key);
    if (range.plan.strategy == Strategy::landmark) return landmark(key);
    std::optional<Partial> out;
    for (auto& s : range.plan.cover) {
      auto& slots = slots_of(key, s.level);
      std::optional<Partial> part = fold(slots, slots.lower(s.from), slots.lower(s.to));
      if (!part) continue;
      if (out)
        out = monoid_.combine(*out, *part);
      else
        out = std::move(part);
    }
    return out;
  }

  // Everything of a key that is closed.
  std::optional<Partial> landmark(std::uint32_t k) {
    sync(keys_[k]);
    return landmark(keys_[k]);
  }

  // How many slots that hold something a query of this key would read, per level: it makes as many combines, less one.
  std::vector<std::size_t> slots_read(std::uint32_t k, const Range& range) {
    Key& key = keys_[k];
    std::vector<std::size_t> out(line().levels.size(), 0);
    key.ticks.sort(monoid_);
    std::size_t ticks = key.ticks.lower(range.to) - key.ticks.lower(range.from);
    if (line().levels[0].lo <= range.from && ticks <= few_) {
      out[0] = ticks;
      return out;
    }
    sync(key);
    if (range.plan.strategy == Strategy::landmark) {
      for (std::size_t i = 1; i < out.size(); ++i) out[i] = key.coarse ? key.coarse->levels[i - 1].any : 0;
      return out;
    }
    for (auto& s : range.plan.cover) {
      auto& slots = slots_of(key, s.level);
      out[static_cast<std::size_t>(s.level)] += slots.lower(s.to) - slots.lower(s.from);
    }
    return out;
  }

  std::size_t bytes() const {
    std::size_t total = sizeof(*this) + all_.bytes() + keys_.capacity() * sizeof(Key);
    for (auto& key : keys_) {
      total += key.ticks.bytes();
      if (!key.coarse) continue;
      total += sizeof(Coarse) + key.coarse->levels.size() * sizeof(Level);
      for (auto& level : key.coarse->levels) total += level.slots.bytes();
    }
    return total;
  }

  // Takes in another set of wheels: number[i] is the number here of its key i. Both must hold every tick.
  void merge(KeyedWheels& other, const std::vector<std::uint32_t>& number) {
    if (drops() || other.drops()) throw std::invalid_argument("keyed wheels that drop slots can't be merged");
    for (Key& key : other.keys_) key.ticks.sort(other.monoid_);
    MergedWheel<M>::merge(all_, other.all_);
    Tear<M> tear(torn_);
    Tick moved = line().origin - origin_, theirs = line().origin - other.origin_;
    for (Key& key : keys_) {
      key.coarse.reset();
      if (moved) key.ticks.renumber(moved);
    }
    origin_ = line().origin;
    for (std::size_t i = 0; i < number.size(); ++i) {
      auto& from = other.keys_[i].ticks;
      auto& to = keys_[number[i]].ticks;
      for (std::size_t j = 0; j < from.size(); ++j) to.add(monoid_, from.number(j) - theirs, from.partial(j));
    }
    tear.mend();
  }
  bool drops() const { return turn_ != never; }

  template <class Archive>
  void archive(Archive& ar) {
    all_.archive(ar);
    auto n = static_cast<std::int64_t>(keys_.size());
    ar.number(n);
    ar.number(sweep_);
    if constexpr (Archive::loading) {
      origin_ = line().origin;
      if (n < 0 || n > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("the stored wheels have no number of keys");
      keys_.clear();
    }
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (Archive::loading) keys_.emplace_back();  // one by one: n may be damaged
      Key& key = keys_[static_cast<std::size_t>(i)];
      archive_slots(ar, key.ticks);
      std::int64_t coarse = key.coarse && drops();  // otherwise they are made again
      ar.number(coarse);
      if (!coarse) continue;
      if constexpr (Archive::loading) key.coarse = make_coarse();
      ar.number(key.coarse->synced);
      ar.partial(key.coarse->total);
      flag(ar, key.coarse->any);
      for (Level& level : key.coarse->levels) {
        archive_slots(ar, level.slots);
        ar.number(level.number);
        flag(ar, level.any);
        ar.partial(level.open);
      }
    }
  }

  // Verifies I1 and I2 as far as what is held can show; `same` compares two partials.
  template <class Same>
  void check(Same same) {
    all_.check(same);
    for (Key& key : keys_) {
      key.ticks.check();
      sync(key);
      key.ticks.check();
      if (!key.coarse) continue;
      const SparseSlots<M>* finer = &key.ticks;
      for (std::size_t k = 1; k < line().levels.size(); ++k) {
        auto& shape = line().levels[k];
        auto& slots = key.coarse->levels[k - 1].slots;
        slots.check();
        std::int64_t held = ceil_div(line().levels[k - 1].lo, shape.ratio);
        for (std::size_t i = slots.lower(std::max(shape.lo, held)); i < slots.size(); ++i) {
          std::size_t from = finer->lower(slots.number(i) * shape.ratio), to = finer->lower((slots.number(i) + 1) * shape.ratio);
          require(from < to && same(slots.partial(i), *fold(*finer, from, to)), "I2: level ", k, ", slot ", slots.number(i));
        }
        finer = &slots;
      }
    }
  }

 private:
  static constexpr Tick never = std::numeric_limits<Tick>::max();

  struct Level {
    SparseSlots<M> slots;
    std::int64_t number;  // of the slot that is open, if any
    bool any;
    Partial open;
  };
  struct Coarse {
    Tick synced;    // ticks before this one are in the levels
    Partial total;  // of the coarsest slots that are closed
    bool any;
    std::vector<Level> levels;
  };
  struct Key {
    SparseSlots<M> ticks;
    std::unique_ptr<Coarse> coarse;
  };

  const Timeline& line() const { return all_.view().reader.line(); }

  Tick tick_of(Time t) const { return all_.view().grain(t - origin_ * all_.view().grain.divisor()); }

  static const SparseSlots<M>& slots_of(const Key& key, int level) {
    return level ? key.coarse->levels[static_cast<std::size_t>(level) - 1].slots : key.ticks;
  }

  std::unique_ptr<Coarse> make_coarse() const {
    auto coarse = std::make_unique<Coarse>(Coarse{0, monoid_.identity(), false, {}});
    for (std::size_t k = 1; k < line().levels.size(); ++k) coarse->levels.push_back({{}, -1, false, monoid_.identity()});
    return coarse;
  }

  // Brings a key's coarser levels up to the clock, and drops what is no longer held. Where nothing is dropped, levels that a
  // combine left half made are made again from the ticks.
  void sync(Key& key) {
    key.ticks.sort(monoid_);
    if (!key.coarse) {
      if (!drops() && key.ticks.size() <= few_) return;
      key.coarse = make_coarse();
    }
    bool torn = drops();
    Rollback rollback(monoid_, [&] {
      torn_ |= torn;
      if (!torn) key.coarse.reset();
    });
    Coarse& coarse = *key.coarse;
    for (std::size_t i = key.ticks.lower(coarse.synced); i < key.ticks.size() && key.ticks.number(i) < line().now; ++i)
      feed(coarse, 1, key.ticks.number(i), key.ticks.partial(i));
    coarse.synced = line().now;
    for (std::size_t k = 1; k <= coarse.levels.size(); ++k) {
      Level& level = coarse.levels[k - 1];
      if (level.any && level.number < line().levels[k].size(line().now)) close(coarse, k);
      level.slots.drop_before(line().levels[k].lo);
    }
    key.ticks.drop_before(line().levels[0].lo);
    rollback.done();
  }

  // Takes a closed slot of level k - 1 into level k.
  void feed(Coarse& coarse, std::size_t k, std::int64_t finer, const Partial& value) {
    if (k > coarse.levels.size()) {
      coarse.total = coarse.any ? monoid_.combine(coarse.total, value) : value;
      coarse.any = true;
      return;
    }
    Level& level = coarse.levels[k - 1];
    std::int64_t number = finer / line().levels[k].ratio;
    if (level.any && level.number != number) close(coarse, k);
    level.open = level.any ? monoid_.combine(level.open, value) : value;
    level.any = true;
    level.number = number;
  }

  // A slot that began before the start is not complete: it goes on to the coarser levels only.
  void close(Coarse& coarse, std::size_t k) {
    Level& level = coarse.levels[k - 1];
    level.any = false;
    Partial closed = std::exchange(level.open, monoid_.identity());
    if (level.number * line().levels[k].size.divisor() >= line().start) level.slots.add(monoid_, level.number, closed);
    feed(coarse, k + 1, level.number, closed);
  }

  std::optional<Partial> landmark(const Key& key) const {
    if (!key.coarse) return fold(key.ticks, 0, key.ticks.lower(line().now));
    std::optional<Partial> out;
    if (key.coarse->any) out = key.coarse->total;
    for (std::size_t k = key.coarse->levels.size(); k > 0; --k) {
      Level& level = key.coarse->levels[k - 1];
      if (level.any) out = out ? monoid_.combine(*out, level.open) : level.open;
    }
    return out;
  }

  std::optional<Partial> fold(const SparseSlots<M>& slots, std::size_t from, std::size_t to) const {
    if (from == to) return std::nullopt;
    Fold<M> out(monoid_);
    out.add(&slots.partial(from), to - from, false);
    return std::move(out).result();
  }

  template <class Archive>
  static void flag(Archive& ar, bool& value) {
    std::int64_t n = value;
    ar.number(n);
    value = n != 0;
  }

  template <class Archive>
  void archive_slots(Archive& ar, SparseSlots<M>& slots) {
    if constexpr (!Archive::loading) slots.sort(monoid_);
    auto n = static_cast<std::int64_t>(slots.size());
    ar.number(n);
    if constexpr (Archive::loading) {
      if (n < 0 || static_cast<std::size_t>(n) > ar.partials_left())
        throw std::invalid_argument("the stored wheels have more slots than they say");
      for (; n > 0; --n) {
        std::int64_t number = 0;
        Partial value = monoid_.identity();
        ar.number(number);
        ar.partial(value);
        slots.add(monoid_, number, std::move(value));
      }
    } else {
      for (std::size_t i = 0; i < slots.size(); ++i) {
        std::int64_t number = slots.number(i);
        Partial value = slots.partial(i);
        ar.number(number);
        ar.partial(value);
      }
    }
  }

  M monoid_;
  Wheel<M> all_;
  std::size_t few_;
  std::vector<Key> keys_;
  std::vector<typename Wheel<M>::Result> results_;  // none: there are no windows
  Tick origin_ = all_.view().reader.line().origin;
  Tick turn_ = never;  // how far the clock may move before every key is looked after; never: nothing is dropped
  Tick sweep_ = 0;
  bool torn_ = false;
};

}  // namespace sash
