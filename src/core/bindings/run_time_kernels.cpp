// Kernels whose partials are known at run time only: compiled functions, bloom filters

#include <bit>
#include <cmath>

#include "../monoids/compiled.hpp"

namespace sash {

namespace {

// A bloom filter; the hash is that of sash.agg.membership

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
  if (CompiledKernel::named(spec)) return std::make_shared<CompiledKernel>(spec);
  if (spec.name == "bloom")
    return std::make_shared<BloomKernel>(static_cast<std::size_t>(spec.params.at(0)), static_cast<std::size_t>(spec.params.at(1)));
  return nullptr;
}

}  // namespace sash
