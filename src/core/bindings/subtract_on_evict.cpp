#include "../swag/subtract_on_evict.hpp"

#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct SubtractOnEvictWindow {
  template <class M>
  using On = InOrder<SubtractOnEvict<M>>;
};

static const AlgorithmInfo subtract_on_evict_info{.name = "SubtractOnEvict",
                                                  .time = "1, and 1 inverse",
                                                  .space = "n + 1",
                                                  .paper = "the tutorial of 2017",
                                                  .make = make_window<SubtractOnEvictWindow, Heat::hot>,
                                                  .in_order = true,
                                                  .items = true,
                                                  .needs_inverse = true,
                                                  .preference = 3,
                                                  .drawback = "subtracts: exact on integers only, and none were promised",
                                                  .benches = "fifo latency"};

static Binding bind_subtract_on_evict(2, [](nb::module_& m) {
  add_algorithm(subtract_on_evict_info);
  nb::class_<WindowOf<SubtractOnEvictWindow>, Window>(
      m, subtract_on_evict_info.name, "Aggregate an in-order window by taking the oldest item away with an inverse.", nb::dynamic_attr(),
      nb::is_weak_referenceable(), nb::type_slots(Collected<Window>::slots))
      .def(
          "__init__",
          [](WindowOf<SubtractOnEvictWindow>* self, nb::object aggregation, nb::object dtype, bool integers_only) {
            Options options;
            options.integers_only = integers_only;
            new (self) WindowOf<SubtractOnEvictWindow>(subtract_on_evict_info, std::move(aggregation), std::move(dtype), options);
          },
          nb::arg("aggregation").none(), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("integers_only") = false);
});

}  // namespace sash
