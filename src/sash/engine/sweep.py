"""Batch: rows sorted by key and time, streamed key by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sash.engine.layout import RowView
from sash.engine.lookbacks import label_columns, lookback_columns, row_ties, shown_labels, split_labels
from sash.engine.query import Query
from sash.engine.run import BEFORE_ALL, Run

if TYPE_CHECKING:
    from typing import Any

    import pyarrow as pa

__all__ = ["Sweep"]


class Sweep:
    """The look-backs of a sorted partition, in batches; holds no more than the last key's longest look-back.

    Every key but the last of a batch is complete, and its results are final; the last one goes on in the next batch.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.null_times = 0
        self._run = Run.empty(query.layout)  # of the last key
        self._last: tuple[Any, int] | None = None  # the last key, as a table of one, and its last time
        self._carry: pa.RecordBatch | None = None  # rows of the last key and time

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take the next rows and give what is final."""
        import pyarrow as pa

        rows = RowView(self.query, batch)
        if rows.timed is not None:
            self.null_times += int((rows.timed == 0).sum())
            rows = RowView(self.query, batch.filter(pa.array(rows.timed == 1)))
        if len(rows):
            yield from self._rolling(rows)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Give what is left."""
        if self._carry is not None:
            yield self._give(self._carry, None)
        self._run, self._last, self._carry = Run.empty(self.query.layout), None, None

    def _check(self, keys: Any, ids: np.ndarray[Any, Any], times: np.ndarray[Any, Any]) -> None:
        same = ids[1:] == ids[:-1]
        goes_on = self._last is not None and keys.find(self._last[0], 0) == ids[0]
        if np.count_nonzero(~same) + 1 != len(keys) or (same & (times[1:] < times[:-1])).any() or (goes_on and times[0] < self._last[1]):  # type: ignore[index]
            raise ValueError("the rows are not sorted by key and time. Sort within partitions by the key columns and the time column.")

    def _rolling(self, rows: RowView) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if self._carry is not None:
            rows = RowView(self.query, pa.concat_batches([self._carry, rows.batch]))
            self._last = None if self._last is None else (self._last[0], BEFORE_ALL)
        keys, ids = rows.keys()
        self._check(keys, ids, rows.times)
        held = (ids == ids[-1]) & (rows.times == rows.times[-1])
        first = int(np.argmax(held))
        self._carry = rows.batch.slice(first)
        self._last = (rows_key(rows, first), int(rows.times[-1]))
        if first:
            yield self._give(rows.batch.slice(0, first), self._last)

    def _give(self, batch: pa.RecordBatch, last: tuple[Any, int] | None) -> pa.RecordBatch:
        import pyarrow as pa

        rolling = self.query.rolling
        assert rolling is not None
        given, labels = split_labels(self.query, batch)
        rows = RowView(self.query, given)
        keys, ids = rows.keys()
        new, places = Run.of_rows(self.query.layout, rows, keys, ids, row_ties(self.query, given))
        run, entries = self._run.merge(new, combine=False)
        if labels is None:
            columns = [*given.columns, *lookback_columns(run, entries, places)]
        else:
            columns = [*shown_labels(self.query, labels), *label_columns(run, labels)]
        if self.query.late == "flag":
            columns.append(pa.array(np.zeros(len(columns[0]), bool)))
        held = -1 if last is None else run.keys.find(last[0], 0)
        if last is None or held < 0:
            self._run = Run.empty(self.query.layout)
        else:
            self._run = run.keep(rolling.oldest_time(last[1] - 1), rolling.kept_rows, rolling.whole_past, held)
        return pa.record_batch(columns, schema=self.query.output_schema())


def rows_key(rows: RowView, i: int) -> Any:
    """A table of one key: that of row i."""
    return RowView(rows.query, rows.batch.slice(i, 1)).keys()[0]
