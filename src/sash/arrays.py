"""Whole arrays at once: slide()."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import re
from typing import Any, Final, Literal

import numpy as np

from sash import _core, swag
from sash import time as times_
from sash.agg.base import Aggregation, Native
from sash.agg.ranks import INTERPOLATIONS
from sash.containers import column, objects, sized
from sash.errors import OutOfOrderError
from sash.keys import write_key
from sash.swag.algorithms import ALGORITHMS, snake_case
from sash.swag.columns import EXACT, Items, results

__all__ = ["explain_slide", "slide"]

Array = np.ndarray[Any, Any]
Closed = Literal["right", "left", "both", "neither"]
_CLOSED: Final = ("right", "left", "both", "neither")
_NEVER_EMPTY: Final = ("right", "both")  # the item itself is in its window
_FINDS: Final = ("quantile", "ith_smallest", "distinct", "largest", "smallest")  # in the order in which the core numbers them


def slide(
    values: Any,
    *,
    agg: Aggregation,
    size: int | None = None,
    times: Any = None,
    period: Any = None,
    by: Any = None,
    order: Literal["time", "arrival"] = "time",
    closed: Closed = "right",
    algorithm: str = "auto",
) -> Array:
    """Aggregate a sliding window ending at every item.

    By count (``size``) or by time (``times`` and ``period``); ``by`` gives every key windows of its own. With
    ``order="arrival"`` items come in any order, and result i is the window that ends at the largest time so far.

    Cost: amortised O(1) combines per item in order, O(log d) for an item d places late.

    >>> from sash import agg
    >>> slide([3, 1, 4, 1, 5], agg=agg.max(), size=3)
    array([3, 3, 4, 4, 5])
    >>> slide([3, 1, 4], agg=agg.sum(), times=[0, 60, 90], period=60)   # (t - 60, t]
    array([3, 1, 5])
    >>> slide([3, 1, 4], agg=agg.sum(), times=[0, 60, 90], period=60, closed="both")   # [t - 60, t]
    array([3, 4, 5])
    >>> slide([1, 2, 3, 4], agg=agg.sum(), size=2, by=["a", "b", "a", "b"])
    array([1, 2, 4, 6])
    """
    plan = _Plan(values, agg, size, times, period, by, order, closed, algorithm)
    if plan.count == 0:
        return plan.empty_result()
    if plan.by is not None:
        return _by_key(plan)
    return _run(plan, np.array([0, plan.count]))


def explain_slide(
    agg: Aggregation, *, size: int | None = None, period: Any = None, order: Literal["time", "arrival"] = "time", dtype: str = "float64"
) -> str:
    """Say how slide() would run over numbers (dtype int64 or float64) or Python objects (object), and why not otherwise.

    >>> from sash import agg
    >>> print(explain_slide(agg.max(), size=3))
    max of float64 by count, 3 items
      array      whole array in the core: suffixes of one block, prefixes of the next, 3 combines an item   <- chosen
      ranked     only for what is found by rank, such as median and top_k
      windows    a window driven item by item from Python: for what the core can't do on arrays
    """
    values: Any = ["item"] if dtype == "object" else np.zeros(1, dtype)
    plan = _Plan(values, agg, size, None if period is None else np.zeros(1, np.int64), period, None, order, "right", "auto")
    loops = {"time": "suffixes made anew where Two-Stacks would flip", "arrival": "an out-of-order window follows the largest time"}
    how = "suffixes of one block, prefixes of the next" if size else loops[order]
    cost = "amortised log d combines for an item d places late" if order == "arrival" else "3 combines an item"
    named = re.sub(r"(?:^|_)(\w)", lambda m: m[1].upper(), _default_algorithm(plan))
    lines = {
        "array": f"whole array in the core: {how}, {cost}",
        "ranked": "whole array in the core: stretches are ranked at once, a result is a few steps from the last",
        "windows": f"{named}, driven item by item from Python",
    }
    chosen = "ranked" if plan.ranked else "array" if plan.native is not None else "windows"
    why_not = {
        "array": f"{agg.name} of {dtype} items has no kernel that runs over arrays",
        "ranked": "only for what is found by rank, such as median and top_k" + (", by time" if order == "arrival" else ""),
        "windows": "a window driven item by item from Python: for what the core can't do on arrays",
    }
    asked = f"by count, {size:,} items" if size else f"by time, {times_.duration_text(times_.duration(period))}, in order of {order}"
    head = f"{agg.name} of {dtype} {asked}"
    body = [f"  {name:10} {lines[name] + '   <- chosen' if name == chosen else why_not[name]}" for name in lines]
    return "\n".join([head, *sorted(body, key=lambda line: "<- chosen" not in line)])


class _Plan:
    """The arguments of slide(), read and checked."""

    def __init__(
        self, values: Any, agg: Aggregation, size: Any, times: Any, period: Any, by: Any, order: str, closed: str, algorithm: str
    ) -> None:
        if not isinstance(agg, Aggregation):
            raise TypeError(f"agg={agg!r} is not an aggregation. Pass one of sash.agg, e.g. agg=agg.sum().")
        if (size is None) == (period is None):
            raise ValueError("a window is by count or by time. Pass either size=, or times= and period=.")
        if period is not None and times is None:
            raise ValueError("period= needs the times of the items. Pass times=, one per value.")
        if closed not in _CLOSED:
            raise ValueError(f"closed={closed!r} is not known. Use 'right', 'left', 'both' or 'neither'.")
        if order not in ("time", "arrival"):
            raise ValueError(f"order={order!r} is not known. Use 'time' or 'arrival'.")
        if order == "arrival" and period is None:
            raise ValueError("order='arrival' follows time. Pass times= and period=, or leave order out for windows by count.")
        if size is not None:
            if closed != "right":
                raise ValueError(f"closed={closed!r} is about times. Leave it out for windows by count.")
            if isinstance(size, bool) or not isinstance(size, int | np.integer):
                raise TypeError(f"size={size!r} is not a count. Use a whole number of items.")
            if size < 1:
                raise ValueError(f"size={size} is too small. A window holds at least 1 item.")
        self.aggregation, self.order, self.closed, self.algorithm = agg, order, closed, algorithm
        self.items = Items(values)
        self.count = self.items.count
        self.size = int(size) if size is not None else 0
        self.times = None if times is None else times_.timestamps(times)
        self.by = None if by is None else sized(by, "a column of keys")
        for name, other in (("times", self.times), ("by", self.by)):
            if other is not None and len(other) != self.count:
                raise ValueError(f"there are {self.count} values but {len(other)} {name}. Pass one per value.")
        self.period: int | float = 0
        if period is not None:
            assert self.times is not None
            floats = self.times.dtype.kind == "f"
            self.period = float(times_.stretch(period)) if floats else times_.duration(period)
            if not self.period > 0:
                raise ValueError(f"period={period!r} is too short. A window reaches back by more than 0.")
        self.numbers = None if agg.parts else self.items.numbers(agg)
        self.native: Native | None = None
        if self.numbers is not None and agg.dtype != "object" and algorithm == "auto":
            if agg.dtype == "float64":
                self.numbers = (self.numbers[0].astype(np.float64, copy=False), self.numbers[1])
            native = agg.kernel("int64" if self.numbers[0].dtype.kind == "i" else "float64")
            truth = native is not None and (self.gives("truth") or _gives(native, "truth"))
            floats_by_arrival = order == "arrival" and self.times is not None and self.times.dtype.kind == "f"
            times_lost = agg.reads_time and self.times is not None and self.times.dtype.kind == "f"
            if native is not None and len(native.lowers) == 1 and not truth and not floats_by_arrival and not times_lost:
                self.native = native
        self.ranked = (
            self.numbers is not None and agg.rank is not None and agg.dtype != "object" and algorithm == "auto" and order == "time"
        )

    def gives(self, *kinds: str) -> bool:
        """Whether a result is of one of these kinds; of callables only their code tells."""
        return self.aggregation.result is not None and self.aggregation.result.kind in kinds

    def never_empty(self) -> bool:
        assert self.numbers is not None
        return self.numbers[1] is None and (self.size > 0 or self.closed in _NEVER_EMPTY)

    def dtype(self) -> Any:
        """The type of native results: from the aggregation, the input type and ``closed`` alone."""
        assert self.native is not None
        assert self.numbers is not None
        of_items = self.numbers[0].dtype.kind == "i" and self.gives("sum", "value")
        integers = self.gives("integer", "time") or of_items or _gives(self.native, "integer")
        a_number = not self.aggregation.callables and self.aggregation.empty is not None  # of an empty window, too
        return np.int64 if integers and (a_number or self.never_empty()) else np.float64

    def empty_result(self) -> Array:
        return np.empty(0, self.dtype() if self.native is not None else _ranked_dtype(self) or object if self.ranked else object)


def _gives(native: Native, kind: Literal["integer", "truth"]) -> bool:
    """Whether a compiled function has one result, of this kind; its code is the last of the kernel's numbers."""
    return native.kernel == "compiled" and (native.params[-1] == 0 if kind == "integer" else native.params[-1] % 4 == 2)


def _run(plan: _Plan, starts: Array, order: Array | None = None) -> Array:
    """Slide over segments; ``order`` brings the rows of a key together."""
    times = plan.times if order is None or plan.times is None else plan.times.take(order)
    if times is not None and plan.order == "time":
        _check_order(times, starts)
    if plan.ranked:
        return _run_ranked(plan, starts, order)
    if plan.native is None:
        return _run_windows(plan, starts, order)
    assert plan.numbers is not None
    array, mask = plan.numbers
    if order is not None:
        array, mask = array.take(order), None if mask is None else mask.take(order)
    out, gone = np.empty(plan.count, plan.dtype()), None
    slide_into = functools.partial(
        _core.slide_array,
        plan.native.kernel,
        plan.native.lowers[0],
        np.ascontiguousarray(array),
        mask,
        None if times is None else np.ascontiguousarray(times),
        plan.period,
        plan.size,
        _CLOSED.index(plan.closed),
        plan.order == "arrival",
        plan.never_empty(),
        starts.tolist(),
        min(os.cpu_count() or 1, 8),
        params=plan.native.params,
    )
    fits = slide_into(out)
    if fits == "rounded":  # an integer that float64 does not hold: once more, as integers
        out, gone = np.empty(plan.count, np.int64), np.zeros(plan.count, np.uint8)
        fits = slide_into(out, gone=gone)
    if fits == "overflow":
        raise OverflowError("a result does not fit int64. Use float items (dtype='float64') or a smaller window.")
    return out if gone is None else _with_none(out, gone)


def _with_none(integers: Array, gone: Array) -> Array:
    """Python's integers, None where there is none."""
    out = integers.astype(object)
    out[gone != 0] = None
    return out


def _ranked_dtype(plan: _Plan) -> Any:
    """The type of results by rank, None for lists."""
    assert plan.numbers is not None
    rank = plan.aggregation.rank
    assert rank is not None
    if rank.lists:
        return None
    if rank.integral:
        return np.int64
    return np.int64 if rank.picks and plan.numbers[0].dtype.kind == "i" and plan.never_empty() else np.float64


def _run_ranked(plan: _Plan, starts: Array, order: Array | None) -> Array:
    assert plan.numbers is not None
    rank = plan.aggregation.rank
    assert rank is not None
    columns: list[Array | None] = [*plan.numbers, plan.times]
    if order is not None:
        columns = [None if c is None else c[order] for c in columns]
    array, mask, keys = (None if c is None else np.ascontiguousarray(c) for c in columns)
    assert array is not None
    dtype = _ranked_dtype(plan)
    picked: Array | None = None  # integers that float64 does not hold: their places are ranked, and the result is looked up
    an_item = rank.picks or rank.find == "ith_smallest"
    if an_item and dtype == np.float64 and array.dtype.kind == "i" and max(int(array.max()), -int(array.min())) > EXACT:
        picked, places = np.unique(array, return_inverse=True)
        array = np.ascontiguousarray(places, np.int64)
    k = min(rank.k, plan.count) if rank.lists else rank.k
    out = np.empty(plan.count * k, array.dtype) if rank.lists else np.empty(plan.count, dtype)
    counts = np.empty(plan.count, np.int64) if rank.lists else None
    _core.slide_ranked(
        _FINDS.index(rank.find),
        rank.q,
        INTERPOLATIONS.index(rank.rule),
        k,
        array,
        mask,
        keys,
        plan.period,
        plan.size,
        _CLOSED.index(plan.closed),
        starts.tolist(),
        min(os.cpu_count() or 1, 8),
        out,
        counts,
    )
    if picked is not None:
        gone = np.isnan(out)
        return _with_none(picked[np.where(gone, 0, out).astype(np.int64)], gone)
    if counts is None:
        return out
    return np.fromiter(_lists(out, counts, k), dtype=object, count=plan.count)


def _lists(rows: Array, counts: Array, k: int) -> Any:
    """Make a list of every row, without a look at the garbage: none of the new lists is any, and looking took 60 % of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _core.rows_as_lists(rows, counts, k)
    finally:
        if collecting:
            gc.enable()


def _check_order(keys: Array, starts: Array) -> None:
    late = np.flatnonzero(keys[1:] < keys[:-1]) + 1
    late = late[~np.isin(late, starts)] if len(starts) > 2 else late
    if late.size:
        at = int(late[0])
        raise OutOfOrderError(
            f"time {keys[at]} follows {keys[at - 1]}. order='time' needs times that do not decrease (within a key); "
            "sort the items, or use order='arrival'."
        )


def _by_key(plan: _Plan) -> Array:
    codes = _codes(plan.by)
    order = _together(codes)
    ordered = codes.take(order)
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    found = _run(plan, np.append(starts, plan.count), order)
    out = np.empty_like(found)
    out[order] = found
    return out


def _together(codes: Array) -> Array:
    """Give the order that brings equal numbers together, each in its order of arrival.

    NumPy sorts 16-bit numbers by radix, 64-bit ones by merging: a million rows of 100 keys in 15 ms instead of 119.
    """
    least = int(codes.min())
    span = int(codes.max()) - least
    if span >= 1 << 32:
        return np.argsort(codes, kind="stable")
    small = codes - least
    order = np.argsort(small.astype(np.uint16), kind="stable")
    if span >= 1 << 16:  # the low half, then the high one
        order = order.take(np.argsort((small >> 16).astype(np.uint16).take(order), kind="stable"))
    return order


def _codes(keys: Any) -> Array:
    """Number the keys; equal keys get equal numbers."""
    mixed = isinstance(keys, list | tuple) and len(set(map(type, keys))) > 1  # True is no 1 among keys, nor is 1.0
    read = column(keys)
    if not mixed and read.nulls is None and read.values.dtype.kind in "bi":
        return read.values.astype(np.int64)
    if not mixed and read.nulls is None and read.values.dtype.kind == "f":
        return np.unique(read.values + 0.0, return_inverse=True)[1].astype(np.int64)  # -0.0 is 0.0, and every NaN one key
    seen: dict[bytes, int] = {}
    return np.fromiter((seen.setdefault(write_key(key), len(seen)) for key in objects(keys)), np.int64, len(read.values))


# --- any aggregation, any algorithm: a window per key, driven item by item


def _window_class(name: str) -> type[_core.Window]:
    known = {snake_case(entry.name): entry.name for entry in ALGORITHMS.values() if not entry.needs_delay}
    if name not in known:
        raise ValueError(f"algorithm={name!r} is not known. Use 'auto' or one of: {', '.join(sorted(known))}.")
    cls: type[_core.Window] = getattr(swag, known[name])
    return cls


def _default_algorithm(plan: _Plan) -> str:
    if plan.numbers is not None and plan.aggregation.median_like and plan.closed in _NEVER_EMPTY:
        return "order_statistics"
    return "fiba" if plan.order == "arrival" else "daba_lite" if plan.aggregation.associative else "recalc"


def _run_windows(plan: _Plan, starts: Array, order: Array | None) -> Array:
    make = _window_class(_default_algorithm(plan) if plan.algorithm == "auto" else plan.algorithm)
    # Items leave one by one, also those of equal times, so the trees that would make one entry of these keep them apart.
    tree = ALGORITHMS[make.__name__].combines_ties
    options = {"ties": "keep"} if tree else {}
    # A column that is no column of numbers decides for all rows, also for those before its first item.
    if plan.numbers is None and any(plan.items.foreign(plan.aggregation)):
        options["dtype"] = "object"
    items, keys = _items(plan), plan.times
    if order is not None:
        items = [items[i] for i in order]
        keys = None if keys is None else keys[order]
    out: list[Any] = []
    for begin, end in itertools.pairwise(starts.tolist()):
        window = make(plan.aggregation, **options)
        segment = keys[begin:end].tolist() if keys is not None else list(range(end - begin)) if tree else None
        out += (_arrival if plan.order == "arrival" else _in_time)(plan, window, items[begin:end], segment)
    return results(out)


def _items(plan: _Plan) -> list[Any]:
    if plan.numbers is not None and plan.aggregation.where is None:
        array, mask = plan.numbers
        return array.tolist() if mask is None else [None if null else x for x, null in zip(array.tolist(), mask, strict=True)]
    return plan.items.objects(plan.aggregation)


def _in_time(plan: _Plan, window: Any, items: list[Any], keys: list[Any] | None) -> list[Any]:
    out = []
    if plan.size:
        for i, item in enumerate(items):
            window.insert(item, keys[i]) if keys is not None else window.insert(item)
            if i >= plan.size:
                window.evict()
            out.append(window.query())
        return out
    assert keys is not None
    with_end, with_start = plan.closed in ("right", "both"), plan.closed in ("left", "both")
    lo = hi = 0
    for t in keys:
        while hi < len(keys) and (keys[hi] <= t if with_end else keys[hi] < t):
            window.insert(items[hi], keys[hi])
            hi += 1
        while lo < hi and (keys[lo] < t - plan.period if with_start else keys[lo] <= t - plan.period):
            window.evict()
            lo += 1
        out.append(window.query())
    return out


def _arrival(plan: _Plan, window: Any, items: list[Any], keys: list[Any] | None) -> list[Any]:
    assert keys is not None
    with_end, with_start = plan.closed in ("right", "both"), plan.closed in ("left", "both")
    waiting: list[Any] = []  # items of the newest time, where the window ends before it
    out, newest = [], keys[0] if keys else 0
    for item, t in zip(items, keys, strict=True):
        if t > newest:
            newest = t
            for held, time in waiting:
                window.insert(held, time)
            waiting = []
        start = newest - plan.period
        if t == newest and not with_end:
            waiting.append((item, t))
        elif t > start or (with_start and t == start):
            window.insert(item, t)
        while len(window) and (window.oldest < start if with_start else window.oldest <= start):
            window.evict()
        out.append(window.query())
    return out
