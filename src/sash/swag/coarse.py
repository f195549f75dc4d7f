"""Coarse-grained sliding: times rounded to slices before they reach a window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sash._core import Window
from sash.time import Duration, duration, timestamp, timestamps

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
        at = time if isinstance(time, float) else timestamp(time)
        return at // self.grain * self.grain

    def insert(self, value: Any, time: Any) -> None:
        """Add an item to the slice of its time."""
        self.window.insert(value, self._slice(time))

    def bulk_insert(self, values: Any, times: Any, **options: Any) -> None:
        """Add a column of items, each to the slice of its time."""
        at = timestamps(times if hasattr(times, "__len__") else list(times))
        self.window.bulk_insert(values, at // self.grain * self.grain, **options)

    def bulk_evict(self, time: Any) -> None:
        """Remove every slice that lies wholly at or before a time."""
        at = time if isinstance(time, float) else timestamp(time)
        # The last time of a slice of integers is one before the next; a slice of floats has none, and must have ended.
        end = math.floor(at / self.grain) if isinstance(at, float) else (at + 1) // self.grain
        self.window.bulk_evict(type(at)((end - 1) * self.grain))

    def evict(self, *time: Any) -> Any:
        """Remove the oldest entry, or, where the window can, the slice that a time lies in."""
        return self.window.evict(*map(self._slice, time))

    def query(self, *bounds: Any, **options: Any) -> Any:
        """Aggregate the whole window, or every slice that a range start, end touches."""
        return self.window.query(*(None if bound is None else self._slice(bound) for bound in bounds), **options)

    def query_many(self, starts: Any, ends: Any) -> Any:
        """Aggregate many ranges at once, each in whole slices."""
        first, last = (np.asarray(timestamps(bound)) // self.grain * self.grain for bound in (starts, ends))
        return self.window.query_many(first, last)

    def explain(self) -> str:
        """Say what the window is, and what a slice is."""
        return f"slices of {self.grain} (of the times' unit) in\n{self.window.explain()}"

    def __len__(self) -> int:
        return len(self.window)

    def __getattr__(self, name: str) -> Any:
        if name == "window":  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self.window, name)
