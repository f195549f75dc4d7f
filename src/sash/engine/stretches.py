"""Results in columns: the stretches of a run that windows and look-backs cover, swept as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core
from sash.engine.layout import Each, sortable
from sash.engine.query import FAR, Query, Rows, Windows
from sash.engine.run import Run
from sash.engine.types import from_integers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["lookback_columns", "missed_batch", "row_ties", "window_batch", "window_batches", "window_rows"]

Array = np.ndarray[Any, Any]
BATCH = 250_000  # rows, about, of one batch of output


def window_rows(
    query: Query, keys: list[pa.Array], starts: Array, ends: Array, results: list[pa.Array], late: bool = False
) -> pa.RecordBatch:
    """Windows as they come out; their bounds are times."""
    import pyarrow as pa

    schema = query.output_schema()
    type_ = schema.field("window_end").type
    columns = [*keys, from_integers(pa.array(starts), type_), from_integers(pa.array(ends), type_), *results]
    if query.late == "flag":
        columns.append(pa.array(np.full(len(ends), late)))
    return pa.record_batch(columns, schema=schema)


def window_batch(run: Run, first_end: int, last_end: int, keys: tuple[int, int] | None = None) -> pa.RecordBatch | None:
    """The windows of a run, or of some of its keys, that end from first_end to last_end (in panes); None if there are none."""
    import pyarrow as pa

    query = run.layout.query
    windows = query.windows
    assert isinstance(windows, Windows)
    from_, to, key, end = _core.window_stretches(run.starts, run.times, *windows.in_panes, first_end, last_end, keys)
    if not len(key):
        return None
    chosen = pa.array(key)
    end = end * windows.grain + windows.offset
    results = run.layout.results(run.columns, (from_, to))
    return window_rows(query, [column.take(chosen) for column in run.key_columns], end - windows.range, end, results)


def missed_batch(run: Run, last_end: int) -> pa.RecordBatch | None:
    """The windows that end up to last_end (in panes) and hold a slice of the run, without values: closed ones that missed rows."""
    import pyarrow as pa

    query = run.layout.query
    windows = query.windows
    assert isinstance(windows, Windows)
    _, _, key, end = _core.window_stretches(run.starts, run.times, *windows.in_panes, -FAR, last_end)
    if not len(key):
        return None
    nothing = [pa.nulls(len(key), query.output_schema().field(name).type) for name, _ in query.aggs]
    end = end * windows.grain + windows.offset
    return window_rows(query, [column.take(pa.array(key)) for column in run.key_columns], end - windows.range, end, nothing, late=True)


def window_batches(run: Run, first_end: int, last_end: int) -> Iterator[pa.RecordBatch]:
    """The same in batches of bounded size: some keys at a time, or a part of a long key."""
    windows = run.layout.query.windows
    assert isinstance(windows, Windows)
    range_, slide = windows.in_panes
    filled = run.starts[1:] > run.starts[:-1]
    oldest, newest = np.zeros(len(filled), np.int64), np.full(len(filled), -1)
    oldest[filled], newest[filled] = run.times[run.starts[:-1][filled]], run.times[run.starts[1:][filled] - 1]
    # No more windows of a key than from its first slice to its last, nor than its slices are in.
    span = np.minimum(newest + range_, last_end) - np.maximum(oldest, first_end)
    most = np.minimum(np.maximum(span // slide + 2, 0), np.diff(run.starts) * (range_ // slide + 1))
    total = np.concatenate([[0], np.cumsum(most)])
    first = 0
    while first < len(filled):
        last = max(first + 1, int(np.searchsorted(total, total[first] + BATCH, side="right")) - 1)
        stretches = [(first_end, last_end)]
        if total[last] - total[first] > 4 * BATCH:
            # Every part starts anew with a whole range of slices, so it must be longer than one.
            step = max(BATCH, 4 * (range_ // slide)) * slide
            low, high = max(first_end, int(oldest[first])), min(last_end, int(newest[first]) + range_)
            stretches = [(end, min(end + step - 1, high)) for end in range(low, high + 1, step)]
        for low, high in stretches:
            batch = window_batch(run, low, high, (first, last))
            if batch is not None:
                yield batch
        first = last


def lookback_columns(run: Run, entries: Array, places: Array, each: Each | None = None) -> list[pa.Array]:
    """The results of all look-backs of these entries of a run, row by row (row i is entry places[i]), aggregation by aggregation.

    With ``each``, the map of a pool of threads, all of its cores work on one run.
    """

    query = run.layout.query
    rolling = query.rolling
    assert rolling is not None
    groups = run.groups()
    rows = np.empty(len(places), np.int32)
    rows[places] = np.arange(len(places), dtype=np.int32)
    periods = [period for _, period in rolling.lookbacks]
    by_lookback = []
    for period, stretches in zip(periods, (each or map)(lambda period: _lookback_stretches(run, entries, period), periods), strict=True):
        by_lookback.append(run.layout.results(run.columns, stretches, groups, isinstance(period, Rows), rows, each))
    return [results[i] for i in range(len(query.aggs)) for results in by_lookback]


def _lookback_stretches(run: Run, entries: Array, period: int | Rows | None) -> tuple[Array, Array]:
    rolling = run.layout.query.rolling
    assert rolling is not None
    unit = "rows" if isinstance(period, Rows) else "all" if period is None else "time"
    length = period.n if isinstance(period, Rows) else period or 0
    starts, ends = _core.lookback_stretches(
        run.starts, run.times, entries, unit, length + rolling.delay, rolling.takes_left, rolling.takes_right
    )
    if rolling.delay:  # up to where a look-back as long as the delay would begin
        ends = _core.lookback_stretches(run.starts, run.times, entries, "time", rolling.delay, not rolling.takes_right, True)[0]
        ends = np.maximum(starts, ends)
    return starts, ends


def row_ties(query: Query, batch: pa.RecordBatch) -> list[Array]:
    """What orders rows of equal time where look-backs count rows: the tie column, the aggregated ones, then all others."""
    assert query.rolling is not None
    if not query.rolling.kept_rows:
        return []
    names = [*([query.tie] if query.tie else []), *query.value_columns, *query.schema.names]
    return [sortable(batch.column(name)) for name in dict.fromkeys(names) if name not in (query.time, *query.keys)]
