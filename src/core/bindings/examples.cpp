// Examples in the docstrings of the window classes: one text for all of them, so that they can be compared; a test runs each

#include "module.hpp"
#include "window.hpp"

namespace sash {

static std::string example(const AlgorithmInfo& info) {
  struct Shown {
    const char *aggregation, *whole, *later;
  };
  Shown shown = info.needs_median_like ? Shown{"median", "4.0", "3.0"}
                : info.needs_inverse   ? Shown{"sum", "15", "6"}
                                       : Shown{"max", "9", "4"};
  std::string times = info.in_order ? "((100, 9), (200, 4), (300, 2))" : "((100, 9), (300, 2), (200, 4))";
  std::string name = info.name;
  return std::string("\n\n    >>> from sash import agg") + "\n    >>> from sash.swag import " + name + "\n    >>> w = " + name + "(agg." +
         shown.aggregation + "()" + (info.needs_delay ? ", max_delay=200" : "") + ")\n    >>> for time, item in " + times +
         ":\n    ...     w.insert(item, time)\n    >>> w.query(), len(w), w.oldest\n    (" + shown.whole +
         ", 3, 100)\n    >>> w.evict(); w.query()\n    " + shown.later + "\n    ";
}

static Binding bind(1000, [](nb::module_& m) {
  auto add = [](nb::object cls, const std::string& text) {
    cls.attr("__doc__") = nb::str((nb::cast<std::string>(cls.attr("__doc__")) + text).c_str());
  };
  for (const AlgorithmInfo* info : algorithms()) add(m.attr(info->name), example(*info));
  add(m.attr("Window"), "\n\n    >>> from sash.swag import Fiba, Window\n    >>> issubclass(Fiba, Window)\n    True\n    ");
  add(m.attr("WheelReader"),
      "\n\n    >>> from sash import agg\n    >>> from sash.wheel import Wheel\n    >>> w = Wheel(agg.sum(), unit=\"s\")"
      "\n    >>> w.insert(5, time=30)\n    True\n    >>> _ = w.advance_to(60)\n    >>> reader = w.reader()"
      "\n    >>> _ = w.advance_to(120)                    # the reader stays where it was"
      "\n    >>> reader.watermark, reader.query(0, 60)\n    (60, 5)\n    ");
});

}  // namespace sash
