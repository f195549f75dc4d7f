"""Partials as columns that other engines can read, and merge: what a tile holds of each aggregation.

count sum min max first last bit_and bit_or     their value: merge by the same aggregation (count by sum)
mean                                            struct(sum, count)
minmax relvar                                   struct(min, max)
approx_distinct                                 a DataSketches HLL sketch: merge by Spark's hll_union_agg, or here
approx_quantile                                 a DataSketches KLL sketch of doubles: merge by Spark's kll_merge_agg_double, or here
all others                                      the partial in bytes: read it with tile_partial()
"""

from __future__ import annotations

from typing import Any

from sash import agg
from sash.agg import Aggregation

__all__ = ["tile_aggregation", "tile_partial"]


def tile_aggregation(aggregation: Aggregation) -> Aggregation:
    """What to compute so that the result is the partial of an aggregation.

    >>> tile_aggregation(agg.mean("fare"))
    agg.struct(sum=agg.sum('fare'), count=agg.count('fare'))
    """
    a = aggregation
    if a.parts:
        return agg.struct(**{name: tile_aggregation(part) for name, part in a.parts})
    if a.tile is not None:
        made: Aggregation = a if a.tile.of is None else a.tile.of(a)
        return made

    def lift(x: Any, time: Any) -> Any:
        return a.lift_function(x, time)

    return agg.define(
        lift=lift,
        combine=lambda older, newer: a.combine_function(older, newer),
        lower=a.blob.write,
        identity=a.identity(),
        commutative=a.commutative,
        name=f"tile of {a!r}" if a.named else None,
        column=a.column,
        where=a.where,
    )


def tile_partial(aggregation: Aggregation, value: Any) -> Any:
    """Give the partial that a tile's value stands for; combine and lower take it from there.

    >>> mean = agg.mean("fare")
    >>> tile_partial(mean, {"sum": 9, "count": 2})
    (9, 2)
    """
    a = aggregation
    if a.parts:
        return tuple(tile_partial(part, value[name]) for name, part in a.parts)
    if a.tile is None:
        return a.blob.read(bytes(value))
    if a.tile.join is None:
        return a.identity() if value is None else value
    return a.tile.join(*(None if value is None else value[name] for name in a.tile.fields))
