"""Sliding-window aggregation for Python and Spark."""

from sash import agg, errors, swag
from sash.arrays import slide
from sash.planner import window

__all__ = ["agg", "errors", "slide", "swag", "window"]
__version__ = "0.1.0"
