"""Aggregations that need the items in order of size: median quantile ith_smallest distinct.

The partial is every item, sorted, so that they work in any window, at O(n) a combine; ``swag.OrderStatistics`` and
``slide()`` have structures of their own for numbers. NaN is larger than any number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from sash.agg.arguments import Where, column_and, plain, positive
from sash.agg.base import Aggregation, ItemType, Traits
from sash.agg.card import LARGEST, MEDIAN_LIKE, card
from sash.agg.forms import PICKING, Rank, Result
from sash.agg.largest import Sorted, lift_ordered, merge_ordered

__all__ = ["distinct", "ith_smallest", "median", "quantile"]

# Where in n sorted items, from 0, the quantile q lies, for NumPy's continuous methods. "floor" is the tutorial's rule.
_VIRTUAL: Final[dict[str, Callable[[int, float], float]]] = {
    "linear": lambda n, q: (n - 1) * q,
    "lower": lambda n, q: math.floor((n - 1) * q),
    "higher": lambda n, q: math.ceil((n - 1) * q),
    "midpoint": lambda n, q: (math.floor((n - 1) * q) + math.ceil((n - 1) * q)) / 2,
    "nearest": lambda n, q: round((n - 1) * q),
    "floor": lambda n, q: math.floor(n * q),
    "inverted_cdf": lambda n, q: math.ceil(n * q - 1),
    "averaged_inverted_cdf": lambda n, q: n * q - 1 if (n * q - 1) % 1 == 0 else float(math.ceil(n * q - 1)),
    "closest_observation": lambda n, q: _closest(n * q - 1.5),
    "interpolated_inverted_cdf": lambda n, q: n * q - 1,
    "hazen": lambda n, q: n * q - 0.5,
    "weibull": lambda n, q: (n + 1) * q - 1,
    "median_unbiased": lambda n, q: n * q + (1 / 3 + q * (1 / 3)) - 1,
    "normal_unbiased": lambda n, q: n * q + (3 / 8 + q * (1 / 4)) - 1,
}
INTERPOLATIONS: Final = tuple(_VIRTUAL)


def _closest(v: float) -> int:
    low = math.floor(v)
    return low if v == low and low % 2 == 1 else low + 1


def place(interpolation: str, n: int, q: float) -> tuple[int, float]:
    """Say which of n sorted items the quantile is: (i, g) is between items i and i + 1, the part g of the way.

    >>> place("linear", 4, 0.5), place("floor", 4, 0.5)
    ((1, 0.5), (2, 0.0))
    """
    v = _VIRTUAL[interpolation](n, q)
    if interpolation == "averaged_inverted_cdf" and v == n * q - 1 and 0 <= v < n - 1:
        return int(v), 0.5
    low = math.floor(v)
    if low < 0:
        return 0, 0.0
    if low >= n - 1:
        return n - 1, 0.0
    return low, float(v - low)


def _combine(a: Sorted, b: Sorted) -> Sorted:
    if not a[0] and not a[1]:
        return b
    if not b[0] and not b[1]:
        return a
    return (tuple(merge_ordered(a[0], b[0])), a[1] + b[1])


def _select(p: Sorted, i: int) -> Any:
    return p[0][i] if i < len(p[0]) else math.nan


def _between(a: Any, b: Any, g: float) -> Any:
    if isinstance(a, int):
        a = float(a)
    if g == 0 or a == b:
        return a
    try:
        step = b - a
        if isinstance(step, float) and math.isinf(step):
            return a * (1 - g) + b * g
        return a + step * g if g < 0.5 else b - step * (1 - g)
    except TypeError:
        raise TypeError(
            f"there is nothing between {a!r} and {b!r} to interpolate. "
            "Use a rule that picks an item: interpolation='lower', 'higher' or 'nearest'."
        ) from None


def _fraction(q: Any, name: str, factory: str) -> float:
    if q is None:
        raise TypeError(f"{factory} needs q. Pass a fraction, e.g. {factory}(0.9).")
    if isinstance(q, bool) or not isinstance(plain(q), int | float) or not 0 <= q <= 1:
        raise ValueError(f"{name}={q!r} is not a quantile. {factory} takes a fraction from 0 to 1, e.g. 0.95 for the 95th percentile.")
    return float(q)


def _quantile(
    name: str, q: float, interpolation: str, column: str | None, where: Where, dtype: ItemType | None, params: Any
) -> Aggregation:
    def lower(p: Sorted, arg: Any = None) -> Any:
        wanted = q if arg is None else _fraction(arg, "arg", name)
        n = len(p[0]) + p[1]
        if n == 0:
            return None
        i, g = place(interpolation, n, wanted)
        if interpolation in PICKING:
            return _select(p, i)
        return _between(_select(p, i), _select(p, i + 1) if g else None, g)

    traits = Traits(commutative=True, size_preserving=False, parametric=True)
    return Aggregation(
        name,
        ((), 0),
        lift_ordered,
        _combine,
        lower,
        None,
        traits,
        column,
        where,
        dtype,
        params=params,
        result=Result("real"),
        rank=Rank("quantile", q, interpolation),
    )


@card(MEDIAN_LIKE, "all items, sorted", cost="O(n)", nan=LARGEST)
def median(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the middle item, or the mean of the two in the middle; ``arg`` asks for another quantile.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.median()); w.bulk_insert([5, 1, 2, 8]); w.query()
    3.5
    """
    return _quantile("median", 0.5, "linear", column, where, dtype, ())


@card(MEDIAN_LIKE, "all items, sorted", example="0.9", cost="O(n)", nan=LARGEST)
def quantile(
    column: Any = None, q: Any = None, *, interpolation: str = "linear", where: Where = None, dtype: ItemType | None = None
) -> Aggregation:
    """Give the quantile q, by NumPy's rules and names, or by ``"floor"``: the item with floor(n q) smaller ones.

    ``arg`` asks for another q. Rules that pick an item give it as it is; rules that interpolate give floats.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.quantile(0.9)); w.bulk_insert([10, 20, 30])
    >>> w.query(), w.query(arg=0.5)
    (28.0, 20.0)
    """
    column, q = column_and(column, q)
    q = _fraction(q, "q", "quantile")
    if interpolation not in _VIRTUAL:
        raise ValueError(f"interpolation={interpolation!r} is not known. Use one of: {', '.join(INTERPOLATIONS)}.")
    return _quantile("quantile", q, interpolation, column, where, dtype, (("q", q), ("interpolation", interpolation)))


@card(MEDIAN_LIKE, "all items, sorted", example="2", cost="O(n)", nan=LARGEST)
def ith_smallest(column: Any = None, i: Any = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the i-th smallest item, counted from 1; None where there are fewer. ``arg`` asks for another i.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.ith_smallest(2)); w.bulk_insert([5, 1, 2])
    >>> w.query(), w.query(arg=3)
    (2, 5)
    """
    column, i = column_and(column, i)
    i = positive(i, "i", "ith_smallest")

    def lower(p: Sorted, arg: Any = None) -> Any:
        wanted = i if arg is None else positive(arg, "arg", "ith_smallest")
        return _select(p, wanted - 1) if wanted <= len(p[0]) + p[1] else None

    traits = Traits(commutative=True, size_preserving=False, parametric=True)
    return Aggregation(
        "ith_smallest",
        ((), 0),
        lift_ordered,
        _combine,
        lower,
        None,
        traits,
        column,
        where,
        dtype,
        params=(("i", i),),
        result=Result("value"),
        rank=Rank("ith_smallest", k=i),
    )


Different = tuple[frozenset[Any], bool]  # the items, and whether NaN is among them


def _lift_different(x: Any, t: Any) -> Different:
    x = plain(x)
    if x != x:
        return (frozenset(), True)
    try:
        return (frozenset((x,)), False)
    except TypeError:
        raise TypeError(f"{x!r} can't be hashed. distinct takes numbers, text, dates and tuples; turn a list into a tuple first.") from None


def _combine_different(a: Different, b: Different) -> Different:
    return (a[0] | b[0] if a[0] and b[0] else a[0] or b[0], a[1] or b[1])


@card(MEDIAN_LIKE, "the different items", cost="O(n)", nan="is one of the items")
def distinct(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Count the different items; NaN is one of them, and 1 is 1.0.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.distinct()); w.bulk_insert(["a", "b", "a", None]); w.query()
    2
    """
    traits = Traits(commutative=True, size_preserving=False)
    zero: Different = (frozenset(), False)
    return Aggregation(
        "distinct",
        zero,
        _lift_different,
        _combine_different,
        lambda p: len(p[0]) + p[1],
        None,
        traits,
        column,
        where,
        dtype,
        result=Result("integer"),
        rank=Rank("distinct"),
    )
