// Look-backs from points in time: of rows, or of labels that are no rows themselves
//
//   entries of a key    e0   e1   e2      e3        e4
//                           |<----- period ----->|
//   point                                         p         stretch [e1, e3], or from the hop that its far end is in
//
// The points of a key come in order of time, so both ends of their stretches only grow.

#pragma once

#include "runs.hpp"

namespace sash::engine {

struct Lookback {
  Unit unit = Unit::time;
  std::int64_t length = 0;  // microseconds or rows
  Time hop = 0;             // above 0: the far end is the beginning of a hop
  Time delay = 0;
  bool takes_left = false, takes_right = true;

  // The first time that counts from a point.
  Time first(Time t) const {
    t -= delay;
    if (hop > 0) return floor_div(t - length, hop) * hop;
    return takes_left ? t - length : t - length + 1;
  }
  bool before_end(Time entry, Time t) const { return entry < t - delay || (takes_right && entry == t - delay); }
};

// keys: the number of each point's key, not decreasing; times do not decrease within a key. A point of a key that the run does not
// have (its number is the number of keys) gets an empty stretch at the end.
inline Stretches point_stretches(const std::int64_t* starts, const Time* times, std::size_t keys, const std::int32_t* point_keys,
                                 const Time* point_times, std::size_t n, const Lookback& back) {
  Stretches out;
  out.from.resize(n);
  out.to.resize(n);
  std::size_t j = 0;
  while (j < n && static_cast<std::size_t>(point_keys[j]) < keys) {
    auto k = static_cast<std::size_t>(point_keys[j]);
    std::int64_t begin = starts[k], stop = starts[k + 1];
    std::int64_t first_row = begin < stop && times[begin] == before_all ? begin + 1 : begin;
    std::int64_t from = back.unit == Unit::all ? begin : first_row, to = from;
    for (; j < n && static_cast<std::size_t>(point_keys[j]) == k; ++j) {
      Time t = point_times[j];
      while (to < stop && back.before_end(times[to], t)) ++to;
      if (back.unit == Unit::rows) from = std::max(first_row, to - back.length);
      if (back.unit == Unit::time)
        for (Time first = back.first(t); from < to && times[from] < first;) ++from;
      out.from[j] = from;
      out.to[j] = to;
    }
  }
  for (; j < n; ++j) out.from[j] = out.to[j] = starts[keys];
  return out;
}

struct Coarse {
  Layout layout;
  Places places;
};

// Entries before `before`, but for the last `rows` of a key, become one per hop, at its beginning: look-backs that reach them take
// whole hops. The keys stay as they are.
inline Coarse coarsen(const std::int64_t* starts, const Time* times, std::size_t keys, Time before, std::int64_t rows, Time hop) {
  Coarse out;
  out.places.resize(static_cast<std::size_t>(starts[keys]));
  out.layout.starts.push_back(0);
  auto& kept = out.layout.times;
  for (std::size_t k = 0; k < keys; ++k) {
    std::int64_t from = starts[k], to = starts[k + 1];
    std::int64_t cut = std::min<std::int64_t>(std::lower_bound(times + from, times + to, before) - times, to - rows);
    for (std::int64_t i = from; i < to; ++i) {
      Time t = i < cut && times[i] != before_all ? floor_div(times[i], hop) * hop : times[i];
      bool joins = i > from && i < cut && kept.back() == t;
      if (!joins) kept.push_back(t);
      out.places[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(kept.size()) - 1;
    }
    out.layout.starts.push_back(static_cast<std::int64_t>(kept.size()));
  }
  return out;
}

// Of each stretch [from, to) the first entry at or after a time, `to` if there is none.
inline Vec<std::int64_t> first_from(const Time* times, const std::int64_t* from, const std::int64_t* to, const Time* bounds,
                                    std::size_t n) {
  Vec<std::int64_t> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = std::lower_bound(times + from[i], times + to[i], bounds[i]) - times;
  return out;
}

}  // namespace sash::engine
