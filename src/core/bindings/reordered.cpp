#include "../adapters/reorder.hpp"
#include "../swag/daba_lite.hpp"
#include "window.hpp"
#include "window_impl.hpp"

namespace sash {

struct ReorderedWindow {
  template <class M>
  using On = Reorder<DabaLite<M>, M>;
};

static const AlgorithmInfo reordered_info{.name = "Reordered",
                                          .time = "DabaLite's, and one per waiting item",
                                          .space = "n + 2",
                                          .paper = "Srivastava and Widom, 2004",
                                          .make = make_window<ReorderedWindow, Heat::hot>,
                                          .needs_delay = true,
                                          .preference = 7,
                                          .drawback = "BlockFiba is faster unless the worst round counts"};

static Binding bind_reordered(16, [](nb::module_& m) {
  add_algorithm(reordered_info);
  nb::class_<WindowOf<ReorderedWindow>, Window>(m, reordered_info.name,
                                                "Sort items that are at most max_delay late in a buffer before a DabaLite.",
                                                nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(Collected<Window>::slots))
      .def(
          "__init__",
          [](WindowOf<ReorderedWindow>* self, nb::object aggregation, nb::object max_delay, nb::object dtype) {
            Options options;
            options.reorders = true;
            nb::object delay = nb::module_::import_("sash.time").attr("stretch")(max_delay);
            options.float_delay = nb::cast<double>(nb::float_(delay));
            if (!(options.float_delay >= 0 && options.float_delay <= std::numeric_limits<double>::max()))
              raise("ValueError", "max_delay=" + text(max_delay) + " is no delay. Use how late an item may be, 0 or more.");
            // Between integers, a delay that is not whole reaches as far as the next whole one.
            nb::object whole = PyFloat_Check(delay.ptr()) ? nb::module_::import_("math").attr("ceil")(delay) : delay;
            options.max_delay = options.float_delay < 0x1p63 ? nb::cast<Time>(whole) : std::numeric_limits<Time>::max();
            new (self) WindowOf<ReorderedWindow>(reordered_info, std::move(aggregation), std::move(dtype), options);
          },
          nb::arg("aggregation").none(), nb::kw_only(), nb::arg("max_delay"), nb::arg("dtype") = nb::none());
});

}  // namespace sash
