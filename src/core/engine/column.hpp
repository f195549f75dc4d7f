// A column of partials: one per slice of a run
//
// The run's layout decides which place every partial goes to (runs.hpp); a column only follows. Five verbs cover the
// engine: lift rows into slices, gather columns into the places of a new run (merge, fold and drop are all that), slide
// over stretches, pack to bytes, unpack.

#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../registry.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "record.hpp"
#include "words.hpp"

namespace sash::engine {

// The rows to lift: for each its slice (-1: none), value, whether that is there, time and tie.
struct Items {
  const std::int32_t* places = nullptr;
  std::size_t n = 0;
  const void* values = nullptr;         // of the kernel's input type; null for count
  const std::uint8_t* valid = nullptr;  // null: all are
  const Time* times = nullptr;
  const std::int64_t* ties = nullptr;
  const std::uint8_t* tie_valid = nullptr;
};

// The lowered numbers of one field.
struct Lowered {
  Vec<std::int64_t> bits;  // of an int64 or a double
  Vec<std::uint8_t> valid;
  Scalar::Kind kind = Scalar::none;
};

// Where someone else wants the lowered numbers of one field; what is not valid is left as it was.
struct Field {
  std::int64_t* bits;
  std::uint8_t* valid;
  Scalar::Kind kind = Scalar::none;
};

class Column {
 public:
  using Part = std::pair<const Column*, const std::int32_t*>;

  virtual ~Column() = default;
  virtual std::size_t size() const = 0;
  virtual std::size_t memory() const = 0;
  virtual std::unique_ptr<Column> lift(const Items& items, std::size_t slices) const = 0;
  // Each part's places do not decrease, but for -1 in between: dropped.
  virtual std::unique_ptr<Column> gather(const std::vector<Part>& parts, std::size_t slices) const = 0;
  // Stretches that do not step back; the result of stretch j goes to place rows[j], or j, of each field.
  virtual void slide(std::span<const std::int64_t> from, std::span<const std::int64_t> to, std::span<const Lower> how, bool subtract,
                     const std::int32_t* rows, std::span<Field> out) const = 0;
  virtual void pack(Bytes& out, std::size_t from, std::size_t to) const = 0;
  virtual std::unique_ptr<Column> unpack(Reader& in, std::size_t n) const = 0;

  // As a part of rows of words (record.hpp), each row `stride` words behind the one before.
  virtual std::unique_ptr<Column> like() const = 0;
  virtual int place(Record& record) const = 0;
  virtual void spread(std::size_t from, std::size_t to, std::int64_t* rows, std::size_t stride) const = 0;
  virtual std::unique_ptr<Column> gather_words(const std::int64_t* rows, std::size_t stride, std::size_t n) const = 0;
  virtual std::vector<Lowered> lower_words(const std::int64_t* rows, std::size_t stride, std::size_t n,
                                           std::span<const Lower> how) const = 0;
};

template <Kernel K>
class NativeColumn final : public Column {
  using Partial = typename K::Partial;
  using Input = typename K::Input;

 public:
  explicit NativeColumn(K kernel, Vec<Partial> partials = {}) : kernel_(std::move(kernel)), partials_(std::move(partials)) {}

  std::size_t size() const override { return partials_.size(); }
  std::size_t memory() const override { return partials_.capacity() * sizeof(Partial); }

  std::unique_ptr<Column> lift(const Items& items, std::size_t slices) const override {
    Vec<Partial> out(slices, kernel_.identity());
    auto values = static_cast<const Input*>(items.values);
    for (std::size_t i = 0; i < items.n; ++i) {
      std::int32_t place = items.places[i];
      if (place < 0 || (items.valid && !items.valid[i])) continue;
      Partial& slot = out[static_cast<std::size_t>(place)];
      slot = kernel_.combine(slot, lifted(items, values ? values[i] : Input{}, i));
    }
    return make(std::move(out));
  }

  // Place by place, in one pass over all parts: the column is written once, never first filled and then combined into.
  std::unique_ptr<Column> gather(const std::vector<Part>& parts, std::size_t slices) const override {
    struct Cursor {
      const Partial* at;
      const Partial* end;
      const std::int32_t* place;
    };
    std::vector<Cursor> cursors;
    for (auto [part, places] : parts) {
      const auto& partials = dynamic_cast<const NativeColumn&>(*part).partials_;
      cursors.push_back({partials.data(), partials.data() + partials.size(), places});
    }
    Vec<Partial> out;
    out.reserve(slices);
    for (std::int32_t slice = 0; slice < static_cast<std::int32_t>(slices); ++slice) {
      bool first = true;
      Partial sum;
      for (Cursor& c : cursors) {
        for (; c.at != c.end && *c.place <= slice; ++c.at, ++c.place) {
          if (*c.place < 0) continue;
          sum = std::exchange(first, false) ? *c.at : kernel_.combine(sum, *c.at);
        }
      }
      out.push_back(first ? kernel_.identity() : sum);
    }
    return make(std::move(out));
  }

  void slide(std::span<const std::int64_t> from, std::span<const std::int64_t> to, std::span<const Lower> how, bool subtract,
             const std::int32_t* rows, std::span<Field> out) const override {
    auto emit = [&](std::size_t stretch, const Partial& p) {
      lower(p, how, out, rows ? static_cast<std::size_t>(rows[stretch]) : stretch);
    };
    if constexpr (Invertible<K>) {
      if (subtract) {
        subtract_on_evict(from, to, emit);
        return;
      }
    }
    two_stacks(from, to, emit);
  }

  void pack(Bytes& out, std::size_t from, std::size_t to) const override {
    pack_partials(out, std::span<const Partial>(partials_).subspan(from, to - from));
  }

  std::unique_ptr<Column> unpack(Reader& in, std::size_t n) const override {
    Vec<Partial> out(n, kernel_.identity());
    unpack_partials(in, std::span<Partial>(out));
    return make(std::move(out));
  }

  std::unique_ptr<Column> like() const override { return make({}); }
  int place(Record& record) const override { return record.place(kernel_); }

  void spread(std::size_t from, std::size_t to, std::int64_t* rows, std::size_t stride) const override {
    for (std::size_t j = from; j < to; ++j, rows += stride) Words<Partial>::split(partials_[j], rows);
  }

  std::unique_ptr<Column> gather_words(const std::int64_t* rows, std::size_t stride, std::size_t n) const override {
    Vec<Partial> out;
    out.reserve(n);
    for (std::size_t j = 0; j < n; ++j) out.push_back(of_words(rows + j * stride));
    return make(std::move(out));
  }

  std::vector<Lowered> lower_words(const std::int64_t* rows, std::size_t stride, std::size_t n, std::span<const Lower> how) const override {
    std::vector<Lowered> out(how.size());
    for (auto& field : out) field.bits.resize(n), field.valid.resize(n);
    for (std::size_t j = 0; j < n; ++j) lower(of_words(rows + j * stride), how, out, j);
    return out;
  }

 private:
  static Partial of_words(const std::int64_t* words) {
    Partial p;
    std::memcpy(&p, words, sizeof(Partial));
    return p;
  }

  template <class Fields>
  void lower(const Partial& p, std::span<const Lower> how, Fields& out, std::size_t j) const {
    for (std::size_t f = 0; f < how.size(); ++f) {
      Scalar s = kernel_.lower(how[f], p);
      if (s.kind == Scalar::none) continue;
      if (s.kind == Scalar::overflow)
        throw std::overflow_error("a sum does not fit int64. Use float items (dtype='float64') or a smaller window.");
      out[f].kind = s.kind;
      out[f].valid[j] = 1;
      out[f].bits[j] = s.i;
    }
  }

  std::unique_ptr<Column> make(Vec<Partial> partials) const { return std::make_unique<NativeColumn>(kernel_, std::move(partials)); }

  Partial lifted(const Items& items, Input value, std::size_t i) const {
    if constexpr (requires { kernel_.lift(value, Time{}, std::int64_t{}, false); })
      return kernel_.lift(value, items.times[i], items.ties ? items.ties[i] : 0, items.ties && (!items.tie_valid || items.tie_valid[i]));
    else
      return kernel_.lift(value, items.times ? items.times[i] : 0);
  }

  // Two-Stacks Lite over an array: the queue is the column itself, and only the turned part needs room of its own.
  template <class Emit>
  void two_stacks(std::span<const std::int64_t> from, std::span<const std::int64_t> to, Emit emit) const {
    Vec<Partial> turned;  // for places in [base, turn): combined with all up to turn
    std::int64_t base = 0, turn = 0, end = 0;
    Partial back = kernel_.identity();  // [turn, end)
    for (std::size_t j = 0; j < from.size(); ++j) {
      std::int64_t a = from[j], b = to[j];
      if (a >= end) {
        turn = end = a;
        back = kernel_.identity();
      } else if (a > turn) {
        turned.resize(static_cast<std::size_t>(end - a), back);
        base = a;
        Partial sum = kernel_.identity();
        for (std::int64_t i = end; i-- > a;) turned[static_cast<std::size_t>(i - a)] = sum = kernel_.combine(at(i), sum);
        turn = end;
        back = kernel_.identity();
      }
      for (; end < b; ++end) back = kernel_.combine(back, at(end));
      if (a < turn)
        emit(j, kernel_.combine(turned[static_cast<std::size_t>(a - base)], back));
      else
        emit(j, back);
    }
  }

  template <class Emit>
  void subtract_on_evict(std::span<const std::int64_t> from, std::span<const std::int64_t> to, Emit emit) const {
    std::int64_t start = 0, end = 0;
    Partial sum = kernel_.identity();
    for (std::size_t j = 0; j < from.size(); ++j) {
      if (from[j] >= end) {
        start = end = from[j];
        sum = kernel_.identity();
      }
      for (; end < to[j]; ++end) sum = kernel_.combine(sum, at(end));
      for (; start < from[j]; ++start) sum = kernel_.inverse(sum, at(start));
      emit(j, sum);
    }
  }

  const Partial& at(std::int64_t i) const { return partials_[static_cast<std::size_t>(i)]; }

  K kernel_;
  Vec<Partial> partials_;
};

}  // namespace sash::engine
