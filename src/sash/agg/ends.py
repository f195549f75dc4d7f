"""The ends of the window, in time order: first_k last_k ith_youngest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.agg.arguments import Where, column_and, plain, positive
from sash.agg.base import Aggregation, ItemType, Traits
from sash.agg.card import AN_ITEM, ORDERED, card
from sash.agg.forms import Result

__all__ = ["first_k", "ith_youngest", "last_k"]

Items = tuple[Any, ...]
Combine = Callable[[Items, Items], Items]


def _lift(x: Any, t: Any) -> Items:
    return (plain(x),)


def _keep_first(k: int) -> Combine:
    def combine(a: Items, b: Items) -> Items:
        return a if len(a) == k or not b else a + b[: k - len(a)]

    return combine


def _keep_last(k: int) -> Combine:
    def combine(a: Items, b: Items) -> Items:
        return b if len(b) == k or not a else a[len(a) + len(b) - k :] + b if len(a) + len(b) > k else a + b

    return combine


def _ends(name: str, k: int, combine: Combine, column: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    traits = Traits(size_preserving=False)
    return Aggregation(name, (), _lift, combine, list, None, traits, column, where, dtype, params=(("k", k),), result=Result("values"))


@card(ORDERED, "up to k items", example="3", cost="O(k)", nan=AN_ITEM)
def first_k(column: Any = None, k: Any = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """List the k oldest items, oldest first. Partial: up to k items; a combine copies them.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.first_k(2)); w.bulk_insert(["a", None, "b", "c"]); w.query()
    ['a', 'b']
    """
    column, k = column_and(column, k)
    k = positive(k, "k", "first_k")
    return _ends("first_k", k, _keep_first(k), column, where, dtype)


@card(ORDERED, "up to k items", example="3", cost="O(k)", nan=AN_ITEM)
def last_k(column: Any = None, k: Any = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """List the k youngest items, oldest first. Partial: up to k items; a combine copies them.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.last_k(2)); w.bulk_insert(["a", "b", "c"]); w.query()
    ['b', 'c']
    """
    column, k = column_and(column, k)
    k = positive(k, "k", "last_k")
    return _ends("last_k", k, _keep_last(k), column, where, dtype)


@card(ORDERED, "up to i items", example="2", cost="O(i)", nan=AN_ITEM)
def ith_youngest(column: Any = None, i: Any = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the i-th youngest item, counted from 1; None where there are fewer. ``arg`` asks for another one, up to i.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.ith_youngest(2)); w.bulk_insert(["a", "b", "c"])
    >>> w.query(), w.query(arg=1)
    ('b', 'c')
    """
    column, i = column_and(column, i)
    i = positive(i, "i", "ith_youngest")

    def lower(p: Items, arg: Any = None) -> Any:
        place = i if arg is None else positive(arg, "arg", "ith_youngest")
        if place > i:
            raise ValueError(f"arg={place} is not kept: ith_youngest({i}) keeps the {i} youngest items. Define it with i={place}.")
        return p[-place] if place <= len(p) else None

    traits = Traits(size_preserving=False, parametric=True)
    kind, params = Result("value"), (("i", i),)
    return Aggregation("ith_youngest", (), _lift, _keep_last(i), lower, None, traits, column, where, dtype, params=params, result=kind)
