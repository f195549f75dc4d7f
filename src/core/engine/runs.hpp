// Sorted runs: the slices of many keys, in order of key and time
//
//   keys     k0            k1      k2
//   starts   0             3       4             6
//   times    10  20  50  | 10    | 30  40      |        a pane's number, or a row's time
//   columns  p0  p1  p2  | p3    | p4  p5      |        partials, one column per aggregation
//
// Everything the engine does is one of: group rows into a run, merge two runs, fold the old end of every key, and
// find the stretch [from, to) of the run that a window or look-back covers. What happens to the places is computed once,
// here; every column then follows the same map of places (column.hpp). -1 in such a map means dropped.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "../monoid.hpp"
#include "keys.hpp"
#include "memory.hpp"

namespace sash::engine {

inline constexpr Time before_all = std::numeric_limits<Time>::min();  // the time of the folded past of a key
inline constexpr Time after_all = std::numeric_limits<Time>::max();

using Places = Vec<std::int32_t>;

struct Layout {
  Vec<std::int64_t> starts;  // one more than keys
  Vec<Time> times;
};

inline Time floor_div(Time a, Time b) {
  Time q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

// --- rows to slices ---------------------------------------------------------------------------------------

struct Sliced {
  Layout layout;
  Places places;           // of every row, -1 for a row without a time
  Vec<std::int64_t> rows;  // of every slice
  Vec<Time> latest;        // of every key
};

namespace detail {

// Sorts things by key, then by time and tied(a, b) within a key; gives each thing's new place. Times are sorted beside the
// things' numbers: a comparison that looks each up elsewhere took three times as long.
template <class TimeOf, class Tied>
Places sort_by_key(const std::int32_t* key_of, std::size_t n, std::size_t keys, Vec<std::int64_t>& starts, TimeOf time_of, Tied tied) {
  struct Entry {
    Time time;
    std::int32_t thing;
  };
  starts.assign(keys + 1, 0);
  for (std::size_t i = 0; i < n; ++i) ++starts[static_cast<std::size_t>(key_of[i]) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  Vec<std::int64_t> next(starts.begin(), starts.end() - 1);
  Vec<Entry> entries(n);
  for (std::size_t i = 0; i < n; ++i) {
    auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(key_of[i])]++);
    entries[at] = {time_of(i), static_cast<std::int32_t>(i)};
  }
  auto less = [&](const Entry& a, const Entry& b) {
    if (a.time != b.time) return a.time < b.time;
    int tie = tied(a.thing, b.thing);
    return tie ? tie < 0 : a.thing < b.thing;
  };
  for (std::size_t k = 0; k < keys; ++k) {
    auto from = entries.begin() + starts[k], to = entries.begin() + starts[k + 1];
    if (!std::is_sorted(from, to, less)) std::sort(from, to, less);
  }
  Places places(n);
  for (std::size_t i = 0; i < n; ++i) places[static_cast<std::size_t>(entries[i].thing)] = static_cast<std::int32_t>(i);
  return places;
}

}  // namespace detail

// Rows of one key and one grain become one slice. Rows come roughly in time order, so each key remembers its last
// slice: no division and no look-up for most rows.
inline Sliced slice_rows(const std::int32_t* ids, const Time* times, const std::uint8_t* valid, std::size_t n, std::size_t keys, Time grain,
                         Time offset) {
  struct Last {
    Time start = before_all;
    Time latest = before_all;
    std::int32_t slice = -1;
  };
  Sliced out;
  out.places.resize(n);
  Vec<Last> last(keys);
  Vec<std::int32_t> key_of;
  Vec<Time> panes;
  Numbering numbers(keys);
  for (std::size_t i = 0; i < n; ++i) {
    if (valid && !valid[i]) {
      out.places[i] = -1;
      continue;
    }
    Last& cached = last[static_cast<std::size_t>(ids[i])];
    cached.latest = std::max(cached.latest, times[i]);
    if (static_cast<std::uint64_t>(times[i]) - static_cast<std::uint64_t>(cached.start) >= static_cast<std::uint64_t>(grain) ||
        cached.slice < 0) {
      Time pane = floor_div(times[i] - offset, grain);
      std::uint64_t hash = hash_of(hash_of(static_cast<std::uint64_t>(pane)) + static_cast<std::uint64_t>(ids[i]));
      std::uint32_t before = numbers.size();
      std::uint32_t id = numbers.find_or_add(hash, [&](std::uint32_t s) { return panes[s] == pane && key_of[s] == ids[i]; });
      if (id == before) {
        key_of.push_back(ids[i]);
        panes.push_back(pane);
      }
      cached.start = pane * grain + offset;
      cached.slice = static_cast<std::int32_t>(id);
    }
    out.places[i] = cached.slice;
  }
  Places place = detail::sort_by_key(
      key_of.data(), key_of.size(), keys, out.layout.starts, [&](std::size_t s) { return panes[s]; },
      [](std::int32_t, std::int32_t) { return 0; });
  for (const Last& cached : last) out.latest.push_back(cached.latest);
  out.layout.times.resize(panes.size());
  out.rows.resize(panes.size());
  for (std::size_t s = 0; s < panes.size(); ++s) out.layout.times[static_cast<std::size_t>(place[s])] = panes[s];
  for (auto& p : out.places) {
    if (p < 0) continue;
    p = place[static_cast<std::size_t>(p)];
    ++out.rows[static_cast<std::size_t>(p)];
  }
  return out;
}

// Every row is an entry of its own: by key, time, and then by further columns, so that the order is the same whatever
// the order of arrival.
inline Sliced order_rows(const std::int32_t* ids, const Time* times, std::size_t n, const std::vector<const std::int64_t*>& ties,
                         std::size_t keys) {
  Sliced out;
  auto tied = [&](std::int32_t a, std::int32_t b) {
    for (const std::int64_t* tie : ties)
      if (tie[a] != tie[b]) return tie[a] < tie[b] ? -1 : 1;
    return 0;
  };
  out.places = detail::sort_by_key(ids, n, keys, out.layout.starts, [&](std::size_t i) { return times[i]; }, tied);
  out.layout.times.resize(n);
  for (std::size_t i = 0; i < n; ++i) out.layout.times[static_cast<std::size_t>(out.places[i])] = times[i];
  return out;
}

// --- runs to runs -----------------------------------------------------------------------------------------

struct Merged {
  KeyTable keys;
  Layout layout;
  Places left, right;
};

// Two runs as one. Slices of equal key and time become one place if `combine`, else the left one comes first.
// Slices before `oldest` are left out on the way: a watermark has passed them.
inline Merged merge_runs(const KeyTable& a_keys, const std::int64_t* a_starts, const Time* a, const KeyTable& b_keys,
                         const std::int64_t* b_starts, const Time* b, bool combine, Time oldest) {
  Merged out;
  std::size_t an = a_keys.size(), bn = b_keys.size();
  out.left.resize(static_cast<std::size_t>(a_starts[an]));
  out.right.resize(static_cast<std::size_t>(b_starts[bn]));
  out.layout.times.reserve(out.left.size() + out.right.size());
  out.layout.starts.push_back(0);
  auto& times = out.layout.times;
  auto put = [&](Places& places, std::int64_t i, Time t) {
    if (t < oldest) {
      places[static_cast<std::size_t>(i)] = -1;
      return;
    }
    places[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(times.size());
    times.push_back(t);
  };
  for (std::size_t i = 0, j = 0; i < an || j < bn;) {
    int order = i == an ? 1 : j == bn ? -1 : a_keys.compare(i, b_keys, j);
    std::int64_t x = order <= 0 ? a_starts[i] : 0, xn = order <= 0 ? a_starts[i + 1] : 0;
    std::int64_t y = order >= 0 ? b_starts[j] : 0, yn = order >= 0 ? b_starts[j + 1] : 0;
    while (x < xn && y < yn) {
      if (combine && a[x] == b[y]) {
        put(out.left, x, a[x]);
        out.right[static_cast<std::size_t>(y)] = out.left[static_cast<std::size_t>(x)];
        ++x, ++y;
      } else if (a[x] <= b[y]) {
        put(out.left, x, a[x]), ++x;
      } else {
        put(out.right, y, b[y]), ++y;
      }
    }
    for (; x < xn; ++x) put(out.left, x, a[x]);
    for (; y < yn; ++y) put(out.right, y, b[y]);
    if (static_cast<std::int64_t>(times.size()) > out.layout.starts.back()) {
      if (order <= 0)
        out.keys.push_back(a_keys.hash(i), a_keys.key(i));
      else
        out.keys.push_back(b_keys.hash(j), b_keys.key(j));
      out.layout.starts.push_back(static_cast<std::int64_t>(times.size()));
    }
    i += order <= 0;
    j += order >= 0;
  }
  return out;
}

struct Kept {
  KeyTable keys;
  Layout layout;
  Places places;
};

// Which entries of a key still matter: those not before `oldest`, and its last `rows`; the ones before them are
// folded into one entry at the key's beginning, or dropped. `only` >= 0: all other keys are dropped.
inline Kept keep_entries(const KeyTable& keys, const std::int64_t* starts, const Time* times, Time oldest, std::int64_t rows, bool fold,
                         std::int64_t only) {
  Kept out;
  std::size_t n = keys.size();
  out.places.resize(static_cast<std::size_t>(starts[n]));
  out.layout.starts.push_back(0);
  auto& kept = out.layout.times;
  for (std::size_t k = 0; k < n; ++k) {
    std::int64_t from = starts[k], to = starts[k + 1];
    bool whole = only < 0 || only == static_cast<std::int64_t>(k);
    std::int64_t first_row = from;  // after what was folded before, perhaps in several runs that were merged
    while (first_row < to && times[first_row] == before_all) ++first_row;
    std::int64_t cut = std::lower_bound(times + from, times + to, oldest) - times;
    cut = whole ? std::max(first_row, std::min(cut, to - rows)) : to;
    bool folded = fold && whole && cut > from;
    auto base = folded ? static_cast<std::int32_t>(kept.size()) : -1;
    if (folded) kept.push_back(before_all);
    for (std::int64_t i = from; i < cut; ++i) out.places[static_cast<std::size_t>(i)] = base;
    for (std::int64_t i = cut; i < to; ++i) {
      out.places[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(kept.size());
      kept.push_back(times[i]);
    }
    if (static_cast<std::int64_t>(kept.size()) > out.layout.starts.back()) {
      out.keys.push_back(keys.hash(k), keys.key(k));
      out.layout.starts.push_back(static_cast<std::int64_t>(kept.size()));
    }
  }
  return out;
}

// --- windows and look-backs to stretches --------------------------------------------------------------------

// Stretches [from, to) of a run that do not step back: both ends only grow, so two stacks serve all of them.
struct Stretches {
  Vec<std::int64_t> from, to;
};

struct WindowStretches {
  Stretches stretches;
  Vec<std::int32_t> key;
  Vec<Time> end;  // in panes
};

// All windows with at least one slice, of the keys [first_key, last_key), that end in [first_end, last_end]; range, slide and
// ends in panes. A window ends at k * slide + range.
inline WindowStretches window_stretches(const std::int64_t* starts, const Time* panes, std::size_t first_key, std::size_t last_key,
                                        Time range, Time slide, Time first_end, Time last_end) {
  WindowStretches out;
  auto round_up = [&](Time end) { return -floor_div(-(end - range), slide) * slide + range; };  // to the end of a window
  for (std::size_t k = first_key; k < last_key; ++k) {
    std::int64_t to = starts[k], stop = starts[k + 1];
    Time first = round_up(first_end);
    std::int64_t from = std::lower_bound(panes + to, panes + stop, first - range) - panes;
    to = from;
    Time end = first;
    while (from < stop) {
      Time earliest = floor_div(panes[from] - range, slide) * slide + slide + range;  // no window before holds a slice
      end = std::max(end, earliest);
      if (end > last_end) break;
      while (to < stop && panes[to] < end) ++to;
      out.stretches.from.push_back(from);
      out.stretches.to.push_back(to);
      out.key.push_back(static_cast<std::int32_t>(k));
      out.end.push_back(end);
      end += slide;
      while (from < stop && panes[from] < end - range) ++from;
    }
  }
  return out;
}

enum class Unit : std::uint8_t { time, rows, all };

// The look-back of each of the given entries (ascending places): a period, a number of rows, or the whole past.
inline Stretches lookback_stretches(const std::int64_t* starts, const Time* times, std::size_t keys, const std::int32_t* entries,
                                    std::size_t n, Unit unit, std::int64_t length, bool takes_left, bool takes_right) {
  Stretches out;
  out.from.resize(n);
  out.to.resize(n);
  std::size_t j = 0;
  for (std::size_t k = 0; k < keys && j < n; ++k) {
    std::int64_t begin = starts[k], stop = starts[k + 1];
    std::int64_t first_row = begin < stop && times[begin] == before_all ? begin + 1 : begin;
    std::int64_t from = unit == Unit::all ? begin : first_row, to = from;
    for (; j < n && entries[j] < stop; ++j) {
      std::int64_t at = entries[j];
      if (unit == Unit::rows) {
        from = std::max(first_row, at - length + (takes_left ? 0 : 1));
        to = std::max(from, at + (takes_right ? 1 : 0));
      } else {
        Time t = times[at];
        while (to < stop && (times[to] < t || (takes_right && times[to] == t))) ++to;
        if (unit == Unit::time)
          while (from < to && (takes_left ? times[from] < t - length : times[from] <= t - length)) ++from;
      }
      out.from[j] = from;
      out.to[j] = to;
    }
  }
  return out;
}

}  // namespace sash::engine
