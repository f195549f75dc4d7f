"""Sliding-window aggregation for Python and Spark."""

import sys as _sys
from typing import TYPE_CHECKING, Any

from sash import agg, errors, swag
from sash.arrays import slide
from sash.planner import window

# The core relies on the GIL. A free-threaded Python turns it on when the core is loaded, unless it was told not to.
if not getattr(_sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("Sash needs the GIL, and this Python runs without it. Start it without PYTHON_GIL=0 and -X gil=0.")

if TYPE_CHECKING:
    from sash.frames import Live, rolling, tiles, windows

__all__ = ["Live", "agg", "errors", "rolling", "slide", "swag", "tiles", "window", "windows"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load what needs more than NumPy when it is first asked for."""
    if name not in ("Live", "rolling", "tiles", "windows"):
        raise AttributeError(f"module 'sash' has no attribute {name!r}")
    import functools

    from sash import frames

    found = getattr(frames, name)
    if name == "Live":
        return globals().setdefault(name, found)

    @functools.wraps(found)
    def anywhere(df: Any, **asked: Any) -> Any:
        if type(df).__module__.split(".")[0] != "pyspark":
            return found(df, **asked)
        from sash import spark

        return getattr(spark, name)(df, **asked)

    return globals().setdefault(name, anywhere)
