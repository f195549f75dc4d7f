"""Rows that wait for the watermark, found by their time without a look at those that go on waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sash.engine.layout import RowView
from sash.engine.query import Query

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Pending", "concat"]

Array = np.ndarray[Any, Any]
MANY = 64  # with more batches they are merged into one: to search each of them would cost more than a sort now and then


class Pending:
    """Batches that are each in order of time, so that the rows that are final stand at the beginning of each.

    Cost: taking n rows from b batches is O(n + b log rows); b stays below 64.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.rows = 0
        self._batches: list[tuple[pa.RecordBatch, Array]] = []

    def __bool__(self) -> bool:
        return self.rows > 0

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """All of them."""
        return [batch for batch, _ in self._batches]

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        self._batches.append(self._sorted(batch))
        if len(self._batches) >= MANY:
            self._batches = [self._sorted(concat(self.batches))]

    def take(self, upto: int) -> pa.RecordBatch | None:
        """Give all rows with a time up to this one, None if there are none."""
        taken, left = [], []
        for batch, times in self._batches:
            cut = int(np.searchsorted(times, upto, side="right"))
            if cut:
                taken.append(batch.slice(0, cut))
            if cut < len(times):
                left.append((batch.slice(cut), times[cut:]))
        self._batches = left
        if not taken:
            return None
        given = concat(taken)
        self.rows -= given.num_rows
        return given

    def _sorted(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Array]:
        import pyarrow as pa

        times = RowView(self.query, batch).times
        if (times[1:] >= times[:-1]).all():
            return batch, times
        order = np.argsort(times, kind="stable")
        return batch.take(pa.array(order)), times[order]


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Several batches as one."""
    import pyarrow as pa

    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
