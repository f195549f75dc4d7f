"""Coarse-grained sliding: times rounded to slices before they reach a window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sash._core import Window
from sash.swag.columns import read_ranges
from sash.time import Duration, duration, point, timestamps

__all__ = ["Coarse"]


class Coarse:
    """Round the times of a window down to slices of a grain; items of one slice enter and leave together.

    A slice is one entry in ``Fiba``, ``BlockFiba`` and ``BTree``, so a window of n items holds n / (items per slice) entries; in-order
    algorithms keep the items of a slice apart. Everything else is the window's own: its costs, errors and other methods.

    >>> from sash import agg
    >>> from sash.swag import BlockFiba, Coarse
    >>> w = Coarse(BlockFiba(agg.sum()), grain=60)
    >>> for time in (0, 59, 60, 130, 10):
    ...     w.insert(1, time)
    >>> len(w), w.oldest, w.youngest, w.query()      # slices [0, 60), [60, 120), [120, 180)
    (3, 0, 120, 5)
    >>> w.bulk_evict(100); w.query()                 # only [0, 60) lies wholly at or before 100
    2
    """

    def __init__(self, window: Window, grain: Duration) -> None:
        if not isinstance(window, Window):
            raise TypeError(f"{window!r} is not a window. Pass one of sash.swag, e.g. Coarse(BlockFiba(agg.sum()), grain='1m').")
        self.window = window
        self.grain = duration(grain)
        if self.grain <= 0:
            raise ValueError(f"grain={grain!r} makes no slices. Use a duration above zero, e.g. '1m'.")

    def _slice(self, time: Any) -> Any:
        return point(time) // self.grain * self.grain

    def _slices(self, times: Any) -> Any:
        at = timestamps(times)
        if at.dtype.kind == "i" and len(at) and (low := int(at.min())) // self.grain * self.grain < -(2**63):
            raise OverflowError(f"the slice of time {low} begins before what int64 holds. Use later times.")
        return at // self.grain * self.grain

    def insert(self, value: Any, time: Any) -> None:
        """Add an item to the slice of its time."""
        self.window.insert(value, self._slice(time))

    def bulk_insert(self, values: Any, times: Any, **options: Any) -> None:
        """Add a column of items, each to the slice of its time."""
        self.window.bulk_insert(values, self._slices(times), **options)

    def bulk_evict(self, time: Any) -> None:
        """Remove every slice that lies wholly at or before a time."""
        at = point(time)
        # The last time of a slice of integers is one before the next; a slice of floats has none, and must have ended.
        if isinstance(at, float):
            self.window.bulk_evict(at if math.isinf(at) else float((math.floor(at / self.grain) - 1) * self.grain))
        else:
            self.window.bulk_evict(((at + 1) // self.grain - 1) * self.grain)

    def evict(self, *time: Any) -> Any:
        """Remove the oldest entry, or, where the window can, the slice that a time lies in."""
        return self.window.evict(*map(self._slice, time))

    def query(self, *bounds: Any, **options: Any) -> Any:
        """Aggregate the whole window, or every slice that a range start, end touches."""
        if len(bounds) == 2 and None not in bounds and point(bounds[0]) > point(bounds[1]):
            raise ValueError(f"start {bounds[0]!r} is after end {bounds[1]!r}. Ranges include both ends, start first.")
        return self.window.query(*(None if bound is None else self._slice(bound) for bound in bounds), **options)

    def query_many(self, starts: Any, ends: Any) -> Any:
        """Aggregate many ranges at once, each in whole slices."""
        first, last, _ = read_ranges(starts, ends)
        if (turned := np.flatnonzero(first > last)).size:
            at = int(turned[0])
            raise ValueError(f"start {first[at]} is after end {last[at]}. Ranges include both ends, start first.")
        # No slice begins before the first that int64 holds: a bound before it stands for all that is earlier.
        least = -(2**63 // self.grain) * self.grain
        floors = (np.where(b < least, -(2**63), np.maximum(b, least) // self.grain * self.grain) for b in (first, last))
        return self.window.query_many(*floors)

    def explain(self) -> str:
        """Say what the window is, and what a slice is."""
        return f"slices of {self.grain} (of the times' unit) in\n{self.window.explain()}"

    def __len__(self) -> int:
        return len(self.window)

    def __getattr__(self, name: str) -> Any:
        if name == "window":  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self.window, name)
