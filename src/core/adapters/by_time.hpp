// The face of the out-of-order algorithms: keyed by time, or by time and arrival where ties are kept

#pragma once

#include <compare>
#include <optional>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../monoid.hpp"

namespace sash {

// The key of ties="keep": equal times are entries of their own, in the order they came.
struct TimeSeq {
  Time time = 0;
  std::int64_t seq = 0;
  auto operator<=>(const TimeSeq&) const = default;
  template <class Archive>
  void archive(Archive& ar) {
    ar.number(time);
    ar.number(seq);
  }
};

inline Time time_of(Time t) { return t; }
inline Time time_of(const TimeSeq& k) { return k.time; }

template <class Algorithm, class Key>
class ByTime {
  static constexpr bool keeps_ties = std::is_same_v<Key, TimeSeq>;

 public:
  using Partial = typename Algorithm::Partial;
  static constexpr bool has_ranges = true;
  static constexpr bool has_suffixes = false;
  static constexpr bool has_items = true;
  static constexpr bool evicts_anywhere = true;

  template <class M>
  explicit ByTime(M monoid, const auto& options) : algorithm_(make(std::move(monoid), options)) {}

  bool counted() const { return false; }
  Time next_time() const { return 0; }
  void append(Partial) {}

  void insert(Time t, Partial v) {
    if constexpr (keeps_ties) {
      algorithm_.insert(TimeSeq{t, seq_}, std::move(v));
      ++seq_;
    } else {
      algorithm_.insert(t, std::move(v));
    }
  }

  // Sorted by time; equal times stand in arrival order.
  void bulk_insert(const std::vector<Time>& times, const std::vector<Partial>& partials) {
    if constexpr (keeps_ties) {
      std::vector<TimeSeq> keys;
      keys.reserve(times.size());
      for (Time t : times) keys.push_back({t, seq_++});
      algorithm_.bulk_insert(keys, partials);
    } else {
      algorithm_.bulk_insert(times, partials);
    }
  }

  void evict() { algorithm_.evict(); }

  // Exactly this entry; with ties kept, the oldest of them.
  bool evict(Time t) {
    if constexpr (keeps_ties) {
      const TimeSeq* key = algorithm_.first_from(TimeSeq{t, INT64_MIN});
      return key && key->time == t && algorithm_.evict(TimeSeq(*key));
    } else {
      return algorithm_.evict(t);
    }
  }

  void bulk_evict(Time t) {
    if (size() > 0) algorithm_.bulk_evict(last_at(t));
  }

  Partial query() const { return algorithm_.query(); }
  std::optional<Partial> query(Time from, Time to) {
    if (size() == 0) return std::nullopt;
    return algorithm_.query(first_at(from), last_at(to));
  }
  std::vector<Partial> query_many(const Time* from, const Time* to, std::size_t n)
    requires requires(Algorithm& a, std::vector<Key> k) { a.query_many(k, k); }
  {
    std::vector<Key> starts, ends;
    starts.reserve(n);
    ends.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      starts.push_back(first_at(from[i]));
      ends.push_back(last_at(to[i]));
    }
    return algorithm_.query_many(starts, ends);
  }
  bool reaches_the_end(Time) const { return true; }

  std::size_t size() const { return algorithm_.size(); }
  Time oldest() const { return time_of(algorithm_.oldest()); }
  Time youngest() const { return time_of(algorithm_.youngest()); }
  bool torn() const { return algorithm_.torn(); }
  void clear() {
    algorithm_.clear();
    seq_ = 0;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    algorithm_.for_each([&](const Key& key, const Partial& v) { visit(time_of(key), v); });
  }
  template <class Visit>
  void for_each_time(Visit visit) const {
    for_each([&](Time t, const Partial&) { visit(t); });
  }

  template <class Archive>
  void archive(Archive& ar) {
    ar.number(seq_);
    algorithm_.archive(ar);
  }

  template <class Same>
  void check(const std::vector<Partial>&, Same same) const {
    algorithm_.check(same);
  }

  const Algorithm& algorithm() const { return algorithm_; }
  Algorithm& algorithm() { return algorithm_; }

 private:
  template <class M>
  static Algorithm make(M monoid, const auto& options) {
    if constexpr (requires { Algorithm(monoid, std::size_t{2}); })
      if (options.min_arity > 0) return Algorithm(std::move(monoid), static_cast<std::size_t>(options.min_arity));
    return Algorithm(std::move(monoid));
  }

  static Key first_at(Time t) {
    if constexpr (keeps_ties)
      return {t, INT64_MIN};
    else
      return t;
  }
  static Key last_at(Time t) {
    if constexpr (keeps_ties)
      return {t, INT64_MAX};
    else
      return t;
  }

  Algorithm algorithm_;
  std::int64_t seq_ = 0;
};

}  // namespace sash
