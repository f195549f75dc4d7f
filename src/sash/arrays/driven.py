"""Any aggregation, any algorithm: a window per key, driven item by item from Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sash import _core, swag
from sash.arrays.plan import NEVER_EMPTY, Plan, items_of
from sash.swag.algorithms import ALGORITHMS, snake_case
from sash.swag.columns import results

__all__ = ["default_algorithm", "run_windows"]

Array = np.ndarray[Any, Any]


def _window_class(name: str) -> type[_core.Window]:
    known = {snake_case(entry.name): entry.name for entry in ALGORITHMS.values() if not entry.needs_delay}
    if name not in known:
        raise ValueError(f"algorithm={name!r} is not known. Use 'auto' or one of: {', '.join(sorted(known))}.")
    cls: type[_core.Window] = getattr(swag, known[name])
    return cls


def default_algorithm(plan: Plan) -> str:
    if plan.numbers is not None and plan.aggregation.median_like and plan.closed in NEVER_EMPTY:
        return "order_statistics"
    return "fiba" if plan.order == "arrival" else "daba_lite" if plan.aggregation.associative else "recalc"


def run_windows(plan: Plan, starts: Array, order: Array | None) -> Array:
    make = _window_class(default_algorithm(plan) if plan.algorithm == "auto" else plan.algorithm)
    # Items leave one by one, also those of equal times, so the trees that would make one entry of these keep them apart.
    tree = ALGORITHMS[make.__name__].combines_ties
    options = {"ties": "keep"} if tree else {}
    # A column that is no column of numbers decides for all rows, also for those before its first item.
    if plan.numbers is None and any(plan.items.foreign(plan.aggregation)):
        options["dtype"] = "object"
    items, keys = items_of(plan), plan.times
    if order is not None:
        items = [items[i] for i in order]
        keys = None if keys is None else keys[order]
    out: list[Any] = []
    for begin, end in itertools.pairwise(starts.tolist()):
        window = make(plan.aggregation, **options)
        segment = keys[begin:end].tolist() if keys is not None else list(range(end - begin)) if tree else None
        out += (_arrival if plan.order == "arrival" else _in_time)(plan, window, items[begin:end], segment)
    return results(out)


def _in_time(plan: Plan, window: Any, items: list[Any], keys: list[Any] | None) -> list[Any]:
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


def _arrival(plan: Plan, window: Any, items: list[Any], keys: list[Any] | None) -> list[Any]:
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
