// Python objects as partials of the live engine

#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "engine/objects.hpp"

namespace sash::engine {

namespace nb = nanobind;

// All of it needs the GIL. Null is the object of nothing.
class PyObjects : public Objects {
 public:
  // combine(older, younger): two entries of one time as one entry, or what is asked for. move(to, object, time): an object joins that
  // of another time, or the past; `to` is None where there is nothing yet.
  PyObjects(nb::object combine, nb::object move) : combine_(std::move(combine)), move_(std::move(move)) {}

  // What the next insert takes from.
  void give(nb::list objects) { given_ = std::move(objects); }
  // Those of the last call that asked.
  nb::list answers(std::size_t list) const {
    nb::list out;
    for (const nb::object& object : answers_.at(list)) out.append(object.is_valid() ? object : nb::none());
    return out;
  }
  std::uint64_t visited() const { return tally_.visited; }
  std::uint64_t combines() const { return tally_.combines; }

  void begin(std::size_t lists, std::size_t rows) override { answers_.assign(lists, std::vector<nb::object>(rows)); }
  void extend(std::size_t list) override { answers_[list].emplace_back(); }
  void insert_past(std::uint32_t id, std::size_t at) override { join_past(id, nb::borrow(given_[at])); }
  void query_past(std::uint32_t id, std::size_t list, std::size_t row) override {
    nb::object& answer = answers_[list][row];
    answer = combined(answer, past_[id]);
  }

  void join_past(std::uint32_t id, const nb::object& object) { past_[id] = moved(past_[id], object, before_all); }
  virtual void put_hop(std::uint32_t id, Time hop, nb::object object) = 0;
  nb::object& answer(std::size_t list, std::size_t row) { return answers_[list][row]; }
  void append(nb::object object) { answers_[0].push_back(std::move(object)); }

 protected:
  nb::object combined(const nb::object& a, const nb::object& b) const {
    if (!a.is_valid() || !b.is_valid()) return a.is_valid() ? a : b;
    ++tally_.combines;
    return combine_(a, b);
  }
  nb::object moved(const nb::object& to, const nb::object& object, Time time) const {
    nb::object target = to.is_valid() ? to : nb::none();
    return move_(target, object, time);
  }

  nb::object combine_, move_;
  nb::list given_;
  std::vector<std::vector<nb::object>> answers_;
  std::vector<nb::object> past_;
  mutable Tally tally_;
};

std::unique_ptr<PyObjects> make_objects(bool apart, nb::object combine, nb::object move);

}  // namespace sash::engine
