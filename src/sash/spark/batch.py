"""The batch plans: the same engine, all data at once.

windows    rows --mapInArrow: Slicer--> (bucket, blob) --repartition, sort by bucket--> mapInArrow: Bucket --> rows
rolling    rows --repartition by key, sort by key and time--> mapInArrow: Sweep, key by key --> rows
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from sash.keyed import Bucket, Query, Sweep
from sash.spark.definition import Definition
from sash.spark.packing import PACKED, Batches, packer
from sash.spark.settings import Settings
from sash.spark.types import conform, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def batch(df: DataFrame, definition: Definition, settings: Settings) -> DataFrame:
    """Plan a definition on a batch DataFrame."""
    query = definition.query
    out = spark_schema(query.output_schema())
    if query.windows is not None:
        # Twice as many buckets as in a stream: each is in memory alone, so smaller is safer, and none has a fixed cost.
        packed = df.mapInArrow(packer(query, 2 * settings.buckets), PACKED).select("bucket", "blob")
        ordered = packed.repartition(settings.partitions, "bucket").sortWithinPartitions("bucket")
        return ordered.mapInArrow(_finish_buckets(query), out)
    rows = df.filter(F.col(_quoted(query.time)).isNotNull())
    keys = [F.col(_quoted(name)) for name in query.keys]
    rows = rows.repartition(settings.partitions, *keys) if keys else rows.repartition(1)
    return rows.sortWithinPartitions(*keys, F.col(_quoted(query.time))).mapInArrow(_sweep(query), out)


def _finish_buckets(query: Query) -> Callable[[Batches], Batches]:
    def finish(batches: Batches) -> Batches:
        current, bucket = None, Bucket(query)
        for packed in batches:
            for at, blob in zip(packed.column("bucket").to_pylist(), packed.column("blob"), strict=True):
                if at != current:
                    yield from bucket.advance(None)
                    current, bucket = at, Bucket(query)
                bucket.add(blob.as_py())
        yield from bucket.advance(None)

    return finish


def _sweep(query: Query) -> Callable[[Batches], Batches]:
    def sweep(batches: Batches) -> Batches:
        engine = Sweep(query)
        for rows in batches:
            yield from engine.feed(conform(rows, query.schema))
        yield from engine.finish()

    return sweep


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
