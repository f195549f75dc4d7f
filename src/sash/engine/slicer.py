"""The map side: a batch of rows becomes one packed blob per bucket of keys. Without state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sash import _core, codec
from sash.engine.layout import RowView
from sash.engine.query import CalendarWindows, Packed, Query
from sash.engine.run import BEFORE_ALL, Run

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Slicer", "pack_rows", "slice_batch", "unpack_rows"]


def slice_batch(query: Query, rows: RowView) -> tuple[Run, np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """A batch as a run of slices per key and pane; also the rows of every slice, and the latest time and number of every key."""
    windows = query.windows
    assert windows is not None
    keys, ids = rows.keys()
    if isinstance(windows, CalendarWindows):  # panes are of different lengths: numbers of them go in instead of times
        starts, panes, places, counts, _ = _core.slice_rows(ids, windows.panes_of(rows.times), rows.timed, len(keys), 1, 0)
        latest = np.full(len(keys), BEFORE_ALL)
        np.maximum.at(latest, ids, rows.times if rows.timed is None else np.where(rows.timed == 1, rows.times, BEFORE_ALL))
    else:
        starts, panes, places, counts, latest = _core.slice_rows(ids, rows.times, rows.timed, len(keys), windows.grain, windows.offset)
    return Run(query.layout, keys, starts, panes, query.layout.lift(rows, places, len(panes))), counts, latest, ids


def pack_rows(query: Query, batch: pa.RecordBatch) -> bytes:
    """Rows as they are, in the envelope; the schema is the query's."""
    return codec.seal("rows", query.fingerprint(), batch.serialize().to_pybytes())


def unpack_rows(query: Query, blob: bytes) -> pa.RecordBatch:
    """Read what ``pack_rows`` wrote."""
    import pyarrow as pa

    payload = codec.unseal("rows", query.fingerprint(), blob)
    with codec.refusing():
        batch = pa.ipc.read_record_batch(pa.py_buffer(payload), query.schema)
        batch.validate(full=True)  # Arrow trusts offsets, and would read beyond its buffers
        return batch


class Slicer:
    """Cuts batches into buckets of keys: for windows a run of slices each, for look-backs the rows themselves."""

    def __init__(self, query: Query, buckets: int) -> None:
        if buckets < 1:
            raise ValueError(f"buckets={buckets} is not at least 1.")
        self.query, self.buckets = query, buckets

    def pack(self, batch: pa.RecordBatch, every: bool = False) -> list[Packed]:
        """Give one Packed per bucket that has rows; ``every``: one per bucket. The batch has the query's schema.

        Cost: one look-up and one combine per row and aggregation, no sort of rows.
        """
        rows = RowView(self.query, batch)
        packed = self._pack_slices(rows) if self.query.windows is not None else self._pack_rows(rows)
        return packed if every else [p for p in packed if p.rows]

    def _pack_slices(self, rows: RowView) -> list[Packed]:
        run, counts, latest, ids = slice_batch(self.query, rows)
        edges = run.keys.bucket_starts(self.buckets)
        nulls = np.zeros(len(run.keys), np.int64) if rows.timed is None else np.bincount(ids[rows.timed == 0], minlength=len(run.keys))
        packed = []
        for bucket in range(self.buckets):
            first, last = int(edges[bucket]), int(edges[bucket + 1])
            a, b = int(run.starts[first]), int(run.starts[last])
            untimed = int(nulls[first:last].sum())
            blob = b""
            if b > a:
                blob = codec.seal("slices", self.query.fingerprint(), run.pack(first, last, counts))
            newest = int(latest[first:last].max()) if b > a else None
            packed.append(Packed(bucket, newest, blob, int(counts[a:b].sum()) + untimed, untimed))
        return packed

    def _pack_rows(self, rows: RowView) -> list[Packed]:
        import pyarrow as pa

        keys, ids = rows.keys()
        of_key = np.zeros(len(keys) + 1, np.uint16 if self.buckets < 2**16 else np.int64)
        edges = keys.bucket_starts(self.buckets)
        for bucket in range(self.buckets):
            of_key[edges[bucket] : edges[bucket + 1]] = bucket
        buckets = of_key[ids]
        order = np.argsort(buckets, kind="stable")
        cuts = np.searchsorted(buckets[order], np.arange(self.buckets + 1))
        packed = []
        for bucket in range(self.buckets):
            chosen = order[cuts[bucket] : cuts[bucket + 1]]
            timed = chosen if rows.timed is None else chosen[rows.timed[chosen] == 1]
            part = rows.batch if len(timed) == len(rows) else rows.batch.take(pa.array(timed))
            newest = int(rows.times[timed].max()) if len(timed) else None
            blob = pack_rows(self.query, part) if len(timed) else b""
            packed.append(Packed(bucket, newest, blob, len(chosen), len(chosen) - len(timed)))
        return packed
