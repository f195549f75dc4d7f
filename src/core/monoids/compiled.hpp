// A user's functions, compiled to pointers: define(..., compiled=True)
//
// A partial is a row of words, each an int64 or the bits of a double; every function gets a partial by a pointer to them.

#pragma once

#include <bit>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "erased.hpp"

namespace sash {

class CompiledKernel final : public AnyKernel {
  using Int = std::int64_t;
  using LiftInt = void (*)(Int* out, Int item);
  using LiftReal = void (*)(Int* out, double item);
  using Combine = void (*)(Int* out, const Int* a, const Int* b);
  using LowerFunction = void (*)(Int* out, const Int* partial);
  enum Kind { integer, real, truth };

 public:
  static bool named(const KernelSpec& spec) { return spec.name == "compiled"; }
  static std::size_t fields(const KernelSpec& spec) { return static_cast<std::size_t>(spec.params.at(4)); }

  // lift, combine, lower, inverse or 0; how many fields, how many results; of each field its kind and the two halves of
  // the identity; of each result its kind.
  explicit CompiledKernel(const KernelSpec& spec) : type_(spec.type) {
    const auto& p = spec.params;
    if (p.size() < 6) throw std::invalid_argument("a compiled kernel lacks its functions");
    lift_ = address(p[0]);
    combine_ = reinterpret_cast<Combine>(address(p[1]));
    lower_ = reinterpret_cast<LowerFunction>(address(p[2]));
    inverse_ = reinterpret_cast<Combine>(address(p[3]));
    auto fields = static_cast<std::size_t>(p[4]), results = static_cast<std::size_t>(p[5]);
    if (p.size() != 6 + 3 * fields + results) throw std::invalid_argument("a compiled kernel lacks fields");
    for (std::size_t i = 0; i < fields; ++i) {
      const double* field = &p[6 + 3 * i];
      kinds_.push_back(static_cast<Kind>(field[0]));
      identity_.push_back(static_cast<Int>(static_cast<std::uint64_t>(field[1]) << 32 | static_cast<std::uint64_t>(field[2])));
    }
    for (std::size_t i = 0; i < results; ++i) results_.push_back(static_cast<Kind>(static_cast<int>(p[6 + 3 * fields + i]) & 3));
  }

  std::size_t size() const override { return identity_.size() * sizeof(Int); }
  bool invertible() const override { return inverse_ != nullptr; }
  void identity(std::byte* out) const override { std::memcpy(out, identity_.data(), size()); }
  void lift(std::byte* out, const Item* item, Time) const override {
    if (item->kind == Item::null) return identity(out);
    if (type_ == ItemType::int64)
      reinterpret_cast<LiftInt>(lift_)(words(out), item->kind == Item::real ? static_cast<Int>(item->f) : item->i);
    else
      reinterpret_cast<LiftReal>(lift_)(words(out), item->kind == Item::real ? item->f : static_cast<double>(item->i));
  }
  void combine(std::byte* out, const std::byte* a, const std::byte* b) const override { combine_(words(out), words(a), words(b)); }
  void inverse(std::byte* out, const std::byte* whole, const std::byte* oldest) const override {
    inverse_(words(out), words(whole), words(oldest));
  }
  bool removable(const std::byte* p) const override {
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i] == real && !std::isfinite(std::bit_cast<double>(words(p)[i]))) return false;
    return true;
  }
  bool keeps_left(const std::byte* a, const std::byte* b) const override {
    std::vector<std::byte> kept(size());
    combine(kept.data(), a, b);
    return std::memcmp(kept.data(), a, size()) == 0;
  }
  Scalar lower(Lower how, const std::byte* p) const override {
    Int out[1 + most_results];  // first whether there is a result
    lower_(out, words(p));
    if (!out[0]) return {};
    auto field = static_cast<std::size_t>(how) - first_field;
    switch (results_[field]) {
      case real:
        return Scalar::of(std::bit_cast<double>(out[1 + field]));
      case truth:
        return Scalar::of(out[1 + field] != 0);
      default:
        return Scalar::of(out[1 + field]);
    }
  }
  bool rounds() const override {
    for (Kind kind : kinds_)
      if (kind == real) return true;
    return false;
  }
  double magnitude(const std::byte* p) const override {
    double sum = 0;
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i] == real) sum += finite(std::bit_cast<double>(words(p)[i]));
    return sum;
  }
  // What a user's fields mean is not known: floats may be sums, squares or products.
  bool close(const std::byte* a, const std::byte* b, double scale) const override {
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      Int x = words(a)[i], y = words(b)[i];
      if (kinds_[i] == real ? !loosely_close(std::bit_cast<double>(x), std::bit_cast<double>(y), scale) : x != y) return false;
    }
    return true;
  }
  void promote(std::byte* out, const std::byte* p) const override { std::memcpy(out, p, size()); }
  // The same functions compiled for float64 may keep some fields as doubles that were integers.
  void promote_to(const AnyKernel& target, std::byte* out, const std::byte* p) const override {
    const auto& wide = dynamic_cast<const CompiledKernel&>(target);
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      Int word = words(p)[i];
      words(out)[i] = kinds_[i] == integer && wide.kinds_[i] == real ? std::bit_cast<Int>(static_cast<double>(word)) : word;
    }
  }

 private:
  static constexpr std::size_t most_results = 64;
  static void* address(double number) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number)); }
  static Int* words(std::byte* p) { return reinterpret_cast<Int*>(p); }
  static const Int* words(const std::byte* p) { return reinterpret_cast<const Int*>(p); }

  ItemType type_;
  void* lift_;
  Combine combine_;
  LowerFunction lower_;
  Combine inverse_;
  std::vector<Kind> kinds_, results_;
  std::vector<Int> identity_;
};

// A partial of a few fields, in words. The compiled functions store and load fields one at a time, so a copy must not
// read two at once: the processor would wait for the stores. Hence copies that the compiler can't join.
class Words {
 public:
  static constexpr std::size_t most = 4;

  Words() {}  // left as it is: whoever makes a partial writes all that is used of it
  Words(const Words& other) : a_(other.a_), b_(other.b_), c_(other.c_), d_(other.d_) {}
  Words& operator=(const Words& other) {
    a_ = other.a_, b_ = other.b_, c_ = other.c_, d_ = other.d_;
    return *this;
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(this); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(this); }

 private:
  std::uint64_t a_, b_, c_, d_;
};

// The monoid of compiled functions on few fields: no heap, no virtual call, one call of the user's function per combine.
class CompiledMonoid {
 public:
  using Partial = Words;
  CompiledMonoid() = default;
  explicit CompiledMonoid(const std::shared_ptr<const AnyKernel>& kernel)
      : kernel_(std::dynamic_pointer_cast<const CompiledKernel>(kernel)) {}

  static bool fits(const KernelSpec& spec) { return CompiledKernel::named(spec) && CompiledKernel::fields(spec) <= Words::most; }

  Partial blank() const { return {}; }
  Partial identity() const {
    Words out;
    kernel_->identity(out.data());
    return out;
  }
  Partial lift(const Item* items, Time t) const {
    Words out;
    kernel_->lift(out.data(), items, t);
    return out;
  }
  Partial combine(const Partial& a, const Partial& b) const {
    Words out;
    kernel_->combine(out.data(), a.data(), b.data());
    return out;
  }
  Partial inverse(const Partial& whole, const Partial& oldest) const {
    Words out;
    kernel_->inverse(out.data(), whole.data(), oldest.data());
    return out;
  }
  bool removable(const Partial& p) const { return kernel_->removable(p.data()); }
  bool keeps_left(const Partial& a, const Partial& b) const { return kernel_->keeps_left(a.data(), b.data()); }

 private:
  std::shared_ptr<const CompiledKernel> kernel_;
};

}  // namespace sash
