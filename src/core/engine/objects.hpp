// The partials that are no words, beside a shelf: one object per entry, for all such aggregations of the query together
//
// Every entry of the shelf has one. What it is, and how two combine, is the binding's: here they have no type. A call that
// inserts takes them from a list that the binding gave, by place; a call that asks leaves them in lists of answers.

#pragma once

#include <cstddef>
#include <cstdint>

#include "runs.hpp"
#include "shelf.hpp"

namespace sash::engine {

class Objects {
 public:
  virtual ~Objects() = default;
  virtual void reach(std::uint32_t id) = 0;
  // Those of the given list from place `at` on; else as Shelf::insert.
  virtual void insert(std::uint32_t id, const Time* times, std::size_t at, std::size_t n, std::int64_t number) = 0;
  virtual void insert_past(std::uint32_t id, std::size_t at) = 0;
  // Lets go as Shelf::evict does. They join the past of `to`, its entry of time `at`, or, without `to`, nothing.
  virtual void evict(std::uint32_t id, Time time, std::size_t keep, Objects* to, Time at) = 0;
  virtual void leave(std::uint32_t id) = 0;

  virtual void begin(std::size_t lists, std::size_t rows) = 0;  // so many answers, all of nothing
  virtual void extend(std::size_t list) = 0;                    // by an answer of nothing
  // As those of the shelf, behind what is in row `row` of a list of answers of `out`.
  virtual void query(std::uint32_t id, Time from, Time to, Objects& out, std::size_t list, std::size_t row) = 0;
  virtual void query_rows(std::uint32_t id, Place place, std::size_t n, bool takes_itself, std::size_t list, std::size_t row) = 0;
  virtual void query_past(std::uint32_t id, std::size_t list, std::size_t row) = 0;
  // All of a key, in order, as further answers of list 0 of `out`.
  virtual void each(std::uint32_t id, Objects& out) const = 0;
  virtual std::size_t bytes() const = 0;
};

}  // namespace sash::engine
