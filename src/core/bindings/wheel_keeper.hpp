// What a wheel and keyed wheels for Python have in common: how they are kept, stored, and brought to the same item types

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kept.hpp"
#include "wheel_answers.hpp"

namespace sash {

template <class Any>
class WheelKeeper : public WheelAnswers {
 public:
  using Work = typename Kept<Any>::Work;
  using Change = typename Kept<Any>::Change;

  std::uint64_t late() {
    Work work(kept_);
    return kept_->late();
  }

  void check() {
    Work work(kept_);
    kept_.check([this] { kept_->check(); });
  }

 protected:
  WheelKeeper(Clock clock, const WheelSettings& settings, ItemReader items, typename Kept<Any>::Words words)
      : WheelAnswers(clock, settings.grain, std::move(items)),
        settings_(settings),
        kept_(items_, words, [this](const DefinitionPtr& definition) { return made(definition); }) {
    settings_.commutative = nb::cast<bool>(this->aggregation().attr("commutative"));
  }

  virtual std::shared_ptr<Any> made(const DefinitionPtr& definition) = 0;

  const AnyView& begin() override {
    kept_.begin();
    return kept_->view();
  }
  void end() override { kept_.end(); }

  void forget_all() {
    kept_.mend();
    Work work(kept_);
    items_.forget();
    auto held = kept_.shared();  // what an object does as it goes may not reach in here
    kept_.start();
  }

  static void check_times(const Times& times) {
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times(i) > Wheel<Count>::latest || times(i) < -Wheel<Count>::latest)
        raise("OverflowError", "time " + std::to_string(times(i)) +
                                   " is too far from the epoch for a wheel (more than 2^61 "
                                   "units). Use a coarser unit.");
  }

  // An item, its time as its callables see it.
  nb::object shown(Time t) const { return items_.definition()->object ? nb::object(nb::int_(t)) : nb::object(); }
  void note_item() {
    if (items_.row()[0].kind != Item::null || items_.row().size() > 1) blank_ = false;
  }

  // Many items as sash.swag.columns.read gives them: columns, or None, rows, times, number, foreign columns.
  nb::tuple read_in(nb::handle values, const Times& times) const {
    nb::object columns = nb::module_::import_("sash.swag.columns");
    return nb::cast<nb::tuple>(columns.attr("read")(aggregation(), values, times, false, items_.definition()->object));
  }

  // Before two are merged: the one that holds only nulls takes over the types of the other.
  void agree_on_types(WheelKeeper& other) {
    if (kept_.same_types(other.kept_)) return;
    if (!blank_ && !other.blank_)
      raise("ValueError", "one holds " + dtype() + " items, the other " + other.dtype() + ". Build both with the same dtype=.");
    if (blank_)
      kept_.adopt(other.kept_);
    else
      other.kept_.adopt(kept_);
  }
  void note_merge(const WheelKeeper& other) {
    settings_.start = kept_->view().start();
    blank_ &= other.blank_;
  }

  // The fields that are stored, and back. What follows them is the caller's.
  nb::tuple stored() {
    Saved saved = kept_->save();
    return nb::make_tuple(items_.state(), nb::bool_(blank_), settings_.start, saved.number_bytes(), saved.partials);
  }
  struct Loaded {
    ItemReader items;
    std::shared_ptr<Any> structure;
  };
  Loaded loaded(nb::tuple state, std::size_t fields) {
    if (state.size() != fields) raise("ValueError", "these bytes are damaged: they do not hold " + std::to_string(fields) + " fields.");
    Loaded out{items_, nullptr};
    out.items.restore(nb::object(state[0]));
    Saved saved = Saved::read(state[3], state[4]);
    settings_.start = nb::cast<Time>(state[2]);
    out.structure = made(out.items.definition());
    out.structure->load(saved);
    return out;
  }
  void take(Loaded loaded, nb::handle blank) {
    kept_.replace(std::move(loaded.structure), std::move(loaded.items));
    blank_ = nb::cast<bool>(blank);
  }

  WheelSettings settings_;
  Kept<Any> kept_;
  bool blank_ = true;  // only nulls so far
};

}  // namespace sash
