// One partial type for every kernel, and for a whole struct of them
//
// An ErasedMonoid knows its kernel only through AnyKernel: fixed-size bytes and one indirect call per combine.
// It serves all that is not hot enough for an instantiation of its own.

#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../registry.hpp"

namespace sash {

// What a window is handed: nothing, a number, or something only Python understands.
struct Item {
  enum Kind : std::uint8_t { null, integer, real, object };
  Kind kind = null;
  union {
    std::int64_t i;
    double f;
    void* o;
  };
  Item() : i(0) {}
  static Item of(std::int64_t value) {
    Item x;
    x.kind = integer;
    x.i = value;
    return x;
  }
  static Item of(double value) {
    Item x;
    x.kind = real;
    x.f = value;
    return x;
  }
};

template <Kernel K>
typename K::Partial lift_item(const K& kernel, const Item& x, Time t) {
  using Input = typename K::Input;
  switch (x.kind) {
    case Item::integer:
      if constexpr (requires { kernel.lift_integer(x.i); }) return kernel.lift_integer(x.i);
      return kernel.lift(static_cast<Input>(x.i), t);
    case Item::real:
      return kernel.lift(static_cast<Input>(x.f), t);
    case Item::object:
      return kernel.lift(Input{}, t);  // only count takes objects, and it does not look at them
    default:
      return kernel.identity();
  }
}

class AnyKernel {
 public:
  virtual ~AnyKernel() = default;
  virtual std::size_t size() const = 0;
  virtual bool invertible() const = 0;
  virtual void identity(std::byte* out) const = 0;
  virtual void lift(std::byte* out, const Item* items, Time t) const = 0;  // one item per part
  virtual void combine(std::byte* out, const std::byte* a, const std::byte* b) const = 0;
  virtual void inverse(std::byte* out, const std::byte* whole, const std::byte* oldest) const = 0;
  virtual bool removable(const std::byte* p) const = 0;
  virtual bool keeps_left(const std::byte* a, const std::byte* b) const = 0;
  virtual Scalar lower(Lower how, const std::byte* p) const = 0;
  // Whether partials depend on the order of combines by rounding, and then as kernel.hpp says.
  virtual bool rounds() const { return false; }
  virtual double magnitude(const std::byte*) const { return 0; }
  virtual bool close(const std::byte*, const std::byte*, double) const { return true; }
  virtual void promote(std::byte* out, const std::byte* p) const = 0;  // to the same kernel on float64
  virtual void promote_to(const AnyKernel&, std::byte* out, const std::byte* p) const { promote(out, p); }
};

// Kernels whose partials are known at run time only: a user's compiled functions, bloom filters. Null for other names.
std::shared_ptr<const AnyKernel> run_time_kernel(const KernelSpec& spec);

template <Kernel K>
class OneKernel final : public AnyKernel {
  using Partial = typename K::Partial;
  static_assert(std::is_trivially_copyable_v<Partial>);

 public:
  explicit OneKernel(K kernel) : kernel_(std::move(kernel)) {}
  std::size_t size() const override { return sizeof(Partial); }
  bool invertible() const override { return Invertible<K>; }
  void identity(std::byte* out) const override { put(out, kernel_.identity()); }
  void lift(std::byte* out, const Item* items, Time t) const override { put(out, lift_item(kernel_, *items, t)); }
  void combine(std::byte* out, const std::byte* a, const std::byte* b) const override { put(out, kernel_.combine(get(a), get(b))); }
  void inverse(std::byte* out, const std::byte* whole, const std::byte* oldest) const override {
    if constexpr (Invertible<K>) put(out, kernel_.inverse(get(whole), get(oldest)));
  }
  bool removable([[maybe_unused]] const std::byte* p) const override {
    if constexpr (requires { kernel_.removable(get(p)); }) return kernel_.removable(get(p));
    return true;
  }
  bool keeps_left(const std::byte* a, const std::byte* b) const override {
    if constexpr (Selective<K>) return kernel_.keeps_left(get(a), get(b));
    return true;
  }
  Scalar lower(Lower how, const std::byte* p) const override { return kernel_.lower(how, get(p)); }
  bool rounds() const override { return Rounding<K>; }
  double magnitude([[maybe_unused]] const std::byte* p) const override {
    if constexpr (Rounding<K>) return kernel_.magnitude(get(p));
    return 0;
  }
  bool close([[maybe_unused]] const std::byte* a, [[maybe_unused]] const std::byte* b, [[maybe_unused]] double scale) const override {
    if constexpr (Rounding<K>) return kernel_.close(get(a), get(b), scale);
    return true;
  }
  void promote(std::byte* out, const std::byte* p) const override {
    if constexpr (requires { K::promote(get(p)); }) {
      auto promoted = K::promote(get(p));
      std::memcpy(out, &promoted, sizeof promoted);
    } else {
      std::memcpy(out, p, sizeof(Partial));
    }
  }

 private:
  static Partial get(const std::byte* p) {
    Partial value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  static void put(std::byte* out, const Partial& value) { std::memcpy(out, &value, sizeof value); }
  K kernel_;
};

// Several kernels side by side: agg.struct.
class StructKernel final : public AnyKernel {
 public:
  explicit StructKernel(std::vector<std::shared_ptr<const AnyKernel>> parts) : parts_(std::move(parts)) {
    for (auto& part : parts_) {
      offsets_.push_back(size_);
      size_ += part->size();
    }
  }
  std::size_t size() const override { return size_; }
  std::size_t count() const { return parts_.size(); }
  bool invertible() const override {
    for (auto& part : parts_)
      if (!part->invertible()) return false;
    return true;
  }
  void identity(std::byte* out) const override {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->identity(out + offsets_[i]);
  }
  void lift(std::byte* out, const Item* items, Time t) const override {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->lift(out + offsets_[i], items + i, t);
  }
  void combine(std::byte* out, const std::byte* a, const std::byte* b) const override {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->combine(out + offsets_[i], a + offsets_[i], b + offsets_[i]);
  }
  void inverse(std::byte* out, const std::byte* whole, const std::byte* oldest) const override {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->inverse(out + offsets_[i], whole + offsets_[i], oldest + offsets_[i]);
  }
  bool removable(const std::byte* p) const override {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (!parts_[i]->removable(p + offsets_[i])) return false;
    return true;
  }
  bool keeps_left(const std::byte*, const std::byte*) const override { return true; }
  Scalar lower(Lower, const std::byte*) const override { return {}; }
  Scalar lower_part(std::size_t part, Lower how, const std::byte* p) const { return parts_[part]->lower(how, p + offsets_[part]); }
  double magnitude(const std::byte* p) const override {
    double sum = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) sum += parts_[i]->magnitude(p + offsets_[i]);
    return sum;
  }
  bool part_rounds(std::size_t part) const { return parts_[part]->rounds(); }
  bool parts_close(std::size_t part, const std::byte* a, const std::byte* b, double scale) const {
    return parts_[part]->close(a + offsets_[part], b + offsets_[part], scale);
  }
  // Promotes some parts, into the layout of another struct.
  void promote_into(const StructKernel& target, const std::vector<bool>& which, std::byte* out, const std::byte* p) const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (which[i])
        parts_[i]->promote_to(*target.parts_[i], out + target.offsets_[i], p + offsets_[i]);
      else
        std::memcpy(out + target.offsets_[i], p + offsets_[i], parts_[i]->size());
    }
  }
  void promote(std::byte*, const std::byte*) const override {}

 private:
  std::vector<std::shared_ptr<const AnyKernel>> parts_;
  std::vector<std::size_t> offsets_;
  std::size_t size_ = 0;
};

// Fixed-size bytes; up to 56 of them lie in the value itself, which is then one cache line.
class Erased {
 public:
  static constexpr std::size_t room = 56;

  Erased() = default;
  explicit Erased(std::size_t size) : size_(size) {
    if (size_ > room) heap_ = new std::byte[size_];
  }
  Erased(const Erased& other) : Erased(other.size_) { std::memcpy(data(), other.data(), size_ > room ? size_ : room); }
  Erased(Erased&& other) noexcept { take(other); }
  Erased& operator=(const Erased& other) {
    if (this != &other) *this = Erased(other);
    return *this;
  }
  Erased& operator=(Erased&& other) noexcept {
    if (this != &other) {
      if (size_ > room) delete[] heap_;
      take(other);
    }
    return *this;
  }
  ~Erased() {
    if (size_ > room) delete[] heap_;
  }
  std::byte* data() { return size_ > room ? heap_ : inline_; }
  const std::byte* data() const { return size_ > room ? heap_ : inline_; }
  std::size_t size() const { return size_; }

 private:
  void take(Erased& other) {
    size_ = std::exchange(other.size_, 0);
    if (size_ > room)
      heap_ = other.heap_;
    else
      std::memcpy(inline_, other.inline_, room);
  }
  std::size_t size_ = 0;
  union {
    std::byte inline_[room];  // left as it is: whoever makes a partial writes all of it
    std::byte* heap_;
  };
};

class ErasedMonoid {
 public:
  using Partial = Erased;
  ErasedMonoid() = default;
  explicit ErasedMonoid(std::shared_ptr<const AnyKernel> kernel) : kernel_(std::move(kernel)), size_(kernel_->size()) {}

  Partial blank() const { return Erased(size_); }  // for someone who writes all of it
  Partial identity() const {
    Erased out(size_);
    kernel_->identity(out.data());
    return out;
  }
  Partial lift(const Item* items, Time t) const {
    Erased out(size_);
    kernel_->lift(out.data(), items, t);
    return out;
  }
  Partial combine(const Partial& a, const Partial& b) const {
    Erased out(size_);
    kernel_->combine(out.data(), a.data(), b.data());
    return out;
  }
  Partial inverse(const Partial& whole, const Partial& oldest) const {
    Erased out(size_);
    kernel_->inverse(out.data(), whole.data(), oldest.data());
    return out;
  }
  bool removable(const Partial& p) const { return kernel_->removable(p.data()); }
  bool keeps_left(const Partial& a, const Partial& b) const { return kernel_->keeps_left(a.data(), b.data()); }
  const AnyKernel& kernel() const { return *kernel_; }

 private:
  std::shared_ptr<const AnyKernel> kernel_;
  std::size_t size_ = 0;
};

inline std::shared_ptr<const AnyKernel> erase(const KernelSpec& spec) {
  if (auto made = run_time_kernel(spec)) return made;
  return with_kernel(spec,
                     [](auto kernel) -> std::shared_ptr<const AnyKernel> { return std::make_shared<OneKernel<decltype(kernel)>>(kernel); });
}

}  // namespace sash
