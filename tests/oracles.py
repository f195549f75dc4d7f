"""Oracles and generators that every test shares.

The free monoid (tuples under concatenation) shows any item that was lost, doubled or put in another order.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from sash import agg


def free_monoid(calls: list[int] | None = None) -> agg.Aggregation:
    """Make the aggregation that keeps every item in order; counts its combines in ``calls[0]``."""

    def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if calls is not None:
            calls[0] += 1
        return a + b

    return agg.define(lift=lambda x: (x,), combine=combine, identity=(), name="free")


def counting_sum(calls: list[int]) -> agg.Aggregation:
    """Make a sum whose combines are counted in ``calls[0]``, with partials of constant size."""

    def combine(a: int, b: int) -> int:
        calls[0] += 1
        return a + b

    return agg.define(lift=lambda x: x, combine=combine, identity=0, name="counting")


def fold(aggregation: agg.Aggregation, items: list[Any], times: list[Any] | None = None) -> Any:
    """Lower the fold of all items, from scratch."""
    partial = aggregation.identity()
    for i, item in enumerate(items):
        partial = aggregation.combine(partial, aggregation.lift(item, times[i] if times else i))
    return aggregation.lower(partial)


class Brute:
    """A window as a sorted list: what every algorithm must agree with.

    ``ties="combine"`` is Fiba's rule (equal times become one entry), ``"keep"`` that of the in-order algorithms.
    """

    def __init__(self, ties: str = "keep") -> None:
        self.ties = ties
        self.entries: list[tuple[Any, list[Any]]] = []

    def insert(self, value: Any, time: Any) -> None:
        times = [t for t, _ in self.entries]
        at = bisect.bisect_right(times, time)
        if self.ties == "combine" and at > 0 and times[at - 1] == time:
            self.entries[at - 1][1].append(value)
        else:
            self.entries.insert(at, (time, [value]))

    def evict(self, time: Any = None) -> bool:
        if time is None:
            self.entries.pop(0)
            return True
        for i, (t, _) in enumerate(self.entries):
            if t == time:
                del self.entries[i]
                return True
        return False

    def bulk_evict(self, time: Any) -> None:
        self.entries = [(t, vs) for t, vs in self.entries if t > time]

    def values(self, start: Any = None, end: Any = None) -> list[Any]:
        return [v for t, vs in self.entries for v in vs if (start is None or t >= start) and (end is None or t <= end)]

    def times(self) -> list[Any]:
        return [t for t, _ in self.entries]

    def __len__(self) -> int:
        return len(self.entries)


# --- generators of arrival orders


def delayed(times: list[int], rng: random.Random, max_delay: int) -> list[int]:
    """Give the order (indices) in which items arrive if each is late by a random time up to ``max_delay``."""
    return sorted(range(len(times)), key=lambda i: (times[i] + rng.randint(0, max_delay), i))


def micro_batches(order: list[Any], rng: random.Random, most: int) -> Iterator[list[Any]]:
    """Cut an arrival order into batches of random sizes, empty ones included."""
    at = 0
    while at < len(order):
        size = rng.randint(0, most)
        yield order[at : at + size]
        at += size


def disordered_times(most: int = 60) -> st.SearchStrategy[list[int]]:
    """Times in order, slightly late, far late, equal and in bursts, mixed."""
    step = st.one_of(st.integers(0, 3), st.just(0), st.integers(-4, 4), st.integers(-60, 5), st.integers(0, 50))

    def walk(steps: list[int]) -> list[int]:
        out, now = [], 0
        for s in steps:
            if s >= 0:
                now += s
                out.append(now)
            else:
                out.append(now + s)
        return out

    return st.lists(step, max_size=most).map(walk)


Close = Callable[[Any, Any], bool]


def close(a: Any, b: Any, tolerance: float = 1e-9) -> bool:
    """Compare results: exactly for all but floats, with NaN equal to NaN."""
    if (isinstance(a, float) and isinstance(b, float | int)) or (isinstance(b, float) and isinstance(a, int)):
        return a == b or (a != a and b != b) or abs(a - b) <= tolerance * (1 + abs(a) + abs(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k], tolerance) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def ordered(values):
    """Sort with NaN last, as the catalogue does."""
    return sorted(values, key=lambda x: (x != x, 0 if x != x else x))
