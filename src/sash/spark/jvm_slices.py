"""Batch windows over slices that Spark makes itself: rows need not leave the JVM where it can sum them up as well as we can.

    rows --groupBy(key, pane): count, sum, min, max--> slices --windows over the slices--> results --mean = sum / count--> rows

100 keys, an hour by a minute, 3.2 million rows: 0.45 s, where the rows sliced in the core took 1.5 s, 0.8 s of it on the way
there. With 2 rows in a slice it is 1.5 s against 1.2 s; there are then as many windows to write as there are slices. In a
stream it would cost a second stateful operator, and lateness would be judged by slice.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from sash import agg
from sash.agg import Aggregation
from sash.engine import CalendarWindows, Query, Windows
from sash.spark.guard import quoted
from sash.spark.times import from_micros, is_shifted, micros
from sash.spark.types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEYS = (T.BooleanType, T.IntegralType, T.DateType, T.TimestampType, T.TimestampNTZType, T.BinaryType, T.DecimalType)
_SUMMED = (T.IntegralType, T.FloatType, T.DoubleType)
_ORDERED = (T.BooleanType, T.IntegralType, T.FractionalType, T.DateType, T.TimestampType, T.TimestampNTZType)


@dataclasses.dataclass(frozen=True)
class JvmSlices:
    """The slices, the query over them, and the columns of its results as the user named them."""

    rows: DataFrame
    query: Query
    results: list[Column]


def jvm_slices(df: DataFrame, query: Query) -> JvmSlices | str:
    """Plan the slices in Spark, or say why not."""
    if reason := _reason(df, query):
        return reason
    assert isinstance(query.windows, Windows)
    at = micros(query.time)
    start = at - F.pmod(at - query.windows.offset, F.lit(query.windows.grain))
    slices: list[Column] = []
    over: dict[str, Aggregation] = {}
    results: dict[str, Column] = {}
    for i, (name, a) in enumerate(query.aggs):
        parts = _parts(a, f"__sash_{i}")
        slices += [column.alias(part) for part, (column, _) in parts.items()]
        over |= {part: aggregation for part, (_, aggregation) in parts.items()}
        assert a.sql is not None
        for label in [f"_{label}" for label, _ in query.windows.ranges] or [""]:
            columns = [F.col(quoted(f"{part}{label}")) for part in parts]
            lowered = F.try_divide(*(c.cast("double") for c in columns)) if a.sql.ratio else columns[0]
            if a.empty is not None and not a.null_in_frames:  # slices are summed up, and the sum of none of them is null
                lowered = F.coalesce(lowered, F.lit(a.empty))
            results[f"{name}{label}"] = lowered
    keys = [F.col(quoted(name)) for name in query.keys]
    pane = from_micros(start, df.schema[query.time].dataType).alias(query.time)
    rows = df.filter(F.col(quoted(query.time)).isNotNull()).groupBy(*keys, pane).agg(*slices)
    inner = dataclasses.replace(query, schema=arrow_schema(rows.schema), aggs=tuple(over.items()), tie=None)
    named = [results[name].alias(name) if name in results else F.col(quoted(name)) for name in query.output_schema().names]
    return JvmSlices(rows, inner, named)


def _parts(a: Aggregation, name: str) -> dict[str, tuple[Column, Aggregation]]:
    """What a slice holds for an aggregation, and how slices are put together."""
    column = F.lit(1) if a.column is None else F.col(quoted(a.column))
    if isinstance(a.where, str):
        column = F.when(F.col(quoted(a.where)), column)
    assert a.sql is not None
    names = [name, f"{name}_n"]
    return {
        part: (getattr(F, function)(column), getattr(agg, joined)(part))
        for part, (function, joined) in zip(names, a.sql.parts, strict=False)
    }


def _reason(df: DataFrame, query: Query) -> str:
    """Why slices in Spark could give other results than the core's, or none; "" if they can't."""
    if not isinstance(query.windows, Windows):
        return "sessions have no slices"
    if isinstance(query.windows, CalendarWindows):
        return "days, weeks and months of a time zone are slices of different lengths"
    if is_shifted(df, query.time):
        return "a time without a zone, and the session's is not UTC"
    for name in query.keys:
        kind = df.schema[name].dataType
        if not isinstance(kind, _KEYS) and kind != T.StringType():
            return f"the key {name!r} is a {kind.simpleString()}, which Spark groups by rules of its own"
    ansi = df.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
    for name, a in query.aggs:
        kind = None if a.column is None else df.schema[a.column].dataType
        if isinstance(a.where, str) and not isinstance(df.schema[a.where].dataType, T.BooleanType):
            return f"where={a.where!r} of {name!r} is no column of truth values"
        if a.parts or a.callables or callable(a.where) or a.dtype is not None:
            return f"{name!r} is more than one of Spark's functions"
        if a.sql is None or not (a.sql.items == "any" or isinstance(kind, _ORDERED if a.sql.items == "ordered" else _SUMMED)):
            return f"{name!r} needs more of a slice than count, sum, min and max of numbers and times"
        if isinstance(kind, T.LongType) and a.sql.items == "numbers" and (a.sql.ratio or not ansi):
            return f"the sum of {a.column!r} in a slice may not fit a bigint"
    return ""
