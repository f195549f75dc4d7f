// A window whose algorithm and monoid are known at run time only

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "../adapters/in_order.hpp"
#include "items.hpp"
#include "saved.hpp"

namespace sash {

struct Options {
  int min_arity = 0;  // 0: the algorithm's own default
  bool keep_ties = false;
  Time max_delay = 0;  // of a reorder buffer
};

class AnyWindow {
 public:
  virtual ~AnyWindow() = default;

  virtual bool native() const = 0;
  virtual void append(const Item* items, nb::handle value) = 0;  // times count themselves
  virtual void insert(const Item* items, nb::handle value, nb::handle time, Time t) = 0;
  virtual void insert_rows(const std::vector<std::vector<Item>>& rows, const std::vector<nb::object>& values,
                           const std::vector<nb::object>& times, const std::vector<Time>& keys) = 0;
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
  virtual bool torn() const = 0;
  virtual void clear() = 0;
  virtual void check(const std::vector<std::vector<Item>>& items, const std::vector<nb::object>& values,
                     const std::vector<Time>& times) = 0;
  virtual Saved save() = 0;
  virtual void load(const Saved& saved) = 0;
  virtual void load_blank(const Saved& saved) = 0;  // the same structure, every partial the identity
  virtual std::uint64_t visited() const = 0;
  virtual std::uint64_t restructured() const = 0;
  virtual std::map<std::string, std::uint64_t> reached() const = 0;
  virtual nb::object nodes() const = 0;  // of a tree, from the root down: (level, place, times, lowered partial)
  // Takes over the entries of a window of the same algorithm on narrower item types: int64 becomes float64.
  virtual void promote_from(AnyWindow& narrower, const std::vector<bool>& parts) = 0;
  virtual void merge(AnyWindow& other) = 0;
  // The item type, where the window itself decides on it.
  virtual const char* item_type() const { return nullptr; }
};

// What the class of one algorithm can do, and what it asks of an aggregation.
struct AlgorithmInfo {
  const char* name;
  bool in_order;
  bool ranges;
  bool suffixes;
  bool items;
  bool anywhere;
  bool needs_inverse;
  bool needs_selective;
  bool needs_associative;
  std::unique_ptr<AnyWindow> (*make)(const DefinitionPtr&, const Options&);
  bool counts_times = false;  // takes items in any order, and yet times may be left out
};

}  // namespace sash
