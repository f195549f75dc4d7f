"""Sliding-window aggregation for Python and Spark."""

from sash import agg, errors, swag
from sash.rolling import slide

__all__ = ["agg", "errors", "slide", "swag"]
__version__ = "0.1.0"
