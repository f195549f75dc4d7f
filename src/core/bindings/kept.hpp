// What Python holds: a structure, the reader of its items, and what keeps calls from running into one another
//
// A step may change the item types, and with them the structure, before its items go in. If the step fails both are put back (Change). If
// it fails half way through, the structure is broken, and every later call says so (guarded). A callable of an aggregation may not call
// the structure that it works for, nor may a second thread while a native loop runs without the interpreter's lock (Work).

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "any_structure.hpp"
#include "item_rows.hpp"

namespace sash {

template <class Any>
class Kept {
 public:
  using Pointer = std::shared_ptr<Any>;

  struct Words {
    const char* broken;  // what can't be put back, and what to do then
    const char* busy;
  };

  // `make` makes a structure for a definition; start() makes the first.
  Kept(ItemReader& items, Words words, std::function<Pointer(const DefinitionPtr&)> make)
      : items_(items), words_(words), make_(std::move(make)) {}
  Kept(const Kept&) = delete;

  void start() { structure_ = make_(items_.definition()); }

  Any* operator->() const { return structure_.get(); }
  Any& operator*() const { return *structure_; }
  const Pointer& shared() const { return structure_; }

  // The structure and its items, of bytes that were read to the end.
  void replace(Pointer structure, ItemReader items) {
    structure_ = std::move(structure);
    items_ = std::move(items);
  }

  // ---- one call at a time

  void begin(bool mends = false) {
    if (!broken_.empty() && !mends) raise("BrokenWindow", "an earlier call was broken off by " + broken_ + ", and " + words_.broken);
    if (busy_) raise("RuntimeError", words_.busy);
    busy_ = true;
  }
  void end() { busy_ = false; }
  bool busy() const { return busy_; }
  bool broken() const { return !broken_.empty(); }
  void mend() { broken_.clear(); }

  class Work {
   public:
    explicit Work(Kept& kept, bool mends = false) : kept_(kept) { kept.begin(mends); }
    ~Work() { kept_.end(); }

   private:
    Kept& kept_;
  };

  // Runs a step that may throw, and notes whether it tore the structure.
  template <class Step>
  void guarded(Step step) {
    try {
      step();
    } catch (nb::python_error& e) {
      if (structure_->torn()) broken_ = text(e.value());
      throw;
    } catch (const std::bad_alloc&) {
      broken_ = "MemoryError";  // where in the step it was is not known
      throw;
    }
  }

  void check(const std::function<void()>& step) const {
    try {
      step();
    } catch (const std::logic_error& broken) {
      raise("AssertionError", broken.what());
    }
  }

  // ---- item types that change

  // Unless the step is done, or broke the structure for good, items and structure are put back.
  class Change {
   public:
    explicit Change(Kept& kept) : kept_(kept) {
      kept_.change_ = this;
      if (!kept_.items_.settled()) items_before_ = kept_.items_;
    }
    Change(const Change&) = delete;
    ~Change() {
      kept_.change_ = nullptr;
      if (done_ || !kept_.broken_.empty()) return;
      if (items_before_) kept_.items_ = std::move(*items_before_);
      if (before_) kept_.structure_ = std::move(before_);
    }
    void done() { done_ = true; }

   private:
    friend class Kept;
    void replace(Pointer next) {
      if (!items_before_) items_before_ = kept_.items_;
      if (!before_) before_ = std::move(kept_.structure_);
      kept_.structure_ = std::move(next);
    }

    Kept& kept_;
    std::optional<ItemReader> items_before_;
    Pointer before_;
    bool done_ = false;
  };

  void read(nb::handle value) { items_.read(value, becoming()); }
  void settle(const std::vector<Item::Kind>& kinds) { items_.settle(kinds, becoming()); }
  void read_rows(ItemRows& rows, nb::handle list, nb::handle foreign, const std::vector<std::uint8_t>& late = {}) {
    rows.read(items_, list, foreign, becoming(), late);
  }

  bool same_types(const Kept& other) const {
    const Definition &a = *items_.definition(), &b = *other.items_.definition();
    return a.types == b.types && a.object == b.object;
  }
  // The types of another; there are only nulls so far.
  void adopt(const Kept& other) {
    ItemReader next = items_;
    next.adopt(other.items_);
    turn_into(std::move(next));
  }
  // Python objects instead of native partials; there are only nulls so far.
  void turn_into_objects() {
    ItemReader next = items_;
    nb::tuple types = items_.state();
    next.restore(nb::make_tuple(types[0], nb::bool_(true), types[2]));
    turn_into(std::move(next));
  }

  int traverse(visitproc visit, void* arg) const {
    if (int stop = items_.traverse(visit, arg)) return stop;
    return structure_->traverse(visit, arg);
  }

 private:
  auto becoming() {
    return [this](const DefinitionPtr& next, ItemReader::Promoted promoted) { become(next, promoted); };
  }

  // Rebuilds the structure on other item types. Entries so far are nulls, or numbers of the parts in `promoted`.
  void become(const DefinitionPtr& next, ItemReader::Promoted promoted) {
    Pointer rebuilt = make_(next);
    if (structure_->untouched()) {
    } else if (promoted) {
      rebuilt->promote_from(*structure_, *promoted);
    } else {
      rebuilt->load_blank(structure_->save());
    }
    if (change_)
      change_->replace(std::move(rebuilt));
    else
      structure_ = std::move(rebuilt);
  }

  void turn_into(ItemReader next) {
    become(next.definition(), nullptr);
    items_ = std::move(next);
  }

  ItemReader& items_;
  Words words_;
  std::function<Pointer(const DefinitionPtr&)> make_;
  Pointer structure_;
  std::string broken_;  // the first error that tore the structure
  bool busy_ = false;
  Change* change_ = nullptr;
};

}  // namespace sash
