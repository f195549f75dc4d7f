"""Partials that keep the extremes: min max minmax relvar argmin argmax mincount maxcount.

NaN is larger than any number, as in Spark. Of equal values the oldest stays, in every algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sash.agg.base import Aggregation, ItemType, Native, Traits
from sash.agg.card import LARGEST, MAX_LIKE, card
from sash.agg.forms import Result, Sql, Tile

__all__ = ["argmax", "argmin", "max", "maxcount", "min", "mincount", "minmax", "relvar"]

Where = Callable[[Any], bool] | str | None
Before = Callable[[Any, Any], bool]


class MinMax(NamedTuple):
    """The result of ``minmax``."""

    min: Any
    max: Any


def _less(a: Any, b: Any) -> bool:
    return bool(a < b) or (b != b and a == a)


def _greater(a: Any, b: Any) -> bool:
    return _less(b, a)


def _lift(x: Any, t: Any) -> Any:
    return int(x) if isinstance(x, bool) else x


def _itself(p: Any) -> Any:
    return p


def _numeric(kernel: str, *lowers: str, result: type[tuple[Any, ...]] | None = None) -> Callable[[ItemType], Native | None]:
    def native(item_type: ItemType) -> Native | None:
        return None if item_type == "object" else Native(kernel, (), lowers, result)

    return native


def _keep(better: Before) -> Callable[[Any, Any], Any]:
    """Combine by keeping the younger only where it is strictly better."""

    def combine(a: Any, b: Any) -> Any:
        return b if a is None else a if b is None else b if better(b, a) else a

    return combine


def _extreme(name: str, better: Before, column: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    traits = Traits(commutative=True, selective=True)
    return Aggregation(
        name,
        None,
        _lift,
        _keep(better),
        _itself,
        None,
        traits,
        column,
        where,
        dtype,
        natives=_numeric(name, "value"),
        result=Result("value"),
        tile=Tile("value"),
        sql=Sql(((name, name),), "ordered"),
    )


@card(MAX_LIKE, "1 item", nan=LARGEST)
def min(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the least item; any items that have an order.

    >>> from sash import slide, agg
    >>> slide([3, 1, 4, 1, 5], agg=agg.min(), size=2)
    array([3, 1, 1, 1, 1])
    """
    return _extreme("min", _less, column, where, dtype)


@card(MAX_LIKE, "1 item", nan=LARGEST)
def max(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the greatest item; any items that have an order.

    >>> from sash import slide, agg
    >>> slide([3, 1, 4, 1, 5], agg=agg.max(), size=3)
    array([3, 3, 4, 4, 5])
    """
    return _extreme("max", _greater, column, where, dtype)


def _combine_minmax(a: tuple[Any, Any] | None, b: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
    if a is None or b is None:
        return b if a is None else a
    return (b[0] if _less(b[0], a[0]) else a[0], b[1] if _greater(b[1], a[1]) else a[1])


def _lowest_and_highest(a: Aggregation) -> Aggregation:
    return minmax(a.column, where=a.where, dtype=a.dtype)


def _join_minmax(low: Any, high: Any) -> tuple[Any, Any] | None:
    return None if low is None else (low, high)


@card(MAX_LIKE, "2 items", nan=LARGEST)
def minmax(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the least and the greatest item.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.minmax()); w.bulk_insert([3, -1, 4]); w.query()
    MinMax(min=-1, max=4)
    """
    return Aggregation(
        "minmax",
        None,
        lambda x, t: (_lift(x, t), _lift(x, t)),
        _combine_minmax,
        lambda p: None if p is None else MinMax(*p),
        None,
        Traits(commutative=True),
        column,
        where,
        dtype,
        natives=_numeric("minmax", "min", "max", result=MinMax),
        result=Result("fields", fields=(("min", Result("value")), ("max", Result("value")))),
        tile=Tile("both", ("min", "max"), _lowest_and_highest, _join_minmax),
    )


def _relative_variation(p: tuple[Any, Any] | None) -> float | None:
    if p is None:
        return None
    low, high = float(p[0]), float(p[1])
    if high == 0 or high != high:
        return math.nan if high == low or high != high else math.inf
    return (high - low) / high


@card(MAX_LIKE, "2 items", nan="gives NaN")
def relvar(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give (max - min) / max, the relative variation of DEBS 2012 query 2.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.relvar()); w.bulk_insert([2, 8, 4]); w.query()
    0.75
    """
    return minmax(column, where=where, dtype=dtype).replace(
        name="relvar", lower_function=_relative_variation, natives=_numeric("minmax", "relvar"), result=Result("real")
    )


def _arg(name: str, better: Before, column: str | None, of: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    def combine(a: Any, b: Any) -> Any:
        return b if a is None else a if b is None else b if better(b[0], a[0]) else a

    if of is None:
        return Aggregation(
            name,
            None,
            lambda x, t: (_lift(x, t), t),
            combine,
            lambda p: None if p is None else p[1],
            None,
            Traits(selective=True),
            column,
            where,
            dtype,
            natives=_numeric(name, "time"),
            reads_time=True,
            result=Result("time"),
        )

    # The whole record is the item: its column decides, another column is the answer.
    def lift(record: Any, t: Any) -> Any:
        if not isinstance(record, Mapping):
            raise TypeError(f"{record!r} is not a record. {name}(of={of!r}) takes records that have the columns {column!r} and {of!r}.")
        return None if record[column] is None else (record[column], record[of])

    return Aggregation(
        name,
        None,
        lift,
        combine,
        lambda p: None if p is None else p[1],
        None,
        Traits(selective=True),
        None,
        where,
        "object",
        params=(("by", column), ("of", of)),
        reads=("by", "of"),
        result=Result("value", column=of),
    )


@card(MAX_LIKE, "1 item and its time", nan=LARGEST)
def argmin(
    column: str | None = None, *, of: str | None = None, by: str | None = None, where: Where = None, dtype: ItemType | None = None
) -> Aggregation:
    """Give the time of the least item, or another column of that record with ``of=``; ties go to the oldest.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.argmin()); w.bulk_insert([3, 1, 1], times=[10, 20, 30]); w.query()
    20
    """
    return _arg("argmin", _less, column or by, of, where, dtype)


@card(MAX_LIKE, "1 item and its time", nan=LARGEST)
def argmax(
    column: str | None = None, *, of: str | None = None, by: str | None = None, where: Where = None, dtype: ItemType | None = None
) -> Aggregation:
    """Give the time of the greatest item, or another column of that record with ``of=``; ties go to the oldest.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.argmax("fare", of="driver"))
    >>> w.bulk_insert([{"fare": 3, "driver": "ann"}, {"fare": 9, "driver": "bob"}]); w.query()
    'bob'
    """
    return _arg("argmax", _greater, column or by, of, where, dtype)


def _counted(name: str, better: Before, column: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    def combine(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        if better(a[0], b[0]):
            return a
        if better(b[0], a[0]):
            return b
        return (a[0], a[1] + b[1])

    return Aggregation(
        name,
        None,
        lambda x, t: (_lift(x, t), 1),
        combine,
        lambda p: None if p is None else p[1],
        None,
        Traits(commutative=True),
        column,
        where,
        dtype,
        natives=_numeric(name, "count"),
        result=Result("integer"),
    )


@card(MAX_LIKE, "1 item and a count", nan=LARGEST)
def mincount(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Count how often the least item occurs.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.mincount()); w.bulk_insert([2, 1, 1]); w.query()
    2
    """
    return _counted("mincount", _less, column, where, dtype)


@card(MAX_LIKE, "1 item and a count", nan=LARGEST)
def maxcount(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Count how often the greatest item occurs: the papers' running example.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.maxcount()); w.bulk_insert([3, 4, 0, 4, 4]); w.query()
    3
    """
    return _counted("maxcount", _greater, column, where, dtype)
