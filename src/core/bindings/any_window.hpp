// A window whose algorithm and monoid are known at run time only

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../adapters/in_order.hpp"
#include "any_structure.hpp"
#include "items.hpp"

namespace sash {

struct Options {
  int min_arity = 0;  // 0: the algorithm's own default
  bool keep_ties = false;
  // Of a reorder buffer: how late an item may be, and whether its times are floats.
  bool reorders = false;
  Time max_delay = 0;
  double float_delay = 0;
  bool float_times = false;
  bool integers_only = false;  // chosen because integers were promised: floats are refused
};

class AnyWindow : public AnyStructure {
 public:
  bool untouched() const final { return size() == 0 && next_time() == 0; }

  virtual void append(const Item* items, nb::handle value) = 0;  // times count themselves
  virtual void insert(const Item* items, nb::handle value, nb::handle time, Time t) = 0;
  // Many items, with their times as keys and as Python callables see them; counted: the times are those that come next. All are
  // lifted before the first goes in.
  virtual void insert_rows(const std::vector<std::vector<Item>>& rows, const std::vector<nb::object>& values,
                           const std::vector<nb::object>& times, const std::vector<Time>& keys, bool counted) = 0;
  virtual void insert_column(const ItemColumn* parts, std::size_t n, const Time* times) = 0;  // native only; no GIL needed
  virtual void evict() = 0;
  virtual bool evict(Time t) = 0;
  virtual void bulk_evict(Time t) = 0;
  virtual nb::object query(nb::handle arg) const = 0;
  virtual nb::object query(Time from, Time to, nb::handle arg) = 0;
  virtual bool reaches_the_end(Time to) const = 0;
  virtual std::vector<Scalar> query_many(const Time* from, const Time* to, std::size_t n) = 0;      // one-number results only
  virtual std::vector<nb::object> query_each(const Time* from, const Time* to, std::size_t n) = 0;  // any results
  virtual std::size_t size() const = 0;
  virtual Time oldest() const = 0;
  virtual Time youngest() const = 0;
  virtual Time next_time() const = 0;
  virtual std::vector<Time> times() const = 0;
  virtual std::vector<std::pair<Time, nb::object>> items() const = 0;
  virtual void clear() = 0;
  // Against these items; their times as keys, and as Python callables see them.
  virtual void check(const std::vector<std::vector<Item>>& items, const std::vector<nb::object>& values, const std::vector<Time>& keys,
                     const std::vector<nb::object>& times) = 0;
  virtual std::uint64_t visited() const = 0;
  virtual std::uint64_t restructured() const = 0;
  virtual std::map<std::string, std::uint64_t> reached() const = 0;
  virtual nb::object nodes() const = 0;      // of a tree, from the root down: (level, place, times, lowered partial)
  virtual bool merge(AnyWindow& other) = 0;  // false: it is of another kind
  // The item type, where the window itself decides on it.
  virtual const char* item_type() const { return nullptr; }
};

// The entry of an algorithm: what its class can do, what it asks of an aggregation, and the card that its paper would give it.
// It is the only table of algorithms. The planner, slide(), Keyed, error messages, docs and benches read it, from Python through
// _core.algorithms().
struct AlgorithmInfo {
  const char* name;
  const char* time;   // combines per operation
  const char* space;  // partials
  const char* paper;
  std::unique_ptr<AnyWindow> (*make)(const DefinitionPtr&, const Options&);

  // What it can do.
  bool in_order = false;       // times must not decrease
  bool ranges = false;         // query(start, end)
  bool suffixes = false;       // the same, for ends at the youngest entry only
  bool items = false;          // still has its items
  bool anywhere = false;       // evict(time)
  bool counts_times = false;   // takes items in any order, and yet times may be left out
  bool combines_ties = false;  // equal times are one entry

  // What it needs.
  bool needs_associative = true;
  bool needs_inverse = false;
  bool needs_selective = false;
  bool needs_median_like = false;
  bool needs_delay = false;  // max_delay=

  // When sash.window takes it.
  int preference = 0;              // its turn, from 1; 0: only where it is named
  const char* spike = nullptr;     // what a single call may cost, where that grows with n
  const char* drawback = nullptr;  // why it is passed over unless what it is for is asked for

  const char* benches = "";  // the experiments of `sash bench` that it is in
};

// All of them, in the order of the tables; the name of each only once.
const std::vector<const AlgorithmInfo*>& algorithms();
void add_algorithm(const AlgorithmInfo& info);

// The names of those that a test accepts, in words: "Fiba, BTree or Recalc".
template <class Test>
std::string names_of(Test test, const char* last = " and ") {
  std::vector<std::string> found;
  for (const AlgorithmInfo* info : algorithms())
    if (test(*info)) found.push_back(info->name);
  std::string out;
  for (std::size_t i = 0; i < found.size(); ++i) out += (i == 0 ? "" : i + 1 < found.size() ? ", " : last) + found[i];
  return out;
}

}  // namespace sash
