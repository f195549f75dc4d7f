// One wheel of two, fed by disjoint streams
//
//   needs      equal grain and levels; layouts and retention may differ, those of the first remain
//   time       O(slots held)
//
//   a   start ----------------------- now          the merged wheel stands at the smaller watermark: what the other
//   b      start ------------ now ..... open       has closed beyond it is open again
//   ab  start --------------- now ......... open
//
// Within a tick what the first wheel holds comes first. Where the aggregation commutes, slots merge level by level, and a
// level goes back as far as both do; otherwise the slots of coarse levels do not merge, and the ticks are replayed from the start,
// all of which both wheels must still hold. The time before a wheel's start holds nothing of it. Everything is built apart and put in place
// at the end, so that a refusal (RangeRefused: something that has to be taken apart is no longer held) changes nothing, and views of
// readers live on.

#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "wheel.hpp"

namespace sash {

template <Monoid M>
class MergedWheel {
 public:
  using Partial = typename M::Partial;

  static void merge(Wheel<M>& a, const Wheel<M>& b) {
    MergedWheel merged(a, b);
    auto windows = merged.windows();
    WriterWheel<M> writer = merged.writer();
    a.view_.reader = std::move(merged.out_);
    a.view_.watermark = std::min(a.view_.watermark, b.view_.watermark);
    a.open_ = a.view_.closed();
    a.writer_ = std::move(writer);
    a.windows_.swap(windows);
    a.late_ += b.late_;
  }

 private:
  using Reader = ReaderWheel<M>;
  using Windows = decltype(Wheel<M>::windows_);

  MergedWheel(const Wheel<M>& a, const Wheel<M>& b)
      : a_(a),
        b_(b),
        monoid_(a.monoid_),
        now_(std::min(a.view_.reader.now(), b.view_.reader.now())),
        out_(monoid_, std::min(a.view_.reader.start(), b.view_.reader.start()), a.view_.reader.specs_) {
    if (a.commutative_)
      by_level();
    else
      replay();
  }

  void by_level() {
    out_.line_.now = now_ - out_.line_.origin;
    for (std::size_t k = 0; k < out_.levels_.size(); ++k) fill_level(k);
    auto total = [&](const Reader& w) {
      Tick closed = out_.line_.origin + out_.levels_.back().number * size(out_.levels_.size() - 1);
      Tick its = w.line_.origin + w.levels_.back().number * size(out_.levels_.size() - 1);
      return its == closed ? w.total_ : w.query(w.start(), closed);
    };
    out_.total_ = monoid_.combine(total(readers()[0]), total(readers()[1]));
    out_.any_ = true;
  }

  struct Pair {
    const Reader* wheels[2];
    const Reader& operator[](int i) const { return *wheels[i]; }
  };
  Pair readers() const { return {{&a_.view_.reader, &b_.view_.reader}}; }

  std::int64_t size(std::size_t k) const { return out_.line_.levels[k].size.divisor(); }

  void replay() {
    for (auto* w : readers().wheels) {
      auto& shape = w->line_.levels[0];
      if (shape.lo > w->line_.start) throw RangeRefused(RangeRefused::not_retained, w->start(), w->line_.origin + shape.lo);
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> held;
    Tick end = now_ - out_.line_.origin;
    for (auto* w : readers().wheels) spans(*w, 0, out_.line_.start, end, held);
    std::sort(held.begin(), held.end());
    for (auto [from, to] : held) {
      if (from > out_.line_.now) out_.gap(from - out_.line_.now);
      while (out_.line_.now < to) {
        if (marked(out_.now()))
          out_.tick(both(0, out_.line_.now));
        else
          out_.gap(1);
      }
    }
    if (out_.line_.now < end) out_.gap(end - out_.line_.now);
  }

  // From a wheel's slot numbers to ours: both count from their own origins.
  std::int64_t shift(const Reader& w, std::size_t k) const { return (w.line_.origin - out_.line_.origin) / size(k); }

  // Our first slot for which a wheel still has everything: its start counts, what it dropped does not.
  std::int64_t reach(const Reader& w, std::size_t k) const {
    auto& shape = w.line_.levels[k];
    std::int64_t first = shape.size.up(w.line_.start);
    if (shape.lo > first) return shape.lo + shift(w, k);
    if (w.line_.start % size(k) == 0) return 0;
    try {  // the slot that its start cuts
      part(w, k, first - 1 + shift(w, k));
      return 0;
    } catch (const RangeRefused&) {
      return first + shift(w, k);
    }
  }

  // What a wheel holds of one of our slots.
  Partial part(const Reader& w, std::size_t k, std::int64_t slot) const {
    std::int64_t its = slot - shift(w, k);
    if (its >= w.line_.levels[k].lo && its < w.line_.levels[k].hi) return w.slot(k, its);
    Tick from = out_.line_.origin + slot * size(k);
    return w.query(std::max(from, w.start()), std::min(from + size(k), now_));
  }

  // The stretches of our slots in [lo, hi) in which a wheel may hold something.
  void spans(const Reader& w, std::size_t k, std::int64_t lo, std::int64_t hi,
             std::vector<std::pair<std::int64_t, std::int64_t>>& out) const {
    auto add = [&](std::int64_t from, std::int64_t to) {
      from = std::max(from, lo), to = std::min(to, hi);
      if (from < to) out.emplace_back(from, to);
    };
    auto& shape = w.line_.levels[k];
    auto& slots = w.levels_[k].slots;
    std::int64_t by = shift(w, k);
    if (w.line_.start % size(k) != 0) add(shape.size(w.line_.start) + by, shape.size(w.line_.start) + by + 1);
    if (shape.prefix) return add(slots.touched() - 1 + by, shape.hi + by);
    std::int64_t at = shape.lo;
    slots.runs(shape.lo, shape.hi, [&](const Partial*, std::size_t n, bool blank) {
      if (!blank) add(at + by, at + static_cast<std::int64_t>(n) + by);
      at += static_cast<std::int64_t>(n);
    });
  }

  void fill_level(std::size_t k) {
    auto& shape = out_.line_.levels[k];
    auto& level = out_.levels_[k];
    std::int64_t end = shape.size(out_.line_.now);
    std::int64_t lo = std::max({shape.lo, reach(readers()[0], k), reach(readers()[1], k)});
    lo = std::min(lo, std::max(end, shape.lo));
    std::vector<std::pair<std::int64_t, std::int64_t>> held;
    for (auto* w : readers().wheels) spans(*w, k, lo, end, held);
    std::sort(held.begin(), held.end());
    level.slots.restart(lo);
    if (shape.prefix) level.slots.fill(1, monoid_.identity(), true);
    if (lo <= end) level.number = lo;  // else the slot that our start cuts is still open
    shape.lo = shape.hi = lo;
    for (auto [from, to] : held) {
      if (from > level.number) out_.append_blank(k, from - level.number);
      for (std::int64_t i = level.number; i < to; ++i) out_.append(k, both(k, i));
    }
    if (level.number < end) out_.append_blank(k, end - level.number);
    if (k > 0)
      open_level(k);
    else
      mark();
  }

  // Whether either wheel has an entry of a tick.
  bool marked(Tick t) const {
    bool any = false;
    for (auto* w : readers().wheels) any |= t >= w->marks_.begin() && t < w->marks_.end() && w->marks_[t];
    return any;
  }

  void mark() {
    out_.marks_ = Marks(out_.line_.origin + out_.line_.levels[0].lo);
    std::vector<std::pair<std::int64_t, std::int64_t>> held;
    for (auto* w : readers().wheels) spans(*w, 0, out_.line_.levels[0].lo, out_.line_.now, held);
    std::sort(held.begin(), held.end());
    for (auto [from, to] : held) {
      from += out_.line_.origin, to += out_.line_.origin;
      if (from > out_.marks_.end()) out_.marks_.gap(from - out_.marks_.end());
      while (out_.marks_.end() < to) out_.marks_.push(marked(out_.marks_.end()));
    }
    if (out_.marks_.end() < now_) out_.marks_.gap(now_ - out_.marks_.end());
  }

  Partial both(std::size_t k, std::int64_t slot) const { return monoid_.combine(part(readers()[0], k, slot), part(readers()[1], k, slot)); }

  void open_level(std::size_t k) {
    auto& level = out_.levels_[k];
    auto& finer = out_.levels_[k - 1];
    level.left = (level.number + 1) * out_.line_.levels[k].ratio - finer.number;
    auto open = [&](const Reader& w) {
      if (w.now() == now_) return w.levels_[k].open;
      Tick from = out_.line_.origin + level.number * size(k), to = out_.line_.origin + finer.number * size(k - 1);
      return w.query(std::max(from, w.start()), to);
    };
    level.open = monoid_.combine(open(readers()[0]), open(readers()[1]));
    level.any = true;
  }

  // What has arrived for ticks from now_ on, closed or not.
  WriterWheel<M> writer() const {
    WriterWheel<M> out(monoid_, now_, a_.writer_.write_ahead());
    auto add = [&](Tick t, Partial value) { out.insert(static_cast<std::uint64_t>(t - now_), std::move(value)); };
    for (const Wheel<M>* w : {&a_, &b_}) {
      const Reader& reader = w->view_.reader;
      auto& marks = reader.marks();
      if (marks.begin() > now_ && marks.begin() > reader.start()) throw RangeRefused(RangeRefused::not_retained, now_, marks.begin());
      std::vector<Tick> again;
      for (Tick t = marks.last(reader.now()); t >= std::max(now_, marks.begin()); t = marks.last(t)) again.push_back(t);
      for (auto t = again.rbegin(); t != again.rend(); ++t) add(*t, reader.query(*t, *t + 1));
      w->writer_.for_each(add);
    }
    return out;
  }

  // The first wheel's windows, with what both wheels hold.
  Windows windows() const {
    Windows out;
    for (auto& window : a_.windows_)
      std::visit(
          [&]<class W>(const W& old) {
            if constexpr (std::is_same_v<W, PairsWindow<M>>)
              out.emplace_back(std::in_place_type<W>, monoid_, old.spec(), old.first(), a_.inverse_);
            else
              out.emplace_back(std::in_place_type<W>, monoid_, old.spec(), old.first());
            std::get<W>(out.back()).rewind(out_);
          },
          window);
    return out;
  }

  const Wheel<M>&a_, &b_;
  M monoid_;
  Tick now_;
  Reader out_;
};

}  // namespace sash
