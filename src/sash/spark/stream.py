"""The streaming plan: slice and pack before the shuffle, one stateful operator by bucket, unpack after it.

    rows --mapInArrow: Slicer--> (bucket, at, blob) --withWatermark(at)--> groupBy(bucket)
         --transformWithStateInPandas: Bucket--> rows (nested ones packed, --mapInArrow--> rows)

The watermark is put on the packed rows' largest time. That column is then dropped: were it in the operator's input, Spark
would drop a whole blob as late, where the engine must judge it row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from sash.engine.live import COLUMN, live_of
from sash.spark.definition import Definition
from sash.spark.explain import noted
from sash.spark.guard import quoted
from sash.spark.history import history_text, initial_state, told_since
from sash.spark.idle import with_clock
from sash.spark.operator import BucketProcessor
from sash.spark.packing import COUNTERS, PACKED, is_plain, operator_schema, packer, unpack
from sash.spark.settings import Settings
from sash.spark.started import planned
from sash.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stream(df: DataFrame, definition: Definition, settings: Settings) -> DataFrame:
    """Plan a definition on a streaming DataFrame."""
    query = definition.query
    schema = query.output_schema()
    packed = df.mapInArrow(packer(query, settings.buckets, touch=True, always=definition.delay is None), PACKED)
    if definition.idle is not None:
        packed = with_clock(packed, definition.idle, settings.buckets)
    if definition.delay is not None:
        packed = packed.withWatermark("at", f"{definition.delay // 1000} milliseconds")
    packed = packed.observe(settings.metric("in"), F.sum("rows").alias("rows"), F.sum("null_times").alias("null_times"))
    initial = None if definition.history is None else initial_state(definition.history, query, settings)
    processor = BucketProcessor(query, settings.buckets, settings.cache)
    results = (
        packed.select("bucket", "blob")
        .groupBy("bucket")
        .transformWithStateInPandas(processor, spark_schema(operator_schema(schema)), definition.output_mode, "EventTime", initial)
    )
    late, keys, slices = COUNTERS
    results = results.observe(settings.metric("out"), F.sum(late).alias("late"), F.sum(keys).alias("keys"), F.sum(slices).alias("slices"))
    if is_plain(schema):
        out = results.filter(F.col(slices).isNull()).select(*map(quoted, schema.names))
    else:
        out = results.mapInArrow(unpack, spark_schema(schema))
    out = told_since(out, query)
    chosen = {"packed": f"{_packed(definition)}, {settings.buckets} buckets"}
    begins = {} if query.since is None else {"history": history_text(query)}
    return noted(out, definition, {**chosen, "state": _state(definition), **begins, **_OTHERS}, **planned(query, settings.name))


_OTHERS = {
    "jvm slices": "slower: Spark's own slices would be a second stateful operator and cross to the core row by row",
    "by key": "slower: a group per key costs milliseconds a key and batch",
}


def _state(definition: Definition) -> str:
    if live_of(definition.query) is None:
        return "in columns: a micro-batch merges all that is held, for partials are longer than 144 words together, or not associative"
    return (
        "live, a window per key: a micro-batch costs what came and what comes out, whatever is held; "
        f"in columns where more than {COLUMN} times as much comes as is held, as in a catch-up"
    )


def _packed(definition: Definition) -> str:
    return (
        "rows sliced by key and pane where they are, one heavy key on all cores, and packed by bucket before the shuffle"
        if definition.query.windows
        else "rows packed by bucket before the shuffle; those of one key meet in one task"
    )
