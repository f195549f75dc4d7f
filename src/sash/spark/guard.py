"""Rows from the future: refused before they move the watermark, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from sash.spark.definition import Definition
from sash.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def guarded(df: DataFrame, definition: Definition, settings: Settings) -> DataFrame:
    """Leave out rows whose time is more than max_ahead ahead of the clock, or of the arrival column."""
    ahead = definition.max_ahead
    if ahead is None:
        return df
    time = F.col(quoted(definition.query.time))
    now = _now(df.schema[definition.query.time].dataType) if ahead.column is None else F.col(quoted(ahead.column))
    limit = now + F.expr(f"interval {ahead.period} microseconds")
    too_far = F.coalesce(time > limit, F.lit(False))
    return df.observe(settings.metric("ahead"), F.count_if(too_far).alias("ahead")).filter(~too_far)


def _now(kind: T.DataType) -> Column:
    """The clock when the micro-batch began: Spark notes it with the batch, so that a batch that is run again has the same."""
    if isinstance(kind, T.TimestampNTZType):  # a time without a zone means UTC
        return F.expr("convert_timezone(current_timezone(), 'UTC', localtimestamp())")
    return F.current_timestamp()


def quoted(name: str) -> str:
    """A column's name as Spark's parser takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
