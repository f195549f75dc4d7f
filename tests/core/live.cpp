// The live structure of a bucket against plain models, for the sanitizers: tests/live.sh compiles and runs it.
//
// 1  many BlockFibas of strings that share their pools, so that any lost, doubled or reordered item shows
// 2  shelves in each of their forms, rows together and apart
// 3  windows, sessions and look-backs of a live bucket

#include "engine/live.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

using namespace sash;
using namespace sash::engine;

// One length of rows is enough here, and compiles in a tenth of the time.
std::unique_ptr<Shelf> sash::engine::make_shelf(const Record& record, bool apart, Form form) {
  if (apart) return std::make_unique<WordShelf<12, Place>>(record, form);
  return std::make_unique<WordShelf<12, Time>>(record, form);
}

namespace {

std::mt19937_64 rng(1);
std::int64_t draw(std::int64_t n) { return static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(n)); }

void require(bool holds, const char* what, int step) {
  if (holds) return;
  std::fprintf(stderr, "step %d: %s\n", step, what);
  std::abort();
}

struct Strings {
  using Partial = std::string;
  Partial identity() const { return {}; }
  Partial combine(const Partial& a, const Partial& b) const { return a + b; }
};

template <int LeafCap, int Fan>
void shared_pools(int steps) {
  using Window = BlockFiba<Strings, Time, LeafCap, Fan>;
  typename Window::Pools pools;
  std::vector<std::unique_ptr<Window>> windows;
  std::vector<std::map<Time, std::string>> models(5);
  for (std::size_t i = 0; i < models.size(); ++i) windows.push_back(std::make_unique<Window>(Strings{}, pools));
  for (int step = 0; step < steps; ++step) {
    auto k = static_cast<std::size_t>(draw(5));
    auto& window = *windows[k];
    auto& model = models[k];
    Time newest = model.empty() ? 0 : model.rbegin()->first;
    switch (draw(8)) {
      case 0:
      case 1:
      case 2: {
        Time t = draw(3) ? newest + draw(3) : newest - draw(400);
        std::string v(1, static_cast<char>('a' + draw(26)));
        window.insert(t, v);
        model[t] += v;
        break;
      }
      case 3: {
        std::vector<Time> times;
        std::vector<std::string> values;
        Time t = newest - draw(200);
        for (int i = 0; i < draw(100); ++i) {
          times.push_back(t += draw(4));
          values.push_back(std::string(1, static_cast<char>('A' + draw(26))));
          model[t] += values.back();
        }
        window.bulk_insert(times, values);
        break;
      }
      case 4: {
        if (model.empty()) break;
        Time t = model.begin()->first + draw(draw(4) ? 20 : newest - model.begin()->first + 3);
        window.bulk_evict(t);
        model.erase(model.begin(), model.upper_bound(t));
        break;
      }
      case 5: {
        if (model.empty()) break;
        auto n = static_cast<std::size_t>(draw(static_cast<std::int64_t>(model.size()) + 3));
        auto at = std::next(model.begin(), draw(static_cast<std::int64_t>(model.size())));
        Time expected = at->first;
        for (std::size_t i = 0; i < n && at != model.begin(); ++i) expected = (--at)->first;
        at = model.lower_bound(expected);
        Time key = expected;
        for (std::size_t i = 0; i < n && std::next(at) != model.end(); ++i) key = (++at)->first;
        auto back = model.find(key);
        for (std::size_t i = 0; i < n && back != model.begin(); ++i) --back;
        require(window.before(key, n) == back->first, "before() gives another key", step);
        break;
      }
      case 6:
        if (draw(40) == 0) {
          windows[k] = std::make_unique<Window>(Strings{}, pools);
          model.clear();
        } else if (draw(40) == 0) {
          window.clear();
          model.clear();
        }
        break;
      default: {
        Time low = model.empty() ? 0 : model.begin()->first - 2;
        Time a = low + draw(newest - low + 3), b = a + draw(newest - low + 3);
        if (draw(2)) a = low;
        if (draw(3) == 0) b = newest - draw(20);
        if (a > b) break;
        std::string expected;
        for (auto it = model.lower_bound(a); it != model.end() && it->first <= b; ++it) expected += it->second;
        require(window.query(a, b) == expected, "a range gives another value", step);
      }
    }
    require(windows[k]->size() == model.size(), "another size", step);
    if (step % 16 == 0) windows[k]->check([](const std::string& a, const std::string& b) { return a == b; });
  }
}

// Count, sum and max of int64, and a kernel of its own: the time of the max.
struct Fixture {
  NativeColumn<Count> count{Count{}};
  NativeColumn<Mean<std::int64_t>> sum{Mean<std::int64_t>{}};
  NativeColumn<Max<std::int64_t>> max{Max<std::int64_t>{}};
  NativeColumn<TimeOfExtreme<std::int64_t, Wants::greatest>> when{TimeOfExtreme<std::int64_t, Wants::greatest>{}};
  std::vector<const Column*> columns{&count, &sum, &max, &when};
};

struct Item {
  int key;
  Time time;
  std::int64_t value;
};

struct Result {
  std::int64_t n = 0, sum = 0, max = std::numeric_limits<std::int64_t>::min();
  Time when = 0;
  bool operator==(const Result&) const = default;
  void add(const Item& item) {
    if (n++ == 0 || item.value > max || (item.value == max && item.time < when)) max = item.value, when = item.time;
    sum += item.value;
  }
};

KeyTable key_table(const std::set<int>& keys, std::map<int, int>& place) {
  std::vector<std::pair<std::uint64_t, std::pair<std::string, int>>> all;
  for (int k : keys) {
    std::string name = (k % 3 ? "key " : "a key that is longer than a short string ") + std::to_string(k);
    all.push_back({hash_of(name.data(), name.size()), {name, k}});
  }
  std::sort(all.begin(), all.end());
  KeyTable table;
  for (std::size_t i = 0; i < all.size(); ++i) {
    table.push_back(all[i].first, all[i].second.first);
    place[all[i].second.second] = static_cast<int>(i);
  }
  return table;
}

int key_of(std::string_view name) { return std::stoi(std::string(name.substr(name.rfind(' ') + 1))); }

Result result(const Live& live, const Answers& answers, std::size_t i) {
  Result r;
  Lower how[] = {Lower::sum_or_none};
  r.n = live.lower(answers, 0, how)[0].bits[i];
  if (r.n == 0) return {};
  r.sum = live.lower(answers, 1, how)[0].bits[i];
  r.max = live.lower(answers, 2, how)[0].bits[i];
  r.when = live.lower(answers, 3, how)[0].bits[i];
  return r;
}

struct Sent {
  KeyTable keys;
  Sliced sliced;
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<std::int32_t> ids;
  std::vector<Time> times;
};

// Items as a run of slices per pane, or, with grain 0, as rows.
Sent run_of(const Fixture& f, const std::vector<Item>& items, Time grain) {
  Sent out;
  std::set<int> keys;
  for (auto& item : items) keys.insert(item.key);
  std::map<int, int> place;
  out.keys = key_table(keys, place);
  std::vector<std::int64_t> values;
  for (auto& item : items) out.ids.push_back(place[item.key]), out.times.push_back(item.time), values.push_back(item.value);
  std::size_t n = items.size();
  std::vector<std::int32_t> places(n);
  std::size_t slices = n;
  if (grain) {
    out.sliced = slice_rows(out.ids.data(), out.times.data(), nullptr, n, keys.size(), grain, 0);
    places.assign(out.sliced.places.begin(), out.sliced.places.end());
    slices = out.sliced.layout.times.size();
  } else {
    out.sliced = order_rows(out.ids.data(), out.times.data(), n, {}, keys.size());
    places.assign(out.sliced.places.begin(), out.sliced.places.end());
  }
  Items in;
  in.places = places.data();
  in.n = n;
  in.values = values.data();
  in.times = out.times.data();
  for (const Column* c : f.columns) out.columns.push_back(c->lift(in, slices));
  return out;
}

std::vector<const Column*> views(const Sent& sent) {
  std::vector<const Column*> out;
  for (auto& c : sent.columns) out.push_back(c.get());
  return out;
}

std::vector<Item> some(Time now, Time late, int keys, int most) {
  std::vector<Item> items;
  for (int i = 0; i < draw(most); ++i) items.push_back({static_cast<int>(draw(keys)), now - (draw(3) ? draw(5) : draw(late)), draw(100)});
  return items;
}

void windows(Form form, int steps) {
  Fixture f;
  Time slide = 1 + draw(6), range = slide + draw(draw(2) ? 20 : 300), grain = std::gcd(range, slide);
  Plan plan;
  plan.kind = Plan::windows;
  plan.range = range / grain, plan.slide = slide / grain;
  plan.ranges = {plan.range};
  Live live(f.columns, plan, form);
  std::vector<Item> held;
  Time now = 100, closed = -1'000'000;
  for (int step = 0; step < steps; ++step) {
    now += draw(4) ? draw(7) : draw(2 * range);
    Time mark = std::max(closed, now - 10 - draw(20));
    std::vector<Item> items;
    for (auto& item : some(now, 40, 7, 60))
      if (floor_div(item.time, slide) * slide + range > closed) items.push_back(item);  // its last window is open
    if (!items.empty()) {
      Sent sent = run_of(f, items, grain);
      Places numbered;
      live.insert(sent.keys, sent.sliced.layout.starts.data(), sent.sliced.layout.times.data(), views(sent), numbered);
    }
    held.insert(held.end(), items.begin(), items.end());
    std::map<std::pair<int, Time>, Result> expected;
    for (auto& item : held)
      for (Time start = floor_div(item.time, slide) * slide; start + range > item.time; start -= slide)
        if (start + range > closed && start + range <= mark) expected[{item.key, start + range}].add(item);
    Closed out = live.close_windows(floor_div(mark, grain));
    require(out.key.size() == expected.size(), "another number of windows", step);
    for (std::size_t i = 0; i < out.key.size(); ++i) {
      int key = key_of(out.keys.key(static_cast<std::size_t>(out.key[i])));
      require(expected.at({key, out.end[i] * grain}) == result(live, out.answers[0], i), "a window has another value", step);
    }
    closed = mark;
    std::erase_if(held, [&](const Item& item) { return floor_div(item.time, slide) * slide + range <= closed; });
    std::set<int> keys;
    std::set<std::pair<int, Time>> slices;
    for (auto& item : held) keys.insert(item.key), slices.insert({item.key, floor_div(item.time, grain)});
    require(live.keys() == keys.size() && live.entries() == slices.size(), "another number of keys or slices is held", step);
    Exported all = live.exported();
    require(all.layout.times.size() == slices.size(), "what is exported is of another size", step);
    live.check();
  }
}

void sessions(Form form, int steps) {
  Fixture f;
  Plan plan;
  plan.kind = Plan::sessions;
  plan.gap = 1 + draw(12);
  Live live(f.columns, plan, form);
  std::vector<Item> held;
  Time now = 100, mark = 0;
  for (int step = 0; step < steps; ++step) {
    now += draw(6) ? draw(9) : 60;
    std::vector<Item> items;
    for (auto& item : some(now, 40, 5, 30))
      if (item.time > mark - plan.gap) items.push_back(item);
    if (!items.empty()) {
      Sent sent = run_of(f, items, 1);
      Places numbered;
      live.insert(sent.keys, sent.sliced.layout.starts.data(), sent.sliced.layout.times.data(), views(sent), numbered);
    }
    held.insert(held.end(), items.begin(), items.end());
    mark = std::max(mark, now - 10 - draw(20));
    std::stable_sort(held.begin(), held.end(), [](auto& a, auto& b) { return std::pair(a.key, a.time) < std::pair(b.key, b.time); });
    std::map<std::pair<int, Time>, Result> expected;
    std::vector<Item> left;
    for (std::size_t a = 0, b; a < held.size(); a = b) {
      for (b = a + 1; b < held.size() && held[b].key == held[a].key && held[b].time - held[b - 1].time <= plan.gap;) ++b;
      bool over = held[b - 1].time + plan.gap <= mark;
      for (std::size_t i = a; i < b; ++i) {
        if (over)
          expected[{held[a].key, held[b - 1].time + plan.gap}].add(held[i]);
        else
          left.push_back(held[i]);
      }
    }
    held = left;
    Closed out = live.close_sessions(mark);
    require(out.key.size() == expected.size(), "another number of sessions", step);
    for (std::size_t i = 0; i < out.key.size(); ++i) {
      int key = key_of(out.keys.key(static_cast<std::size_t>(out.key[i])));
      require(expected.at({key, out.end[i]}) == result(live, out.answers[0], i), "a session has another value", step);
    }
  }
}

// With a hop, look-backs begin at multiples of it, and rows become one entry per hop when they are old.
void lookbacks(Form form, bool apart, Time hop, int steps) {
  Fixture f;
  Plan plan;
  plan.apart = apart;
  Time period = 1 + draw(draw(2) ? 30 : 400);
  if (hop) plan.hops = {{period, hop}}, plan.hop = hop;
  Live live(f.columns, plan, form);
  std::size_t keep = apart ? static_cast<std::size_t>(1 + draw(40)) : 0;
  bool fold = draw(2);
  auto begin = [&](Time t) { return hop ? floor_div(t - period, hop) * hop : t - period + 1; };
  std::map<int, std::vector<Item>> rows;  // in order of time, then of arrival
  std::map<int, Result> past;
  Time now = 100;
  for (int step = 0; step < steps; ++step) {
    now += draw(5);
    std::vector<Item> items = some(now, 30, 5, 60);
    if (items.empty()) continue;
    Sent sent = run_of(f, items, 0);
    Places numbered;
    std::int64_t first = live.insert(sent.keys, sent.sliced.layout.starts.data(), sent.sliced.layout.times.data(), views(sent), numbered);
    std::vector<std::int32_t> ids(items.size()), at(items.size());  // of every entry: key, row
    for (std::size_t i = 0; i < items.size(); ++i) {
      auto entry = static_cast<std::size_t>(sent.sliced.places[i]);
      ids[entry] = numbered[static_cast<std::size_t>(sent.ids[i])];
      at[entry] = static_cast<std::int32_t>(i);
    }
    const auto& times = sent.sliced.layout.times;
    for (auto& item : items) {
      auto& list = rows[item.key];
      list.insert(std::upper_bound(list.begin(), list.end(), item, [](auto& a, auto& b) { return a.time < b.time; }), item);
    }
    std::vector<Time> from;
    for (Time t : times) from.push_back(begin(t));
    Answers answers;
    live.query(ids.data(), at.data(), from.data(), times.data(), fold, items.size(), answers);
    for (std::size_t i = 0; i < items.size(); ++i) {
      Result expected = fold ? past[items[i].key] : Result{};
      for (auto& row : rows[items[i].key])
        if (row.time >= begin(items[i].time) && row.time <= items[i].time) expected.add(row);
      Result found = result(live, answers, i);
      if (!fold) require(found == expected, "a look-back has another value", step);
      require(found.n == expected.n && found.sum == expected.sum, "a look-back with its past has another value", step);
    }
    if (apart && !hop) {  // a late row may count rows that are hops by now
      bool itself = draw(2);
      auto length = static_cast<std::size_t>(1 + draw(static_cast<std::int64_t>(keep)));
      live.query_rows(ids.data(), at.data(), times.data(), first, length, itself, items.size(), answers);
      for (std::size_t i = 0; i < items.size(); ++i) {
        // The rows of this batch with its time stand in the order of their arrival, behind older ones.
        auto& list = rows[items[i].key];
        std::size_t later = 0;
        for (std::size_t x = i + 1; x < items.size(); ++x) later += items[x].key == items[i].key && items[x].time == items[i].time;
        auto end = static_cast<std::size_t>(
            std::upper_bound(list.begin(), list.end(), items[i], [](auto& a, auto& b) { return a.time < b.time; }) - list.begin());
        std::size_t place = end - later, stop = itself ? place : place - 1;
        Result expected;
        for (std::size_t x = stop > length ? stop - length : 0; x < stop; ++x) expected.add(list[x]);
        require(result(live, answers, i) == expected, "a look-back of rows has another value", step);
      }
    }
    // No row that comes is as old as `exact`; rows are kept, or become hops, one by one.
    Time exact = now - 31, oldest = begin(exact);
    auto entry = [&](Time t) { return hop && t < exact ? floor_div(t, hop) * hop : t; };
    live.expire(oldest, hop ? exact : oldest, keep, fold);
    std::size_t entries = 0;
    for (auto& [key, list] : rows) {
      std::size_t gone = 0;
      while (gone < list.size() && entry(list[gone].time) < oldest && list.size() - gone > keep) {
        if (fold) past[key].add(list[gone]);
        ++gone;
      }
      list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(gone));
      std::set<Time> times;
      std::size_t exact_rows = 0;
      for (std::size_t i = 0; i < list.size(); ++i) {
        bool far = hop && list[i].time < exact && list.size() - i > keep;
        times.insert(far ? entry(list[i].time) : list[i].time + (hop ? Time{1} << 40 : 0));
        exact_rows += !far;
        if (apart && !far) times.erase(list[i].time + (hop ? Time{1} << 40 : 0));
      }
      entries += times.size() + (apart ? exact_rows : 0);
    }
    require(live.entries() == entries, "another number of entries is held", step);
    live.check();
  }
}

}  // namespace

int main(int argc, char** argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 4'000;
  shared_pools<4, 4>(4 * steps);
  shared_pools<8, 4>(4 * steps);
  shared_pools<16, 8>(4 * steps);
  for (int round = 0; round < 6; ++round)
    for (Form form : {Form::automatic, Form::array, Form::tree}) {
      windows(form, steps / 20);
      sessions(form, steps / 20);
      for (Time hop : {Time{0}, 1 + draw(40)}) {
        lookbacks(form, false, hop, steps / 20);
        lookbacks(form, true, hop, steps / 20);
      }
    }
  std::puts("ok");
}
