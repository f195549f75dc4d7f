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

from sash import agg, codec
from sash.agg import Aggregation
from sash.agg.sketches import sketch_of

__all__ = ["tile_aggregation", "tile_partial"]

_PLAIN = ("count", "sum", "min", "max", "first", "last", "bit_and", "bit_or")


def tile_aggregation(aggregation: Aggregation) -> Aggregation:
    """What to compute so that the result is the partial of an aggregation.

    >>> tile_aggregation(agg.mean("fare"))
    agg.struct(sum=agg.sum('fare'), count=agg.count('fare'))
    """
    a = aggregation
    if a.parts:
        return agg.struct(**{name: tile_aggregation(part) for name, part in a.parts})
    if a.name in _PLAIN and not a.callables:
        return a
    common: dict[str, Any] = {"where": a.where, "dtype": a.dtype}
    if a.name == "mean" and not a.callables:
        return agg.struct(sum=agg.sum(a.column, **common), count=agg.count(a.column, **common))
    if a.name in ("minmax", "relvar") and not a.callables:
        return agg.minmax(a.column, **common)

    sketch = sketch_of(a)

    def lift(x: Any, time: Any) -> Any:
        return a.lift_function(x, time)

    return agg.define(
        lift=lift,
        combine=lambda older, newer: a.combine_function(older, newer),
        lower=sketch.store if sketch else codec.encode,
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
    if a.name in _PLAIN and not a.callables:
        return a.identity() if value is None else value
    if a.name == "mean" and not a.callables:
        return (0 if value["sum"] is None else value["sum"], value["count"])
    if a.name in ("minmax", "relvar") and not a.callables:
        return None if value is None or value["min"] is None else (value["min"], value["max"])
    return bytes(value) if sketch_of(a) else codec.decode(bytes(value))
