"""What the tests of the in-order algorithms share: the algorithms, and aggregations that see everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash import agg, swag
from sash.swag.algorithms import ALGORITHMS

IN_ORDER = [entry for entry in ALGORITHMS.values() if entry.in_order]
ALL: list[type[swag.Window]] = [getattr(swag, entry.name) for entry in IN_ORDER]
ANY_MONOID = [getattr(swag, entry.name) for entry in IN_ORDER if not entry.needs_inverse and not entry.needs_selective]
RANGES = tuple(getattr(swag, entry.name) for entry in IN_ORDER if entry.ranges)
ITEMS = tuple(getattr(swag, entry.name) for entry in IN_ORDER if entry.items)


def name_of(algorithm: type[swag.Window]) -> str:
    return algorithm.__name__


def _alone(x: Any) -> tuple[Any, ...]:
    return (x,)


def _joined(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return a + b


def _without(whole: tuple[Any, ...], oldest: tuple[Any, ...]) -> tuple[Any, ...]:
    assert whole[: len(oldest)] == oldest, "the inverse is asked to take away what is not the oldest"
    return whole[len(oldest) :]


def _candidate(x: int, t: int) -> tuple[int, int]:
    return (x % 7, t)


def _better(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    if a is None or b is None:
        return a if b is None else b
    return a if a[0] >= b[0] else b


FREE = agg.define(lift=_alone, combine=_joined, identity=(), inverse=_without, name="free")
# Selective, and still sees which item it was: the time tells equal values apart.
BEST = agg.define(lift=_candidate, combine=_better, identity=None, selective=True, name="best")


def seeing(algorithm: type[swag.Window]) -> agg.Aggregation:
    """Give the aggregation under which an algorithm can hide least: the free monoid wherever it takes it."""
    return BEST if algorithm is swag.MonotonicDeque else FREE


def counting(calls: list[int], algorithm: type[swag.Window] | None = None) -> agg.Aggregation:
    """Make a sum (a maximum for MonotonicDeque) that counts its combines and inverses in ``calls[0]``."""

    def counted(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def call(a: Any, b: Any) -> Any:
            calls[0] += 1
            return f(a, b)

        return call

    if algorithm is swag.MonotonicDeque:
        return agg.define(lift=lambda x: x, combine=counted(max), identity=-1, selective=True)
    return agg.define(lift=lambda x: x, combine=counted(int.__add__), inverse=counted(int.__sub__), identity=0)
