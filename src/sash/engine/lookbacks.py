"""The look-backs of rows and labels over a run: which stretch of it each covers, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core
from sash.engine.layout import Each, RowView, sortable
from sash.engine.query import MARK, Query
from sash.engine.run import Run
from sash.engine.shapes import FOREVER, Hops, Lookback, Rolling, Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["kept_rows", "label_columns", "lookback_columns", "row_ties", "shown_labels", "split_labels"]

Array = np.ndarray[Any, Any]
Stretches = tuple[Array, Array]


def _unit(period: Lookback) -> tuple[str, int, int]:
    """The unit of a look-back, its length, and its hop."""
    if isinstance(period, Rows):
        return "rows", period.n, 0
    if isinstance(period, Hops):
        return "time", period.period, period.hop
    return ("all", 0, 0) if period is None else ("time", period, 0)


def _points(run: Run, rolling: Rolling, period: Lookback, keys: Array, times: Array) -> Stretches:
    unit, length, hop = _unit(period)
    ends = rolling.takes_left, rolling.takes_right
    found: Stretches = _core.point_stretches(run.starts, run.times, keys, times, unit, length, hop, rolling.delay, *ends)
    return found


def _results(run: Run, find: Callable[[Lookback], Stretches], places: Array, each: Each | None) -> list[pa.Array]:
    """The results of all look-backs, aggregation by aggregation; that of stretch j comes to row places[j]."""
    query = run.layout.query
    assert query.rolling is not None
    groups = run.groups()
    periods = [period for _, period in query.rolling.lookbacks]
    by_lookback = [
        list(run.layout.results(run.columns, found, groups, isinstance(period, Rows), places, each))
        for found, period in zip((each or map)(find, periods), periods, strict=True)
    ]
    return [results[i] for i in range(len(query.aggs)) for results in by_lookback]


def lookback_columns(run: Run, entries: Array, places: Array, each: Each | None = None) -> list[pa.Array]:
    """The results of all look-backs of these entries of a run, row by row (row i is entry places[i]), aggregation by aggregation.

    With ``each``, the map of a pool of threads, all of its cores work on one run.
    """
    rolling = run.layout.query.rolling
    assert rolling is not None
    rows = np.empty(len(places), np.int32)
    rows[places] = np.arange(len(places), dtype=np.int32)
    if len(entries) == len(run):
        keys = np.repeat(np.arange(len(run.keys), dtype=np.int32), np.diff(run.starts))
    else:
        keys = np.asarray(np.searchsorted(run.starts, entries, side="right") - 1, np.int32)
    times = run.times[entries]

    def find(period: Lookback) -> Stretches:
        if not isinstance(period, Rows):
            return _points(run, rolling, period, keys, times)
        # Counted from the row itself, which only its entry knows.
        ends = rolling.takes_left, rolling.takes_right
        found: Stretches = _core.lookback_stretches(run.starts, run.times, entries, "rows", period.n, *ends)
        return found

    return _results(run, find, rows, each)


def label_columns(run: Run, labels: pa.RecordBatch, each: Each | None = None) -> list[pa.Array]:
    """The results of all look-backs at the times of labels, label by label; a key without entries gets those of an empty one."""
    query = run.layout.query
    rolling = query.rolling
    assert rolling is not None
    view = RowView(query, labels)
    names, ids = view.keys()
    missing = len(run.keys)
    numbers = np.array([run.keys.find(names, i) for i in range(len(names))], np.int64)
    numbers[numbers < 0] = missing
    keys = numbers[ids].astype(np.int32) if len(numbers) else np.zeros(0, np.int32)
    order = np.lexsort((view.times, keys)).astype(np.int32)
    keys, times = np.ascontiguousarray(keys[order]), np.ascontiguousarray(view.times[order])
    return _results(run, lambda period: _points(run, rolling, period, keys, times), order, each)


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
