"""Partials that add up: count sum mean geomean product any all bit_and bit_or."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from sash.agg.base import Aggregation, ItemType, Native, Traits, fits_int64
from sash.agg.card import AN_ITEM, SUM_LIKE, card
from sash.agg.custom import struct
from sash.agg.exact import exact_sum
from sash.agg.forms import Result, Sql, Tile

__all__ = ["all", "any", "bit_and", "bit_or", "count", "geomean", "mean", "product", "sum"]

Where = Callable[[Any], bool] | str | None
_SUM_LIKE = Traits(commutative=True)


def _number(x: Any) -> Any:
    return int(x) if isinstance(x, bool) else x


def _kernel(kernel: str, lower: str, int_only: bool = False) -> Callable[[ItemType], Native | None]:
    def native(item_type: ItemType) -> Native | None:
        if item_type == "object" and kernel != "count":
            return None
        if int_only and item_type != "int64":
            return None
        return Native(kernel, (), (lower,), None)

    return native


def _add_pairs(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(operator.add, a, b))


def _subtract_pairs(whole: tuple[Any, ...], oldest: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(operator.sub, whole, oldest))


@card(SUM_LIKE, "1 integer", nan=AN_ITEM)
def count(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Count the items that are not null.

    >>> from sash import slide, agg
    >>> slide([7, 8, 9], agg=agg.count(), size=2)
    array([1, 2, 2])
    """
    return Aggregation(
        "count",
        0,
        lambda x, t: 1,
        operator.add,
        lambda p: p,
        operator.sub,
        _SUM_LIKE,
        column,
        where,
        dtype,
        natives=_kernel("count", "count"),
        exact_inverse=True,
        counts=True,
        result=Result("integer"),
        tile=Tile("count"),
        sql=Sql((("count", "sum"),), "any"),
    )


@card(SUM_LIKE, "1 number; 128 bits for integers")
def sum(column: str | None = None, *, exact: bool = False, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Add the items up; integers exactly, with OverflowError where the result does not fit int64.

    >>> from sash import slide, agg
    >>> slide([3, 1, 4], agg=agg.sum(), times=[0, 60, 90], period=60)   # (t - 60, t]
    array([3, 1, 5])

    With ``exact=True`` floats are added without rounding, and the sum is rounded once, as by ``math.fsum``: the same bits in any
    order. Cost: 304 bytes per partial instead of 8.

    >>> slide([1e16, 1.0, -1e16], agg=agg.sum(), size=3)[-1], slide([1e16, 1.0, -1e16], agg=agg.sum(exact=True), size=3)[-1]
    (np.float64(0.0), np.float64(1.0))
    """
    if exact:
        return exact_sum("sum", column, where, dtype)
    return Aggregation(
        "sum",
        0,
        lambda x, t: _number(x),
        operator.add,
        fits_int64,
        operator.sub,
        _SUM_LIKE,
        column,
        where,
        dtype,
        natives=_kernel("sum", "sum"),
        in_slices=_kernel("mean", "sum_or_none"),  # a sum that counts its items, so that the sum of none is null
        exact_inverse=True,
        null_in_frames=True,
        result=Result("sum"),
        tile=Tile("value"),
        sql=Sql((("sum", "sum"),), "numbers"),
    )


def _sum_and_count(a: Aggregation) -> Aggregation:
    return struct(sum=sum(a.column, where=a.where, dtype=a.dtype), count=count(a.column, where=a.where, dtype=a.dtype))


def _join_mean(total: Any, n: Any) -> tuple[Any, int]:
    return (0 if total is None else total, n or 0)


@card(SUM_LIKE, "sum and count")
def mean(column: str | None = None, *, exact: bool = False, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Average the items; a float, also of integers.

    >>> from sash import slide, agg
    >>> slide([1, 2, 4], agg=agg.mean(), size=2)
    array([1. , 1.5, 3. ])

    With ``exact=True`` it is the exact sum, rounded once, over the count: the same bits in any order.
    """
    if exact:
        return exact_sum("mean", column, where, dtype)
    return Aggregation(
        "mean",
        (0, 0),
        lambda x, t: (_number(x), 1),
        _add_pairs,
        lambda p: p[0] / p[1] if p[1] else None,
        _subtract_pairs,
        _SUM_LIKE,
        column,
        where,
        dtype,
        natives=_kernel("mean", "mean"),
        exact_inverse=True,
        result=Result("real"),
        tile=Tile("mean", ("sum", "count"), _sum_and_count, _join_mean),
        sql=Sql((("sum", "sum"), ("count", "sum")), "numbers", ratio=True),
    )


def _lift_geomean(x: Any, t: Any) -> tuple[float, int, int, int]:
    # Zeros and negatives are counted apart, so that they leave again with their items.
    if x == 0:
        return (0.0, 1, 1, 0)
    if x < 0:
        return (0.0, 1, 0, 1)
    return (math.log(x), 1, 0, 0)


def _lower_geomean(p: tuple[float, int, int, int]) -> float | None:
    logs, n, zeros, negatives = p
    if n == 0:
        return None
    if negatives:
        return math.nan
    if zeros:  # 0 among finite items; among NaN or infinite ones it is NaN, as in 0 * inf
        return 0.0 if math.isfinite(logs) else math.nan
    return math.exp(logs / n)


@card(SUM_LIKE, "sum of logarithms, counts of items, zeros and negatives")
def geomean(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the geometric mean: 0 while a zero is in the window, NaN while a negative is.

    >>> from sash import slide, agg
    >>> slide([1, 4, 16], agg=agg.geomean(), size=2).round(9)
    array([1., 2., 8.])
    """
    return Aggregation(
        "geomean",
        (0.0, 0, 0, 0),
        _lift_geomean,
        _add_pairs,
        _lower_geomean,
        _subtract_pairs,
        _SUM_LIKE,
        column,
        where,
        dtype,
        natives=_kernel("geomean", "geomean"),
        result=Result("real"),
    )


_INFINITY = 1 << 40  # infinite items are counted in the upper bits of the number of zeros, as in core/monoids/product.hpp


def _lift_product(x: Any, t: Any) -> tuple[float, int, int]:
    return (1.0, 1, 1) if x == 0 else (float(x), _INFINITY if math.isinf(x) else 0, 1)


def _lower_product(p: tuple[float, int, int]) -> float | None:
    product, zeros, n = p
    if n == 0:
        return None
    if zeros % _INFINITY:
        return math.nan if zeros >= _INFINITY or math.isnan(product) else 0.0
    return product


def _combine_product(a: tuple[float, int, int], b: tuple[float, int, int]) -> tuple[float, int, int]:
    return (a[0] * b[0], a[1] + b[1], a[2] + b[2])


def _inverse_product(whole: tuple[float, int, int], oldest: tuple[float, int, int]) -> tuple[float, int, int]:
    return (whole[0] / oldest[0], whole[1] - oldest[1], whole[2] - oldest[2])


@card(SUM_LIKE, "product of the non-zeros, counts of zeros and items")
def product(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Multiply the items, as float64; zeros are counted apart, so that they leave again.

    >>> from sash import slide, agg
    >>> slide([2, 0, 5, 3], agg=agg.product(), size=2)
    array([ 2.,  0.,  0., 15.])
    """
    return Aggregation(
        "product",
        (1.0, 0, 0),
        _lift_product,
        _combine_product,
        _lower_product,
        _inverse_product,
        _SUM_LIKE,
        column,
        where,
        dtype,
        natives=_kernel("product", "product"),
        result=Result("real"),
    )


def _truth(
    name: str, lower: Callable[[tuple[int, int]], bool | None], column: str | None, where: Where, dtype: ItemType | None
) -> Aggregation:
    return Aggregation(
        name,
        (0, 0),
        lambda x, t: (1 if x else 0, 1),
        _add_pairs,
        lower,
        _subtract_pairs,
        _SUM_LIKE,
        column,
        where,
        dtype,
        natives=_kernel("truth", name),
        exact_inverse=True,
        counts=True,
        result=Result("truth"),
    )


@card(SUM_LIKE, "counts of true items and of all", nan="is true")
def any(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Tell whether some item is true.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.any()); w.bulk_insert([0, 1, 0]); w.query()
    True
    """
    return _truth("any", lambda p: p[0] > 0 if p[1] else None, column, where, dtype)


@card(SUM_LIKE, "counts of true items and of all", nan="is true")
def all(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Tell whether every item is true.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.all()); w.bulk_insert([0, 1, 0]); w.query()
    False
    """
    return _truth("all", lambda p: p[0] == p[1] if p[1] else None, column, where, dtype)


def _whole(x: Any, t: Any) -> int:
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(f"{x!r} has no bits. bit_and and bit_or take integers.") from None


def _bits(name: str, operation: Callable[[int, int], int], column: str | None, where: Where) -> Aggregation:
    def combine(a: int | None, b: int | None) -> int | None:
        return b if a is None else a if b is None else operation(a, b)

    return Aggregation(
        name,
        None,
        _whole,
        combine,
        fits_int64,
        None,
        _SUM_LIKE,
        column,
        where,
        "int64",
        natives=_kernel(name, "bits", int_only=True),
        result=Result("integer"),
        tile=Tile("value"),
    )


@card(SUM_LIKE, "1 integer", nan="is refused")
def bit_and(column: str | None = None, *, where: Where = None) -> Aggregation:
    """Keep the bits that are set in every item.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.bit_and()); w.bulk_insert([7, 6, 14]); w.query()
    6
    """
    return _bits("bit_and", operator.and_, column, where)


@card(SUM_LIKE, "1 integer", nan="is refused")
def bit_or(column: str | None = None, *, where: Where = None) -> Aggregation:
    """Keep the bits that are set in some item.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.bit_or()); w.bulk_insert([1, 4]); w.query()
    5
    """
    return _bits("bit_or", operator.or_, column, where)
