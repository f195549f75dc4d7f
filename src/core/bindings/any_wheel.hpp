// A wheel whose monoid is known at run time only

#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "../wheel/plan.hpp"
#include "../wheel/wheel.hpp"
#include "any_structure.hpp"
#include "item_rows.hpp"

namespace sash {

// What can be asked of a wheel at one watermark. RangeRefused where a range can't be answered.
class AnyView {
 public:
  virtual ~AnyView() = default;
  virtual nb::object query(Time from, Time to, nb::handle arg) const = 0;
  virtual nb::object landmark(nb::handle arg) const = 0;
  virtual std::vector<Scalar> query_many(const Time* from, const Time* to, std::size_t n) const = 0;  // one-number results; no GIL needed
  virtual std::pair<Tick, Tick> ticks(Time from, Time to) const = 0;
  virtual const Timeline& line() const = 0;
  virtual const Hints& hints() const = 0;
  virtual Time start() const = 0;
  virtual Time closed() const = 0;
  virtual Time watermark() const = 0;
};

// A result that can't be lowered, and why.
struct ResultRefused {
  std::size_t window;
  Tick start, end;
  nb::python_error error;
};

struct LoweredResult {
  std::size_t window;
  Tick start, end;
  nb::object value;
};

class AnyWheel : public AnyStructure {
 public:
  virtual const AnyView& view() const = 0;
  virtual std::unique_ptr<AnyView> pin() const = 0;  // with the mutex held
  virtual bool pinned() const = 0;                   // a view that was pinned still lives
  virtual std::mutex& mutex() const = 0;
  virtual std::uint64_t late() const = 0;
  virtual bool insert(Time t, const Item* items, nb::handle value, nb::handle time) = 0;
  virtual std::size_t insert_rows(const ItemRows& in, const Time* times) = 0;  // all are lifted before the first goes in
  virtual std::size_t insert_column(const ItemColumn* parts, std::size_t n, const Time* times) = 0;  // native only; no GIL needed
  virtual void install(const WindowSpec& spec) = 0;
  virtual std::int64_t due(Time to) const = 0;
  virtual void advance(Time to, bool empties) = 0;  // with the mutex held; native: no GIL needed
  // What advances gave and was not handed out; keep_errors: what can't be lowered has its error as its value, else ResultRefused.
  virtual std::vector<LoweredResult> results(bool keep_errors) = 0;
  virtual void handed_out() = 0;
  virtual std::size_t bytes() const = 0;
  virtual std::size_t slots() const = 0;
  virtual void check() = 0;
  virtual void merge(AnyWheel& other) = 0;  // with the mutex held
};

std::unique_ptr<AnyWheel> make_wheel(const DefinitionPtr& definition, const WheelSettings& settings);

// The instantiations for monoids of their own, in their own translation unit; null for others.
std::unique_ptr<AnyWheel> make_hot_wheel(const DefinitionPtr& definition, const WheelSettings& settings);

}  // namespace sash
