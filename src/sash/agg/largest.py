"""The items at the top, at the bottom, and at the corners: top_k bottom_k m4.

NaN is larger than any number. Of equal items the older one comes first, in every algorithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.agg.arguments import Where, column_and, plain, positive
from sash.agg.base import Aggregation, ItemType, Traits
from sash.agg.card import LARGEST, MAX_LIKE, card
from sash.agg.forms import Rank, Result

__all__ = ["bottom_k", "m4", "top_k"]

Sorted = tuple[tuple[Any, ...], int]  # in order, without NaN; and how many NaN there were


def lift_ordered(x: Any, t: Any) -> Sorted:
    """Make a sorted partial of one item; refuse what has no order."""
    x = plain(x)
    if x != x:
        return ((), 1)
    if type(x) is not float and type(x) is not int:
        try:
            x < x  # noqa: B015
        except TypeError:
            raise TypeError(f"{x!r} has no order. Use items that compare with <, such as numbers, text or dates.") from None
    return ((x,), 0)


def merge_ordered(a: tuple[Any, ...], b: tuple[Any, ...], reverse: bool = False) -> list[Any]:
    """Merge two sorted tuples; of equal items those of ``a`` come first."""
    try:
        return sorted(a + b, reverse=reverse)  # two runs: a merge, linear
    except TypeError:
        raise TypeError(f"{a[0]!r} and {b[0]!r} can't be compared. Use items of one kind that compare with <.") from None


def _ranked(name: str, k: int, top: bool, column: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    def combine(a: Sorted, b: Sorted) -> Sorted:
        if not a[0] and not a[1]:
            return b
        if not b[0] and not b[1]:
            return a
        nans = min(a[1] + b[1], k)
        return (tuple(merge_ordered(a[0], b[0], reverse=top)[: k - nans if top else k]), nans)

    def lower(p: Sorted) -> list[Any]:
        nans = [float("nan")] * p[1]
        return [*nans, *p[0]][:k] if top else [*p[0], *nans][:k]

    traits = Traits(commutative=True, size_preserving=False)
    return Aggregation(
        name,
        ((), 0),
        lift_ordered,
        combine,
        lower,
        None,
        traits,
        column,
        where,
        dtype,
        params=(("k", k),),
        result=Result("values"),
        rank=Rank("largest" if top else "smallest", k=k),
    )


@card(MAX_LIKE, "up to k items, sorted", example="3", cost="O(k)", nan=LARGEST)
def top_k(column: Any = None, k: Any = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """List the k largest items, largest first. Partial: up to k items; a combine merges them in O(k).

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.top_k(2)); w.bulk_insert([3, 1, 4, 4]); w.query()
    [4, 4]
    """
    column, k = column_and(column, k)
    return _ranked("top_k", positive(k, "k", "top_k"), True, column, where, dtype)


@card(MAX_LIKE, "up to k items, sorted", example="3", cost="O(k)", nan=LARGEST)
def bottom_k(column: Any = None, k: Any = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """List the k smallest items, smallest first. Partial: up to k items; a combine merges them in O(k).

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.bottom_k(2)); w.bulk_insert([3, 1, 4]); w.query()
    [1, 3]
    """
    column, k = column_and(column, k)
    return _ranked("bottom_k", positive(k, "k", "bottom_k"), False, column, where, dtype)


class Point(NamedTuple):
    """An item and its time."""

    time: Any
    value: Any


class M4(NamedTuple):
    """The result of ``m4``: what a line chart needs to draw one column of pixels."""

    first: Point
    min: Point
    max: Point
    last: Point


Corners = tuple[tuple[Any, Any], tuple[Any, Any], tuple[Any, Any], tuple[Any, Any]]


def _less(a: Any, b: Any) -> bool:
    return bool(a < b) or (b != b and a == a)


def _lift_corners(x: Any, t: Any) -> Corners:
    point = (t, plain(x))
    return (point, point, point, point)


def _combine_corners(a: Corners | None, b: Corners | None) -> Corners | None:
    if a is None or b is None:
        return b if a is None else a
    low = b[1] if _less(b[1][1], a[1][1]) else a[1]
    high = b[2] if _less(a[2][1], b[2][1]) else a[2]
    return (a[0], low, high, b[3])


@card(MAX_LIKE, "4 items and their times", nan=LARGEST)
def m4(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the first, least, greatest and last item, each with its time: M4 of Jugel et al. Ties go to the oldest.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.m4()); w.bulk_insert([3, 1, 4, 2], times=[10, 20, 30, 40])
    >>> w.query().max, w.query().last
    (Point(time=30, value=4), Point(time=40, value=2))
    """

    def lower(p: Corners | None) -> M4 | None:
        return None if p is None else M4(*(Point(*corner) for corner in p))

    return Aggregation("m4", None, _lift_corners, _combine_corners, lower, None, Traits(), column, where, dtype, reads_time=True)
