// Python objects as partials of the live engine: a BlockFiba of them per key

#include "live_objects.hpp"

namespace sash::engine {
namespace {

class ObjectRows {
 public:
  using Partial = nb::object;
  static constexpr bool may_throw = true;

  struct Probe {
    Tally* tally;
    explicit Probe(const ObjectRows& rows) : tally(rows.tally_) {}
    void visit(std::size_t n = 1) const { tally->visited += n; }
    void restructure(std::size_t = 1) const {}
    void reach(const char*) const {}
  };

  ObjectRows(nb::handle combine, Tally& tally) : combine_(combine), tally_(&tally) {}

  Partial identity() const { return {}; }
  Partial combine(const Partial& a, const Partial& b) const {
    if (!a.is_valid() || !b.is_valid()) return a.is_valid() ? a : b;
    ++tally_->combines;
    PyObject* args[] = {nullptr, a.ptr(), b.ptr()};
    PyObject* result = PyObject_Vectorcall(combine_.ptr(), args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (!result) throw nb::python_error();
    return nb::steal(result);
  }

 private:
  nb::handle combine_;  // lives as long as the objects that this is in
  Tally* tally_;
};

template <class Key>
class KeyedObjects final : public PyObjects {
  using Tree = BlockFiba<ObjectRows, Key>;
  static constexpr bool apart = std::is_same_v<Key, Place>;
  static constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), greatest = std::numeric_limits<std::int64_t>::max();

 public:
  using PyObjects::PyObjects;

  void reach(std::uint32_t id) override {
    if (id >= trees_.size()) trees_.resize(id + 1), past_.resize(id + 1);
  }
  void insert(std::uint32_t id, const Time* times, std::size_t at, std::size_t n, std::int64_t number) override {
    for (std::size_t i = 0; i < n; ++i) put(id, key(times[i], number + static_cast<std::int64_t>(i)), nb::borrow(given_[at + i]));
  }
  void put_hop(std::uint32_t id, Time hop, nb::object object) override { put(id, key(hop, 0), moved({}, object, hop)); }

  void evict(std::uint32_t id, Time time, std::size_t keep, Objects* to, Time at) override {
    if (!trees_[id]) return;
    Tree& tree = *trees_[id];
    Key end = key(time, least);
    if (keep && tree.size() > keep) end = std::min(end, tree.before(tree.youngest(), keep - 1));
    auto* target = static_cast<PyObjects*>(to);
    while (tree.size() > keep && tree.oldest() < end) {
      if (target) {
        Key oldest = tree.oldest();
        nb::object object = tree.query(oldest, oldest);
        at == before_all ? target->join_past(id, object) : target->put_hop(id, at, object);
      }
      tree.evict();
    }
    if (tree.size() == 0) trees_[id].reset();
  }
  void leave(std::uint32_t id) override {
    trees_[id].reset();
    past_[id] = {};
  }

  void query(std::uint32_t id, Time from, Time to, Objects& out, std::size_t list, std::size_t row) override {
    if (trees_[id]) range(id, key(from, least), key(to, greatest), static_cast<PyObjects&>(out).answer(list, row));
  }
  void query_rows(std::uint32_t id, Place place, std::size_t n, bool takes_itself, std::size_t list, std::size_t row) override {
    if constexpr (apart) {
      if (!trees_[id] || n == 0) return;
      Tree& tree = *trees_[id];
      Place to = place;
      if (!takes_itself) {
        if (!(tree.oldest() < place)) return;
        to = tree.before(place, 1);
      }
      range(id, tree.before(to, n - 1), to, answers_[list][row]);
    }
  }
  void each(std::uint32_t id, Objects& out) const override {
    auto& to = static_cast<PyObjects&>(out);
    if (trees_[id]) trees_[id]->for_each([&](const Key&, const nb::object& object) { to.append(object); });
  }
  std::size_t bytes() const override {
    std::size_t all = pools_.leaves.bytes() + pools_.inners.bytes() + trees_.capacity() * 16;
    for (auto& tree : trees_)
      if (tree) all += tree->bytes();
    return all;
  }

 private:
  static Key key(Time time, [[maybe_unused]] std::int64_t number) {
    if constexpr (apart)
      return {time, number};
    else
      return time;
  }
  void put(std::uint32_t id, const Key& at, nb::object object) {
    if (!trees_[id]) trees_[id] = std::make_unique<Tree>(ObjectRows(combine_, tally_), pools_);
    trees_[id]->insert(at, std::move(object));
  }
  void range(std::uint32_t id, const Key& from, const Key& to, nb::object& answer) {
    answer = combined(answer, trees_[id]->query(from, to));
  }

  typename Tree::Pools pools_;
  std::vector<std::unique_ptr<Tree>> trees_;
};

}  // namespace

std::unique_ptr<PyObjects> make_objects(bool apart, nb::object combine, nb::object move) {
  if (apart) return std::make_unique<KeyedObjects<Place>>(std::move(combine), std::move(move));
  return std::make_unique<KeyedObjects<Time>>(std::move(combine), std::move(move));
}

}  // namespace sash::engine
