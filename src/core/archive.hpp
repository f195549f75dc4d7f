// One description of a structure for bytes, copies and promotion
//
// A structure lists its fields once, in `template <class Archive> void archive(Archive& ar)`. Saving,
// the archive collects numbers and partials; loading, it hands them back in the same order. Partials
// travel apart from numbers, so that a loading archive may convert them on the way (int64 to float64).

#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sash {

template <class Partial>
class SaveArchive {
 public:
  static constexpr bool loading = false;

  void number(std::int64_t& n) { numbers.push_back(n); }
  void partial(Partial& p) { partials.push_back(p); }

  std::vector<std::int64_t> numbers;
  std::vector<Partial> partials;
};

// Convert maps a stored partial to one of the structure being loaded.
template <class Stored, class Convert>
class LoadArchive {
 public:
  static constexpr bool loading = true;

  LoadArchive(std::span<const std::int64_t> numbers, std::span<const Stored> partials, Convert convert)
      : numbers_(numbers), partials_(partials), convert_(std::move(convert)) {}

  void number(std::int64_t& n) {
    if (next_number_ == numbers_.size()) throw std::invalid_argument("the stored window ends too early");
    n = numbers_[next_number_++];
  }

  template <class Partial>
  void partial(Partial& p) {
    if (next_partial_ == partials_.size()) throw std::invalid_argument("the stored window ends too early");
    p = convert_(partials_[next_partial_++]);
  }

  // How many partials are still to come: a loader checks a stored count against it before it allocates.
  std::size_t partials_left() const { return partials_.size() - next_partial_; }
  bool done() const { return next_number_ == numbers_.size() && next_partial_ == partials_.size(); }

 private:
  std::span<const std::int64_t> numbers_;
  std::span<const Stored> partials_;
  Convert convert_;
  std::size_t next_number_ = 0;
  std::size_t next_partial_ = 0;
};

}  // namespace sash
