// Kernels whose partials are known at run time only: compiled functions, bloom filters

#include <bit>
#include <cmath>
#include <stdexcept>

#include "../monoids/erased.hpp"

namespace sash {

namespace {

// --- a user's functions, compiled to pointers
//
// A partial is a row of 8-byte fields, each an int64 or a double. Every function gets a partial by two pointers to the
// same fields, one of each type, and takes from each what it needs.

class FunctionKernel final : public AnyKernel {
  using Int = std::int64_t;
  using LiftInt = void (*)(Int*, double*, Int, Time);
  using LiftReal = void (*)(Int*, double*, double, Time);
  using Combine = void (*)(Int*, double*, const Int*, const double*, const Int*, const double*);
  using LowerFunction = void (*)(Int*, double*, const Int*, const double*);
  enum Kind { integer, real, truth };

 public:
  // lift, combine, lower, inverse or 0; how many fields, how many results; of each field its kind and the two halves of
  // the identity; of each result its kind.
  explicit FunctionKernel(const KernelSpec& spec) : type_(spec.type) {
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
  void lift(std::byte* out, const Item* item, Time t) const override {
    if (item->kind == Item::null) return identity(out);
    if (type_ == ItemType::int64)
      reinterpret_cast<LiftInt>(lift_)(ints(out), reals(out), item->kind == Item::real ? static_cast<Int>(item->f) : item->i, t);
    else
      reinterpret_cast<LiftReal>(lift_)(ints(out), reals(out), item->kind == Item::real ? item->f : static_cast<double>(item->i), t);
  }
  void combine(std::byte* out, const std::byte* a, const std::byte* b) const override {
    combine_(ints(out), reals(out), ints(a), reals(a), ints(b), reals(b));
  }
  void inverse(std::byte* out, const std::byte* whole, const std::byte* oldest) const override {
    inverse_(ints(out), reals(out), ints(whole), reals(whole), ints(oldest), reals(oldest));
  }
  bool removable(const std::byte* p) const override {
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i] == real && !std::isfinite(reals(p)[i])) return false;
    return true;
  }
  bool keeps_left(const std::byte* a, const std::byte* b) const override {
    std::vector<std::byte> kept(size());
    combine(kept.data(), a, b);
    return std::memcmp(kept.data(), a, size()) == 0;
  }
  Scalar lower(Lower how, const std::byte* p) const override {
    Int out[1 + most_results];  // first whether there is a result
    lower_(out, reinterpret_cast<double*>(out), ints(p), reals(p));
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
  void promote(std::byte* out, const std::byte* p) const override { std::memcpy(out, p, size()); }
  // The same functions compiled for float64 may keep some fields as doubles that were integers.
  void promote_to(const AnyKernel& target, std::byte* out, const std::byte* p) const override {
    const auto& wide = dynamic_cast<const FunctionKernel&>(target);
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] == integer && wide.kinds_[i] == real)
        reals(out)[i] = static_cast<double>(ints(p)[i]);
      else
        ints(out)[i] = ints(p)[i];
    }
  }

 private:
  static constexpr std::size_t most_results = 64;
  static void* address(double number) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number)); }
  static Int* ints(std::byte* p) { return reinterpret_cast<Int*>(p); }
  static double* reals(std::byte* p) { return reinterpret_cast<double*>(p); }
  static const Int* ints(const std::byte* p) { return reinterpret_cast<const Int*>(p); }
  static const double* reals(const std::byte* p) { return reinterpret_cast<const double*>(p); }

  ItemType type_;
  void* lift_;
  Combine combine_;
  LowerFunction lower_;
  Combine inverse_;
  std::vector<Kind> kinds_, results_;
  std::vector<Int> identity_;
};

// --- a bloom filter; the hash is that of sash.agg.membership

class BloomKernel final : public AnyKernel {
 public:
  BloomKernel(std::size_t bits, std::size_t hashes) : bits_(bits), hashes_(hashes) {}
  std::size_t size() const override { return (bits_ + 63) / 64 * 8; }
  bool invertible() const override { return false; }
  void identity(std::byte* out) const override { std::memset(out, 0, size()); }
  void lift(std::byte* out, const Item* item, Time) const override {
    identity(out);
    if (item->kind == Item::null) return;
    std::uint64_t seed = item->kind == Item::integer ? static_cast<std::uint64_t>(item->i) : seed_of(item->f);
    std::uint64_t at = mix(seed + 0x9E3779B97F4A7C15), step = mix(seed + 0x3C6EF372FE94F82A) | 1;
    for (std::size_t i = 0; i < hashes_; ++i, at += step) {
      std::size_t bit = at % bits_;
      out[bit / 8] |= static_cast<std::byte>(1u << bit % 8);
    }
  }
  void combine(std::byte* out, const std::byte* a, const std::byte* b) const override {
    for (std::size_t i = 0; i < size(); i += 8) {
      std::uint64_t x, y;
      std::memcpy(&x, a + i, 8);
      std::memcpy(&y, b + i, 8);
      x |= y;
      std::memcpy(out + i, &x, 8);
    }
  }
  void inverse(std::byte*, const std::byte*, const std::byte*) const override {}
  bool removable(const std::byte*) const override { return false; }
  bool keeps_left(const std::byte*, const std::byte*) const override { return true; }
  Scalar lower(Lower, const std::byte* p) const override {
    std::size_t set = 0;
    for (std::size_t i = 0; i < size(); ++i) set += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(p[i])));
    if (set == 0) return {};
    auto bits = static_cast<double>(bits_), unset = static_cast<double>(set < bits_ ? bits_ - set : 1);
    return Scalar::of(static_cast<std::int64_t>(std::nearbyint(-bits / static_cast<double>(hashes_) * std::log(unset / bits))));
  }
  void promote(std::byte* out, const std::byte* p) const override { std::memcpy(out, p, size()); }

 private:
  // 1 and 1.0 are one item.
  static std::uint64_t seed_of(double x) {
    if (x == std::floor(x) && x >= -9223372036854775808.0 && x < 9223372036854775808.0)
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
    return std::bit_cast<std::uint64_t>(x == x ? x : std::numeric_limits<double>::quiet_NaN());
  }
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  std::size_t bits_, hashes_;
};

}  // namespace

std::shared_ptr<const AnyKernel> run_time_kernel(const KernelSpec& spec) {
  if (spec.name == "compiled") return std::make_shared<FunctionKernel>(spec);
  if (spec.name == "bloom")
    return std::make_shared<BloomKernel>(static_cast<std::size_t>(spec.params.at(0)), static_cast<std::size_t>(spec.params.at(1)));
  return nullptr;
}

}  // namespace sash
