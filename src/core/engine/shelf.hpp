// The windows of all keys of a bucket, side by side
//
// A key with few entries is a small sorted array; one with more is a BlockFiba. Nodes come from pools of the shelf, so that a
// hundred thousand keys are not a hundred thousand heaps.
//
//   id   0              1                          2
//        | t0 t1 t2 |   BlockFiba                  -          arrays have an eighth more room than entries: live ones are [lo, hi)
//        | p0 p1 p2 |     leaves, inner nodes      free
//
// Everything is by a key's number and by time. Where rows must stay apart (look-backs of so many rows) an entry's place is
// its time and a number that grows with every insert; else entries of equal time are one.

#pragma once

#include <compare>
#include <cstdlib>
#include <memory>
#include <vector>

#include "../swag/block_fiba.hpp"
#include "record.hpp"

namespace sash::engine {

enum class Form : std::uint8_t { automatic, array, tree };

// The place of a row: after all rows of its time that came before it.
struct Place {
  Time time;
  std::int64_t number;
  auto operator<=>(const Place&) const = default;
};

class Shelf {
 public:
  virtual ~Shelf() = default;
  virtual void reach(std::uint32_t id) = 0;  // makes room for this key
  virtual std::size_t size(std::uint32_t id) const = 0;
  virtual Time oldest(std::uint32_t id) const = 0;  // of a key with entries
  virtual Place last(std::uint32_t id) const = 0;   // of the youngest row, where rows stay apart
  // n rows of words, `stride` apart, their times not falling; `number` is that of the first, if rows stay apart.
  virtual void insert(std::uint32_t id, const Time* times, const std::int64_t* rows, std::size_t n, std::size_t stride,
                      std::int64_t number) = 0;
  // Combines all entries of [from, to] behind what is in `out`.
  virtual void query(std::uint32_t id, Time from, Time to, std::int64_t* out) = 0;
  // The same of `n` rows up to and including that of `place`, or up to the one before it.
  virtual void query_rows(std::uint32_t id, Place place, std::size_t n, bool takes_itself, std::int64_t* out) = 0;
  // Lets go of all entries before `time` but for the last `keep`; returns how many. They are combined behind `folded`.
  virtual std::size_t evict(std::uint32_t id, Time time, std::size_t keep, std::int64_t* folded) = 0;
  // The first time at or after this one; false where there is none.
  virtual bool first_from(std::uint32_t id, Time time, Time& found) const = 0;
  virtual void each(std::uint32_t id, Vec<Time>& times, Vec<std::int64_t>& rows) const = 0;
  virtual std::size_t bytes() const = 0;
  virtual void check() const = 0;
};

template <int W, class Key>
class WordShelf final : public Shelf {
  using M = Rows<W>;
  using Partial = typename M::Partial;
  // With leaves of 64 a key of 360 slices took 1.8 times the bytes of its entries, with 32 and 16 it takes 1.44 to 1.6 times.
  using Tree = BlockFiba<M, Key, block::costly<M> ? 16 : 32, block::costly<M> ? 8 : 16>;
  // Entries, up to which a key is an array. A tree of fewer is no faster where partials are a few words, and has 4 KB of its own.
  static constexpr int few = 128;
  static constexpr int most = 6 << 12;  // that an array may have where it is the only form
  static constexpr bool apart = std::is_same_v<Key, Place>;

  struct Slot {
    char* block = nullptr;  // times, then partials
    Tree* tree = nullptr;
    std::uint16_t lo = 0, hi = 0, room = 0;
  };

 public:
  WordShelf(const Record& record, Form form) : monoid_(record), record_(record), form_(form) {}
  ~WordShelf() override {
    for (Slot& s : slots_) {
      delete s.tree;
      std::free(s.block);
    }
  }

  void reach(std::uint32_t id) override {
    if (id >= slots_.size()) slots_.resize(id + 1);
  }
  std::size_t size(std::uint32_t id) const override {
    const Slot& s = slots_[id];
    return s.tree ? s.tree->size() : static_cast<std::size_t>(s.hi - s.lo);
  }
  Time oldest(std::uint32_t id) const override {
    const Slot& s = slots_[id];
    return time_of(s.tree ? s.tree->oldest() : keys(s)[s.lo]);
  }
  Place last(std::uint32_t id) const override {
    const Slot& s = slots_[id];
    Key last = s.tree ? s.tree->youngest() : keys(s)[s.hi - 1];
    if constexpr (apart)
      return last;
    else
      return {last, 0};
  }

  void insert(std::uint32_t id, const Time* times, const std::int64_t* rows, std::size_t n, std::size_t stride,
              std::int64_t number) override {
    Slot& s = slots_[id];
    std::size_t i = 0;
    for (; i < n && !s.tree && (form_ != Form::tree); ++i)
      if (!put(s, key(times[i], number + static_cast<std::int64_t>(i)), rows + i * stride, n - i)) break;
    if (i == n) return;
    if (!s.tree) plant(s);
    if (n - i <= in_bulk) {
      for (; i < n; ++i) s.tree->insert(key(times[i], number + static_cast<std::int64_t>(i)), monoid_.row(rows + i * stride));
      return;
    }
    keys_.clear();
    partials_.clear();
    for (; i < n; ++i) {
      keys_.push_back(key(times[i], number + static_cast<std::int64_t>(i)));
      partials_.push_back(monoid_.row(rows + i * stride));
    }
    s.tree->bulk_insert(keys_, partials_);
    if (keys_.size() > std::size_t{1} << 18) std::vector<Key>().swap(keys_), std::vector<Partial>().swap(partials_);
  }

  void query(std::uint32_t id, Time from, Time to, std::int64_t* out) override {
    if (from > to) return;
    range(slots_[id], key(from, least_number), key(to, greatest_number), out);
  }

  void query_rows(std::uint32_t id, Place place, std::size_t n, bool takes_itself, std::int64_t* out) override {
    if constexpr (apart) {
      Slot& s = slots_[id];
      if (n == 0) return;
      if (s.tree) {
        Place to = place;
        if (!takes_itself) {
          if (!(s.tree->oldest() < place)) return;
          to = s.tree->before(place, 1);
        }
        return range(s, s.tree->before(to, n - 1), to, out);
      }
      int end = static_cast<int>(std::lower_bound(keys(s) + s.lo, keys(s) + s.hi, place) - keys(s)) + takes_itself;
      int from = n < static_cast<std::size_t>(end - s.lo) ? end - static_cast<int>(n) : s.lo;
      fold(s, from, end, out);
    }
  }

  std::size_t evict(std::uint32_t id, Time time, std::size_t keep, std::int64_t* folded) override {
    Slot& s = slots_[id];
    std::size_t n = size(id);
    if (n <= keep || oldest(id) >= time) return 0;
    Key end = key(time, least_number);  // all before this go
    if (keep) {
      Key kept = s.tree ? first_of_last(*s.tree, keep) : keys(s)[s.hi - static_cast<int>(keep)];
      end = std::min(end, kept);
    }
    if (s.tree) {
      if (folded) range(s, s.tree->oldest(), previous(end), folded);
      s.tree->bulk_evict(previous(end));
      if (s.tree->size() == 0 || (form_ != Form::tree && s.tree->size() <= few / 4)) fell(s);
    } else {
      int cut = static_cast<int>(std::lower_bound(keys(s) + s.lo, keys(s) + s.hi, end) - keys(s));
      record_.tally().visited += 1;
      if (folded) fold(s, s.lo, cut, folded);
      s.lo = static_cast<std::uint16_t>(cut);
      if (s.lo == s.hi) release(s);
    }
    return n - size(id);
  }

  bool first_from(std::uint32_t id, Time time, Time& found) const override {
    const Slot& s = slots_[id];
    Key from = key(time, least_number);
    if (s.tree) {
      const Key* at = s.tree->first_from(from);
      if (at) found = time_of(*at);
      return at;
    }
    const Key* at = std::lower_bound(keys(s) + s.lo, keys(s) + s.hi, from);
    if (at == keys(s) + s.hi) return false;
    found = time_of(*at);
    return true;
  }

  void each(std::uint32_t id, Vec<Time>& times, Vec<std::int64_t>& rows) const override {
    const Slot& s = slots_[id];
    auto visit = [&](const Key& at, const Partial& p) {
      times.push_back(time_of(at));
      rows.insert(rows.end(), p.word, p.word + record_.words());
    };
    if (s.tree) return s.tree->for_each(visit);
    for (int i = s.lo; i < s.hi; ++i) visit(keys(s)[i], values(s)[i]);
  }

  std::size_t bytes() const override {
    std::size_t all = pools_.leaves.bytes() + pools_.inners.bytes() + slots_.capacity() * sizeof(Slot);
    for (const Slot& s : slots_) {
      if (s.tree) all += s.tree->bytes();
      if (s.block) all += s.room * place + heap;
    }
    return all;
  }

  void check() const override {
    auto same = [&](const Partial& a, const Partial& b) { return std::memcmp(&a, &b, sizeof a) == 0; };
    for (const Slot& s : slots_)
      if (s.tree) s.tree->check(same);
  }

 private:
  static constexpr std::size_t place = sizeof(Key) + sizeof(Partial);
  static constexpr std::size_t heap = 16;     // bytes that the heap has of its own for an array
  static constexpr std::size_t in_bulk = 24;  // up to here, one insert after another is as fast
  static constexpr std::int64_t least_number = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t greatest_number = std::numeric_limits<std::int64_t>::max();

  static Key key(Time time, [[maybe_unused]] std::int64_t number) {
    if constexpr (apart)
      return {time, number};
    else
      return time;
  }
  static Time time_of(const Key& at) {
    if constexpr (apart)
      return at.time;
    else
      return at;
  }
  // The place right before one: what is not before that is up to this.
  static Key previous(const Key& at) {
    if constexpr (apart)
      return at.number == least_number ? Place{at.time - 1, greatest_number} : Place{at.time, at.number - 1};
    else
      return at - 1;
  }

  // The first of the last n places.
  Key first_of_last(Tree& tree, std::size_t n) { return tree.before(tree.youngest(), n - 1); }

  Key* keys(const Slot& s) const { return reinterpret_cast<Key*>(s.block); }
  Partial* values(const Slot& s) const { return reinterpret_cast<Partial*>(s.block + sizeof(Key) * s.room); }

  void range(Slot& s, const Key& from, const Key& to, std::int64_t* out) {
    if (s.tree) {
      Partial part = s.tree->query(from, to);
      record_.take_in(out, part.word);
      return;
    }
    const Key* k = keys(s);
    auto a = static_cast<int>(std::lower_bound(k + s.lo, k + s.hi, from) - k);
    auto b = static_cast<int>(std::upper_bound(k + a, k + s.hi, to) - k);
    fold(s, a, b, out);
  }

  void fold(const Slot& s, int from, int to, std::int64_t* out) {
    record_.tally().visited += 1;
    if (from < to) record_.take_in(out, values(s)[from].word, to - from, W);
  }

  // Puts an entry into the array; false if it has as many as it may. `more`: how many come, this one included.
  bool put(Slot& s, const Key& at, const std::int64_t* row, std::size_t more) {
    record_.tally().visited += 1;
    int n = s.hi - s.lo;
    Key* k = keys(s);
    int p = s.hi;
    if (n) {
      p = static_cast<int>(std::lower_bound(k + s.lo, k + s.hi, at) - k);
      if (p < s.hi && k[p] == at) {
        record_.take_in(values(s)[p].word, row);
        return true;
      }
    }
    int limit = form_ == Form::array ? most : few;
    if (n == limit) return false;
    if (n == s.room) {
      p -= s.lo;
      resize(s, n + static_cast<int>(std::min<std::size_t>(more, static_cast<std::size_t>(limit - n))));
    } else if (s.hi == s.room) {  // the free places are in front
      std::memmove(k, k + s.lo, sizeof(Key) * static_cast<std::size_t>(n));
      std::memmove(values(s), values(s) + s.lo, sizeof(Partial) * static_cast<std::size_t>(n));
      p -= s.lo;
      s.lo = 0, s.hi = static_cast<std::uint16_t>(n);
    }
    k = keys(s);
    Partial* v = values(s);
    std::memmove(static_cast<void*>(k + p + 1), k + p, sizeof(Key) * static_cast<std::size_t>(s.hi - p));
    std::memmove(static_cast<void*>(v + p + 1), v + p, sizeof(Partial) * static_cast<std::size_t>(s.hi - p));
    k[p] = at;
    v[p] = monoid_.row(row);
    ++s.hi;
    return true;
  }

  // Gives an array room for n entries, and a few more.
  void resize(Slot& s, int n) {
    Slot next;
    next.room = static_cast<std::uint16_t>(n + n / 8 + 1);
    next.block = static_cast<char*>(std::malloc(place * next.room));
    if (!next.block) throw std::bad_alloc();
    next.hi = static_cast<std::uint16_t>(s.hi - s.lo);
    if (next.hi) {
      std::memcpy(static_cast<void*>(keys(next)), keys(s) + s.lo, sizeof(Key) * next.hi);
      std::memcpy(static_cast<void*>(values(next)), values(s) + s.lo, sizeof(Partial) * next.hi);
    }
    release(s);
    s = next;
  }

  void release(Slot& s) {
    std::free(s.block);
    s = Slot{};
  }

  void plant(Slot& s) {
    auto tree = std::make_unique<Tree>(monoid_, pools_);
    for (int i = s.lo; i < s.hi; ++i) tree->insert(keys(s)[i], values(s)[i]);
    release(s);
    s.tree = tree.release();
  }

  // The tree is small: an array again.
  void fell(Slot& s) {
    std::unique_ptr<Tree> tree(std::exchange(s.tree, nullptr));
    if (tree->size() == 0) return;
    resize(s, static_cast<int>(tree->size()));
    tree->for_each([&](const Key& at, const Partial& p) {
      keys(s)[s.hi] = at;
      values(s)[s.hi] = p;
      ++s.hi;
    });
  }

  M monoid_;
  const Record& record_;
  typename Tree::Pools pools_;
  std::vector<Slot> slots_;
  Form form_;
  std::vector<Key> keys_;
  std::vector<Partial> partials_;
};

// The shelf for a record, null if its rows are too long; `apart`: rows stay apart.
std::unique_ptr<Shelf> make_shelf(const Record& record, bool apart, Form form);

// The first of these widths that a record's rows fit into, null if they fit into none.
template <class Key, int... Widths>
std::unique_ptr<Shelf> fitting(const Record& record, Form form) {
  std::unique_ptr<Shelf> made;
  ((made || record.words() > Widths ? void() : void(made = std::make_unique<WordShelf<Widths, Key>>(record, form))), ...);
  return made;
}

// One instance per width is much code: it is compiled in three files.
std::unique_ptr<Shelf> make_long_shelf(const Record& record, Form form);
std::unique_ptr<Shelf> make_apart_shelf(const Record& record, Form form);

}  // namespace sash::engine
