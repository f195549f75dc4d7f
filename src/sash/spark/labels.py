"""Labels among rows: the two tables of `rolling(..., at=)` as one DataFrame, which one sweep goes over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from sash.engine.definition import labelled
from sash.engine.query import MARK, Labels
from sash.errors import DefinitionError
from sash.spark.definition import SparkColumns
from sash.spark.guard import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_labels(
    df: DataFrame, at: DataFrame, *, time: str, at_time: str | None, key: Any, aggs: Any, tie: str | None
) -> tuple[DataFrame, Labels]:
    """Put the labels among the rows, marked; also give their description."""
    if df.isStreaming != at.isStreaming:
        raise DefinitionError("df and at are of two kinds: one is a stream and the other is not. Make both streams, or both batches.")
    labels, used = labelled(SparkColumns(df), SparkColumns(at), time=time, at_time=at_time, key=key, aggs=aggs, tie=tie)
    mine, theirs = (side.schema[name].dataType for side, name in ((df, time), (at, labels.time)))
    if mine != theirs:
        raise DefinitionError(
            f"time={time!r} is {mine.simpleString()} and at_time={labels.time!r} is {theirs.simpleString()}. Cast one of them."
        )
    keys = [key] if isinstance(key, str) else list(key or ())
    others = [name for name in labels.columns if name not in (*keys, labels.time)]
    rows = df.select(
        *(F.col(quoted(name)) for name in used),
        *(F.lit(None).cast(at.schema[name].dataType).alias(name) for name in others),
        F.lit(False).alias(MARK),
    )
    marked = at.select(
        *(
            F.col(quoted(name))
            if name in keys
            else F.col(quoted(labels.time)).alias(time)
            if name == time
            else F.lit(None).cast(df.schema[name].dataType).alias(name)
            for name in used
        ),
        *(F.col(quoted(name)) for name in others),
        F.lit(True).alias(MARK),
    )
    return rows.unionByName(marked), labels


def as_rows(history: DataFrame, *, like: DataFrame, rows: DataFrame) -> DataFrame:
    """Rows of history as they stand among labels: with the labels' columns null."""
    return history.select(
        *(
            F.lit(False).alias(MARK)
            if field.name == MARK
            else F.col(quoted(field.name))
            if field.name in rows.columns
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in like.schema.fields
        )
    )
