// What a window or a wheel holds, as numbers and partials: saved, restored, taken over from one on narrower items

#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "../archive.hpp"
#include "module.hpp"

namespace sash {

struct Saved {
  std::vector<std::int64_t> numbers;
  nb::object partials;
  std::size_t count = 0;  // of partials
};

template <class Face, class Structure>
Saved saved(const Face& face, Structure& structure) {
  SaveArchive<typename Face::Partial> ar;
  structure.archive(ar);
  return {std::move(ar.numbers), face.to_bytes(ar.partials), ar.partials.size()};
}

// The sum of the magnitudes of all partials that a structure stores.
template <class Face, class Structure>
double scale_of(const Face& face, Structure& structure) {
  SaveArchive<typename Face::Partial> ar;
  structure.archive(ar);
  double scale = 0;
  for (const auto& p : ar.partials) scale += face.magnitude(p);
  return scale;
}

template <class Structure, class Partial>
void restore(Structure& structure, const std::vector<std::int64_t>& numbers, const std::vector<Partial>& partials) {
  LoadArchive<Partial> ar(numbers, partials);
  structure.archive(ar);
  if (!ar.done()) throw std::invalid_argument("more is stored than it says");
}

template <class Face, class Structure>
void restore(const Face& face, Structure& structure, const Saved& saved) {
  restore(structure, saved.numbers, face.from_bytes(saved.partials));
}

// The same structure, every partial the identity.
template <class Face, class Structure>
void restore_blank(const Face& face, Structure& structure, const Saved& saved) {
  restore(structure, saved.numbers, std::vector<typename Face::Partial>(saved.count, face.identity()));
}

// What another one holds, each of its partials converted.
template <class Partial, class Structure, class Other, class Convert>
void take_over(Structure& structure, Other& other, Convert convert) {
  SaveArchive<Partial> ar;
  other.archive(ar);
  std::vector<std::decay_t<std::invoke_result_t<Convert, const Partial&>>> converted;
  converted.reserve(ar.partials.size());
  for (const Partial& p : ar.partials) converted.push_back(convert(p));
  restore(structure, ar.numbers, converted);
}

}  // namespace sash
