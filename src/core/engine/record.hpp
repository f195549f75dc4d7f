// One partial for all aggregations of a query: a row of words
//
//   count        sum of int64              max of float64
//   | n       || low   high   n         || value   present |        6 words
//   | add     || add_wide     add       || max_real either |        their steps
//
// The partials of the query's columns lie side by side. Count, sum, mean, min and max are a few words with one operation
// each: a combine is a loop over steps, without a virtual call, and a fold of many rows is one loop per step. All others
// are one step through their kernel.

#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../monoid.hpp"
#include "../monoids/extreme.hpp"
#include "../monoids/sum.hpp"
#include "words.hpp"

namespace sash::engine {

// A kernel that a step runs through: a = a b.
class Joint {
 public:
  virtual ~Joint() = default;
  virtual void take_in(std::int64_t* a, const std::int64_t* b) const = 0;
};

template <class K>
class KernelJoint final : public Joint {
  using Partial = typename K::Partial;

 public:
  explicit KernelJoint(K kernel) : kernel_(std::move(kernel)) {}
  void take_in(std::int64_t* a, const std::int64_t* b) const override {
    Partial older, newer;
    std::memcpy(&older, a, sizeof(Partial));
    std::memcpy(&newer, b, sizeof(Partial));
    Words<Partial>::split(kernel_.combine(older, newer), a);
  }

 private:
  K kernel_;
};

struct Step {
  enum Op : std::uint8_t { add, add_wide, add_real, max_int, min_int, max_real, min_real, either, kernel };
  Op op;
  int at;  // its first word
  const Joint* joint = nullptr;
};

// What was done, for tests and benchmarks.
struct Tally {
  std::uint64_t combines = 0;
  std::uint64_t visited = 0;  // nodes and small arrays looked at
};

// The steps of a query's row, and the row of nothing.
class Record {
 public:
  int words() const { return static_cast<int>(identity_.size()); }
  const std::int64_t* identity() const { return identity_.data(); }
  Tally& tally() const { return tally_; }

  // Places the partial of one more aggregation; returns its first word.
  template <class K>
  int place(const K& kernel) {
    using Partial = typename K::Partial;
    int at = words();
    identity_.resize(identity_.size() + Words<Partial>::count);
    Words<Partial>::split(kernel.identity(), identity_.data() + at);
    if constexpr (std::is_same_v<K, Count>) {
      steps_.push_back({Step::add, at});
    } else if constexpr (std::is_same_v<K, Mean<std::int64_t>>) {
      steps_.push_back({Step::add_wide, at});
      steps_.push_back({Step::add, at + 2});
    } else if constexpr (std::is_same_v<K, Mean<double>>) {
      steps_.push_back({Step::add_real, at});
      steps_.push_back({Step::add, at + 1});
    } else if constexpr (std::is_same_v<K, Max<std::int64_t>> || std::is_same_v<K, Min<std::int64_t>>) {
      steps_.push_back({std::is_same_v<K, Max<std::int64_t>> ? Step::max_int : Step::min_int, at});
      steps_.push_back({Step::either, at + 1});
    } else if constexpr (std::is_same_v<K, Max<double>> || std::is_same_v<K, Min<double>>) {
      steps_.push_back({std::is_same_v<K, Max<double>> ? Step::max_real : Step::min_real, at});
      steps_.push_back({Step::either, at + 1});
    } else {
      joints_.push_back(std::make_unique<KernelJoint<K>>(kernel));
      steps_.push_back({Step::kernel, at, joints_.back().get()});
    }
    return at;
  }

  // a = a b[0] b[stride] ...: n rows that lie `stride` words apart.
  void take_in(std::int64_t* a, const std::int64_t* b, int n = 1, int stride = 0) const {
    tally_.combines += static_cast<std::uint64_t>(n);
    for (const Step& step : steps_) {
      std::int64_t* to = a + step.at;
      const std::int64_t* from = b + step.at;
      switch (step.op) {
        case Step::add:
          each<std::int64_t>(to, from, n, stride, [](std::int64_t x, std::int64_t y) { return wrap(x, y); });
          break;
        case Step::add_wide:
          add_wide(to, from, n, stride);
          break;
        case Step::add_real:
          each<double>(to, from, n, stride, [](double x, double y) { return x + y; });
          break;
        case Step::max_int:
          each<std::int64_t>(to, from, n, stride, winner<Wants::greatest, std::int64_t>);
          break;
        case Step::min_int:
          each<std::int64_t>(to, from, n, stride, winner<Wants::least, std::int64_t>);
          break;
        case Step::max_real:
          each<double>(to, from, n, stride, winner<Wants::greatest, double>);
          break;
        case Step::min_real:
          each<double>(to, from, n, stride, winner<Wants::least, double>);
          break;
        case Step::either:
          each<std::int64_t>(to, from, n, stride, [](std::int64_t x, std::int64_t y) { return x | y; });
          break;
        case Step::kernel:
          for (int i = 0; i < n; ++i) step.joint->take_in(to, from + i * stride);
          break;
      }
    }
  }

 private:
  static std::int64_t wrap(std::int64_t x, std::int64_t y) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
  }

  template <class T, class F>
  static void each(std::int64_t* to, const std::int64_t* from, int n, int stride, F f) {
    T x = std::bit_cast<T>(*to);
    for (int i = 0; i < n; ++i) x = f(x, std::bit_cast<T>(from[i * stride]));
    *to = std::bit_cast<std::int64_t>(x);
  }

  static void add_wide(std::int64_t* to, const std::int64_t* from, int n, int stride) {
    Wide x;
    x.low = static_cast<std::uint64_t>(to[0]), x.high = to[1];
    for (int i = 0; i < n; ++i, from += stride) {
      Wide y;
      y.low = static_cast<std::uint64_t>(from[0]), y.high = from[1];
      x = x + y;
    }
    to[0] = static_cast<std::int64_t>(x.low), to[1] = x.high;
  }

  std::vector<Step> steps_;
  std::vector<std::int64_t> identity_;
  std::vector<std::unique_ptr<Joint>> joints_;
  mutable Tally tally_;
};

// A record's rows as a monoid, in W words: those behind the record's own are zero.
template <int W>
class Rows {
 public:
  struct Partial {
    std::int64_t word[W];
  };
  static constexpr bool commutative = true;  // every kernel of the engine is

  struct Probe {
    Tally* tally;
    explicit Probe(const Rows& rows) : tally(&rows.record_->tally()) {}
    void visit(std::size_t n = 1) const { tally->visited += n; }
    void restructure(std::size_t = 1) const {}
    void reach(const char*) const {}
  };

  explicit Rows(const Record& record) : record_(&record) {}

  Partial identity() const { return row(record_->identity()); }
  Partial row(const std::int64_t* words) const {
    Partial p{};
    std::memcpy(p.word, words, static_cast<std::size_t>(record_->words()) * 8);
    return p;
  }
  Partial combine(const Partial& a, const Partial& b) const {
    Partial sum = a;
    record_->take_in(sum.word, b.word);
    return sum;
  }
  Partial fold(const Partial* v, int n) const {
    Partial sum = v[0];
    if (n > 1) record_->take_in(sum.word, v[1].word, n - 1, W);
    return sum;
  }

 private:
  const Record* record_;
};

}  // namespace sash::engine
