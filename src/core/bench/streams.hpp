// Loops of the experiments on streams with times of their own, shared windows, and coarse windows
//
// `watch` runs add up sizes and results of every round, to be compared between contenders; they are not timed.

#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include "../kernel.hpp"
#include "loops.hpp"

namespace sash::bench {

enum class Mode { throughput, latency, watch };

struct Watched : Outcome {
  double results = 0;         // the results of all rounds, added up
  std::uint64_t sizes = 0;    // and the window's sizes
  std::uint64_t started = 0;  // the first round that counts

  template <class M>
  void took(const M& monoid, const typename M::Partial& partial, std::size_t size) {
    saw(size);
    sizes += size;
    results += monoid.lower(Lower::sum, partial).f;
  }
};

// Rounds i of an experiment, timed as a whole, or one by one, or watched.
template <class M, class Round, class Size>
void rounds(Watched& out, const M& monoid, std::uint64_t from, std::uint64_t to, Mode mode, Round round, Size size) {
  out.started = from;
  out.rounds = out.items = to - from;
  if (mode == Mode::watch) {
    for (std::uint64_t i = from; i < to; ++i) {
      auto result = round(i);
      out.took(monoid, result, size());
    }
  } else if (mode == Mode::latency) {
    out.ticks.reserve(to - from);
    for (std::uint64_t i = from; i < to; ++i) {
      std::uint64_t start = ticks();
      consume(round(i));
      out.ticks.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks() - start, UINT32_MAX)));
    }
  } else {
    Clock clock;
    for (std::uint64_t i = from; i < to; ++i) consume(round(i));
    out.seconds = clock.seconds();
  }
  out.saw(size());
}

// A window of one period over a stream in order of arrival. What is too late changes nothing. Rounds count from the first that evicts.
template <class Window, class M>
Watched by_time(Window& window, const M& monoid, std::span<const Time> times, std::span<const double> values, Time period, Mode mode) {
  Time newest = INT64_MIN;
  auto round = [&](std::uint64_t i) {
    Time t = times[i];
    newest = std::max(newest, t);
    window.bulk_evict(newest - period);
    if (t > newest - period) window.insert(t, monoid.lift(static_cast<typename M::Input>(values[i]), t));
    return window.query();
  };
  std::uint64_t from = 0;
  Time first = times[0];
  for (; from < times.size() && std::max(newest, times[from]) - period < first; ++from) {
    first = std::min(first, times[from]);
    consume(round(from));
  }
  if (from == times.size()) throw std::invalid_argument("nothing ever leaves the window: the period is longer than the stream.");
  Watched out;
  rounds(out, monoid, from, times.size(), mode, round, [&] { return window.size(); });
  return out;
}

// Two windows of one stream, the newest n and the newest m of them, items d = m / 2 places late: as ranges of one tree, or as two trees.
template <class Window, class M>
Watched sharing(Window& big, Window& small, const M& monoid, std::size_t n, std::size_t m, std::uint64_t count, bool shared, Mode mode) {
  using Input = typename M::Input;
  std::size_t d = m / 2;
  auto future = static_cast<Time>(n + count + 1), next = static_cast<Time>(n - d);
  auto fill = [&](Window& window, std::size_t size) {
    for (Time t = next - static_cast<Time>(size - d); t < next; ++t) window.insert(t, monoid.lift(static_cast<Input>(t % 101), t));
    for (std::size_t i = 0; i < d; ++i) window.insert(future + static_cast<Time>(i), monoid.lift(static_cast<Input>(i % 101), 0));
  };
  fill(big, n);
  if (!shared) fill(small, m);
  auto last = future + static_cast<Time>(d);
  auto step = [&](Window& window) {
    window.evict();
    window.insert(next, monoid.lift(static_cast<Input>(next % 101), next));
  };
  Watched out;
  auto round = [&](std::uint64_t) {
    step(big);
    if (!shared) step(small);
    ++next;
    consume(big.query());
    return shared ? big.query(next - static_cast<Time>(m - d), last) : small.query();
  };
  rounds(out, monoid, 0, count, mode, round, [&] { return big.size(); });
  if (!shared && small.size() != m) throw std::logic_error("the small window does not hold what the experiment claims.");
  return out;
}

// A window of n items that is asked every g of them; `leave` takes the g oldest away.
template <class Window, class M, class Leave>
Watched asked_every(Window& window, const M& monoid, std::size_t n, std::size_t g, std::uint64_t asks, Mode mode, Leave leave) {
  using Input = typename M::Input;
  std::uint64_t at = 0;
  auto insert = [&] {
    window.insert(monoid.lift(static_cast<Input>(at % 101), 0));
    ++at;
  };
  for (std::size_t i = 0; i < n; ++i) insert();
  Watched out;
  auto round = [&](std::uint64_t) {
    leave();
    for (std::size_t i = 0; i < g; ++i) insert();
    return window.query();
  };
  rounds(out, monoid, 0, asks, mode, round, [&] { return window.size(); });
  out.items = asks * g;
  return out;
}

// The same with an accumulator per open window.
template <class Buckets, class M>
Watched asked_of_buckets(Buckets& buckets, const M& monoid, std::size_t n, std::size_t g, std::uint64_t asks, Mode mode) {
  using Input = typename M::Input;
  std::uint64_t at = 0;
  auto slide = [&] {
    for (std::size_t i = 0; i < g; ++i, ++at) buckets.insert(monoid.lift(static_cast<Input>(at % 101), 0));
    return buckets.close();
  };
  for (std::size_t i = 0; i < n / g; ++i) consume(slide());
  Watched out;
  rounds(out, monoid, 0, asks, mode, [&](std::uint64_t) { return slide(); }, [&] { return n; });
  out.items = asks * g;
  return out;
}

// What a window of one period over a stream holds, found without a window: after every arrival its distinct times n, how many of
// them left m, and how many are later than the arrival d.
struct Shape {
  std::vector<std::int64_t> n, m, d;
};

inline Shape shape(std::span<const Time> times, Time period) {
  std::vector<Time> known(times.begin(), times.end());
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::vector<std::int64_t> fenwick(known.size() + 1, 0);
  std::vector<bool> present(known.size(), false);
  auto add = [&](std::size_t rank, std::int64_t by) {
    for (std::size_t i = rank + 1; i < fenwick.size(); i += i & (~i + 1)) fenwick[i] += by;
  };
  auto up_to = [&](std::size_t rank) {
    std::int64_t sum = 0;
    for (std::size_t i = rank + 1; i > 0; i -= i & (~i + 1)) sum += fenwick[i];
    return sum;
  };
  Shape out;
  std::size_t left = 0;  // ranks before it have left
  std::int64_t n = 0;
  Time newest = INT64_MIN;
  for (Time t : times) {
    newest = std::max(newest, t);
    std::int64_t m = 0;
    for (; known[left] <= newest - period; ++left)
      if (present[left]) {
        present[left] = false;
        add(left, -1);
        ++m;
      }
    n -= m;
    auto rank = static_cast<std::size_t>(std::lower_bound(known.begin(), known.end(), t) - known.begin());
    std::int64_t d = n - up_to(rank);
    if (rank >= left && !present[rank]) {
      present[rank] = true;
      add(rank, 1);
      ++n;
    }
    out.n.push_back(n);
    out.m.push_back(m);
    out.d.push_back(d);
  }
  return out;
}

}  // namespace sash::bench
