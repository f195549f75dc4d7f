// The experiments on wheels: streams under a watermark, questions about history, and memory
//
// Beside a wheel run the structures that could serve instead: FiBA and a B-tree by time, FlatFAT as a segment tree by position.
// Every loop gives a check sum of its answers, so that contenders that disagree are found out.

#pragma once

#include <malloc.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "../monoids/sum.hpp"
#include "../swag/btree.hpp"
#include "../swag/fiba.hpp"
#include "../swag/flat_fat.hpp"
#include "../wheel/wheel.hpp"
#include "loops.hpp"

namespace sash::bench {

constexpr Time second = 1'000'000;

struct WheelOutcome : Outcome {
  std::int64_t sum = 0;  // of all answers
  std::uint64_t answers = 0;
  std::size_t bytes = 0;
};

// 100 events a second; some of them late by up to `delay` seconds. The watermark follows every 100 events, so that none is
// refused.
struct Events {
  static constexpr std::size_t per_watermark = 100;
  std::vector<Time> times;
  std::vector<std::int64_t> values;
  std::int64_t delay = 0;

  Events(std::size_t n, double late, std::int64_t longest) : times(n), values(n), delay(late > 0 ? longest : 0) {
    std::mt19937_64 rng(7);
    auto start = delay;  // seconds: nobody is late before the stream begins
    for (std::size_t i = 0; i < n; ++i) {
      times[i] = (start * 100 + static_cast<Time>(i)) * (second / 100);
      if (static_cast<double>(rng() >> 11) * 0x1p-53 < late)
        times[i] -= static_cast<Time>(rng() % static_cast<std::uint64_t>(delay * second));
      values[i] = item<std::int64_t>(i);
    }
  }

  // After the first n events.
  Time watermark(std::size_t n) const { return static_cast<Time>(n) * (second / 100); }
};

template <class M>
WheelSettings seconds_to_weeks(std::size_t write_ahead, bool prefix) {
  WheelSettings settings;
  settings.grain = second;
  settings.write_ahead = write_ahead;
  for (std::int64_t size : {1, 60, 3600, 86400, 604800}) settings.levels.push_back({size, 0, prefix, 0});
  settings.inverse = settings.commutative = true;
  return settings;
}

// A stream into a wheel; with a range, its windows as they end.
template <class M>
WheelOutcome stream_wheel(const M& monoid, const Events& events, std::size_t write_ahead, Tick range, Tick slide) {
  WheelOutcome out;
  Wheel<M> wheel(monoid, seconds_to_weeks<M>(write_ahead, false));
  if (range) wheel.install({range, slide, 0, 0});
  std::vector<typename Wheel<M>::Result> results;
  Clock clock;
  for (std::size_t i = 0; i < events.times.size(); i += Events::per_watermark) {
    std::size_t n = std::min(Events::per_watermark, events.times.size() - i);
    wheel.insert_many(events.times.data() + i, n, [&](std::size_t j) { return monoid.lift(events.values[i + j], 0); });
    results.clear();
    wheel.advance(events.watermark(i + n), true, results);
    for (auto& r : results) out.sum += monoid.lower(Lower::sum, r.value).i, ++out.answers;
  }
  out.laps = {out.seconds = clock.seconds()};
  if (wheel.late()) throw std::logic_error("events were late");
  if (!range) {
    wheel.advance(events.watermark(events.times.size()) + (events.delay + 1) * second, true, results);
    out.sum = monoid.lower(Lower::sum, wheel.view().landmark()).i, out.answers = 1;
  }
  return out;
}

// The same in a tree by time, cut into grains.
template <class Tree, class M>
WheelOutcome stream_tree(Tree tree, const M& monoid, const Events& events, Tick grain, Tick range, Tick slide) {
  WheelOutcome out;
  Divider divide(grain * second);
  Tick start = 0, wide = range / grain, step = slide / grain;
  Clock clock;
  for (std::size_t i = 0; i < events.times.size(); i += Events::per_watermark) {
    std::size_t stop = std::min(i + Events::per_watermark, events.times.size());
    for (std::size_t j = i; j < stop; ++j) tree.insert(divide(events.times[j]), monoid.lift(events.values[j], 0));
    for (Tick now = divide(events.watermark(stop)); start + wide <= now; start += step) {
      out.sum += monoid.lower(Lower::sum, tree.query(start, start + wide - 1)).i, ++out.answers;
      tree.bulk_evict(start + step - 1);
    }
  }
  out.laps = {out.seconds = clock.seconds()};
  return out;
}

// Ranges [from, to) of a history, in seconds.
struct Ranges {
  std::vector<std::pair<Tick, Tick>> all;
  Ranges(const std::string& aligned, Tick seconds, std::size_t n) {
    std::mt19937_64 rng(11);
    Tick unit = aligned == "minutes" ? 60 : 1;
    while (all.size() < n) {
      auto at = [&] { return static_cast<Tick>(rng() % static_cast<std::uint64_t>(seconds / unit + 1)) * unit; };
      Tick a = at(), b = at();
      if (aligned == "landmark") a = 0, b = seconds;
      if (a != b) all.emplace_back(std::min(a, b), std::max(a, b));
    }
  }
};

inline std::size_t in_use() {
  struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

// A history of one event per second in one of the structures, then questions, each timed by itself. many: all in one go instead.
template <class M, class Build, class Ask>
WheelOutcome ask(const M& monoid, const Ranges& ranges, std::size_t laps, Build build, Ask question) {
  WheelOutcome out;
  std::size_t before = in_use();
  auto history = build();
  out.bytes = in_use() - before;
  started<M>(out);
  for (std::size_t lap = 0; lap < laps; ++lap) {
    Clock clock;
    for (auto& [from, to] : ranges.all) {
      std::uint64_t start = ticks();
      auto answer = question(*history, from, to);
      consume(answer);
      out.ticks.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks() - start, UINT32_MAX)));
      if (lap == 0) out.sum += monoid.lower(Lower::sum, answer).i, ++out.answers;
    }
    out.laps.push_back(out.seconds = clock.seconds());
  }
  return out;
}

template <class M>
WheelOutcome query(const M& monoid, const std::string& contender, const std::string& aligned, Tick seconds, std::size_t n,
                   std::size_t laps) {
  Ranges ranges(aligned, seconds, n);
  auto value = [&](Tick t) { return monoid.lift(item<std::int64_t>(static_cast<std::uint64_t>(t)), 0); };
  if (contender == "wheel" || contender == "wheel_prefix" || contender == "wheel_inverse") {
    auto build = [&] {
      auto settings = seconds_to_weeks<M>(64, contender == "wheel_prefix");
      settings.hints = {contender == "wheel_inverse", true, 160};  // as sash.wheel has it
      auto wheel = std::make_unique<Wheel<M>>(monoid, settings);
      std::vector<typename Wheel<M>::Result> results;
      for (Tick t = 0; t < seconds; ++t) {
        wheel->insert(t * second, value(t));
        wheel->advance((t + 1) * second, false, results);
      }
      return wheel;
    };
    return ask(monoid, ranges, laps, build, [](auto& w, Tick a, Tick b) { return w.view().query(a * second, b * second); });
  }
  auto filled = [&](auto made) {
    for (Tick t = 0; t < seconds; ++t) made->insert(t, value(t));
    return made;
  };
  auto by_time = [](auto& tree, Tick a, Tick b) { return tree.query(a, b - 1); };
  if (contender == "fiba") return ask(monoid, ranges, laps, [&] { return filled(std::make_unique<Fiba<M>>(monoid)); }, by_time);
  if (contender == "b_tree") return ask(monoid, ranges, laps, [&] { return filled(std::make_unique<BTree<M>>(monoid)); }, by_time);
  if (contender == "flat_fat") {
    auto build = [&] {
      auto made = std::make_unique<FlatFat<M>>(monoid);
      for (Tick t = 0; t < seconds; ++t) made->insert(value(t));
      return made;
    };
    return ask(monoid, ranges, laps, build,
               [](auto& tree, Tick a, Tick b) { return tree.query(static_cast<std::size_t>(a), static_cast<std::size_t>(b) - 1); });
  }
  throw std::invalid_argument("no history is kept in " + contender);
}

template <class M>
WheelOutcome stream(const M& monoid, const std::string& contender, std::size_t n, double late, std::size_t write_ahead, Tick range,
                    Tick slide) {
  Events events(n, late, static_cast<std::int64_t>(write_ahead) / 2);
  if (contender == "wheel") return stream_wheel(monoid, events, write_ahead, range, slide);
  if (range == 0) throw std::invalid_argument(contender + " runs with windows only");
  if (contender == "fiba") return stream_tree(Fiba<M>(monoid), monoid, events, 1, range, slide);
  if (contender == "fiba_slide") return stream_tree(Fiba<M>(monoid), monoid, events, slide, range, slide);
  throw std::invalid_argument("no stream runs through " + contender);
}

}  // namespace sash::bench
