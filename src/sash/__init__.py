"""Sliding-window aggregation for Python and Spark."""

from sash import agg, errors

__all__ = ["agg", "errors"]
__version__ = "0.1.0"
