// One description of a structure for bytes, copies and promotion
//
// A structure lists its fields once, in `template <class Archive> void archive(Archive& ar)`. Saving,
// the archive collects numbers and partials; loading, it hands them back in the same order. Partials
// travel apart from numbers, so that they can be converted on the way (int64 to float64).

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

// One type per partial, wherever the partials come from: what structures archive is compiled once for saving and once for loading.
template <class Partial>
class LoadArchive {
 public:
  static constexpr bool loading = true;

  LoadArchive(std::span<const std::int64_t> numbers, std::span<const Partial> partials) : numbers_(numbers), partials_(partials) {}

  void number(std::int64_t& n) {
    if (next_number_ == numbers_.size()) throw std::invalid_argument("the stored window ends too early");
    n = numbers_[next_number_++];
  }

  void partial(Partial& p) {
    if (next_partial_ == partials_.size()) throw std::invalid_argument("the stored window ends too early");
    p = partials_[next_partial_++];
  }

  // How many partials are still to come: a loader checks a stored count against it before it allocates.
  std::size_t partials_left() const { return partials_.size() - next_partial_; }
  bool done() const { return next_number_ == numbers_.size() && next_partial_ == partials_.size(); }

 private:
  std::span<const std::int64_t> numbers_;
  std::span<const Partial> partials_;
  std::size_t next_number_ = 0;
  std::size_t next_partial_ = 0;
};

}  // namespace sash
