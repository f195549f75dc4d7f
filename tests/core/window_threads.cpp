// Windows and keyed wheels in many threads: each thread has its own, and some go from thread to thread behind a lock, as Python hands
// them on; every answer equals a plain list
//
//   tests/tsan.sh builds this with ThreadSanitizer and runs it. Structures share nothing but their monoid: what they keep aside for
//   themselves (pools, spare chunks, counters) would show as a race.

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "monoids/sum.hpp"
#include "swag/amta.hpp"
#include "swag/bint.hpp"
#include "swag/block_fiba.hpp"
#include "swag/daba.hpp"
#include "swag/daba_lite.hpp"
#include "swag/fiba.hpp"
#include "swag/flat_fat.hpp"
#include "swag/flat_fit.hpp"
#include "swag/recalc.hpp"
#include "swag/subtract_on_evict.hpp"
#include "swag/two_stacks.hpp"
#include "swag/two_stacks_lite.hpp"
#include "wheel/keyed.hpp"

using namespace sash;
using M = Sum<std::int64_t>;

static void require_equal(const Wide& found, std::int64_t wanted, const char* what) {
  if (found == Wide(wanted)) return;
  std::printf("%s: a wrong answer\n", what);
  std::exit(1);
}

// Inserts, evictions and queries of one window, beside a list.
template <class Window>
struct Beside {
  explicit Beside(const M& monoid) : window(monoid) {}

  void step(std::mt19937& rng, const char* what) {
    std::lock_guard held(lock);
    auto value = static_cast<std::int64_t>(rng() % 1000);
    if (rng() % 5 < 3 || items.empty()) {
      if constexpr (requires { window.insert(Time{}, Wide(value)); })
        window.insert(next, Wide(value));
      else
        window.insert(Wide(value));
      ++next;
      items.push_back(value);
      sum += value;
    } else {
      window.evict();
      sum -= items.front();
      items.pop_front();
    }
    require_equal(window.query(), sum, what);
  }

  Window window;
  std::deque<std::int64_t> items;
  std::int64_t sum = 0;
  Time next = 0;
  std::mutex lock;
};

template <class Window>
void run(const char* what, int steps) {
  const M monoid;
  Beside<Window> shared(monoid);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      std::mt19937 rng(i);
      Beside<Window> own(monoid);
      for (int s = 0; s < steps; ++s) (s % 4 ? own : shared).step(rng, what);
    });
  for (auto& t : threads) t.join();
  std::printf("%s: %d answers\n", what, 4 * steps);
}

void run_keyed(int steps) {
  const M monoid;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      WheelSettings settings;
      settings.levels = {{1, 0, false}, {10, 0, false}};
      KeyedWheels<M> wheels(monoid, settings);
      wheels.grow(5);
      std::mt19937 rng(i);
      std::vector<std::int64_t> sums(5);
      std::vector<std::pair<std::uint32_t, std::int64_t>> open;
      Time now = 0;
      for (int s = 0; s < steps; ++s) {
        std::uint32_t key = rng() % 5;
        auto value = static_cast<std::int64_t>(rng() % 1000);
        wheels.insert(key, now, Wide(value));
        open.emplace_back(key, value);
        if (rng() % 3) continue;
        wheels.advance(++now);
        for (auto& [k, v] : open) sums[k] += v;
        open.clear();
        auto found = wheels.query(key, wheels.range(0, now));
        require_equal(found ? *found : Wide(0), sums[key], "KeyedWheels");
      }
    });
  for (auto& t : threads) t.join();
  std::printf("KeyedWheels: %d steps\n", 4 * steps);
}

int main(int argc, char** argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 4000;
  run<Recalc<M>>("Recalc", steps / 10);
  run<SubtractOnEvict<M>>("SubtractOnEvict", steps);
  run<TwoStacks<M>>("TwoStacks", steps);
  run<TwoStacksLite<M>>("TwoStacksLite", steps);
  run<Daba<M>>("Daba", steps);
  run<DabaLite<M>>("DabaLite", steps);
  run<FlatFit<M>>("FlatFit", steps);
  run<FlatFat<M>>("FlatFat", steps);
  run<BInt<M>>("BInt", steps);
  run<Amta<M>>("Amta", steps);
  run<Fiba<M>>("Fiba", steps);
  run<BlockFiba<M>>("BlockFiba", steps);
  run_keyed(steps);
  return 0;
}
