// Save, load and promote, written once for every structure on every monoid

#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "../archive.hpp"
#include "any_structure.hpp"
#include "face.hpp"

namespace sash {

// From Sum<double> to Sum<int64>, and so on: what a structure of floats may have been before.
template <class K>
struct NarrowerOf {
  using type = void;
};
template <template <class> class K>
struct NarrowerOf<K<double>> {
  using type = K<std::int64_t>;
};
template <Wants wants>
struct NarrowerOf<Extreme<double, wants>> {
  using type = Extreme<std::int64_t, wants>;
};

template <class Structure, class Partial>
void restore(Structure& structure, const std::vector<std::int64_t>& numbers, const std::vector<Partial>& partials) {
  LoadArchive<Partial> ar(numbers, partials);
  structure.archive(ar);
  if (!ar.done()) throw std::invalid_argument("more is stored than it says");
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

// Impl is the implementation of Any that derives from this. It has
//   stored()      what is archived
//   With<Face>    itself on another face
//   own<K>        whether kernel K has an instantiation of its own, and is not erased
template <class Any, class Impl, class Face>
class OnFace : public Any {
 public:
  using Partial = typename Face::Partial;

  explicit OnFace(const DefinitionPtr& definition) : face_(definition) {}

  bool native() const final { return Face::native; }
  int traverse(visitproc visit, void* arg) const final { return face_.traverse(visit, arg); }

  Saved save() final {
    SaveArchive<Partial> ar;
    stored().archive(ar);
    return {std::move(ar.numbers), face_.to_bytes(ar.partials), ar.partials.size()};
  }
  void load(const Saved& saved) final { restore(stored(), saved.numbers, face_.from_bytes(saved.partials)); }
  void load_blank(const Saved& saved) final { restore(stored(), saved.numbers, std::vector<Partial>(saved.count, face_.identity())); }

  void promote_from(AnyStructure& narrower, const std::vector<bool>& parts) final {
    if constexpr (requires { face_.kernel(); }) {  // erased then and now
      auto& other = dynamic_cast<Impl&>(narrower);
      take_over<Partial>(stored(), other.stored(), [&](const Partial& p) { return face_.widened(other.face(), parts, p); });
    } else if constexpr (Face::native) {
      using Narrow = typename NarrowerOf<typename Face::Monoid>::type;
      if constexpr (!std::is_void_v<Narrow>) promote_kernel<Narrow>(narrower);
    }
  }

  // Whether two partials agree, but for what rounding may do to sums of such magnitudes as are stored.
  auto sameness(double more = 0) {
    SaveArchive<Partial> ar;
    stored().archive(ar);
    for (const Partial& p : ar.partials) more += face_.magnitude(p);
    return [this, scale = more](const Partial& a, const Partial& b) { return face_.same(a, b, scale); };
  }

  const Face& face() const { return face_; }

 protected:
  auto& stored() { return static_cast<Impl*>(this)->stored(); }

  template <class Narrow>
  void promote_kernel(AnyStructure& narrower) {
    if constexpr (Impl::template own<Narrow>) {
      auto& other = dynamic_cast<typename Impl::template With<NativeFace<Narrow>>&>(narrower);
      take_over<typename Narrow::Partial>(stored(), other.stored(), &Narrow::promote);
    } else {
      auto& other = dynamic_cast<typename Impl::template With<ErasedFace>&>(narrower);
      take_over<Erased>(stored(), other.stored(), [&](const Erased& p) {
        Partial out;
        other.face().kernel().promote(reinterpret_cast<std::byte*>(&out), p.data());
        return out;
      });
    }
  }

  Face face_;
};

}  // namespace sash
