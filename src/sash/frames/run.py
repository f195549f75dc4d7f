"""A query over whole columns, on all cores.

windows    rows cut into parts --Slicer--> slices by bucket of keys --Bucket--> results, sorted by key and end
rolling    rows --order by key and time--> one run --look-backs, stretches of it at a time--> columns in the order of the rows

The core gives the interpreter's lock away in its loops, so threads are enough.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash import _core
from sash.engine import Query, Slicer, bucket_of
from sash.engine.layout import Each, RowView
from sash.engine.lookbacks import label_columns, lookback_columns, row_ties
from sash.engine.run import Run
from sash.engine.types import as_integers

__all__ = ["rolling_columns", "windows_table"]

_PART = 1 << 18  # rows, about, of one part
_MOST = 2**31 - 1  # rows: the core counts them in 32 bits


@contextmanager
def _threads(rows: int) -> Iterator[Each]:
    """The map of a pool with a thread per core; the plain one where that would cost more than it gives."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if rows < _PART or cores == 1:
        yield map
        return
    with ThreadPoolExecutor(cores) as pool:
        yield pool.map


def windows_table(query: Query, batch: pa.RecordBatch) -> pa.Table:
    """The windows of all rows, by key and end."""
    query = replace(query, emit="final")
    # As many buckets as parts, whatever the cores: floats are then added up in the same order everywhere.
    parts = max(1, batch.num_rows // _PART)
    size = max(1, -(-batch.num_rows // parts))
    buckets = min(parts, 64)

    def pack(start: int) -> list[bytes]:
        return [packed.blob for packed in Slicer(query, buckets).pack(batch.slice(start, size), every=True)]

    def finish(blobs: tuple[bytes, ...]) -> list[pa.RecordBatch]:
        bucket = bucket_of(query)(query)
        for blob in blobs:
            bucket.add(blob)
        return list(bucket.flush())

    with _threads(batch.num_rows) as each:
        packed = list(each(pack, range(0, batch.num_rows, size)))
        found = [rows for part in each(finish, zip(*packed, strict=True)) for rows in part] if packed else []
    return _by_key_and_end(query, pa.Table.from_batches(found, query.output_schema()))


def _by_key_and_end(query: Query, table: pa.Table) -> pa.Table:
    """Sort windows: nulls are the last of the keys, and NaN comes before them."""
    if table.num_rows < 2:
        return table
    rows = table.combine_chunks().to_batches()[0]
    keys = [rows.column(name) for name in query.keys]
    numbers = np.zeros(rows.num_rows, np.int32)
    count = 1
    if keys:
        _, ids = _core.encode_keys(keys, rows.num_rows)
        count = int(ids.max()) + 1
        first = np.empty(count, np.int64)
        first[ids[::-1]] = np.arange(rows.num_rows)[::-1]
        distinct = pa.table([key.take(pa.array(first)) for key in keys], names=[str(i) for i in range(len(keys))])
        order = pc.sort_indices(distinct, [(name, "ascending") for name in distinct.column_names]).to_numpy()
        rank = np.empty(count, np.int32)
        rank[order] = np.arange(count, dtype=np.int32)
        numbers = rank[ids]
    ends = as_integers(rows.column("window_end")).to_numpy()
    _, _, places = _core.order_rows(numbers, ends, [], count)
    order = np.empty(rows.num_rows, np.int64)
    order[places] = np.arange(rows.num_rows)
    return table.take(pa.array(order))


def rolling_columns(query: Query, batch: pa.RecordBatch, labels: pa.RecordBatch | None = None) -> pa.Table:
    """The look-backs of every row, or of every label, in their order; all of them have a time."""
    if batch.num_rows > _MOST:
        raise ValueError(f"the frame has {batch.num_rows:,} rows and the core counts up to {_MOST:,}. Cut it by key, or use Spark.")
    count = batch.num_rows if labels is None else labels.num_rows
    fields = query.output_schema()
    fields = pa.schema([field for field in fields if field.name in (*query.feature_names, "_late")])
    with _threads(batch.num_rows + count) as each:
        rows = RowView(query, batch)
        keys, ids = rows.keys()
        ties = row_ties(query, batch)
        run, places = Run.of_rows(query.layout, rows, keys, ids, ties, each)
        if labels is None:
            columns = lookback_columns(run, np.arange(len(run), dtype=np.int32), places, each)
        else:
            columns = label_columns(run, labels, each)
    if query.late == "flag":
        columns.append(pa.array(np.zeros(count, bool)))
    return pa.table(columns, schema=fields)
