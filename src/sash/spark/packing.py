"""What crosses to Spark at both ends of the stateful operator: blobs by bucket before it, results after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
import pyarrow as pa

from sash.engine import Packed, Query, Slicer
from sash.spark.buckets import label
from sash.spark.types import UTC, conform

Batches = Iterator[pa.RecordBatch]

# what the map side sends: a blob per bucket, with the largest time in it for Spark's watermark
PACKED = "bucket int, at timestamp, blob binary, rows long, null_times long"
_PACKED = pa.schema([("bucket", pa.int32()), ("at", UTC), ("blob", pa.binary()), ("rows", pa.int64()), ("null_times", pa.int64())])

_ROWS_OUT = 50_000  # rows of one packed result: bounds what a worker unpacks at once


def packer(query: Query, buckets: int, *, touch: bool = False, always: bool = False) -> Callable[[Batches], Batches]:
    """Make the function for mapInArrow that slices each batch and packs a blob per bucket.

    With `touch`, a partition's first batch goes to every bucket, as an empty blob where there are no rows, so that every bucket
    exists from the first micro-batch on and learns every watermark: it must know it to judge its first late row. With `always`,
    the first partition does so even without rows, for a watermark that is counted before this point and so can move without us.
    """

    def pack(batches: Batches) -> Batches:
        from pyspark import TaskContext

        missing = set(range(buckets)) if touch else set()
        slicer = Slicer(query, buckets)
        for batch in batches:
            if batch.num_rows == 0:
                continue
            packed = slicer.pack(conform(batch, query.schema))
            newest = max((p.max_time for p in packed if p.max_time is not None), default=None)
            if missing and newest is not None:
                packed += [Packed(bucket, newest, b"", 0, 0) for bucket in missing - {p.bucket for p in packed}]
                missing = set()
            yield packed_rows(packed)
        if missing and always and TaskContext.get().partitionId() == 0:
            yield packed_rows([Packed(bucket, None, b"", 0, 0) for bucket in missing])

    return pack


def packed_rows(packed: list[Packed]) -> pa.RecordBatch:
    """What the map side sends, as rows."""
    columns = [
        pa.array([label(p.bucket) for p in packed], pa.int32()),
        pa.array([p.max_time for p in packed], pa.int64()).cast(UTC),
        pa.array([p.blob for p in packed], pa.binary()),
        pa.array([p.rows for p in packed], pa.int64()),
        pa.array([p.null_times for p in packed], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


# counters of a bucket, for the query's observed metrics: in rows of their own, null where a row is a result
COUNTERS = ("__sash_late", "__sash_keys", "__sash_slices")
_COUNTERS = [pa.field(name, pa.int64()) for name in COUNTERS]
_PACKED_OUT = pa.field("out", pa.binary())


def is_plain(schema: pa.Schema) -> bool:
    """Whether Spark takes columns of these types from pandas without touching a value: all but nested ones."""
    return not any(pa.types.is_nested(field.type) for field in schema)


def operator_schema(schema: pa.Schema) -> pa.Schema:
    """What the stateful operator gives: results as they are, or as packed Arrow streams, and the counters."""
    return pa.schema([*(schema if is_plain(schema) else [_PACKED_OUT]), *_COUNTERS])


def operator_rows(schema: pa.Schema, counters: tuple[int, ...], results: list[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
    """A row of counters, then the results; in parts of bounded size.

    Columns stay Arrow's, inside pandas: the operator's worker then hands their buffers on. Nested ones it would walk value by
    value, so those go as one binary value that is unpacked after the operator.
    """
    yield _frame(pa.record_batch([pa.array([value], pa.int64()) for value in counters], schema=pa.schema(_COUNTERS)), schema)
    for batch in results:
        for start in range(0, batch.num_rows, _ROWS_OUT):
            part = batch.slice(start, _ROWS_OUT)
            yield _frame(part if is_plain(schema) else _stream(part), schema)


def _frame(batch: pa.RecordBatch, schema: pa.Schema) -> pd.DataFrame:
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    fields = operator_schema(schema)
    columns = {f.name: given[f.name] if f.name in given else pa.nulls(batch.num_rows, f.type) for f in fields}
    return pd.DataFrame({name: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([column]))) for name, column in columns.items()})


def _stream(batch: pa.RecordBatch) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=pa.schema([_PACKED_OUT]))


def unpack(batches: Batches) -> Batches:
    """Read packed results: the function for mapInArrow after the operator."""
    for batch in batches:
        for stream in batch.column("out"):
            if stream.is_valid:
                yield from pa.ipc.open_stream(stream.as_buffer())
