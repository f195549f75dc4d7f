// A wheel on every monoid behind AnyWheel

#pragma once

#include <type_traits>
#include <utility>

#include "../wheel/merge.hpp"
#include "any_wheel.hpp"

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

// From Sum<double> to Sum<int64>, and so on: what a wheel of floats may have been before.
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
class WheelImpl final : public AnyWheel {
 public:
  using Monoid = typename Face::Monoid;
  using Partial = typename Face::Partial;

  WheelImpl(const DefinitionPtr& definition, const WheelSettings& settings)
      : settings_(settings), face_(definition), wheel_(face_.monoid(), settings), view_(face_, wheel_.view()) {}

  bool native() const override { return Face::native; }
  const AnyView& view() const override { return view_; }
  std::unique_ptr<AnyView> pin() const override { return std::make_unique<ViewImpl<Face, WheelView<Monoid>>>(face_, wheel_.pin(), pin_); }
  bool pinned() const override { return pin_.use_count() > 1; }
  int traverse(visitproc visit, void* arg) const override { return face_.traverse(visit, arg); }
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
  void check() override {
    double scale = scale_of(face_, wheel_);
    wheel_.check([&](const Partial& a, const Partial& b) { return face_.same(a, b, scale); });
  }

  Saved save() override { return saved(face_, *this); }
  void load(const Saved& stored) override { restore(face_, *this, stored); }
  void load_blank(const Saved& stored) override { restore_blank(face_, *this, stored); }

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

  void promote_from(AnyWheel& narrower, const std::vector<bool>& parts) override {
    if constexpr (std::is_same_v<Face, ErasedFace>) {
      auto& other = dynamic_cast<WheelImpl&>(narrower);
      take_over<Partial>(*this, other, [&](const Partial& p) { return face_.widened(other.face_, parts, p); });
    } else if constexpr (Face::native) {
      using Narrow = typename NarrowerOf<Monoid>::type;
      if constexpr (!std::is_void_v<Narrow>)
        take_over<typename Narrow::Partial>(*this, dynamic_cast<WheelImpl<NativeFace<Narrow>>&>(narrower), &Narrow::promote);
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

  template <class>
  friend class WheelImpl;

 private:
  WheelSettings settings_;
  Face face_;
  Wheel<Monoid> wheel_;
  ViewImpl<Face, const WheelView<Monoid>&> view_;
  std::vector<WindowResult<Partial>> results_;
  std::shared_ptr<int> pin_ = std::make_shared<int>(0);
  bool torn_ = false;  // a bulk was broken off after some of its items
};

}  // namespace sash
