// A reorder buffer before an in-order algorithm
//
// Items that are at most max_delay late wait, sorted, until nothing older can come; then the in-order algorithm
// takes them. A query counts the waiting ones too, so the answer is that of the whole window, at the cost of one
// combine per waiting item.
//
//       in the algorithm          | waiting, by time  |
//       t <= newest - max_delay   | v  v  v  v        |  newest
//
// Times may be floats, encoded: the delay is then taken from the decoded time.

#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "in_order.hpp"

namespace sash {

template <class Algorithm, class M>
class Reorder {
 public:
  using Partial = typename Algorithm::Partial;
  static constexpr bool has_ranges = false;
  static constexpr bool has_suffixes = false;
  static constexpr bool has_items = false;
  static constexpr bool evicts_anywhere = false;

  explicit Reorder(M monoid, const auto& options)
      : monoid_(monoid),
        settled_(std::move(monoid), options),
        max_delay_(options.max_delay),
        float_delay_(options.float_delay),
        float_times_(options.float_times) {}

  bool counted() const { return false; }
  Time next_time() const { return 0; }
  void append(Partial) {}

  void insert(Time t, Partial v) {
    if (settled_.size() > 0 && t < settled_.youngest()) throw OutOfOrder{t, settled_.youngest()};
    auto at = waiting_.end();
    while (at != waiting_.begin() && t < (at - 1)->time) --at;
    std::ptrdiff_t place = at - waiting_.begin(), done = 0;
    Time before = newest_;
    waiting_.insert(at, Entry{t, std::move(v)});
    if (t > newest_) newest_ = t;
    // Hands on what nothing can come before any more; of these the new item is the last. If combine throws, it is taken out again:
    // what was handed on before it stays where it is, and the window holds what it held.
    Rollback undo(monoid_, [&] {
      waiting_.erase(waiting_.begin() + place);
      waiting_.erase(waiting_.begin(), waiting_.begin() + done);
      newest_ = before;
    });
    auto size = static_cast<std::ptrdiff_t>(waiting_.size());
    for (Time limit = safe(); done < size && waiting_[static_cast<std::size_t>(done)].time <= limit; ++done) {
      Entry& next = waiting_[static_cast<std::size_t>(done)];
      settled_.insert(next.time, next.value);
    }
    undo.done();
    waiting_.erase(waiting_.begin(), waiting_.begin() + done);
  }

  void insert_all(const Time* times, std::vector<Partial> partials) {
    together(torn_, partials.size(), [&](std::size_t i) { insert(times[i], std::move(partials[i])); });
  }

  void evict() {
    if (settled_.size() > 0) return settled_.evict();
    waiting_.erase(waiting_.begin());
  }

  void bulk_evict(Time t) {
    settled_.bulk_evict(t);
    if (settled_.size() > 0) return;
    auto stay = std::find_if(waiting_.begin(), waiting_.end(), [&](const Entry& e) { return e.time > t; });
    waiting_.erase(waiting_.begin(), stay);
  }

  Partial query() const {
    if (waiting_.empty()) return settled_.query();
    Partial sum = waiting_[0].value;
    for (std::size_t i = 1; i < waiting_.size(); ++i) sum = monoid_.combine(sum, waiting_[i].value);
    return settled_.size() > 0 ? monoid_.combine(settled_.query(), sum) : sum;
  }
  std::optional<Partial> query(Time, Time) { return std::nullopt; }
  bool reaches_the_end(Time) const { return true; }

  std::size_t size() const { return settled_.size() + waiting_.size(); }
  Time oldest() const { return settled_.size() > 0 ? settled_.oldest() : waiting_.front().time; }
  Time youngest() const { return waiting_.empty() ? settled_.youngest() : waiting_.back().time; }
  // The oldest time that is still taken.
  Time limit() const { return settled_.size() > 0 ? settled_.youngest() : std::numeric_limits<Time>::lowest(); }
  bool torn() const { return torn_ || settled_.torn(); }

  void clear() {
    settled_.clear();
    torn_ = false;
    waiting_.clear();
    newest_ = std::numeric_limits<Time>::lowest();
  }

  template <class Visit>
  void for_each_time(Visit visit) const {
    settled_.for_each_time(visit);
    for (const Entry& e : waiting_) visit(e.time);
  }

  template <class Archive>
  void archive(Archive& ar) {
    settled_.archive(ar);
    ar.number(newest_);
    auto n = static_cast<std::int64_t>(waiting_.size());
    ar.number(n);
    if constexpr (Archive::loading) {
      if (n < 0 || static_cast<std::size_t>(n) > ar.partials_left()) throw std::invalid_argument("the stored window ends too early");
      waiting_.assign(static_cast<std::size_t>(n), Entry{0, monoid_.identity()});
    }
    for (Entry& e : waiting_) {
      ar.number(e.time);
      ar.partial(e.value);
    }
  }

  template <class Same>
  void check(const std::vector<Partial>& values, Same same) const {
    std::size_t settled = settled_.size();
    if (values.empty())
      settled_.check(values, same);
    else
      settled_.check(std::vector<Partial>(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(settled)), same);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      require(i == 0 || waiting_[i - 1].time <= waiting_[i].time, "waiting items are out of order at ", i);
      require(waiting_[i].time > safe() || safe() == std::numeric_limits<Time>::lowest(), "item ", i,
              " waits, though nothing older than it can come");
      require(values.empty() || same(waiting_[i].value, values[settled + i]), "waiting item ", i, " is not its own value");
    }
  }

  const Algorithm& algorithm() const { return settled_.algorithm(); }

 private:
  struct Entry {
    Time time;
    Partial value;
  };

  // The newest time that nothing can come before any more.
  Time safe() const {
    if (float_times_) return encode_time(decode_time(newest_) - float_delay_);
    return newest_ < std::numeric_limits<Time>::lowest() + max_delay_ ? std::numeric_limits<Time>::lowest() : newest_ - max_delay_;
  }

  M monoid_;
  InOrder<Algorithm> settled_;
  std::vector<Entry> waiting_;
  Time max_delay_;
  double float_delay_;
  bool float_times_;
  bool torn_ = false;  // a bulk was broken off after some of its items
  Time newest_ = std::numeric_limits<Time>::lowest();
};

}  // namespace sash
