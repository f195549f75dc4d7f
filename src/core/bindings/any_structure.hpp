// What windows, wheels and keyed wheels of run-time types have in common
//
//   AnyStructure            save, load, promote: AnyWindow, AnyWheel and AnyKeyedWheels are kinds of it
//   OnFace (on_face.hpp)    the same on a monoid that is known: their implementations derive from it
//   Kept (kept.hpp)         what Python holds: one structure, replaced when item types change, guarded against calls that cross

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "module.hpp"

namespace sash {

// What a structure holds, as numbers and partials.
struct Saved {
  std::vector<std::int64_t> numbers;
  nb::object partials;
  std::size_t count = 0;  // of partials

  // As it goes into bytes, and back.
  nb::bytes number_bytes() const { return nb::bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t)); }
  static Saved read(nb::handle number_bytes, nb::handle partials) {
    auto bytes = nb::cast<nb::bytes>(number_bytes);
    Saved saved;
    saved.numbers.resize(bytes.size() / sizeof(std::int64_t));
    std::memcpy(saved.numbers.data(), bytes.c_str(), saved.numbers.size() * sizeof(std::int64_t));
    saved.partials = nb::borrow(partials);
    return saved;
  }
};

class AnyStructure {
 public:
  virtual ~AnyStructure() = default;
  virtual bool native() const = 0;                             // whether it runs without Python
  virtual bool torn() const = 0;                               // whether a step was broken off that can't be taken back
  virtual bool untouched() const = 0;                          // whether nothing was ever put in
  virtual int traverse(visitproc visit, void* arg) const = 0;  // the Python objects that the partials are
  virtual Saved save() = 0;
  virtual void load(const Saved& saved) = 0;
  virtual void load_blank(const Saved& saved) = 0;  // the same structure, every partial the identity
  // Takes over what a structure of the same kind holds on narrower item types: int64 becomes float64 in some parts.
  virtual void promote_from(AnyStructure& narrower, const std::vector<bool>& parts) = 0;
};

}  // namespace sash
