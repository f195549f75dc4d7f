"""Arithmetic on time columns inside the JVM: as whole microseconds, which is what the core counts in."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from sash.spark.guard import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EPOCH = dt.datetime(1970, 1, 1)


def micros(time: str) -> Column:
    """The microseconds of a time column."""
    return F.unix_micros(F.col(quoted(time)).cast("timestamp"))


def from_micros(count: Column, kind: T.DataType) -> Column:
    """The inverse of `micros`."""
    return F.timestamp_micros(count).cast(kind)


def instant(moment: int, kind: T.DataType) -> Column:
    """A point in time, in microseconds, as a constant of a time column's type; without a zone it means UTC."""
    if isinstance(kind, T.TimestampNTZType):
        return F.lit((_EPOCH + dt.timedelta(microseconds=moment)).isoformat(" ", "microseconds")).cast(kind)
    return F.timestamp_micros(F.lit(moment))


def is_shifted(df: DataFrame, time: str) -> bool:
    """Whether `micros` would go through the time zone of the session: for a time without a zone, unless that is UTC."""
    plain = isinstance(df.schema[time].dataType, T.TimestampNTZType)
    return plain and df.sparkSession.conf.get("spark.sql.session.timeZone") not in ("UTC", "Etc/UTC", "Z", "+00:00")
