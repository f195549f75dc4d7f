"""When no rows come, time goes on by the clock: a second source beside the rows, which gives nothing but times.

    rate: a row a second --mapInArrow--> (every bucket, the clock less idle, no blob) --union with the packed rows--> withWatermark

So the watermark is the one that Spark keeps and notes: the rows' or the clock's, whichever is ahead. A batch that is run again has the
same times, for the source's are made of its offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from sash.engine import Packed
from sash.spark.packing import PACKED, Batches, packed_rows
from sash.spark.types import UTC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def clock(spark: SparkSession) -> DataFrame:
    """The stream of the clock's times: one a second, in the column `timestamp`."""
    return spark.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load().select("timestamp")


def with_clock(packed: DataFrame, idle: int, buckets: int) -> DataFrame:
    """Let the clock move the watermark too, so many microseconds behind."""
    return packed.unionByName(clock(packed.sparkSession).mapInArrow(_ticks(idle, buckets), PACKED))


def _ticks(idle: int, buckets: int) -> Callable[[Batches], Batches]:
    def ticks(batches: Batches) -> Batches:
        for batch in batches:
            if batch.num_rows:
                newest = pc.max(batch.column(0).cast(UTC)).value
                # To every bucket, as rows do: a bucket must know each watermark to judge its first late row.
                yield packed_rows([Packed(bucket, newest - idle, b"", 0, 0) for bucket in range(buckets)])

    return ticks
