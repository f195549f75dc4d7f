// swag.OrderStatistics: median-like aggregations on numbers, without a monoid
//
// It is no algorithm over partials, so it stands behind AnyWindow by itself. To Window its aggregation is one on objects;
// what comes in are numbers, int64 until the first float.

#include "../swag/order_statistics.hpp"

#include "../ranks.hpp"
#include "window.hpp"

namespace sash {

namespace {

enum class Wanted : std::uint8_t { quantile, ith_smallest, distinct };

class OrderWindow final : public AnyWindow {
 public:
  explicit OrderWindow(const DefinitionPtr& definition) : aggregation_(definition->aggregation) {
    nb::object rank = aggregation_.attr("rank");
    auto find = nb::cast<std::string>(rank.attr("find"));
    wanted_ = find == "quantile" ? Wanted::quantile : find == "distinct" ? Wanted::distinct : Wanted::ith_smallest;
    q_ = nb::cast<double>(rank.attr("q"));
    i_ = rank_of(rank.attr("k"));
    nb::object rules = nb::module_::import_("sash.agg.ranks").attr("INTERPOLATIONS");
    rule_ = static_cast<Interpolation>(nb::cast<int>(rules.attr("index")(rank.attr("rule"))));
    nb::object dtype = aggregation_.attr("dtype");
    if (dtype.equal(nb::str("object"))) refuse();
    floats_ = definition->types[0] == ItemType::float64 || dtype.equal(nb::str("float64"));
  }

  bool native() const override { return true; }
  const char* item_type() const override { return floats_ ? "float64" : "int64"; }

  void append(const Item* items, nb::handle) override {
    add(next_, *items);
    ++next_;
  }
  void insert(const Item* items, nb::handle, nb::handle, Time t) override { add(t, *items); }
  void insert_rows(const std::vector<std::vector<Item>>& rows, const std::vector<nb::object>&, const std::vector<nb::object>&,
                   const std::vector<Time>& times, bool counted) override {
    for (auto& row : rows)
      if (row[0].kind == Item::object) refuse();
    for (std::size_t i = 0; i < rows.size(); ++i) add(counted ? next_++ : times[i], rows[i][0]);
  }
  void insert_column(const ItemColumn* parts, std::size_t, const Time* times) override {
    const ItemColumn& column = parts[0];
    if (column.type == ItemType::float64) promote();
    for (std::size_t i = 0; i < column.size; ++i) add(times ? times[i] : next_++, column[i]);
  }
  void evict() override { window_.evict(); }
  bool evict(Time t) override { return window_.evict(t); }
  void bulk_evict(Time t) override { window_.bulk_evict(t); }

  nb::object query(nb::handle arg) const override {
    double q = q_;
    std::uint64_t i = i_;
    if (!arg.is_none()) {
      aggregation_.attr("lower")(aggregation_.attr("zero"), arg);  // raises where the definition would
      if (wanted_ == Wanted::quantile)
        q = nb::cast<double>(nb::float_(arg));
      else
        i = rank_of(arg);
    }
    return lower(window_.values(), q, i);
  }
  nb::object query(Time, Time, nb::handle) override { return nb::none(); }
  bool reaches_the_end(Time) const override { return true; }
  std::vector<Scalar> query_many(const Time*, const Time*, std::size_t n) override { return std::vector<Scalar>(n); }
  std::vector<nb::object> query_each(const Time*, const Time*, std::size_t) override { return {}; }

  std::size_t size() const override { return window_.size(); }
  Time oldest() const override { return window_.oldest(); }
  Time youngest() const override { return window_.youngest(); }
  Time next_time() const override { return next_; }
  std::vector<Time> times() const override {
    std::vector<Time> out;
    for (auto& [at, entry] : window_.entries()) out.push_back(at.time);
    return out;
  }
  std::vector<std::pair<Time, nb::object>> items() const override {
    std::vector<std::pair<Time, nb::object>> out;
    for (auto& [at, entry] : window_.entries()) {
      CountedTree alone;
      if (!entry.null) alone.insert(entry.key);
      out.emplace_back(at.time, lower(alone, q_, i_));
    }
    return out;
  }
  bool torn() const override { return false; }
  void clear() override {
    window_.clear();
    next_ = 0;
  }
  void check(const std::vector<std::vector<Item>>& items, const std::vector<nb::object>&, const std::vector<Time>&,
             const std::vector<nb::object>&) override {
    window_.check();
    std::size_t i = 0;
    if (!items.empty())
      for (auto& [at, entry] : window_.entries()) {
        const Item& x = items[i++][0];
        require(entry.null == (x.kind == Item::null) && (entry.null || entry.key == key_of(x)), "I5: entry ", i - 1,
                " is not the value it was given");
      }
  }

  Saved save() override {
    std::vector<std::int64_t> numbers{floats_, next_};
    for (auto& [at, entry] : window_.entries())
      numbers.insert(numbers.end(), {at.time, entry.null, std::bit_cast<std::int64_t>(entry.key)});
    return {std::move(numbers), nb::bytes("", 0), 0};
  }
  void load(const Saved& saved) override {
    const auto& numbers = saved.numbers;
    if (numbers.size() < 2 || (numbers.size() - 2) % 3) throw std::invalid_argument("the stored window ends inside an entry");
    window_.clear();
    floats_ = numbers[0] != 0;
    next_ = numbers[1];
    Time last = INT64_MIN;
    for (std::size_t i = 2; i < numbers.size(); i += 3) {
      if (numbers[i] < last) throw std::invalid_argument("the stored times decrease");
      last = numbers[i];
      window_.insert(last, {std::bit_cast<std::uint64_t>(numbers[i + 2]), numbers[i + 1] != 0});
    }
  }
  void load_blank(const Saved& saved) override { load(saved); }
  std::uint64_t visited() const override { return 0; }
  std::uint64_t restructured() const override { return 0; }
  std::map<std::string, std::uint64_t> reached() const override { return {}; }
  nb::object nodes() const override { return nb::none(); }
  void promote_from(AnyStructure&, const std::vector<bool>&) override {}
  bool merge(AnyWindow& other) override {
    auto* same = dynamic_cast<OrderWindow*>(&other);
    if (!same) return false;
    if (same->floats_) promote();
    for (auto& [at, entry] : same->window_.entries()) {
      OrderStatistics::Entry taken = entry;
      if (!taken.null && floats_ && !same->floats_) taken.key = widened(taken.key);
      window_.insert(at.time, taken);
    }
    return true;
  }
  int traverse(visitproc visit, void* arg) const override {
    Py_VISIT(aggregation_.ptr());
    return 0;
  }

 private:
  [[noreturn]] static void refuse() {
    raise("TypeError",
          "OrderStatistics takes numbers that fit 64 bits. For other items use DabaLite or Fiba, whose partials keep the items sorted.");
  }
  // A rank beyond 64 bits is beyond any window.
  static std::uint64_t rank_of(nb::handle i) {
    nb::object index = nb::steal(PyNumber_Index(i.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    int overflow = 0;
    long long rank = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    return overflow > 0 ? UINT64_MAX : static_cast<std::uint64_t>(rank);
  }
  static std::uint64_t widened(std::uint64_t key) { return rank_key(static_cast<double>(from_rank_key<std::int64_t>(key))); }

  void promote() {
    if (!floats_) window_.rekey(widened);
    floats_ = true;
  }
  std::uint64_t key_of(const Item& x) const {
    if (x.kind == Item::real) return rank_key(x.f);
    return floats_ ? rank_key(static_cast<double>(x.i)) : rank_key(x.i);
  }
  void add(Time t, const Item& x) {
    if (x.kind == Item::object) refuse();
    if (x.kind == Item::real) promote();
    window_.insert(t, {x.kind == Item::null ? 0 : key_of(x), x.kind == Item::null});
  }

  double number(std::uint64_t key) const {
    return floats_ ? from_rank_key<double>(key) : static_cast<double>(from_rank_key<std::int64_t>(key));
  }
  nb::object item(std::uint64_t key) const {
    return to_python(floats_ ? Scalar::of(from_rank_key<double>(key)) : Scalar::of(from_rank_key<std::int64_t>(key)));
  }
  nb::object lower(const CountedTree& values, double q, std::uint64_t i) const {
    if (wanted_ == Wanted::distinct) return nb::int_(values.distinct());
    if (wanted_ == Wanted::ith_smallest) return i <= values.size() ? item(values.select(i - 1)) : nb::none();
    if (values.size() == 0) return nb::none();
    Place at = place(rule_, values.size(), q);
    std::uint64_t low = values.select(at.low);
    if (picks(rule_)) return item(low);
    return nb::float_(at.gap == 0 ? number(low) : between(number(low), number(values.select(at.low + 1)), at.gap));
  }

  nb::object aggregation_;
  Wanted wanted_ = Wanted::quantile;
  double q_ = 0;
  Interpolation rule_ = Interpolation::linear;
  std::uint64_t i_ = 1;
  OrderStatistics window_;
  Time next_ = 0;
  bool floats_ = false;
};

}  // namespace

struct OrderStatisticsWindow {};

static std::unique_ptr<AnyWindow> make(const DefinitionPtr& definition, const Options&) {
  return std::make_unique<OrderWindow>(definition);
}

static const AlgorithmInfo info{.name = "OrderStatistics",
                                .time = "log n",
                                .space = "n",
                                .paper = "Hirzel et al., 2016",
                                .make = make,
                                .items = true,
                                .anywhere = true,
                                .counts_times = true,
                                .needs_median_like = true,
                                .preference = 2};

static Binding bind(12, [](nb::module_& m) {
  bind_window<OrderStatisticsWindow>(m, info, "Compute median, quantile, ith_smallest or distinct of numbers in any order, in O(log n).");
});

}  // namespace sash
