"""Aggregations to which the order of the items is all that counts: first last collect concat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.agg.base import Aggregation, ItemType, Native, Traits
from sash.agg.card import AN_ITEM, ORDERED, card
from sash.agg.forms import Result, Tile

__all__ = ["collect", "concat", "first", "last"]

Where = Callable[[Any], bool] | str | None


def _lift(x: Any, t: Any) -> Any:
    return int(x) if isinstance(x, bool) else x


def _end(name: str, combine: Callable[[Any, Any], Any], column: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    def native(item_type: ItemType) -> Native | None:
        return None if item_type == "object" else Native(name, (), ("value",), None)

    return Aggregation(
        name,
        None,
        _lift,
        combine,
        lambda p: p,
        None,
        Traits(selective=True),
        column,
        where,
        dtype,
        natives=native,
        ties=True,
        result=Result("value"),
        tile=Tile("value"),
    )


@card(ORDERED, "1 item", nan=AN_ITEM)
def first(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the oldest item that is not null.

    >>> from sash import slide, agg
    >>> slide([7, 8, 9], agg=agg.first(), size=2)
    array([7, 7, 8])
    """
    return _end("first", lambda a, b: b if a is None else a, column, where, dtype)


@card(ORDERED, "1 item", nan=AN_ITEM)
def last(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the youngest item that is not null.

    >>> from sash import slide, agg
    >>> slide([7, 8, 9], agg=agg.last(), size=2)
    array([7, 8, 9])
    """
    return _end("last", lambda a, b: a if b is None else b, column, where, dtype)


@card(ORDERED, "all items", cost="O(n)", nan=AN_ITEM)
def collect(column: str | None = None, *, where: Where = None) -> Aggregation:
    """List the items, oldest first. A combine copies both lists: O(n).

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.collect()); w.bulk_insert(["a", "b", None, "c"]); w.evict(); w.query()
    ['b', 'c']
    """
    traits = Traits(size_preserving=False)
    kind = Result("values")
    return Aggregation("collect", (), lambda x, t: (x,), lambda a, b: a + b, list, None, traits, column, where, "object", result=kind)


@card(ORDERED, "all text", cost="O(n)", nan="is refused")
def concat(column: str | None = None, *, sep: str = "", where: Where = None) -> Aggregation:
    """Join text items, oldest first.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.concat(sep="-")); w.bulk_insert(["a", "b"]); w.query()
    'a-b'
    """

    def lift(x: Any, t: Any) -> str:
        if not isinstance(x, str):
            raise TypeError(f"{x!r} is not text. concat joins str items; use collect for others.")
        return x

    def combine(a: str | None, b: str | None) -> str | None:
        return b if a is None else a if b is None else a + sep + b

    params = (("sep", sep),) if sep else ()
    traits = Traits(size_preserving=False)
    kind = Result("text")
    return Aggregation("concat", None, lift, combine, lambda p: p, None, traits, column, where, "object", params=params, result=kind)
