// Every algorithm on every monoid behind AnyWindow: the one place where both are known

#pragma once

#include <type_traits>
#include <utility>

#include "../adapters/by_time.hpp"
#include "any_window.hpp"
#include "on_face.hpp"

namespace sash {

// Monoids that get an instantiation of their own, in algorithms that are hot too. Each costs seconds to compile per
// algorithm; from Python, where a call costs 50 ns, the erased form of the others is slower by a few.
template <class K>
inline constexpr bool is_hot = false;
template <class T>
inline constexpr bool is_hot<Sum<T>> = true;
template <Wants wants>
inline constexpr bool is_hot<Extreme<double, wants>> = true;

// Algorithm::On<M> is an algorithm on the monoid M in its adapter. (A template template parameter would read better,
// but aliases of one name in two files are one type to the linker.)
template <class Algorithm, class Face>
class WindowImpl final : public OnFace<AnyWindow, WindowImpl<Algorithm, Face>, Face> {
  using Base = OnFace<AnyWindow, WindowImpl, Face>;
  using Base::face_;
  using Adapter = typename Algorithm::template On<typename Face::Monoid>;
  using Partial = typename Face::Partial;

 public:
  template <class Other>
  using With = WindowImpl<Algorithm, Other>;
  template <class K>
  static constexpr bool own = is_hot<K>;

  WindowImpl(const DefinitionPtr& definition, const Options& options) : Base(definition), window_(face_.monoid(), options) {}

  Adapter& stored() { return window_; }

  void append(const Item* items, nb::handle value) override {
    if constexpr (!Face::native) {
      nb::object time = nb::int_(window_.next_time());
      window_.append(face_.lift(items, value, time, 0));
    } else {
      window_.append(face_.lift(items, value, nb::handle(), window_.next_time()));
    }
  }

  void insert(const Item* items, nb::handle value, nb::handle time, Time t) override {
    window_.insert(t, face_.lift(items, value, time, t));
  }

  void insert_rows(const std::vector<std::vector<Item>>& rows, const std::vector<nb::object>& values, const std::vector<nb::object>& times,
                   const std::vector<Time>& keys, [[maybe_unused]] bool counted) override {
    std::vector<Partial> partials;
    partials.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) partials.push_back(face_.lift(rows[i].data(), values[i], times[i], keys[i]));
    if constexpr (requires { window_.bulk_insert(keys, partials); })
      window_.bulk_insert(keys, partials);
    else
      window_.insert_all(counted ? nullptr : keys.data(), std::move(partials));
  }

  void insert_column([[maybe_unused]] const ItemColumn* parts, [[maybe_unused]] std::size_t n,
                     [[maybe_unused]] const Time* times) override {
    if constexpr (Face::native) {
      std::vector<Item> row(n);
      auto lift = [&](std::size_t i, Time t) {
        if (n == 1) {  // in registers
          Item item = parts[0][i];
          return face_.lift(&item, nb::handle(), nb::handle(), t);
        }
        for (std::size_t p = 0; p < n; ++p) row[p] = parts[p][i];
        return face_.lift(row.data(), nb::handle(), nb::handle(), t);
      };
      std::size_t rows = parts[0].size;
      if constexpr (requires { window_.bulk_insert(std::vector<Time>{}, std::vector<Partial>{}); }) {
        std::vector<Time> keys(times, times + rows);
        std::vector<Partial> partials;
        partials.reserve(rows);
        for (std::size_t i = 0; i < rows; ++i) partials.push_back(lift(i, times[i]));
        window_.bulk_insert(keys, std::move(partials));
      } else if (times) {
        for (std::size_t i = 0; i < rows; ++i) window_.insert(times[i], lift(i, times[i]));
      } else {
        for (std::size_t i = 0; i < rows; ++i) window_.append(lift(i, window_.next_time()));
      }
    }
  }

  void evict() override { window_.evict(); }
  bool evict([[maybe_unused]] Time t) override {
    if constexpr (Adapter::evicts_anywhere) return window_.evict(t);
    return false;
  }
  void bulk_evict(Time t) override { window_.bulk_evict(t); }

  nb::object query(nb::handle arg) const override { return face_.lower(window_.query(), arg); }

  nb::object query([[maybe_unused]] Time from, [[maybe_unused]] Time to, nb::handle arg) override {
    if constexpr (Adapter::has_ranges || Adapter::has_suffixes) {
      auto found = window_.query(from, to);
      return face_.lower(found ? *found : face_.identity(), arg);
    }
    return nb::none();
  }
  bool reaches_the_end(Time to) const override { return window_.reaches_the_end(to); }

  std::vector<Scalar> query_many(const Time* from, const Time* to, std::size_t n) override {
    std::vector<Scalar> out(n);
    for_ranges(from, to, n, [&](std::size_t i, const Partial& p) { out[i] = face_.scalar(p); });
    return out;
  }

  std::vector<nb::object> query_each(const Time* from, const Time* to, std::size_t n) override {
    std::vector<nb::object> out(n);
    for_ranges(from, to, n, [&](std::size_t i, const Partial& p) { out[i] = face_.lower(p, nb::none()); });
    return out;
  }

  std::size_t size() const override { return window_.size(); }
  Time oldest() const override { return window_.oldest(); }
  Time youngest() const override { return window_.youngest(); }
  Time next_time() const override { return window_.next_time(); }

  std::vector<Time> times() const override {
    std::vector<Time> out;
    window_.for_each_time([&](Time t) { out.push_back(t); });
    return out;
  }

  std::vector<std::pair<Time, nb::object>> items() const override {
    std::vector<std::pair<Time, nb::object>> out;
    if constexpr (Adapter::has_items) {
      // Lowering may run Python, which may not look at this window meanwhile; partials are taken out first.
      std::vector<std::pair<Time, Partial>> entries;
      window_.for_each([&](Time t, const Partial& v) { entries.emplace_back(t, v); });
      for (auto& [t, v] : entries) out.emplace_back(t, face_.lower(v, nb::none()));
    }
    return out;
  }

  bool torn() const override { return window_.torn(); }
  void clear() override { window_.clear(); }

  void check(const std::vector<std::vector<Item>>& items, const std::vector<nb::object>& values, const std::vector<Time>& keys,
             const std::vector<nb::object>& times) override {
    std::vector<Partial> lifted;
    for (std::size_t i = 0; i < items.size(); ++i) lifted.push_back(face_.lift(items[i].data(), values[i], times[i], keys[i]));
    double scale = 0;
    for (const Partial& p : lifted) scale += face_.magnitude(p);
    window_.check(lifted, this->sameness(scale));
  }

  std::uint64_t visited() const override {
    return probe([](auto& p) { return p.visited; });
  }
  std::uint64_t restructured() const override {
    return probe([](auto& p) { return p.restructured; });
  }
  std::map<std::string, std::uint64_t> reached() const override {
    return probe([](auto& p) { return p.reached; });
  }

  nb::object nodes() const override {
    if constexpr (requires { window_.algorithm().for_each_node([](auto...) {}); }) {
      nb::list out;
      window_.algorithm().for_each_node([&](int level, const char* place, const auto& keys, const Partial& p) {
        nb::list times;
        for (const auto& key : keys) times.append(nb::int_(time_of(key)));
        out.append(nb::make_tuple(level, place, times, face_.lower(p, nb::none())));
      });
      return out;
    }
    return nb::none();
  }

  bool merge(AnyWindow& other) override {
    auto* same = dynamic_cast<WindowImpl*>(&other);
    if (!same) return false;
    if constexpr (Adapter::has_items) {
      std::vector<Time> times;
      std::vector<Partial> partials;
      same->window_.for_each([&](Time t, const Partial& v) {
        times.push_back(t);
        if constexpr (Face::native)
          partials.push_back(v);
        else
          partials.push_back(face_.held(v.object()));  // held by this window from now on
      });
      if constexpr (requires { window_.bulk_insert(times, partials); })
        window_.bulk_insert(times, partials);
      else
        window_.insert_all(times.data(), std::move(partials));
    }
    return true;
  }

 private:
  template <class Visit>
  void for_ranges([[maybe_unused]] const Time* from, [[maybe_unused]] const Time* to, [[maybe_unused]] std::size_t n,
                  [[maybe_unused]] Visit visit) {
    if constexpr (requires { window_.query_many(from, to, n); }) {
      std::vector<Partial> found = window_.query_many(from, to, n);
      for (std::size_t i = 0; i < n; ++i) visit(i, found[i]);
    } else if constexpr (Adapter::has_ranges || Adapter::has_suffixes) {
      for (std::size_t i = 0; i < n; ++i) {
        auto found = window_.query(from[i], to[i]);
        visit(i, found ? *found : face_.identity());
      }
    }
  }

  template <class Get>
  auto probe(Get get) const -> std::decay_t<decltype(get(std::declval<const CountingProbe&>()))> {
    if constexpr (requires { window_.algorithm().probe(); })
      if constexpr (std::is_same_v<std::decay_t<decltype(window_.algorithm().probe())>, CountingProbe>)
        return get(window_.algorithm().probe());
    return {};
  }

  Adapter window_;
};

// --- the choice of an instantiation

enum class Heat { hot, cold };

template <class Algorithm, Heat heat>
std::unique_ptr<AnyWindow> make_window(const DefinitionPtr& definition, const Options& options) {
  if (definition->object) return std::make_unique<WindowImpl<Algorithm, ObjectFace>>(definition, options);
  if constexpr (heat == Heat::hot) {
    // 35 ns an item where the erased form takes 60 (DabaLite, a partial of 4 fields), for at most 3 s of compiling per algorithm.
    if (definition->names.empty() && CompiledMonoid::fits(definition->kernels[0]))
      return std::make_unique<WindowImpl<Algorithm, CompiledFace>>(definition, options);
    if (definition->names.empty() && !run_time_kernel(definition->kernels[0])) {
      auto made = with_kernel(definition->kernels[0], [&]<class K>(K) -> std::unique_ptr<AnyWindow> {
        if constexpr (is_hot<K> && requires { typename Algorithm::template On<K>; })
          return std::make_unique<WindowImpl<Algorithm, NativeFace<K>>>(definition, options);
        return nullptr;
      });
      if (made) return made;
    }
  }
  return std::make_unique<WindowImpl<Algorithm, ErasedFace>>(definition, options);
}

}  // namespace sash
