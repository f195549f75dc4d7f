"""Sliding-window aggregation for Python and Spark."""

from sash import agg, errors, swag
from sash.planner import window
from sash.rolling import slide

__all__ = ["agg", "errors", "slide", "swag", "window"]
__version__ = "0.1.0"
