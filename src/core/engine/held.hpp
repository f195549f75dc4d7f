// What a live bucket holds of its keys: entries, the hops that old ones become, and the past that both are folded into
//
//   past | far: one entry per hop            | near: slices, or rows, as they came
//        | h0     h1     h2     h3     ...   | t0 t1 t2 t3 t4 ...
//                                            exact, for the look-backs whose far end is coarse; else there is no far part
//
// Each part is a shelf of rows of words, and, where aggregations have partials that are no words, objects beside it.

#pragma once

#include "objects.hpp"

namespace sash::engine {

// Where an answer goes: words, and a place in the lists of objects.
struct Answer {
  std::int64_t* words;
  std::size_t list, row;
};

class Held {
 public:
  // hop: 0 if there is no far part. The objects may be null.
  Held(const Record& record, bool apart, Form form, Time hop, std::unique_ptr<Objects> near, std::unique_ptr<Objects> far)
      : record_(record), width_(static_cast<std::size_t>(record.words())), hop_(hop) {
    near_.words = make_shelf(record, apart, form);
    if (!near_.words) throw std::length_error("the partials of these aggregations are too long for one row.");
    near_.objects = std::move(near);
    if (!hop) return;
    far_.words = make_shelf(record, false, form);
    far_.objects = std::move(far);
  }

  void reach(std::uint32_t id) {
    near_.reach(id);
    if (hop_) far_.reach(id);
    if (id >= has_past_.size()) has_past_.resize(id + 1, false);
  }
  std::size_t entries() const { return entries_; }
  std::size_t size(std::uint32_t id) const { return near_.words->size(id) + (hop_ ? far_.words->size(id) : 0); }
  bool is_empty(std::uint32_t id) const { return !size(id) && !has_past_[id]; }
  bool has_past(std::uint32_t id) const { return has_past_[id]; }
  const Shelf& near() const { return *near_.words; }
  const Shelf* far() const { return hop_ ? far_.words.get() : nullptr; }
  Objects* objects() const { return near_.objects.get(); }
  Time oldest(std::uint32_t id) const {
    if (!hop_ || !far_.words->size(id)) return near_.words->oldest(id);
    return near_.words->size(id) ? std::min(near_.words->oldest(id), far_.words->oldest(id)) : far_.words->oldest(id);
  }
  bool first_from(std::uint32_t id, Time time, Time& found) const {
    bool there = near_.words->first_from(id, time, found);
    Time other;
    if (!hop_ || !far_.words->first_from(id, time, other)) return there;
    found = there ? std::min(found, other) : other;
    return true;
  }

  // object: the place of the first entry's object in the given list.
  void insert(std::uint32_t id, const Time* times, const std::int64_t* rows, std::size_t n, std::int64_t number, std::size_t object) {
    std::size_t before = size(id);
    near_.words->insert(id, times, rows, n, width_, number);
    if (near_.objects) near_.objects->insert(id, times, object, n, number);
    entries_ += size(id) - before;
  }
  void insert_past(std::uint32_t id, const std::int64_t* row, std::size_t object) {
    record_.take_in(past(id), row);
    if (near_.objects) near_.objects->insert_past(id, object);
    has_past_[id] = true;
  }

  // Lets go of what is before `oldest` but for the last `keep` rows; folds it into the past if asked to. What is before `exact`
  // becomes hops.
  void evict(std::uint32_t id, Time oldest, Time exact, std::size_t keep, bool fold) {
    std::size_t before = size(id);
    if (hop_) grow_old(id, exact, keep);
    Part& part = hop_ ? far_ : near_;
    std::size_t gone = 0;
    if (part.words->size(id)) {
      std::size_t kept = hop_ ? 0 : keep;
      gone = part.words->evict(id, oldest, kept, fold ? past(id) : nullptr);
      if (gone && part.objects) part.objects->evict(id, oldest, kept, fold ? near_.objects.get() : nullptr, before_all);
    }
    entries_ -= before - size(id);
    if (fold && gone) has_past_[id] = true;
  }
  void leave(std::uint32_t id) {
    if (near_.objects) near_.objects->leave(id);
    if (far_.objects) far_.objects->leave(id);
  }

  // --- answers, each behind what is there already

  void query_past(std::uint32_t id, const Answer& out) {
    if (!has_past_[id]) return;
    record_.take_in(out.words, past(id));
    if (near_.objects) near_.objects->query_past(id, out.list, out.row);
  }
  void query(std::uint32_t id, Time from, Time to, const Answer& out) {
    if (Time hop, end, next; hop_ && far_.words->size(id)) {
      // Far entries come before near ones, but for a late row that is not a hop yet: it lies between two of them.
      while (far_.words->first_from(id, from, hop) && hop <= to) {
        if (near_.words->size(id) && near_.words->oldest(id) < hop) near_.query(id, from, hop - 1, objects(), out);
        bool between = near_.words->first_from(id, hop, end) && end < to;
        far_.query(id, hop, between ? end : to, objects(), out);
        from = hop;
        if (!between || !far_.words->first_from(id, end + 1, next) || next > to) break;
        near_.query(id, from, next - 1, objects(), out);
        from = next;
      }
    }
    if (near_.words->size(id)) near_.query(id, from, to, objects(), out);
  }
  // Of rows, which are never far.
  void query_rows(std::uint32_t id, Place place, std::size_t n, bool takes_itself, const Answer& out) {
    if (!near_.words->size(id)) return;
    near_.words->query_rows(id, place, n, takes_itself, out.words);
    if (near_.objects) near_.objects->query_rows(id, place, n, takes_itself, out.list, out.row);
  }

  // All of a key, the past first; objects as answers of list 0.
  void each(std::uint32_t id, Vec<Time>& times, Vec<std::int64_t>& rows) const {
    if (has_past_[id]) {
      times.push_back(before_all);
      auto first = past_.begin() + static_cast<std::ptrdiff_t>(id * width_);
      rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(width_));
    }
    if (near_.objects) {
      if (has_past_[id]) {
        std::size_t row = times.size() - 1;
        near_.objects->extend(0);
        near_.objects->query_past(id, 0, row);
      }
      if (far_.objects) far_.objects->each(id, *near_.objects);
      near_.objects->each(id, *near_.objects);
    }
    if (hop_) far_.words->each(id, times, rows);
    near_.words->each(id, times, rows);
  }

  std::size_t bytes() const { return near_.bytes() + (hop_ ? far_.bytes() : 0) + past_.capacity() * 8 + has_past_.capacity() / 8; }
  void check() const {
    near_.words->check();
    if (hop_) far_.words->check();
  }

 private:
  struct Part {
    std::unique_ptr<Shelf> words;
    std::unique_ptr<Objects> objects;

    void reach(std::uint32_t id) {
      words->reach(id);
      if (objects) objects->reach(id);
    }
    void query(std::uint32_t id, Time from, Time to, Objects* answers, const Answer& out) {
      words->query(id, from, to, out.words);
      if (objects && from <= to) objects->query(id, from, to, *answers, out.list, out.row);
    }
    std::size_t bytes() const { return words->bytes() + (objects ? objects->bytes() : 0); }
  };

  std::int64_t* past(std::uint32_t id) {
    while (past_.size() < has_past_.size() * width_) past_.insert(past_.end(), record_.identity(), record_.identity() + width_);
    return past_.data() + id * width_;
  }

  // What only coarse look-backs reach becomes one entry per hop.
  void grow_old(std::uint32_t id, Time exact, std::size_t keep) {
    std::vector<std::int64_t> row(width_);
    while (near_.words->size(id) > keep && near_.words->oldest(id) < exact) {
      Time hop = floor_div(near_.words->oldest(id), hop_) * hop_, end = std::min(exact, hop + hop_);
      std::copy_n(record_.identity(), width_, row.begin());
      if (!near_.words->evict(id, end, keep, row.data())) break;
      far_.words->insert(id, &hop, row.data(), 1, width_, 0);
      if (near_.objects) near_.objects->evict(id, end, keep, far_.objects.get(), hop);
    }
  }

  const Record& record_;
  std::size_t width_;
  Time hop_;
  Part near_, far_;
  std::vector<bool> has_past_;
  Vec<std::int64_t> past_;
  std::size_t entries_ = 0;
};

}  // namespace sash::engine
