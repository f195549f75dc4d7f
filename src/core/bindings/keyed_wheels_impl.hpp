// Keyed wheels on every monoid behind AnyKeyedWheels

#pragma once

#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "../wheel/keyed.hpp"
#include "any_keyed_wheels.hpp"
#include "wheel_impl.hpp"

namespace sash {

// The partial of a slice, of row i of the columns that its form has.
template <Kernel K>
typename K::Partial slice_partial(const K& kernel, SliceForm form, const ItemColumn* columns, std::size_t i, Time t) {
  auto whole = [](const Item& item) { return item.kind == Item::real ? static_cast<std::int64_t>(item.f) : item.i; };
  if constexpr (std::is_same_v<K, Count>)
    if (form == SliceForm::count) return whole(columns[0][i]);
  auto p = lift_item(kernel, columns[0][i], t);
  if constexpr (std::is_same_v<K, Mean<std::int64_t>> || std::is_same_v<K, Mean<double>>)
    if (form == SliceForm::mean) p.count = whole(columns[1][i]);
  return form == SliceForm::both ? kernel.combine(p, lift_item(kernel, columns[1][i], t)) : p;
}

// Writes the part of a struct's partial that comes of some columns.
using WriteSlice = std::function<void(std::byte* out, const ItemColumn* columns, std::size_t i, Time t)>;

inline std::vector<WriteSlice> slice_writers(const Definition& definition, const std::vector<SliceForm>& forms) {
  std::vector<WriteSlice> out;
  std::size_t offset = 0, column = 0;
  for (std::size_t p = 0; p < forms.size(); ++p) {
    with_kernel(definition.kernels[p], [&](auto kernel) {
      out.push_back([kernel, offset, column, form = forms[p]](std::byte* to, const ItemColumn* columns, std::size_t i, Time t) {
        auto partial = slice_partial(kernel, form, columns + column, i, t);
        std::memcpy(to + offset, &partial, sizeof partial);
      });
      offset += sizeof(typename decltype(kernel)::Partial);
    });
    column += columns_of(forms[p]);
  }
  return out;
}

template <class Face>
class KeyedWheelsImpl final : public OnFace<AnyKeyedWheels, KeyedWheelsImpl<Face>, Face> {
  using Base = OnFace<AnyKeyedWheels, KeyedWheelsImpl, Face>;
  using Base::face_;

 public:
  using Monoid = typename Face::Monoid;
  using Partial = typename Face::Partial;
  using Wheels = KeyedWheels<Monoid>;
  template <class Other>
  using With = KeyedWheelsImpl<Other>;
  template <class K>
  static constexpr bool own = in_wheels<K>;

  KeyedWheelsImpl(const DefinitionPtr& definition, const WheelSettings& settings)
      : Base(definition),
        definition_(definition),
        settings_(settings),
        wheels_(face_.monoid(), settings),
        all_(face_, wheels_.all().view()) {}

  Wheels& stored() { return wheels_; }
  bool untouched() const override { return false; }
  const AnyView& view() const override { return all_; }
  std::uint64_t late() const override { return wheels_.all().late(); }
  void grow(std::size_t keys) override { wheels_.grow(keys); }
  void refuse() override { wheels_.refuse(); }

  bool insert(std::uint32_t key, Time t, const Item* items, nb::handle value, nb::handle time) override {
    return wheels_.insert(key, t, face_.lift(items, value, time, t));
  }

  std::size_t insert_column([[maybe_unused]] const std::uint32_t* keys, [[maybe_unused]] const ItemColumn* parts,
                            [[maybe_unused]] std::size_t n, [[maybe_unused]] const Time* times) override {
    if constexpr (Face::native) return columns(keys, parts, n, times, Wheels::item);
    return 0;
  }

  std::size_t insert_slices([[maybe_unused]] const std::uint32_t* keys, [[maybe_unused]] const std::vector<SliceForm>& forms,
                            [[maybe_unused]] const ItemColumn* columns, [[maybe_unused]] const Time* times) override {
    if constexpr (Face::native) {
      if (forms.size() == 1 && forms[0] == SliceForm::value) return this->columns(keys, columns, 1, times, Wheels::slice);
      auto put = [&](auto lift) { return wheels_.insert_many(keys, times, columns[0].size, Wheels::slice, lift); };
      if constexpr (requires { typename Monoid::Input; }) {
        Monoid kernel = face_.monoid();
        return put([&](std::size_t i) { return slice_partial(kernel, forms[0], columns, i, times[i]); });
      } else {
        auto writers = slice_writers(*definition_, forms);
        Monoid monoid = face_.monoid();
        return put([&](std::size_t i) {
          Partial out = monoid.blank();
          for (auto& write : writers) write(out.data(), columns, i, times[i]);
          return out;
        });
      }
    }
    return 0;
  }

  void stage_rows(const ItemRows& in, const Time* times, const std::vector<std::uint8_t>& late) override {
    staged_.assign(in.rows.size(), Partial());
    for (std::size_t i = 0; i < staged_.size(); ++i) {
      if (late[i]) continue;
      nb::object shown = Face::native ? nb::object() : nb::object(nb::int_(times[i]));
      staged_[i] = face_.lift(in.rows[i].data(), in.values[i], shown, times[i]);
    }
  }
  void stage_slices([[maybe_unused]] nb::list partials) override {
    staged_.clear();
    if constexpr (!Face::native)
      for (nb::handle partial : partials) staged_.push_back(face_.held(nb::borrow(partial)));
  }
  void insert_staged(const std::uint32_t* keys, const Time* times, const std::vector<std::uint8_t>& late, bool slices) override {
    std::vector<Partial> staged = std::exchange(staged_, {});
    together(torn_, staged.size(), [&](std::size_t i) {
      if (!late[i]) wheels_.insert(keys[i], times[i], std::move(staged[i]), slices ? Wheels::slice : Wheels::item);
    });
    for (auto missed : late)
      if (missed) wheels_.refuse();
  }

  void advance(Time to) override { wheels_.advance(to); }

  nb::object nothing(nb::handle arg) override { return face_.lower(face_.identity(), arg); }
  nb::object empty(Time from, Time to, nb::handle arg) override {
    wheels_.range(from, to);
    return nothing(arg);
  }
  nb::object query(std::uint32_t key, Time from, Time to, nb::handle arg) override {
    return lowered(wheels_.query(key, wheels_.range(from, to)), arg);
  }
  nb::object landmark(std::uint32_t key, nb::handle arg) override { return lowered(wheels_.landmark(key), arg); }

  KeyedResults query_each(Time from, Time to, std::size_t keys, bool scalars) override {
    KeyedResults out;
    auto range = wheels_.range(from, to);
    for (std::uint32_t k = 0; k < keys; ++k) {
      auto found = wheels_.query(k, range);
      if (!found) continue;
      out.keys.push_back(k);
      if (scalars)
        out.scalars.push_back(face_.scalar(*found));
      else
        out.objects.push_back(face_.lower(*found, nb::none()));
    }
    return out;
  }

  std::vector<std::size_t> slots_read(std::uint32_t key, Time from, Time to) override {
    return wheels_.slots_read(key, wheels_.range(from, to));
  }

  bool drops() const override { return wheels_.drops(); }
  void merge(AnyKeyedWheels& other, const std::vector<std::uint32_t>& number) override {
    auto& theirs = dynamic_cast<KeyedWheelsImpl&>(other);
    if constexpr (Face::native) {
      wheels_.merge(theirs.wheels_, number);
    } else {
      WheelSettings settings = theirs.settings_;
      settings.start = theirs.wheels_.all().view().start();
      Wheels ours(face_.monoid(), settings);  // what they hold, held by these wheels
      take_over<Partial>(ours, theirs.wheels_, [&](const Partial& p) { return face_.held(p.object()); });
      ours.grow(theirs.wheels_.size());
      wheels_.merge(ours, number);
    }
  }

  bool torn() const override { return torn_ || wheels_.torn(); }
  std::size_t bytes() const override { return wheels_.bytes(); }
  void check() override { wheels_.check(this->sameness()); }

 private:
  nb::object lowered(const std::optional<Partial>& found, nb::handle arg) { return found ? face_.lower(*found, arg) : nothing(arg); }

  std::size_t columns(const std::uint32_t* keys, const ItemColumn* parts, std::size_t n, const Time* times, typename Wheels::Kind kind) {
    std::size_t rows = parts[0].size;
    if constexpr (requires { typename Monoid::Input; }) {  // a kernel: one column, read as it is
      using Input = typename Monoid::Input;
      const ItemColumn& column = parts[0];
      Monoid kernel = face_.monoid();
      auto lifted = [&](const auto* values) {
        return wheels_.insert_many(keys, times, rows, kind,
                                   [&](std::size_t i) { return kernel.lift(static_cast<Input>(values[i]), times[i]); });
      };
      if (!column.nulls) return column.type == ItemType::int64 ? lifted(column.ints) : lifted(column.floats);
    }
    std::vector<Item> row(n);
    return wheels_.insert_many(keys, times, rows, kind, [&](std::size_t i) {
      for (std::size_t p = 0; p < n; ++p) row[p] = parts[p][i];
      return face_.lift(row.data(), nb::handle(), nb::handle(), times[i]);
    });
  }

  DefinitionPtr definition_;
  WheelSettings settings_;
  Wheels wheels_;
  ViewImpl<Face, const WheelView<Monoid>&> all_;
  std::vector<Partial> staged_;
  bool torn_ = false;  // a bulk was broken off after some of its items
};

}  // namespace sash
