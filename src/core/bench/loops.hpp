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
  double seconds = 0;
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

// In order: n items in the window, then rounds.
template <class Window, class M>
Outcome fifo(Window& window, const M& monoid, std::size_t n, std::uint64_t rounds, bool latency) {
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
  if (latency) {
    out.ticks.resize(rounds);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      std::uint64_t start = ticks();
      round(i);
      out.ticks[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks() - start, UINT32_MAX));
    }
  } else {
    Clock clock;
    for (std::uint64_t i = 0; i < rounds; ++i) round(i);
    out.seconds = clock.seconds();
  }
  out.saw(window.size());
  return out;
}

// Grows and shrinks: fills to n with a query each, empties to none without, over and over (the DABA paper's dynamic windows).
template <class Window, class M>
Outcome dynamic(Window& window, const M& monoid, std::size_t n, std::uint64_t rounds) {
  using Input = typename M::Input;
  Outcome out;
  out.rounds = out.items = rounds;
  Clock clock;
  for (std::uint64_t i = 0; i < rounds;) {
    for (; window.size() < n && i < rounds; ++i) {
      window.insert(monoid.lift(item<Input>(i), 0));
      consume(window.query());
    }
    out.saw(window.size());
    for (; window.size() > 0 && i < rounds; ++i) window.evict();
  }
  out.seconds = clock.seconds();
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
Outcome out_of_order(Window& window, const M& monoid, std::size_t n, std::size_t d, std::uint64_t rounds, bool scattered) {
  using Input = typename M::Input;
  Outcome out;
  out.rounds = out.items = rounds;
  Clock clock;
  if (scattered) {
    std::vector<Time> times = arrivals(n + rounds, d, true);
    for (std::size_t i = 0; i < n; ++i) window.insert(times[i], monoid.lift(item<Input>(i), times[i]));
    out.saw(window.size());
    clock = Clock();
    for (std::uint64_t i = n; i < n + rounds; ++i) {
      window.evict();
      window.insert(times[i], monoid.lift(item<Input>(i), times[i]));
      consume(window.query());
    }
    out.seconds = clock.seconds();
  } else {
    // Entries below the gap count up from 0, the d above it stand far in the future.
    auto future = static_cast<Time>(n + rounds + 1);
    for (std::size_t i = 0; i + d < n; ++i) window.insert(static_cast<Time>(i), monoid.lift(item<Input>(i), 0));
    for (std::size_t i = 0; i < d; ++i) window.insert(future + static_cast<Time>(i), monoid.lift(item<Input>(i), 0));
    out.saw(window.size());
    auto next = static_cast<Time>(n - d);
    clock = Clock();
    for (std::uint64_t i = 0; i < rounds; ++i, ++next) {
      window.evict();
      window.insert(next, monoid.lift(item<Input>(i), next));
      consume(window.query());
    }
    out.seconds = clock.seconds();
  }
  out.saw(window.size());
  return out;
}

// Bulks of m: evict the m oldest at once, insert m (at distance d where d > 0), query.
template <class Window, class M>
Outcome bulk(Window& window, const M& monoid, std::size_t n, std::size_t m, std::size_t d, std::uint64_t rounds, bool insert_in_bulk) {
  using Input = typename M::Input;
  using Partial = typename M::Partial;
  Outcome out;
  out.rounds = rounds;
  out.items = rounds * m;
  auto future = static_cast<Time>(n + rounds * m + 1);
  for (std::size_t i = 0; i + d < n; ++i) window.insert(static_cast<Time>(i), monoid.lift(item<Input>(i), 0));
  for (std::size_t i = 0; i < d; ++i) window.insert(future + static_cast<Time>(i), monoid.lift(item<Input>(i), 0));
  out.saw(window.size());
  std::vector<Time> times(m);
  std::vector<Partial> partials(m, monoid.identity());
  auto next = static_cast<Time>(n - d), oldest = Time{0};
  out.ticks.resize(rounds);
  Clock clock;
  for (std::uint64_t r = 0; r < rounds; ++r) {
    std::uint64_t start = ticks();
    window.bulk_evict(oldest + static_cast<Time>(m) - 1);
    out.ticks[r] = static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks() - start, UINT32_MAX));
    oldest += static_cast<Time>(m);
    if (insert_in_bulk) {
      for (std::size_t i = 0; i < m; ++i) {
        times[i] = next++;
        partials[i] = monoid.lift(item<Input>(i), 0);
      }
      window.bulk_insert(std::span<const Time>(times), std::span<const Partial>(partials));
    } else {
      for (std::size_t i = 0; i < m; ++i, ++next) window.insert(next, monoid.lift(item<Input>(i), 0));
    }
    consume(window.query());
  }
  out.seconds = clock.seconds();
  out.saw(window.size());
  return out;
}

}  // namespace sash::bench
