"""Whole arrays at once: slide()."""

from __future__ import annotations

import functools
import gc
import os
import re
from typing import Any, Final, Literal

import numpy as np

from sash import _core
from sash import time as times_
from sash.agg.base import Aggregation
from sash.agg.ranks import INTERPOLATIONS
from sash.arrays.driven import default_algorithm, run_windows
from sash.arrays.keys import starts_of, together
from sash.arrays.plan import CLOSED, Plan, check_order, ranked_dtype, with_none
from sash.containers import given_back, sized
from sash.swag.columns import EXACT

__all__ = ["explain_slide", "slide"]

Array = np.ndarray[Any, Any]
Closed = Literal["right", "left", "both", "neither"]
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
    closed: Closed | None = None,
    algorithm: str = "auto",
    at: Any = None,
    at_by: Any = None,
    min_periods: int | None = None,
    skipna: bool = False,
) -> Any:
    """Aggregate a sliding window ending at every item, or at the times ``at``.

    By count (``size``) or by time (``times`` and ``period``); ``by`` gives every key windows of its own: a column, several of them, or
    a table. With ``order="arrival"`` items come in any order, and result i is the window that ends at the largest time so far.

    ``closed`` is right, (t - period, t], unless told. With ``at``, times in any order (``at_by`` has their keys), there is a result for
    each of them, and ``closed`` is left, [t - period, t), so that nothing from t on leaks into it. With ``min_periods``, a window
    of fewer items that are not null has no result. NaN is a value, unless ``skipna`` makes it null.

    Gives what it was given: a Series of pandas (with its index) or Polars, an array of Arrow, else one of NumPy; with ``at``, of its
    kind.

    Cost: amortised O(1) combines per item in order, O(log d) for an item d places late; with ``at``, a sort of its times.

    >>> from sash import agg
    >>> slide([3, 1, 4, 1, 5], agg=agg.max(), size=3)
    array([3, 3, 4, 4, 5])
    >>> slide([3, 1, 4], agg=agg.sum(), times=[0, 60, 90], period=60)   # (t - 60, t]
    array([3, 1, 5])
    >>> slide([3, 1, 4], agg=agg.sum(), times=[0, 60, 90], period=60, closed="both")   # [t - 60, t]
    array([3, 4, 5])
    >>> slide([1, 2, 3, 4], agg=agg.sum(), size=2, by=["a", "b", "a", "b"])
    array([1, 2, 4, 6])
    >>> slide([3, 1, 4], agg=agg.sum(), times=[0, 60, 90], period=60, at=[60, 0, 91])   # [t - 60, t)
    array([3, 0, 5])
    >>> slide([3, 1, None, 5], agg=agg.max(), size=2, min_periods=2)
    array([nan,  3., nan, nan])
    """
    by, at, at_by = (None if given is None else sized(given) for given in (by, at, at_by))
    if closed is None:
        closed = "right" if at is None else "left"
    plan = Plan(values, agg, size, times, period, by, order, closed, algorithm, at, at_by, skipna)
    least = _least(plan, min_periods)
    out = _results(plan)
    if least is not None:
        out = _without(plan, out, _results(plan.counting()) < least, least)
    return given_back(out, plan.given, plan.items.name(agg), lambda: _gone(plan, out), plan.integral())


def _results(plan: Plan) -> Array:
    if plan.count == 0:
        return plan.empty_result()
    if plan.points is None and plan.codes is None:
        return _run(plan, np.array([0, plan.count]))
    return _by_key(plan)


def _least(plan: Plan, min_periods: Any) -> int | None:
    """Check min_periods; None where every window has a result whatever it holds."""
    if min_periods is None:
        return None
    if isinstance(min_periods, bool) or not isinstance(min_periods, int | np.integer):
        raise TypeError(f"min_periods={min_periods!r} is not a count. Use a whole number of items.")
    if min_periods < 0 or (plan.size and min_periods > plan.size):
        raise ValueError(f"min_periods={min_periods} is not from 0 to {'size=' + str(plan.size) if plan.size else 'a number of items'}.")
    return int(min_periods) or None


def _without(plan: Plan, out: Array, gone: Array, least: int) -> Array:
    """Results, none where ``gone``; their type does not depend on whether any is."""
    if out.dtype.kind == "i":
        if plan.numbers is not None and plan.never_empty() and least == 1:
            return out
        if len(out) and max(int(out.max()), -int(out.min())) > EXACT:
            return with_none(out, gone)
        return np.where(gone, np.nan, out.astype(np.float64))
    out = out.copy()
    out[gone] = None if out.dtype.kind == "O" else np.nan
    return out


def _gone(plan: Plan, out: Array) -> Array:
    """Where there is no result: a NaN that no item of the window brought, where none is NaN or infinite."""
    gone = np.isnan(out)
    if plan.numbers is None or plan.numbers[0].dtype.kind != "f":
        return gone
    array, mask = plan.numbers
    sane = np.isfinite(array)
    if mask is not None:
        sane |= mask != 0
    return gone if sane.all() else gone & (_results(plan.counting(sane.astype(np.uint8))) == 0)


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
    plan = Plan(values, agg, size, None if period is None else np.zeros(1, np.int64), period, None, order, "right", "auto")
    loops = {"time": "suffixes made anew where Two-Stacks would flip", "arrival": "an out-of-order window follows the largest time"}
    how = "suffixes of one block, prefixes of the next" if size else loops[order]
    cost = "amortised log d combines for an item d places late" if order == "arrival" else "3 combines an item"
    named = re.sub(r"(?:^|_)(\w)", lambda m: m[1].upper(), default_algorithm(plan))
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


def _threads() -> int:
    """Count the processors that this process may use, up to 8."""
    may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(may_use, 8)


def _run(plan: Plan, starts: Array, order: Array | None = None) -> Array:
    """Slide over segments; ``order`` brings the rows of a key together."""
    times = plan.times if order is None or plan.times is None else plan.times.take(order)
    if times is not None and plan.order == "time" and plan.points is None:
        check_order(times, starts)
    if plan.ranked:
        return _run_ranked(plan, starts, order)
    if plan.native is None:
        return run_windows(plan, starts, order)
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
        CLOSED.index(plan.closed),
        plan.order == "arrival",
        plan.never_empty(),
        starts.tolist(),
        _threads(),
        params=plan.native.params,
    )
    fits = slide_into(out)
    if fits == "rounded":  # an integer that float64 does not hold: once more, as integers
        out, gone = np.empty(plan.count, np.int64), np.zeros(plan.count, np.uint8)
        fits = slide_into(out, gone=gone)
    if fits == "overflow":
        raise OverflowError("a result does not fit int64. Use float items (dtype='float64') or a smaller window.")
    return out if gone is None else with_none(out, gone)


def _run_ranked(plan: Plan, starts: Array, order: Array | None) -> Array:
    assert plan.numbers is not None
    rank = plan.aggregation.rank
    assert rank is not None
    columns: list[Array | None] = [*plan.numbers, plan.times]
    if order is not None:
        columns = [None if c is None else c[order] for c in columns]
    array, mask, keys = (None if c is None else np.ascontiguousarray(c) for c in columns)
    assert array is not None
    dtype = ranked_dtype(plan)
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
        CLOSED.index(plan.closed),
        starts.tolist(),
        _threads(),
        out,
        counts,
    )
    if picked is not None:
        gone = np.isnan(out)
        return with_none(picked[np.where(gone, 0, out).astype(np.int64)], gone)
    if counts is None:
        return out
    return np.fromiter(_lists(out, counts, k), dtype=object, count=plan.count)


def _lists(rows: Array, counts: Array, k: int) -> Any:
    """Make a list of every row, with the garbage collector off: it would search the new lists again and again, 60 % of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _core.rows_as_lists(rows, counts, k)
    finally:
        if collecting:
            gc.enable()


def _by_key(plan: Plan) -> Array:
    assert plan.codes is not None
    if plan.points is None:
        order = together(plan.codes)
    else:
        assert plan.times is not None
        by_time = np.argsort(plan.times, kind="stable")
        order = by_time.take(together(plan.codes.take(by_time)))
    found = _run(plan, starts_of(plan.codes.take(order)), order)
    out = np.empty_like(found)
    out[order] = found
    return out if plan.points is None else out[plan.count - plan.points :]
