"""The streaming plan: slice and pack before the shuffle, one stateful operator by bucket, unpack after it.

    rows --mapInArrow: Slicer--> (bucket, at, blob) --withWatermark(at)--> groupBy(bucket)
         --transformWithStateInPandas: Bucket--> (packed results) --mapInArrow--> rows

The watermark is put on the packed rows' largest time. That column is then dropped: were it in the operator's input, Spark
would drop a whole blob as late, where the engine must judge it row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from sash.spark.definition import Definition
from sash.spark.operator import OUTPUT, BucketProcessor
from sash.spark.packing import PACKED, packer, unpack
from sash.spark.settings import Settings
from sash.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stream(df: DataFrame, definition: Definition, settings: Settings) -> DataFrame:
    """Plan a definition on a streaming DataFrame."""
    query = definition.query
    packed = df.mapInArrow(packer(query, settings.buckets, touch=True, always=definition.delay is None), PACKED)
    if definition.delay is not None:
        packed = packed.withWatermark("at", f"{definition.delay // 1000} milliseconds")
    packed = packed.observe(
        f"{settings.name}.in", F.sum("rows").alias("rows"), F.sum("null_times").alias("null_times"), F.count("blob").alias("blobs")
    )
    processor = BucketProcessor(query, settings.buckets, settings.cache)
    results = (
        packed.select("bucket", "blob").groupBy("bucket").transformWithStateInPandas(processor, OUTPUT, definition.output_mode, "EventTime")
    )
    results = results.observe(
        f"{settings.name}.out", F.sum("late").alias("late"), F.sum("keys").alias("keys"), F.sum("slices").alias("slices")
    )
    return results.mapInArrow(unpack, spark_schema(query.output_schema()))
