// One writer and three readers on a wheel: every answer equals brute force at the watermark it names
//
//   tests/tsan.sh builds this with ThreadSanitizer and runs it; it prints how many answers were compared.
//
// What arrives for a tick is a function of the tick alone, so brute force needs no record of what the writer has done: a view
// that names watermark w must hold the ticks before w, all of them, and nothing else.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "monoids/sum.hpp"
#include "wheel/wheel.hpp"

using namespace sash;

// Text under concatenation: lost, doubled or reordered ticks show, and partials own memory.
struct Text {
  using Partial = std::string;
  Partial identity() const { return {}; }
  Partial combine(const Partial& a, const Partial& b) const { return a + b; }
};

constexpr int per_tick = 3;

std::int64_t item(Tick t, int i) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(t) * 2654435761u + 97u * static_cast<unsigned>(i)) % 1001) - 500;
}

struct Sums {
  using Monoid = Sum<std::int64_t>;
  static Wide part(Tick t, int i) { return item(t, i); }
  static Wide whole(Tick from, Tick to) {
    std::int64_t all = 0;
    for (Tick t = from; t < to; ++t)
      for (int i = 0; i < per_tick; ++i) all += item(t, i);
    return all;
  }
};

struct Texts {
  using Monoid = Text;
  static std::string part(Tick t, int i) { return i ? "" : std::string(1, static_cast<char>('a' + (t % 26 + 26) % 26)); }
  static std::string whole(Tick from, Tick to) {
    std::string all;
    for (Tick t = from; t < to; ++t) all += part(t, 0);
    return all;
  }
};

template <class Case>
void run(const char* name, bool prefix, Tick ticks, unsigned seed) {
  WheelSettings settings;
  settings.start = -7;
  settings.write_ahead = 16;
  settings.levels = {{1, prefix ? 0 : 90, prefix, 8}, {4, 0, false, 2}, {12, 20, false, 2}};
  Wheel<typename Case::Monoid> wheel(typename Case::Monoid{}, settings);
  std::atomic<bool> done = false;
  std::atomic<long> answers = 0, refusals = 0;

  auto read = [&](unsigned reader) {
    std::mt19937 rng(seed * 31 + reader);
    do {
      auto view = [&] {
        std::lock_guard lock(wheel.mutex());
        return wheel.pin();
      }();
      Tick start = view.start(), w = view.watermark;
      for (int i = 0; i < 40; ++i) {
        auto at = [&] { return start + static_cast<Tick>(rng() % static_cast<std::uint64_t>(w - start + 1)); };
        Tick a = at(), b = at();
        if (i % 2) a = std::max(start, w - static_cast<Tick>(rng() % 60)), b = w;
        if (a > b) std::swap(a, b);
        try {
          if (view.query(a, b) != Case::whole(a, b)) {
            std::fprintf(stderr, "%s: [%ld, %ld) at watermark %ld is wrong\n", name, long(a), long(b), long(w));
            std::exit(1);
          }
          ++answers;
        } catch (const RangeRefused& refused) {
          if (prefix || refused.why != RangeRefused::not_retained) std::exit(2);
          ++refusals;
        }
      }
      if (view.landmark() != Case::whole(start, w)) {
        std::fprintf(stderr, "%s: the landmark at watermark %ld is wrong\n", name, long(w));
        std::exit(1);
      }
    } while (!done.load());
  };

  std::vector<std::thread> readers;
  for (unsigned i = 0; i < 3; ++i) readers.emplace_back(read, i);

  // Items arrive up to 40 ticks ahead of the watermark, youngest first; the watermark follows in steps.
  std::mt19937 rng(seed);
  std::vector<typename Wheel<typename Case::Monoid>::Result> results;
  std::vector<Tick> arrived(per_tick, settings.start);
  Tick watermark = settings.start;
  while (watermark < ticks) {
    Tick to = std::min(ticks, watermark + 1 + static_cast<Tick>(rng() % 12));
    for (int i = 0; i < per_tick; ++i) {
      Tick ahead = std::max(arrived[i], std::min(ticks, to + static_cast<Tick>(rng() % 40)));
      for (Tick t = ahead - 1; t >= arrived[i]; --t) wheel.insert(t, Case::part(t, i));
      arrived[i] = ahead;
    }
    if (wheel.insert(watermark - 1, Case::part(0, 0))) std::exit(3);  // late: refused
    watermark = to;
    std::lock_guard lock(wheel.mutex());
    wheel.advance(watermark, false, results);
  }
  done = true;
  for (auto& reader : readers) reader.join();
  std::printf("%-14s %8ld answers right, %ld refused\n", name, answers.load(), refusals.load());
}

int main(int argc, char** argv) {
  Tick ticks = argc > 1 ? std::atol(argv[1]) : 3000;
  run<Sums>("sum", false, ticks, 1);
  run<Sums>("sum, prefix", true, ticks, 2);
  run<Texts>("text", false, ticks, 3);
}
