"""What a wheel and its readers answer besides single ranges: many ranges, intervals, buckets, plans."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from sash._core import WheelAnswers, register_hooks
from sash.time import Duration
from sash.wheel.errors import Misaligned, time_text
from sash.wheel.plan import Plan, explained
from sash.wheel.shape import Shape, read_bounds

__all__ = ["buckets", "explain", "group_by", "interval", "query_many", "units"]


def query_many(self: WheelAnswers, starts: Any, ends: Any, *, clamp: bool = False) -> np.ndarray[Any, Any]:
    """Give the values of many ranges [start, end) at once, as an array.

    >>> from sash import agg
    >>> from sash.wheel import Wheel
    >>> w = Wheel(agg.sum(), unit="s", layout="prefix"); _ = w.insert_many([1, 2], [0, 61]), w.advance_to(120)
    >>> w.query_many([0, 0, 60], [60, 120, 61]).tolist()
    [1, 3, 0]
    """
    return self._query_many(read_bounds(starts, self._unit), read_bounds(ends, self._unit), clamp)


def interval(self: WheelAnswers, length: Duration, *, arg: Any = None) -> Any:
    """Give the value of the last ``length`` before the watermark: [watermark - length, watermark).

    A watermark inside a grain counts from where that grain begins: the rest of it is still open.
    """
    whole = units(self, length)
    if whole < 0:
        raise ValueError(f"interval({length!r}) is negative. Use the length of time before the watermark.")
    return self._interval(whole, arg)


def group_by(self: WheelAnswers, start: Any, end: Any, every: Duration, *, tz: str | None = None) -> list[tuple[int, Any]]:
    """Give (bucket start, value) for every ``every`` from start on, empty buckets included; the last ends at ``end``.

    With a time zone, ``every`` is whole days, weeks (from Monday) or months there: buckets begin at local midnights, the first at start.

    >>> from sash import agg
    >>> from sash.wheel import Wheel
    >>> w = Wheel(agg.max(), unit="s"); _ = w.insert_many([1, 2], [0, 61]), w.advance_to(120)
    >>> w.group_by(0, 90, "30s")
    [(0, 1), (30, None), (60, 2)]
    """
    return [(first, self.query(first, last)) for first, last in buckets(self, start, end, every, tz)]


def explain(self: WheelAnswers, start: Any, end: Any, *, clamp: bool = False) -> Plan:
    """Give the plan for a range: what is read, at what cost, and what was rejected.

    >>> from sash import agg
    >>> from sash.wheel import Wheel
    >>> w = Wheel(agg.max(), unit="s"); _ = w.advance_to(86_400)
    >>> print(w.explain(43_200, 66_600))
    max over [43200, 66600)    35 combines for 23,400 grains of 1s
      combined   1h x 6, 1m x 30                                                 35   <- chosen
      prefix     no level with prefixes holds it with both ends on its slots
      landmark   the range is not the whole wheel
      single     1m x 390                                                       389
      inverse    max is not invertible and commutative
    """
    return explained(self, start, end, clamp)


def buckets(self: WheelAnswers, start: Any, end: Any, every: Duration, tz: str | None = None) -> list[tuple[int, int]]:
    """Cut [start, end) into buckets; the last ends at ``end``."""
    first, last = read_bounds([start, end], self._unit).tolist()
    if first > last or last > self.watermark:
        self.query(first, last)  # says so, before a list of all buckets is made
    if tz is not None:
        return _local_buckets(first, last, every, tz, self._unit)
    step = units(self, every)
    if step < 1:
        raise ValueError(f"every={every!r} is not a length of time. Use at least one grain.")
    return [(at, min(at + step, last)) for at in range(first, last, step)]


def _local_buckets(first: int, last: int, every: Any, tz: str, unit: int) -> list[tuple[int, int]]:
    from sash.wheel.calendar import calendar_step, midnights

    inner = [at for at in midnights(first * unit, last * unit, calendar_step(every), tz) if first * unit < at < last * unit]
    off = next((at for at in inner if at % unit), None)
    if off is not None:
        raise Misaligned(f"midnight in {tz} is at {time_text(off, 1)} microseconds, between two units of the wheel. Use a finer unit.")
    edges = [first, *(at // unit for at in inner), last]
    return list(pairwise(edges)) if first < last else []


def units(self: WheelAnswers, length: Duration) -> int:
    """Read a length of time in a wheel's units."""
    return Shape(self._unit, 1, (), (), ()).units(length, "length")


register_hooks(query_many=query_many, interval=interval, group_by=group_by, explain_range=explain)
