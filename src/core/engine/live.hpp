// The live structure of a bucket: its state between micro-batches
//
//   keys    bytes -> a dense number; the numbers of keys that left are used again
//   held    per key a window over slices or rows (shelf.hpp), one row of words per entry (record.hpp), and objects beside it
//           (objects.hpp); hops, where the far end of a look-back is coarse; the folded past, where one is the whole past
//   due     when a key must be looked at next:
//             windows    at its first end after the last one closed that a slice of it is in
//             oldest     when its oldest entry is to leave
//             sessions   when its first session is over, as far as its entries were walked
//             changes    when an entry enters or leaves one of the look-backs of the watermark
//
// A micro-batch inserts what came, visits the keys that are due, and answers ranges: it costs what changed, not what is held.

#pragma once

#include "column.hpp"
#include "held.hpp"
#include "live_keys.hpp"

namespace sash::engine {

// What makes a key due; times and panes as the entries have them.
struct Plan {
  enum Kind : std::uint8_t { windows, oldest, sessions, changes };
  Kind kind = oldest;
  bool apart = false;         // rows of equal time stay apart
  Time range = 0, slide = 1;  // for how long a slice makes windows come out, and how often
  std::vector<Time> ranges;   // of the windows that come out together; none is longer
  Time gap = 0;
  std::vector<Time> periods;  // changes: of the look-backs by time
  struct Hops {
    Time period, hop;
    // When a look-back no longer takes an entry of this time: it begins at a multiple of the hop.
    Time leaves(Time time) const { return floor_div(time, hop) * hop + hop + period; }
  };
  std::vector<Hops> hops;  // look-backs that are coarse at their far end
  Time hop = 0;            // that entries become, which only those reach; 0: none
  Time ahead = 0;          // of the time where look-backs of the next row end, how far `exact` is
  Time delay = 0;
  bool takes_left = false, takes_right = true;

  // The first end of a window (k * slide + range) after a pane.
  Time end_after(Time pane) const { return floor_div(pane - range, slide) * slide + slide + range; }
};

// Rows of words that were asked for.
struct Answers {
  Vec<std::int64_t> words;
  std::size_t n = 0;
};

// Windows that closed: the keys, and for each window its key's place among them, its bounds and its answer.
struct Closed {
  KeyTable keys;
  Vec<std::int32_t> key;
  Vec<Time> start, end;
  std::vector<Answers> answers;  // one per range
};

struct Exported {
  KeyTable keys;
  Layout layout;
  std::vector<std::unique_ptr<Column>> columns;
};

inline constexpr std::int32_t nobody = -1;  // in place of the number of a key that is not held: it has the answers of nothing

class Live {
 public:
  // prototypes: a column per aggregation whose partials are words. near, far: for the others, if there are any.
  Live(const std::vector<const Column*>& prototypes, Plan plan, Form form, std::unique_ptr<Objects> near = nullptr,
       std::unique_ptr<Objects> far = nullptr)
      : plan_(std::move(plan)) {
    for (const Column* column : prototypes) {
      places_.push_back(column->place(record_));
      columns_.push_back(column->like());
    }
    if (prototypes.empty()) record_.place(Count{});  // a row has at least one word
    width_ = static_cast<std::size_t>(record_.words());
    held_ = std::make_unique<Held>(record_, plan_.apart, form, plan_.hop, std::move(near), std::move(far));
  }

  std::size_t keys() const { return keys_.size(); }
  std::size_t entries() const { return held_->entries(); }
  int words() const { return record_.words(); }
  Tally& tally() const { return record_.tally(); }
  std::size_t bytes() const {
    return held_->bytes() + keys_.bytes() + due_.bytes() + waiting_.capacity() * 8 + walked_.capacity() * 8 + rows_.capacity() * 8;
  }
  void check() const { held_->check(); }
  Objects* objects() const { return held_->objects(); }

  // --- keys

  void number(const KeyTable& keys, std::int32_t* ids) {
    for (std::size_t k = 0; k < keys.size(); ++k) ids[k] = static_cast<std::int32_t>(number(keys.hash(k), keys.key(k)));
  }
  KeyTable table(const std::int32_t* ids, std::size_t n) const {
    KeyTable out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(keys_.hash(at(ids[i])), keys_.name(at(ids[i])));
    return out;
  }
  // So many rows more, or fewer, wait for their time: such a key is held though it has no entries.
  void wait(const std::int32_t* ids, const std::int64_t* rows, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t id = at(ids[i]);
      waiting_[id] += rows[i];
      if (!waiting_[id] && held_->is_empty(id)) due_.set(id, before_all);  // to leave, unless entries come
    }
  }

  // The numbers of keys that are held, nobody for others.
  void find(const KeyTable& keys, std::int32_t* ids) const {
    for (std::size_t k = 0; k < keys.size(); ++k) ids[k] = keys_.find(keys.hash(k), keys.key(k));
  }

  // --- entries

  // The slices of a run, or its rows; returns the number of the first row, the others follow. ids: of every key, -1 without slices.
  std::int64_t insert(const KeyTable& keys, const std::int64_t* starts, const Time* times, const std::vector<const Column*>& columns,
                      Places& ids) {
    auto n = static_cast<std::size_t>(starts[keys.size()]);
    for (const Column* column : columns)
      if (column->size() != n) throw std::invalid_argument("the columns of one run are of different lengths.");
    std::int64_t first = next_;
    ids.assign(keys.size(), -1);
    next_ += static_cast<std::int64_t>(n);
    // In chunks of whole keys: a row of words per entry of a micro-batch would be more than what short keys hold.
    for (std::size_t k = 0, end; k < keys.size(); k = end) {
      for (end = k + 1; end < keys.size() && starts[end + 1] - starts[k] <= std::int64_t{chunk};) ++end;
      insert(keys, k, end, starts, times, columns, first, ids);
    }
    if (rows_.size() > 4 * chunk * width_) Vec<std::int64_t>().swap(rows_);  // of a load, not of a micro-batch
    return first;
  }

  // Lets go of what is before `oldest` but for the last `keep` rows of each key; folds it into the past if asked to. What is before
  // `exact` becomes hops, if the plan has any. Only keys that are due are visited: with `keep` entries or fewer, a key is looked at
  // again when one comes.
  void expire(Time oldest, Time exact, std::size_t keep, bool fold) {
    if (!plan_.hop) exact = oldest;
    if (exact == before_all) return;
    for (auto [_, id] : due_.take(exact - 1)) {
      held_->evict(id, oldest, exact, keep, fold);
      if (!leave(id)) due_.set(id, next_to_leave(id, keep));
    }
  }

  // --- answers

  // Each: all entries of key ids[i] in [from[i], to[i]], behind its past if asked for. The answer goes to row places[i], or i.
  void query(const std::int32_t* ids, const std::int32_t* places, const Time* from, const Time* to, bool with_past, std::size_t n,
             Answers& out) {
    each(ids, places, n, out, [&](std::uint32_t id, std::size_t i, const Answer& answer) {
      if (with_past) held_->query_past(id, answer);
      held_->query(id, from[i], to[i], answer);
    });
  }
  // Each: the last `length` rows up to the one of this time and number, itself included or not.
  void query_rows(const std::int32_t* ids, const std::int32_t* places, const Time* times, std::int64_t first, std::size_t length,
                  bool takes_itself, std::size_t n, Answers& out) {
    each(ids, places, n, out, [&](std::uint32_t id, std::size_t i, const Answer& answer) {
      held_->query_rows(id, Place{times[i], first + static_cast<std::int64_t>(i)}, length, takes_itself, answer);
    });
  }
  // Each: the last `length` rows up to a time, it included.
  void query_rows_upto(const std::int32_t* ids, const Time* times, std::size_t length, std::size_t n, Answers& out) {
    each(ids, nullptr, n, out, [&](std::uint32_t id, std::size_t i, const Answer& answer) {
      held_->query_rows(id, Place{times[i] + 1, std::numeric_limits<std::int64_t>::min()}, length, false, answer);
    });
  }
  // Each: the last `length` rows of the key.
  void query_last(const std::int32_t* ids, std::size_t length, std::size_t n, Answers& out) {
    each(ids, nullptr, n, out, [&](std::uint32_t id, std::size_t, const Answer& answer) {
      if (held_->near().size(id)) held_->query_rows(id, held_->near().last(id), length, true, answer);
    });
  }

  std::vector<Lowered> lower(const Answers& answers, std::size_t leaf, std::span<const Lower> how) const {
    return columns_.at(leaf)->lower_words(answers.words.data() + places_[leaf], width_, answers.n, how);
  }

  // --- windows and sessions

  // All windows with an entry that end up to `last`, in panes.
  Closed close_windows(Time last) {
    closed_ = std::max(closed_, last);
    return close(last, [&](std::uint32_t id, Time end, auto tell) {
      while (end <= last) {
        tell(end - plan_.range, end, [&](std::size_t r) { return std::pair(end - plan_.ranges[r], end - 1); });
        evict(id, end + plan_.slide - plan_.range);
        if (!held_->size(id)) return Due::never;
        end = std::max(end + plan_.slide, plan_.end_after(held_->oldest(id)));
      }
      return end;
    });
  }

  // All sessions that are over at a watermark.
  Closed close_sessions(Time watermark) {
    return close(watermark, [&](std::uint32_t id, Time, auto tell) {
      for (;;) {
        Time& last = walked_[id];
        last = walk(id, last, after_all);
        Time end = last + plan_.gap;
        if (end > watermark) return end;
        tell(held_->oldest(id), end, [&](std::size_t) { return std::pair(held_->oldest(id), last); });
        evict(id, last + 1);
        if (!held_->size(id)) return Due::never;
        last = held_->oldest(id);
      }
    });
  }

  // --- changes

  // The keys for which something has entered or left a look-back since the last watermark, by time alone.
  std::vector<std::int32_t> due(Time watermark) {
    std::vector<std::int32_t> ids;
    for (auto [_, id] : due_.take(watermark)) ids.push_back(static_cast<std::int32_t>(id));
    return ids;
  }
  // Lets go of what no look-back reaches any more, and finds when these keys change next.
  void settle(const std::int32_t* ids, std::size_t n, Time watermark, Time oldest, Time exact, std::size_t keep, bool fold) {
    for (std::size_t i = 0; i < n; ++i) {
      auto id = static_cast<std::uint32_t>(at(ids[i]));
      if (!keys_.is_used(id)) continue;
      held_->evict(id, oldest, exact, keep, fold);
      if (!leave(id)) due_.set(id, next_change(id, watermark));
    }
  }

  // --- whole

  // Everything as a run: keys in order of their hash, entries in order of time, the folded past first.
  Exported exported() const {
    std::vector<std::int32_t> ids;
    for (std::uint32_t id = 0; id < keys_.numbers(); ++id)
      if (keys_.is_used(id) && !held_->is_empty(id)) ids.push_back(static_cast<std::int32_t>(id));
    std::sort(ids.begin(), ids.end(), [&](std::int32_t x, std::int32_t y) {
      std::size_t a = at(x), b = at(y);
      auto i = static_cast<std::uint32_t>(a), j = static_cast<std::uint32_t>(b);
      return keys_.hash(i) != keys_.hash(j) ? keys_.hash(i) < keys_.hash(j) : keys_.name(i) < keys_.name(j);
    });
    Exported out;
    out.keys = table(ids.data(), ids.size());
    out.layout.starts.push_back(0);
    Vec<std::int64_t> rows;
    if (held_->objects()) held_->objects()->begin(1, 0);
    for (std::int32_t id : ids) {
      held_->each(static_cast<std::uint32_t>(id), out.layout.times, rows);
      out.layout.starts.push_back(static_cast<std::int64_t>(out.layout.times.size()));
    }
    for (std::size_t c = 0; c < columns_.size(); ++c)
      out.columns.push_back(columns_[c]->gather_words(rows.data() + places_[c], width_, out.layout.times.size()));
    return out;
  }

 private:
  // A number that Python gave back.
  std::uint32_t at(std::int32_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= keys_.numbers()) throw std::out_of_range("there is no key of this number.");
    return static_cast<std::uint32_t>(id);
  }

  std::uint32_t number(std::uint64_t hash, std::string_view key) {
    std::uint32_t id = keys_.find_or_add(hash, key);
    if (id >= waiting_.size()) {
      std::size_t n = id + 1;
      held_->reach(id);
      due_.reach(id);
      waiting_.resize(n, 0);
      if (plan_.kind == Plan::sessions) walked_.resize(n, 0);
    }
    return id;
  }

  // The entries of some of a run's keys.
  void insert(const KeyTable& keys, std::size_t k, std::size_t end, const std::int64_t* starts, const Time* times,
              const std::vector<const Column*>& columns, std::int64_t first, Places& ids) {
    auto at = static_cast<std::size_t>(starts[k]), stop = static_cast<std::size_t>(starts[end]);
    rows_.resize((stop - at) * width_);
    for (std::size_t c = 0; c < columns_.size(); ++c) columns.at(c)->spread(at, stop, rows_.data() + places_[c], width_);
    const std::int64_t* row = rows_.data();
    for (; k < end; ++k) {
      auto from = static_cast<std::size_t>(starts[k]), to = static_cast<std::size_t>(starts[k + 1]);
      if (from == to) continue;
      std::uint32_t id = number(keys.hash(k), keys.key(k));
      ids[k] = static_cast<std::int32_t>(id);
      for (; from < to && times[from] == before_all; ++from, row += width_) held_->insert_past(id, row, from);
      if (from < to) put(id, times + from, row, to - from, first + static_cast<std::int64_t>(from), from);
      row += (to - from) * width_;
    }
  }

  void put(std::uint32_t id, const Time* times, const std::int64_t* rows, std::size_t n, std::int64_t first, std::size_t object) {
    bool before = held_->size(id);
    Time oldest = before ? held_->oldest(id) : after_all;
    held_->insert(id, times, rows, n, first, object);
    switch (plan_.kind) {
      case Plan::windows:
        due_.sooner(id, std::max(plan_.end_after(times[0]), plan_.end_after(closed_)));
        break;
      case Plan::oldest:
        due_.sooner(id, held_->near().oldest(id));
        break;
      case Plan::sessions:
        if (times[0] < oldest) {
          // What came before the oldest may have joined its session, or be one of its own.
          Time last = walk(id, times[0], oldest);
          if (last < oldest || !before) walked_[id] = last;
          due_.set(id, walked_[id] + plan_.gap);
        } else if (due_.time(id) == Due::never) {
          due_.set(id, walked_[id] + plan_.gap);
        }
        break;
      case Plan::changes:
        break;  // settle() sees to it
    }
  }

  // From an entry on, the last one that follows within the gap; no further than `far`.
  Time walk(std::uint32_t id, Time last, Time far) const {
    Time next;
    while (last < far && held_->first_from(id, last + 1, next) && next - last <= plan_.gap) {
      last = next;
      record_.tally().visited += 1;
    }
    return last;
  }

  void evict(std::uint32_t id, Time oldest) {
    if (held_->size(id)) held_->evict(id, oldest, oldest, 0, false);
  }

  // A key that holds nothing leaves.
  bool leave(std::uint32_t id) {
    if (waiting_[id] || !held_->is_empty(id)) return false;
    held_->leave(id);
    due_.set(id, Due::never);
    keys_.remove(id);
    return true;
  }

  template <class F>
  void each(const std::int32_t* ids, const std::int32_t* places, std::size_t n, Answers& out, F f) {
    out.n = n;
    out.words.clear();
    out.words.reserve(n * width_);
    for (std::size_t i = 0; i < n; ++i) out.words.insert(out.words.end(), record_.identity(), record_.identity() + width_);
    if (held_->objects()) held_->objects()->begin(1, n);
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t to = places ? static_cast<std::size_t>(places[i]) : i;
      if (to >= n) throw std::out_of_range("there is no such row.");
      if (ids[i] != nobody) f(at(ids[i]), i, Answer{out.words.data() + to * width_, 0, to});
    }
  }

  // Calls of_key(id, when it was due, tell) for every key that is due; it returns when the key is due next. tell(start, end, bounds)
  // tells windows that end together: of range r, the entries in bounds(r).
  template <class OfKey>
  Closed close(Time upto, OfKey of_key) {
    Closed out;
    out.answers.resize(std::max<std::size_t>(plan_.ranges.size(), 1));
    std::vector<std::int32_t> ids;
    if (held_->objects()) held_->objects()->begin(out.answers.size(), 0);
    for (auto [time, id] : due_.take(upto)) {
      auto tell = [&](Time start, Time end, auto bounds) {
        if (ids.empty() || ids.back() != static_cast<std::int32_t>(id)) ids.push_back(static_cast<std::int32_t>(id));
        out.key.push_back(static_cast<std::int32_t>(ids.size() - 1));
        out.start.push_back(start);
        out.end.push_back(end);
        for (std::size_t r = 0; r < out.answers.size(); ++r) {
          auto [from, to] = bounds(r);
          auto& words = out.answers[r].words;
          words.insert(words.end(), record_.identity(), record_.identity() + width_);
          if (held_->objects()) held_->objects()->extend(r);
          held_->query(id, from, to, Answer{&*(words.end() - static_cast<std::ptrdiff_t>(width_)), r, out.key.size() - 1});
        }
      };
      due_.set(id, of_key(id, time, tell));
    }
    for (Answers& answers : out.answers) answers.n = out.key.size();
    out.keys = table(ids.data(), ids.size());
    for (std::int32_t id : ids) leave(static_cast<std::uint32_t>(id));
    return out;
  }

  Time next_change(std::uint32_t id, Time watermark) const {
    Time when = Due::never, t, now = watermark - plan_.delay;
    if (held_->first_from(id, plan_.takes_right ? now + 1 : now, t)) when = t + plan_.delay + (plan_.takes_right ? 0 : 1);
    for (Time period : plan_.periods)
      if (held_->first_from(id, now - period + (plan_.takes_left ? 0 : 1), t))
        when = std::min(when, t + plan_.delay + period + (plan_.takes_left ? 1 : 0));
    for (const Plan::Hops& hops : plan_.hops)
      if (held_->first_from(id, floor_div(now - hops.period, hops.hop) * hops.hop, t)) when = std::min(when, hops.leaves(t) + plan_.delay);
    return when;
  }

  // Of a key with more than `keep` rows, when its oldest entry is to leave or to become a hop, by the time that is then `exact`.
  Time next_to_leave(std::uint32_t id, std::size_t keep) const {
    Time when = held_->near().size(id) > keep ? held_->near().oldest(id) : Due::never;
    if (!held_->far() || !held_->far()->size(id)) return when;
    Time gone = before_all;
    for (const Plan::Hops& hops : plan_.hops) gone = std::max(gone, hops.leaves(held_->far()->oldest(id)));
    return std::min(when, gone + plan_.ahead - 1);
  }

  static constexpr std::size_t chunk = 1024;  // entries that are made rows of words at a time

  Plan plan_;
  Record record_;
  std::size_t width_ = 0;
  std::vector<int> places_;
  std::vector<std::unique_ptr<Column>> columns_;
  std::unique_ptr<Held> held_;
  LiveKeys keys_;
  Due due_;
  std::vector<std::int64_t> waiting_;
  std::vector<Time> walked_;  // sessions: how far the first one is known to go
  Time closed_ = -(Time{1} << 62);
  std::int64_t next_ = 0;
  Vec<std::int64_t> rows_;  // scratch
};

}  // namespace sash::engine
