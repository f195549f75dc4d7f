// The loops of the experiments: one operation after another, every result consumed
//
// A round is evict, insert, query, as in the papers. Each loop reports the window sizes it saw, so that an
// experiment whose window is not what it claims is found out.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "../monoid.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace sash::bench {

struct Outcome {
  double seconds = 0;             // of the last lap
  std::vector<double> laps = {};  // rounds that follow one another on one window, timed apart
  std::uint64_t filled = 0;       // combines before the first round, where they are counted
  std::uint64_t evicting = 0;     // combines of bulk evictions
  std::uint64_t rounds = 0, items = 0;
  std::size_t smallest = SIZE_MAX, largest = 0;
  std::vector<std::uint32_t> ticks;  // of single rounds, where asked for

  void saw(std::size_t size) {
    smallest = std::min(smallest, size);
    largest = std::max(largest, size);
  }
};

// Counts the combines of a monoid; a loop on it is for counting, not for timing.
template <class M>
struct Counted : M {
  using Partial = typename M::Partial;
  static inline std::uint64_t combines = 0;
  Partial combine(const Partial& a, const Partial& b) const {
    ++combines;
    return M::combine(a, b);
  }
};

template <class M>
std::uint64_t combines() {
  if constexpr (requires { M::combines; }) return M::combines;
  return 0;
}

// Notes what filling the window took.
template <class M>
void started(Outcome& out) {
  out.filled = combines<M>();
}

template <class T>
void consume(const T& value) {
  asm volatile("" : : "r,m"(&value) : "memory");
}

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

template <class Input>
Input item(std::uint64_t i) {
  return static_cast<Input>(i % 101 + 1);
}

// Times laps of so many rounds each as a whole, or every round by itself.
template <class Round>
void time_rounds(Outcome& out, std::uint64_t rounds, std::size_t laps, bool one_by_one, Round round) {
  if (one_by_one) out.ticks.reserve(rounds * laps);
  for (std::uint64_t lap = 0, i = 0; lap < laps; ++lap) {
    Clock clock;
    std::uint64_t stop = i + rounds;
    if (one_by_one)
      for (; i < stop; ++i) {
        std::uint64_t start = ticks();
        round(i);
        out.ticks.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks() - start, UINT32_MAX)));
      }
    else
      for (; i < stop; ++i) round(i);
    out.laps.push_back(out.seconds = clock.seconds());
  }
}

// In order: n items in the window, then rounds.
template <class Window, class M>
Outcome fifo(Window& window, const M& monoid, std::size_t n, std::uint64_t rounds, std::size_t laps, bool latency) {
  using Input = typename M::Input;
  for (std::size_t i = 0; i < n; ++i) window.insert(monoid.lift(item<Input>(i), 0));
  Outcome out;
  out.rounds = out.items = rounds;
  out.saw(window.size());
  auto round = [&](std::uint64_t i) {
    window.evict();
    window.insert(monoid.lift(item<Input>(i), 0));
    consume(window.query());
  };
  started<M>(out);
  time_rounds(out, rounds, laps, latency, round);
  out.saw(window.size());
  return out;
}

// Grows and shrinks: fills to n with a query each, empties to none without, over and over (the DABA paper's dynamic windows).
template <class Window, class M>
Outcome dynamic(Window& window, const M& monoid, std::size_t n, std::uint64_t rounds, std::size_t laps) {
  using Input = typename M::Input;
  Outcome out;
  out.rounds = out.items = rounds;
  bool grows = true;
  auto round = [&](std::uint64_t i) {
    if (grows) {
      window.insert(monoid.lift(item<Input>(i), 0));
      consume(window.query());
      if (window.size() == n) out.saw(n), grows = false;
    } else {
      window.evict();
      if (window.size() == 0) grows = true;
    }
  };
  time_rounds(out, rounds, laps, false, round);
  out.saw(window.size());
  return out;
}

// The order in which times arrive: at a fixed distance d from the youngest, or each delayed by up to d at random.
// Fixed: every second time is left out at first and comes d places later, so half of the inserts are at distance d.
inline std::vector<Time> arrivals(std::uint64_t count, std::size_t d, bool scattered) {
  std::vector<Time> times(count);
  for (std::uint64_t i = 0; i < count; ++i) times[i] = static_cast<Time>(i);
  if (d == 0) return times;
  if (scattered) {
    std::mt19937_64 random(1);
    std::vector<std::pair<std::uint64_t, Time>> order(count);
    for (std::uint64_t i = 0; i < count; ++i) order[i] = {i + random() % (d + 1), static_cast<Time>(i)};
    std::sort(order.begin(), order.end());
    for (std::uint64_t i = 0; i < count; ++i) times[i] = order[i].second;
  }
  return times;
}

// Out of order: the window is filled, then every round evicts the oldest, inserts at distance d, and queries. With a
// fixed distance the newest d entries are put in before, and each insert goes just below them, as in the paper.
template <class Window, class M>
Outcome out_of_order(Window& window, const M& monoid, std::size_t n, std::size_t d, std::uint64_t rounds, std::size_t laps, bool scattered,
                     bool latency) {
  using Input = typename M::Input;
  Outcome out;
  out.rounds = out.items = rounds;
  auto insert = [&](Time t, std::uint64_t i) { window.insert(t, monoid.lift(item<Input>(i), t)); };
  auto timed = [&](auto time_of) {
    out.saw(window.size());
    started<M>(out);
    auto round = [&](std::uint64_t i) {
      window.evict();
      insert(time_of(i), i);
      consume(window.query());
    };
    time_rounds(out, rounds, laps, latency, round);
    out.saw(window.size());
  };
  if (scattered) {
    std::vector<Time> times = arrivals(n + rounds * laps, d, true);
    for (std::size_t i = 0; i < n; ++i) insert(times[i], i);
    timed([&](std::uint64_t i) { return times[n + i]; });
  } else {
    // Entries below the gap count up from 0, the d above it stand far in the future.
    auto future = static_cast<Time>(n + rounds * laps + 1);
    for (std::size_t i = 0; i + d < n; ++i) insert(static_cast<Time>(i), i);
    for (std::size_t i = 0; i < d; ++i) insert(future + static_cast<Time>(i), i);
    timed([&](std::uint64_t i) { return static_cast<Time>(n - d + i); });
  }
  return out;
}

// Bulks of m: evict the m oldest at once, insert m (at distance d where d > 0), query. Ticks are of the evictions.
template <class Window, class M>
Outcome bulk(Window& window, const M& monoid, std::size_t n, std::size_t m, std::size_t d, std::uint64_t rounds, std::size_t laps,
             bool insert_in_bulk) {
  using Input = typename M::Input;
  using Partial = typename M::Partial;
  Outcome out;
  out.rounds = rounds;
  out.items = rounds * m;
  auto future = static_cast<Time>(n + rounds * laps * m + 1);
  for (std::size_t i = 0; i + d < n; ++i) window.insert(static_cast<Time>(i), monoid.lift(item<Input>(i), 0));
  for (std::size_t i = 0; i < d; ++i) window.insert(future + static_cast<Time>(i), monoid.lift(item<Input>(i), 0));
  out.saw(window.size());
  started<M>(out);
  std::vector<Time> times(m);
  std::vector<Partial> partials(m, monoid.identity());
  auto next = static_cast<Time>(n - d), oldest = Time{0};
  out.ticks.reserve(rounds * laps);
  auto round = [&](std::uint64_t) {
    std::uint64_t before = combines<M>(), start = ticks();
    window.bulk_evict(oldest + static_cast<Time>(m) - 1);
    out.ticks.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks() - start, UINT32_MAX)));
    out.evicting += combines<M>() - before;
    oldest += static_cast<Time>(m);
    if (insert_in_bulk) {
      for (std::size_t i = 0; i < m; ++i) {
        times[i] = next++;
        partials[i] = monoid.lift(item<Input>(i), 0);
      }
      if constexpr (requires { window.bulk_insert(std::span<const Time>(times), std::span<const Partial>(partials)); })
        window.bulk_insert(std::span<const Time>(times), std::span<const Partial>(partials));
      else
        for (std::size_t i = 0; i < m; ++i) window.insert(times[i], partials[i]);
    } else {
      for (std::size_t i = 0; i < m; ++i, ++next) window.insert(next, monoid.lift(item<Input>(i), 0));
    }
    consume(window.query());
  };
  time_rounds(out, rounds, laps, false, round);
  out.saw(window.size());
  return out;
}

}  // namespace sash::bench
