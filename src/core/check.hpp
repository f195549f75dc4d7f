// Broken invariants, in words

#pragma once

#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sash {

// Thrown by check(): the message names the invariant of the card, what was found and what was expected.
class BrokenInvariant : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <class... Words>
void require(bool holds, const Words&... words) {
  if (holds) return;
  std::ostringstream message;
  (message << ... << words);
  throw BrokenInvariant(message.str());
}

// What check() expects: values[from] to values[to - 1] combined, oldest first.
template <class M, class Partial>
Partial fold(const M& monoid, const std::vector<Partial>& values, std::size_t from, std::size_t to) {
  Partial sum = monoid.identity();
  for (; from < to; ++from) sum = monoid.combine(sum, values[from]);
  return sum;
}

// The folds up to `to` from every place: entry i is fold(values, i, to).
template <class M, class Partial>
std::vector<Partial> suffixes(const M& monoid, const std::vector<Partial>& values, std::size_t to) {
  std::vector<Partial> sums(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(to));
  for (std::size_t i = to; i-- > 1;) sums[i - 1] = monoid.combine(sums[i - 1], sums[i]);
  return sums;
}

// Checks a structure just loaded: bytes that came from outside may say anything.
template <class Check>
void require_sound(Check check) {
  try {
    check();
  } catch (const BrokenInvariant& broken) {
    throw std::invalid_argument(std::string("the stored window is damaged: ") + broken.what());
  }
}

}  // namespace sash
