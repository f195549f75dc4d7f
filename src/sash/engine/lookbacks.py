"""The look-backs of rows and labels over a run: which stretch of it each covers, and what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core
from sash.engine.layout import Each, RowView, Sheet, sortable
from sash.engine.query import MARK, Query
from sash.engine.run import Run
from sash.engine.shapes import FOREVER, Hops, Lookback, Rolling, Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["kept_rows", "label_columns", "lookback_columns", "row_ties", "shown_labels", "split_labels"]

CUT = 1 << 18  # points to a task: fixed, so that results do not depend on the number of cores
Array = np.ndarray[Any, Any]
Stretches = tuple[Array, Array]


def _unit(period: Lookback) -> tuple[str, int, int]:
    """The unit of a look-back, its length, and its hop."""
    if isinstance(period, Rows):
        return "rows", period.n, 0
    if isinstance(period, Hops):
        return "time", period.period, period.hop
    return ("all", 0, 0) if period is None else ("time", period, 0)


class _Points:
    """Points in time of keys, by key and time, whose look-backs over a run are wanted."""

    def __init__(self, run: Run, keys: Array, times: Array, entries: Array | None = None) -> None:
        assert run.layout.query.rolling is not None
        self._run, self._keys, self._times, self._entries = run, keys, times, entries
        self._rolling: Rolling = run.layout.query.rolling

    def __len__(self) -> int:
        return len(self._times)

    def stretches(self, period: Lookback, which: Any = slice(None), first: int | None = None) -> Stretches:
        """The stretches of some points; ``first`` is where that of the first one begins, if that is known."""
        run, rolling = self._run, self._rolling
        unit, length, hop = _unit(period)
        ends = rolling.takes_left, rolling.takes_right
        found: Stretches
        if unit == "rows" and self._entries is not None:  # counted from the row itself, which only its entry knows
            found = _core.lookback_stretches(run.starts, run.times, self._entries[which], unit, length, *ends)
            return found
        starts, keys, times = run.starts, self._keys[which], run.times
        if first is None or unit != "time" or not len(keys):
            found = _core.point_stretches(starts, times, keys, self._times[which], unit, length, hop, rolling.delay, *ends)
            return found
        # Only what these points see: the search begins at the first stretch, and not where its key does.
        starts = starts[keys[0] : keys[-1] + 2] - first
        starts[0] = 0
        times = times[first : first + starts[-1]]
        begin, end = _core.point_stretches(starts, times, keys - keys[0], self._times[which], unit, length, hop, rolling.delay, *ends)
        return begin + first, end + first

    def cuts(self, period: Lookback) -> list[tuple[slice, int | None]]:
        """Cut the points into tasks, each with where its first stretch begins.

        A task folds that stretch anew, so there are as many tasks as fold no more, together, than there are points.
        """
        n, size = len(self), CUT
        known = self._entries is not None or not isinstance(period, Rows)  # else each task would count from where its key begins
        while known and size < n:
            at = np.arange(0, n, size)
            starts, ends = self.stretches(period, at)
            if int((ends - starts)[1:].sum()) <= n:
                return [(slice(a, min(a + size, n)), first) for a, first in zip(at.tolist(), starts.tolist(), strict=True)]
            size *= 2
        return [(slice(0, n), None)]

    def results(self, places: Array, each: Each | None) -> list[pa.Array]:
        """The results of all look-backs, aggregation by aggregation; that of point j comes to row places[j].

        With ``each``, the map of a pool of threads, all of its cores work on one run, a cut at a time: its stretches stay in the
        cache and are not kept.
        """
        run, layout = self._run, self._run.layout
        periods = [period for _, period in self._rolling.lookbacks]
        sheets = [Sheet(layout, len(self)) for _ in periods]

        def write(task: tuple[Sheet, Lookback, slice, int | None]) -> None:
            sheet, period, cut, first = task
            sheet.write(run.columns, self.stretches(period, cut, first), places[cut])

        whole: list[tuple[slice, int | None]] = [(slice(None), None)]
        tasks = [(sheet, p, *cut) for sheet, p in zip(sheets, periods, strict=True) for cut in (whole if each is None else self.cuts(p))]
        list((each or map)(write, tasks))
        groups = run.groups()
        none = np.zeros(0, np.int64)
        by_lookback = [
            layout.results(
                run.columns, (none, none) if layout.all_native else self.stretches(p), groups, isinstance(p, Rows), places, sheet
            )
            for sheet, p in zip(sheets, periods, strict=True)
        ]
        return [results[i] for i in range(len(layout.query.aggs)) for results in by_lookback]


def lookback_columns(run: Run, entries: Array, places: Array, each: Each | None = None) -> list[pa.Array]:
    """The results of all look-backs of these entries of a run, row by row (row i is entry places[i]), aggregation by aggregation."""
    rows = np.empty(len(places), np.int32)
    rows[places] = np.arange(len(places), dtype=np.int32)
    keys = np.repeat(np.arange(len(run.keys), dtype=np.int32), np.diff(run.starts))
    if len(entries) < len(run):
        keys = keys[entries]
    return _Points(run, keys, run.times[entries], entries).results(rows, each)


def label_columns(run: Run, labels: pa.RecordBatch, each: Each | None = None) -> list[pa.Array]:
    """The results of all look-backs at the times of labels, label by label; a key without entries gets those of an empty one."""
    query = run.layout.query
    view = RowView(query, labels)
    names, ids = view.keys()
    missing = len(run.keys)
    numbers = np.array([run.keys.find(names, i) for i in range(len(names))], np.int64)
    numbers[numbers < 0] = missing
    keys = numbers[ids].astype(np.int32) if len(numbers) else np.zeros(0, np.int32)
    order = np.lexsort((view.times, keys)).astype(np.int32)
    return _Points(run, np.ascontiguousarray(keys[order]), np.ascontiguousarray(view.times[order])).results(order, each)


def split_labels(query: Query, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """The rows of a batch and its labels; None where the query has no labels."""
    if query.labels is None:
        return batch, None
    import pyarrow.compute as pc

    marked = batch.column(MARK)
    return batch.filter(pc.invert(marked)), batch.filter(marked)


def shown_labels(query: Query, labels: pa.RecordBatch) -> list[pa.Array]:
    """The columns of labels as they come out."""
    assert query.labels is not None
    return [labels.column(query.time if name == query.labels.time else name) for name in query.labels.columns]


def row_ties(query: Query, batch: pa.RecordBatch) -> list[Array]:
    """What orders rows of equal time where look-backs count rows: the tie column, the aggregated ones, then all others."""
    assert query.rolling is not None
    if not query.rolling.kept_rows:
        return []
    names = [*([query.tie] if query.tie else []), *query.value_columns, *query.schema.names]
    known = dict.fromkeys(name for name in names if name in batch.schema.names and name not in (query.time, *query.keys))
    return [sortable(batch.column(name)) for name in known]


def kept_rows(query: Query, run: Run, watermark: int | None) -> Run:
    """The entries of a run of rows that still matter at a watermark, one per hop where look-backs take whole hops."""
    rolling = query.rolling
    assert rolling is not None
    if watermark is None or watermark >= FOREVER:
        return run.keep(rolling.oldest_time(watermark), 0 if watermark is not None else rolling.kept_rows, rolling.whole_past)
    if query.emit == "changed":  # the look-backs of the watermark itself are asked for again
        watermark -= 1
    run = run.keep(rolling.oldest_time(watermark), rolling.kept_rows, rolling.whole_past)
    return run.coarsen(rolling.exact_from(watermark), rolling.kept_rows, rolling.hop) if rolling.hop else run
