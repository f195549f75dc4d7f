// Timestamps for any in-order algorithm
//
// The algorithm knows positions only. Times stand beside it (times.hpp); where the caller leaves them out they
// count 0, 1, 2 ... and nothing is stored. Time-based eviction and ranges by time are written here, once.

#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "../check.hpp"
#include "../monoid.hpp"
#include "times.hpp"

namespace sash {

// An item older than the youngest of an in-order window; the caller words it for its user.
struct OutOfOrder {
  Time time, youngest;
};

template <class Algorithm>
class InOrder {
 public:
  using Partial = typename Algorithm::Partial;
  static constexpr bool has_ranges = requires(const Algorithm& a, std::size_t i) { a.query(i, i); };
  static constexpr bool has_suffixes = requires(Algorithm& a, std::size_t i) { a.query_from(i); };
  static constexpr bool has_items = requires(const Algorithm& a) { a.for_each([](const Partial&) {}); };
  static constexpr bool has_bulk = requires(Algorithm& a, std::size_t k) { a.evict_many(k); };
  static constexpr bool evicts_anywhere = false;

  template <class M>
  explicit InOrder(M monoid, const auto&) : algorithm_(std::move(monoid)) {}

  bool counted() const { return counted_; }

  // The next item of a window whose times count themselves.
  void append(Partial v) {
    algorithm_.insert(std::move(v));
    ++next_;
  }
  Time next_time() const { return next_; }

  void insert(Time t, Partial v) {
    if (size() > 0 && t < youngest()) throw OutOfOrder{t, youngest()};
    algorithm_.insert(std::move(v));
    times_.push(t);
    counted_ = false;
  }

  // Items whose times do not decrease; without times, they count themselves.
  void insert_all(const Time* times, std::vector<Partial> partials) {
    together(torn_, partials.size(), [&](std::size_t i) {
      if (times)
        insert(times[i], std::move(partials[i]));
      else
        append(std::move(partials[i]));
    });
  }

  void evict() {
    algorithm_.evict();
    if (!counted_) times_.drop(1);
  }

  void bulk_evict(Time t) {
    std::size_t leaving = count_up_to(t);
    if constexpr (has_bulk) {
      algorithm_.evict_many(leaving);
      if (!counted_) times_.drop(leaving);
    } else {
      together(torn_, leaving, [&](std::size_t) { evict(); });
    }
  }

  Partial query() const { return algorithm_.query(); }

  // Entries with from <= time <= to; nothing where there are none.
  std::optional<Partial> query(Time from, Time to)
    requires(has_ranges || has_suffixes)
  {
    std::size_t first = count_before(from), stop = count_up_to(to);
    if (first >= stop) return std::nullopt;
    if constexpr (has_ranges)
      return algorithm_.query(first, stop - 1);
    else
      return algorithm_.query_from(first);
  }
  bool reaches_the_end(Time to) const { return size() == 0 || to >= youngest(); }

  std::size_t size() const { return algorithm_.size(); }
  Time oldest() const { return counted_ ? next_ - static_cast<Time>(size()) : times_.oldest(); }
  Time youngest() const { return counted_ ? next_ - 1 : times_.youngest(); }
  bool torn() const { return torn_ || algorithm_.torn(); }

  void clear() {
    algorithm_.clear();
    torn_ = false;
    times_.clear();
    next_ = 0;
    counted_ = true;
  }

  template <class Visit>
  void for_each(Visit visit) const
    requires has_items
  {
    std::vector<Time> times;
    times.reserve(size());
    for_each_time([&times](Time t) { times.push_back(t); });
    auto time = times.begin();
    algorithm_.for_each([&](const Partial& v) { visit(*time++, v); });
  }

  template <class Visit>
  void for_each_time(Visit visit) const {
    if (counted_)
      for (Time t = next_ - static_cast<Time>(size()); t < next_; ++t) visit(t);
    else
      times_.for_each(visit);
  }

  template <class Archive>
  void archive(Archive& ar) {
    algorithm_.archive(ar);
    std::int64_t counted = counted_;
    ar.number(counted);
    ar.number(next_);
    if constexpr (Archive::loading) {
      counted_ = counted != 0;
      times_.clear();
      if (counted_) return;
      Time last = INT64_MIN;
      for (std::size_t i = 0; i < algorithm_.size(); ++i) {
        Time t = 0;
        ar.number(t);
        if (t < last) throw std::invalid_argument("the stored times decrease");
        times_.push(last = t);
      }
    } else if (!counted_) {
      times_.for_each([&ar](Time t) { ar.number(t); });
    }
  }

  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    require(counted_ || times_.size() == algorithm_.size(), "times: ", times_.size(), " times stand beside ", algorithm_.size(),
            " entries");
    Time last = INT64_MIN;
    for_each_time([&](Time t) {
      require(t >= last, "times: ", t, " follows ", last);
      last = t;
    });
    if constexpr (requires { algorithm_.check(values, same); }) algorithm_.check(values, same);
  }

  const Algorithm& algorithm() const { return algorithm_; }

 private:
  std::size_t count_before(Time t) const {
    if (t == INT64_MIN) return 0;
    return count_up_to(t - 1);
  }

  std::size_t count_up_to(Time t) const {
    if (!counted_) return times_.count_up_to(t);
    Time first = next_ - static_cast<Time>(size());
    if (t < first) return 0;
    return t >= next_ ? size() : static_cast<std::size_t>(t - first) + 1;
  }

  Algorithm algorithm_;
  std::conditional_t<has_ranges || has_suffixes || has_bulk, RingTimes, ChunkedTimes> times_;
  Time next_ = 0;
  bool counted_ = true;
  bool torn_ = false;  // a bulk was broken off after some of its items
};

}  // namespace sash
