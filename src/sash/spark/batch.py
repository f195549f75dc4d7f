"""The batch plans: the same engine, all data at once.

windows    rows --mapInArrow: Slicer--> (bucket, blob) --repartition, sort by bucket--> mapInArrow: Bucket --> rows
           where Spark can make the slices (see jvm_slices.py), those come in instead of the rows
rolling    rows --cut into stretches of time--> --repartition and sort by key, stretch, time--> mapInArrow: Sweep --> rows

A stretch is long against the look-backs, and its rows come with those of the longest look-back before it, so that a key's
stretches are computed apart: one long key, or no key at all, uses every core.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from sash.engine import Hops, Query, Rows, Sweep, bucket_of
from sash.engine.query import MARK
from sash.spark.definition import Definition
from sash.spark.explain import noted
from sash.spark.guard import quoted
from sash.spark.jvm_slices import jvm_slices
from sash.spark.packing import PACKED, Batches, packer
from sash.spark.settings import Settings
from sash.spark.times import is_shifted, micros
from sash.spark.types import conform, spark_schema
from sash.time import duration_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STRETCH = "__sash_stretch"
_HALO = "__sash_halo"  # 0 in the stretch that the row belongs to, 1 in the next one, where it is only looked back to
_RATIO = 8  # stretch to longest look-back: at most one row in 8 is sent twice


def batch(df: DataFrame, definition: Definition, settings: Settings) -> DataFrame:
    """Plan a definition on a batch DataFrame: everything has arrived, so everything is final."""
    definition = dataclasses.replace(definition, query=dataclasses.replace(definition.query, emit="final"))
    if definition.query.windows is not None:
        return _windows(df, definition, settings)
    return _rolling(df, definition, settings)


def _windows(df: DataFrame, definition: Definition, settings: Settings) -> DataFrame:
    # More buckets than in a stream: one at a time is in memory, so smaller ones are safer, and a bucket has no fixed cost here.
    buckets = 4 * settings.buckets
    sliced = "by key and pane where they are, one heavy key on all cores; the slices are packed by bucket"
    slices = jvm_slices(df, definition.query)
    if isinstance(slices, str):
        out = _packed(df, definition.query, buckets, settings)
        return noted(out, definition, {"packed": f"rows are sliced {sliced}, {buckets} buckets", "jvm slices": f"not here: {slices}"})
    out = _packed(slices.rows, slices.query, buckets, settings).select(*slices.results)
    chosen = {"jvm slices": f"Spark slices the rows {sliced}, {buckets} buckets", "packed": "slower: every row would leave the JVM"}
    return noted(out, definition, chosen)


def _packed(rows: DataFrame, query: Query, buckets: int, settings: Settings) -> DataFrame:
    packed = rows.mapInArrow(packer(query, buckets), PACKED).select("bucket", "blob")
    ordered = packed.repartition(settings.partitions, "bucket").sortWithinPartitions("bucket")
    return ordered.mapInArrow(_finish_buckets(query), spark_schema(query.output_schema()))


def _rolling(df: DataFrame, definition: Definition, settings: Settings) -> DataFrame:
    query = definition.query
    time = F.col(quoted(query.time))
    rows = df.filter(time.isNotNull())
    longest = _longest(query)
    if longest is None:
        inner = query
        why = "sorted by key and time, a key at a time; not cut in time: a look-back by rows or over the whole past has no length"
    elif is_shifted(df, query.time):
        inner = query
        why = "sorted by key and time, a key at a time; not cut in time: a time without a zone, and the session's is not UTC"
    else:
        stretch = _RATIO * longest
        why = f"stretches of {duration_text(stretch)}, each with the {duration_text(longest)} before it, sorted by key and time"
        schema = query.schema.append(pa.field(_HALO, pa.int32())).append(pa.field(_STRETCH, pa.int64()))
        inner = dataclasses.replace(query, schema=schema, keys=(*query.keys, _STRETCH))
        rows = _cut(rows, query, stretch, longest)
    keys = [F.col(quoted(name)) for name in inner.keys]
    rows = rows.repartition(settings.partitions, *keys) if keys else rows.repartition(1)
    ordered = rows.sortWithinPartitions(*keys, time)
    out = ordered.mapInArrow(_sweep(inner), spark_schema(query.output_schema()))
    return noted(out, definition, {"sorted sweep": why})


def _longest(query: Query) -> int | None:
    """The longest look-back, None if one of them has no length in time."""
    assert query.rolling is not None
    lengths = []
    for _, period in query.rolling.lookbacks:
        if period is None or isinstance(period, Rows):
            return None
        lengths.append(period.period + period.hop if isinstance(period, Hops) else period)
    return max(lengths) + query.rolling.delay


def _cut(rows: DataFrame, query: Query, stretch: int, longest: int) -> DataFrame:
    """Number the stretches; a row within the longest look-back before the next stretch also goes there, marked as not its own."""
    at = micros(query.time)
    inside = F.pmod(at, F.lit(stretch))
    own = ((at - inside) / stretch).cast("long")  # a whole number, exact in a double
    lends = inside >= stretch - longest
    if query.labels is not None:  # a label has nothing to lend
        lends = lends & ~F.col(MARK)
    places = F.when(lends, F.array(own, own + 1)).otherwise(F.array(own))
    return rows.select("*", F.posexplode(places).alias(_HALO, _STRETCH))


def _finish_buckets(query: Query) -> Callable[[Batches], Batches]:
    def finish(batches: Batches) -> Batches:
        make = bucket_of(query)
        current, bucket = None, make(query)
        for packed in batches:
            for at, blob in zip(packed.column("bucket").to_pylist(), packed.column("blob"), strict=True):
                if at != current:
                    yield from bucket.flush()
                    current, bucket = at, make(query)
                bucket.add(blob.as_py())
        yield from bucket.flush()

    return finish


def _sweep(query: Query) -> Callable[[Batches], Batches]:
    def sweep(batches: Batches) -> Batches:
        engine = Sweep(query)
        for rows in batches:
            yield from engine.feed(conform(rows, query.schema))
        yield from engine.finish()

    def sweep_stretches(batches: Batches) -> Batches:
        for out in sweep(batches):
            yield out.filter(pc.equal(out.column(_HALO), 0)).drop_columns([_HALO, _STRETCH])

    return sweep_stretches if _STRETCH in query.keys and query.labels is None else sweep
