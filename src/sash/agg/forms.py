"""What other rooms ask of an aggregation, in plain words: none of them decides by its name.

A factory states these facts where it defines the aggregation. The engine turns a ``Result`` into an Arrow type, a tile store
turns a ``Tile`` into columns, Spark makes slices of what has a ``Sql`` form, and algorithms that keep items sorted read ``Rank``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from sash import codec

__all__ = ["CODEC", "PICKING", "Blob", "Rank", "Result", "Sql", "Tile"]


class Result(NamedTuple):
    """Of which type a result is, said of the item type."""

    # integer, real, truth, text: always that. time: a time of the items. value: as an item. values: a list of items.
    # sum: as an item, wide enough for a sum. fields: a named tuple.
    kind: Literal["integer", "real", "truth", "text", "time", "value", "values", "sum", "fields"]
    column: str | None = None  # the column that a value is of, where it is not the aggregation's own
    fields: tuple[tuple[str, Result], ...] = ()


# The rules of agg.quantile that give one of the items; the others interpolate.
PICKING: Final = frozenset({"lower", "higher", "nearest", "floor", "inverted_cdf", "closest_observation"})


class Rank(NamedTuple):
    """What of the sorted items is the result, for structures that keep numbers sorted."""

    find: Literal["quantile", "ith_smallest", "distinct", "largest", "smallest"]
    q: float = 0.5  # quantile: the fraction
    rule: str = "linear"  # quantile: how to pick or interpolate, by its name in sash.agg.ranks.INTERPOLATIONS
    k: int = 1  # ith_smallest: which one; largest and smallest: how many

    @property
    def lists(self) -> bool:
        """Whether the result is a list of items, not one number."""
        return self.find in ("largest", "smallest")

    @property
    def integral(self) -> bool:
        """Whether the result is a number of items."""
        return self.find == "distinct"

    @property
    def picks(self) -> bool:
        """Whether the result is one of the items wherever there is one."""
        return self.rule in PICKING if self.find == "quantile" else self.find == "ith_smallest" and self.k == 1


class Tile(NamedTuple):
    """How the columns of a tile hold a partial, so that other engines can read and merge it."""

    form: Literal["value", "count", "mean", "both"]  # how the core makes a partial of the columns
    fields: tuple[str, ...] = ()  # the names of several columns; () for one
    of: Callable[[Any], Any] | None = None  # makes the aggregation whose result the columns are; None: the aggregation itself
    join: Callable[..., Any] | None = None  # makes a partial of one value per column; None: it is the value, and null the identity


class Blob(NamedTuple):
    """How a tile holds a partial as bytes, for what has no columns."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


CODEC: Final = Blob(codec.encode, codec.decode)


class Sql(NamedTuple):
    """How SQL makes slices that give exactly our results."""

    parts: tuple[tuple[str, str], ...]  # per column of a slice: the function that makes it, the aggregation that joins slices
    items: Literal["any", "ordered", "numbers"]  # of which columns: any; what min and max order as we do; what sums up as here
    ratio: bool = False  # the result is the first column over the second, not the only one
