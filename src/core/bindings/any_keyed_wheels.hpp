// Keyed wheels whose monoid is known at run time only

#pragma once

#include <memory>
#include <vector>

#include "any_wheel.hpp"

namespace sash {

// How the partial of a slice is made of its columns.
enum class SliceForm : std::uint8_t {
  value,  // of one value, as an item's: sum, min, max, first ...
  count,  // one number of items
  mean,   // sum and count
  both    // two values: minmax
};
inline std::size_t columns_of(SliceForm form) { return form == SliceForm::mean || form == SliceForm::both ? 2 : 1; }

// What a key holds of a range, per key that holds something.
struct KeyedResults {
  std::vector<std::uint32_t> keys;
  std::vector<Scalar> scalars;      // of one-number results
  std::vector<nb::object> objects;  // of others
};

class AnyKeyedWheels : public AnyStructure {
 public:
  virtual const AnyView& view() const = 0;  // of all keys together
  virtual std::uint64_t late() const = 0;
  virtual void grow(std::size_t keys) = 0;
  virtual bool insert(std::uint32_t key, Time t, const Item* items, nb::handle value, nb::handle time) = 0;
  virtual void refuse() = 0;  // counts a late item
  // Columns of items or slices; native only, no GIL needed.
  virtual std::size_t insert_column(const std::uint32_t* keys, const ItemColumn* parts, std::size_t n, const Time* times) = 0;
  // A form per part.
  virtual std::size_t insert_slices(const std::uint32_t* keys, const std::vector<SliceForm>& forms, const ItemColumn* columns,
                                    const Time* times) = 0;
  // Rows of items, or of Python partials that are slices: first all are lifted, then all go in, each to its key. late[i] is 1 for
  // what is only counted.
  virtual void stage_rows(const ItemRows& in, const Time* times, const std::vector<std::uint8_t>& late) = 0;
  virtual void stage_slices(nb::list partials) = 0;
  virtual void insert_staged(const std::uint32_t* keys, const Time* times, const std::vector<std::uint8_t>& late, bool slices) = 0;
  virtual void advance(Time to) = 0;                                 // native: no GIL needed
  virtual nb::object empty(Time from, Time to, nb::handle arg) = 0;  // of a key that is not known
  virtual nb::object query(std::uint32_t key, Time from, Time to, nb::handle arg) = 0;
  virtual nb::object landmark(std::uint32_t key, nb::handle arg) = 0;
  virtual nb::object nothing(nb::handle arg) = 0;
  virtual KeyedResults query_each(Time from, Time to, std::size_t keys, bool scalars) = 0;  // native and scalars: no GIL needed
  virtual std::vector<std::size_t> slots_read(std::uint32_t key, Time from, Time to) = 0;
  virtual bool drops() const = 0;
  virtual void merge(AnyKeyedWheels& other, const std::vector<std::uint32_t>& number) = 0;
  virtual std::size_t bytes() const = 0;
  virtual void check() = 0;
};

std::unique_ptr<AnyKeyedWheels> make_keyed_wheels(const DefinitionPtr& definition, const WheelSettings& settings);

// The instantiations for monoids of their own, in their own translation unit; null for others.
std::unique_ptr<AnyKeyedWheels> make_hot_keyed_wheels(const DefinitionPtr& definition, const WheelSettings& settings);

}  // namespace sash
