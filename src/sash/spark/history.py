"""History, then live: rows of a batch DataFrame as the state that a stream begins with.

    history --filter: what results still reach--> mapInArrow: Slicer --> (bucket, blob) --repartition, sort by bucket-->
            --mapInArrow: the Bucket at the end of history, stored--> (bucket, id, blob), the operator's initial state

Spark runs this in the first micro-batch of a query, on all cores, and never again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from sash.engine import Query, begun, lent, reach
from sash.errors import DefinitionError
from sash.spark.buckets import spark_hash
from sash.spark.definition import Definition
from sash.spark.guard import quoted
from sash.spark.operator import header_of
from sash.spark.packing import PACKED, Batches, packer
from sash.spark.settings import Settings
from sash.spark.state import META
from sash.spark.times import instant
from sash.time import duration, timestamp, timestamp_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STORED = "bucket int, id int, blob binary"


def since(df: DataFrame, history: DataFrame | None, history_until: Any) -> int | None:
    """Check history= and history_until=; the time where history ends, None without one."""
    if (history is None) != (history_until is None):
        missing, there = ("history_until", "history") if history_until is None else ("history", "history_until")
        fix = "the time from which on rows come from df" if history_until is None else "a batch DataFrame, which may be empty"
        raise DefinitionError(f"{there}= is given and {missing}= is not. Pass {missing}=, {fix}.")
    if history is None:
        return None
    if history.isStreaming:
        raise DefinitionError("history= is a stream. Pass a batch DataFrame: spark.read instead of spark.readStream.")
    if absent := [name for name in df.columns if name not in history.columns]:
        raise DefinitionError(f"history= has no column {absent[0]!r}; its columns are {', '.join(history.columns)}.")
    for name in df.columns:
        mine, theirs = df.schema[name].dataType, history.schema[name].dataType
        if mine != theirs:
            told = f"{mine.simpleString()} in df and {theirs.simpleString()} in history="
            raise DefinitionError(f"column {name!r} is {told}. Cast one of them.")
    try:
        return timestamp(history_until)
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"history_until={history_until!r}: {error}") from error


def whole_slices(history_until: Any, grain: Any) -> None:
    """Refuse tiles that begin within a slice without the rows of its beginning."""
    if timestamp(history_until) % duration(grain):
        raise DefinitionError(
            f"history_until={history_until!r} is within a slice of {grain!r}: the rows of its beginning would be missing. "
            "Use a whole number of grains, or pass history= too."
        )


def unseen(df: DataFrame, definition: Definition, settings: Settings) -> DataFrame:
    """Leave out rows that history has, and count them."""
    query = definition.query
    if query.since is None:
        return df
    time = F.col(quoted(query.time))
    seen = F.coalesce(time < instant(query.since, df.schema[query.time].dataType), F.lit(False))
    return df.observe(settings.metric("seen"), F.count_if(seen).alias("seen")).filter(~seen)


def reached(history: DataFrame, query: Query) -> DataFrame:
    """The rows of history that results after it depend on."""
    assert query.since is not None
    time, kind = F.col(quoted(query.time)), history.schema[query.time].dataType
    rows = history.filter(time < instant(query.since, kind))
    oldest = reach(query)
    return rows if oldest is None else rows.filter(time >= instant(oldest, kind))


def told_since(out: DataFrame, query: Query) -> DataFrame:
    """Leave out results that history has told: in batch all of them, in a stream only a session that ends where history does."""
    if query.since is None:
        return out
    if query.windows is not None:
        return out.filter(F.col("window_end") > instant(query.since, out.schema["window_end"].dataType))
    time = query.time if query.labels is None else query.labels.time
    return out.filter(F.col(quoted(time)) >= instant(query.since, out.schema[time].dataType))


def initial_state(history: DataFrame, query: Query, settings: Settings) -> Any:
    """History as the initial state of the operator, grouped by bucket."""
    narrow = lent(query)
    rows = reached(history, query).select(*map(quoted, narrow.schema.names))
    packed = rows.mapInArrow(packer(narrow, settings.buckets), PACKED).select("bucket", "blob")
    ordered = packed.repartition(settings.partitions, "bucket").sortWithinPartitions("bucket")
    return ordered.mapInArrow(_begin(query, settings.buckets), _STORED).groupBy("bucket")


def _begin(query: Query, buckets: int) -> Callable[[Batches], Batches]:
    def begin(batches: Batches) -> Batches:
        rows = ((at, blob.as_py()) for b in batches for at, blob in zip(b.column("bucket").to_pylist(), b.column("blob"), strict=True))
        for label, of_bucket in groupby(rows, lambda row: row[0]):
            bucket = begun(query, (blob for _, blob in of_bucket))
            commit = bucket.commit()
            header = header_of(bucket, commit, spark_hash(label), buckets)
            for number, blob in [*commit.put.items(), (META, header.pack() + commit.meta)]:
                yield pa.RecordBatch.from_arrays(
                    [pa.array([label], pa.int32()), pa.array([number], pa.int32()), pa.array([blob], pa.binary())],
                    names=["bucket", "id", "blob"],
                )

    return begin


def history_text(query: Query) -> str:
    """Say in the plan where a stream begins."""
    assert query.since is not None
    return f"rows before {timestamp_text(query.since)} from history, as the state of the first micro-batch"
