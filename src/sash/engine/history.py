"""History, then live: the state that a stream begins with, from rows that were there before it.

history --reach--> rows that still matter --lent, Slicer--> blobs by bucket --begun--> a Bucket at the watermark of its end
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from sash import codec
from sash.engine.bucket import Bucket
from sash.engine.emit import bucket_of
from sash.engine.layout import RowView
from sash.engine.lookbacks import row_ties
from sash.engine.pending import concat
from sash.engine.query import MARK, Query, Windows
from sash.engine.run import Run
from sash.engine.slicer import unpack_rows

__all__ = ["begun", "lent", "reach"]


def reach(query: Query) -> int | None:
    """The oldest time of history that results after it depend on; None: all of it."""
    assert query.begins is not None
    if isinstance(query.windows, Windows):
        return int(query.windows.instants(np.array([query.windows.oldest_pane(query.begins)]))[0])
    if query.rolling is None or query.rolling.kept_rows or query.rolling.whole_past:
        return None  # sessions too: an open one may have begun at any time
    # One unit more than a row to come needs: where changes are told, the look-backs of the watermark itself are asked for again.
    return query.rolling.oldest_time(query.begins - 1)


def lent(query: Query) -> Query:
    """The query as history is read by it: only with columns that results depend on, for its rows do not come out."""
    names = set(query.schema.names)
    if query.labels is not None:
        names -= {MARK, *query.labels.columns} - {query.time, *query.keys}
    if query.rolling is not None and not query.rolling.kept_rows and not query.whole_rows:
        names = {query.time, *query.keys, *query.value_columns, *((query.tie,) if query.tie else ())}
    schema = query.schema
    for name in query.schema.names:
        if name not in names:
            schema = schema.remove(schema.get_field_index(name))
    return replace(query, schema=schema, labels=None)


def begun(query: Query, blobs: Iterable[bytes] = ()) -> Bucket:
    """A bucket as a stream begins with it: at the watermark where history ends, holding what it left; the blobs are of ``lent``.

    Without history it stands where Spark's watermark does before the first row, at 0.
    """
    bucket = bucket_of(query)(query)
    if query.begins is None:
        bucket.advance(0)
    else:
        bucket.begin(_past(query, [blob for blob in blobs if blob]), query.begins)
    return bucket


def _past(query: Query, blobs: list[bytes]) -> Run:
    if not blobs:
        return Run.empty(query.layout)
    narrow = lent(query)
    if query.windows is not None:
        return _merged([Run.unpack(query.layout, codec.unseal("slices", narrow.fingerprint(), blob))[0] for blob in blobs])
    # All rows at once: those of one time are ordered among each other, whichever blob they came in.
    batch = concat([unpack_rows(narrow, blob) for blob in blobs])
    rows = RowView(narrow, batch)
    keys, ids = rows.keys()
    return Run.of_rows(query.layout, rows, keys, ids, row_ties(narrow, batch))[0]


def _merged(runs: list[Run]) -> Run:
    """All runs as one, always the two shortest first: n log k entries are copied."""
    heap = [(len(run), i, run) for i, run in enumerate(runs)]
    heapq.heapify(heap)
    while len(heap) > 1:
        (_, i, a), (_, _, b) = heapq.heappop(heap), heapq.heappop(heap)
        merged, _ = a.merge(b, combine=True)
        heapq.heappush(heap, (len(merged), i, merged))
    return heap[0][2]
