// Broken invariants, in words

#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

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

}  // namespace sash
