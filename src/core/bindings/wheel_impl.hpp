// A wheel on every monoid behind AnyWheel

#pragma once

#include <type_traits>
#include <utility>

#include "../wheel/merge.hpp"
#include "any_wheel.hpp"
#include "on_face.hpp"

namespace sash {

// Kernels that get an instantiation of their own. A wheel keeps a partial per slot, so it is for their size too: erased, a
// partial takes 64 bytes instead of 8 to 32.
template <class K>
inline constexpr bool in_wheels = false;
template <>
inline constexpr bool in_wheels<Count> = true;
template <class T>
inline constexpr bool in_wheels<Sum<T>> = true;
template <class T>
inline constexpr bool in_wheels<Mean<T>> = true;
template <class T, Wants wants>
inline constexpr bool in_wheels<Extreme<T, wants>> = true;

// Python objects, with a form for grains that are still open: what collect gathers is appended to a list there instead of
// copied into a longer tuple with every item.
class OpenObjectMonoid : public ObjectMonoid {
 public:
  struct Mutable {
    PyRef value;
    bool list = false;
  };

  OpenObjectMonoid() = default;
  OpenObjectMonoid(const ObjectMonoid& monoid, const nb::object& aggregation)
      : ObjectMonoid(monoid),
        appends_(aggregation.attr("name").equal(nb::str("collect")) && !nb::cast<bool>(aggregation.attr("callables"))) {}

  Mutable thaw(Partial p) const { return {std::move(p), false}; }
  void absorb(Mutable& open, Partial p) const {
    if (!appends_) {
      open.value = combine(open.value, p);
      return;
    }
    if (!open.list) {
      PyObject* list = PySequence_List(open.value.ptr());
      if (!list) throw nb::python_error();
      open = {held(nb::steal(list)), true};
    }
    Py_ssize_t end = PyList_GET_SIZE(open.value.ptr());
    if (PyList_SetSlice(open.value.ptr(), end, end, p.ptr()) < 0) throw nb::python_error();
  }
  Partial freeze(Mutable open) const {
    if (!open.list) return std::move(open.value);
    PyObject* tuple = PyList_AsTuple(open.value.ptr());
    if (!tuple) throw nb::python_error();
    return held(nb::steal(tuple));
  }

 private:
  bool appends_ = false;
};

class WheelObjectFace : public ObjectFace {
 public:
  using Monoid = OpenObjectMonoid;
  explicit WheelObjectFace(DefinitionPtr d) : ObjectFace(d), definition_(std::move(d)) {}
  OpenObjectMonoid monoid() const { return OpenObjectMonoid(ObjectFace::monoid(), definition_->aggregation); }

 private:
  DefinitionPtr definition_;
};

// A view of a wheel at work (a reference), or of its own (a value).
template <class Face, class View>
class ViewImpl final : public AnyView {
 public:
  ViewImpl(const Face& face, View view, std::shared_ptr<int> pin = nullptr)
      : face_(face), view_(std::forward<View>(view)), pin_(std::move(pin)) {}

  nb::object query(Time from, Time to, nb::handle arg) const override { return face_.lower(view_.query(from, to), arg); }
  nb::object landmark(nb::handle arg) const override { return face_.lower(view_.landmark(), arg); }
  std::vector<Scalar> query_many(const Time* from, const Time* to, std::size_t n) const override {
    std::vector<Scalar> out;
    out.reserve(n);
    for (std::size_t i = 0; i < n; ++i) out.push_back(face_.scalar(view_.query(from[i], to[i])));
    return out;
  }
  std::pair<Tick, Tick> ticks(Time from, Time to) const override { return view_.ticks(from, to); }
  const Timeline& line() const override { return view_.reader.line(); }
  const Hints& hints() const override { return view_.hints; }
  Time start() const override { return view_.start(); }
  Time closed() const override { return view_.closed(); }
  Time watermark() const override { return view_.watermark; }

 private:
  Face face_;
  View view_;
  std::shared_ptr<int> pin_;  // as long as a reader has it, partials are not the wheel's alone
};

template <class Face>
class WheelImpl final : public OnFace<AnyWheel, WheelImpl<Face>, Face> {
  using Base = OnFace<AnyWheel, WheelImpl, Face>;
  using Base::face_;

 public:
  using Monoid = typename Face::Monoid;
  using Partial = typename Face::Partial;
  template <class Other>
  using With = WheelImpl<Other>;
  template <class K>
  static constexpr bool own = in_wheels<K>;

  WheelImpl(const DefinitionPtr& definition, const WheelSettings& settings)
      : Base(definition), settings_(settings), wheel_(face_.monoid(), settings), view_(face_, wheel_.view()) {}

  WheelImpl& stored() { return *this; }
  bool untouched() const override { return false; }
  const AnyView& view() const override { return view_; }
  std::unique_ptr<AnyView> pin() const override { return std::make_unique<ViewImpl<Face, WheelView<Monoid>>>(face_, wheel_.pin(), pin_); }
  bool pinned() const override { return pin_.use_count() > 1; }
  std::mutex& mutex() const override { return wheel_.mutex(); }
  std::uint64_t late() const override { return wheel_.late(); }

  bool insert(Time t, const Item* items, nb::handle value, nb::handle time) override {
    if (t < wheel_.view().watermark) return wheel_.insert(t, face_.identity());  // late: counted, not lifted
    return wheel_.insert(t, face_.lift(items, value, time, t));
  }

  std::size_t insert_rows(const ItemRows& in, const Time* times) override {
    std::vector<Partial> lifted(in.rows.size());
    for (std::size_t i = 0; i < lifted.size(); ++i) {
      if (times[i] < wheel_.view().watermark) continue;  // late: counted, not lifted
      nb::object shown = Face::native ? nb::object() : nb::object(nb::int_(times[i]));
      lifted[i] = face_.lift(in.rows[i].data(), in.values[i], shown, times[i]);
    }
    std::size_t late = 0;
    together(torn_, lifted.size(), [&](std::size_t i) { late += !wheel_.insert(times[i], std::move(lifted[i])); });
    return late;
  }

  std::size_t insert_column([[maybe_unused]] const ItemColumn* parts, [[maybe_unused]] std::size_t n,
                            [[maybe_unused]] const Time* times) override {
    if constexpr (Face::native) {
      std::size_t rows = parts[0].size;
      if constexpr (requires { typename Monoid::Input; }) {  // a kernel: one column, read as it is
        using Input = typename Monoid::Input;
        const ItemColumn& column = parts[0];
        Monoid kernel = face_.monoid();
        auto lifted = [&](const auto* values) {
          return wheel_.insert_many(times, rows, [&](std::size_t i) { return kernel.lift(static_cast<Input>(values[i]), times[i]); });
        };
        if (!column.nulls) return column.type == ItemType::int64 ? lifted(column.ints) : lifted(column.floats);
      }
      std::vector<Item> row(n);
      return wheel_.insert_many(times, rows, [&](std::size_t i) {
        for (std::size_t p = 0; p < n; ++p) row[p] = parts[p][i];
        return face_.lift(row.data(), nb::handle(), nb::handle(), times[i]);
      });
    }
    return 0;
  }

  void install(const WindowSpec& spec) override { wheel_.install(spec); }
  std::int64_t due(Time to) const override { return wheel_.due(to); }
  // Results stay until they were handed out: one that can't be lowered takes none of the others with it.
  void advance(Time to, bool empties) override { wheel_.advance(to, empties, results_); }
  std::vector<LoweredResult> results(bool keep_errors) override {
    std::vector<LoweredResult> out;
    out.reserve(results_.size());
    for (auto& r : results_) {
      out.push_back({r.window, r.start, r.end, nb::none()});
      try {
        out.back().value = face_.lower(r.value, nb::none());
      } catch (nb::python_error& e) {
        if (!keep_errors) throw ResultRefused{r.window, r.start, r.end, std::move(e)};
        out.back().value = nb::borrow(e.value());
      }
    }
    return out;
  }
  void handed_out() override { results_.clear(); }

  bool torn() const override { return torn_ || wheel_.torn(); }
  std::size_t bytes() const override { return wheel_.bytes(); }
  std::size_t slots() const override { return wheel_.view().reader.slots_held(); }
  void check() override { wheel_.check(this->sameness()); }

  // The wheel, and behind it the results that were not handed out, if there are any.
  template <class Archive>
  void archive(Archive& ar) {
    wheel_.archive(ar);
    auto n = static_cast<std::int64_t>(results_.size());
    if constexpr (Archive::loading) {
      results_.clear();
      if (ar.done()) return;
      ar.number(n);
      if (n < 0 || static_cast<std::size_t>(n) > ar.partials_left()) throw std::invalid_argument("the stored wheel ends too early");
      results_.assign(static_cast<std::size_t>(n), {0, 0, 0, face_.identity()});
    } else {
      if (n == 0) return;
      ar.number(n);
    }
    for (auto& r : results_) {
      auto window = static_cast<std::int64_t>(r.window);
      ar.number(window);
      r.window = static_cast<std::size_t>(window);
      ar.number(r.start);
      ar.number(r.end);
      ar.partial(r.value);
    }
  }

  void merge(AnyWheel& other) override {
    auto& theirs = dynamic_cast<WheelImpl&>(other);
    if constexpr (Face::native) {
      MergedWheel<Monoid>::merge(wheel_, theirs.wheel_);
    } else {
      WheelSettings settings = theirs.settings_;
      settings.start = theirs.wheel_.view().start();
      Wheel<Monoid> ours(face_.monoid(), settings);  // what they hold, held by this wheel
      take_over<Partial>(ours, theirs.wheel_, [&](const Partial& p) { return face_.held(p.object()); });
      MergedWheel<Monoid>::merge(wheel_, ours);
    }
  }

 private:
  WheelSettings settings_;
  Wheel<Monoid> wheel_;
  ViewImpl<Face, const WheelView<Monoid>&> view_;
  std::vector<WindowResult<Partial>> results_;
  std::shared_ptr<int> pin_ = std::make_shared<int>(0);
  bool torn_ = false;  // a bulk was broken off after some of its items
};

}  // namespace sash
