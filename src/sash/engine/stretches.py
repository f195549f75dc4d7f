"""Windows in columns: the stretches of a run that they cover, swept as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core
from sash.engine.query import FAR, Query, Windows
from sash.engine.run import Run
from sash.engine.types import from_integers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["missed_batch", "window_batch", "window_batches", "window_bounds", "window_results", "window_rows"]

Array = np.ndarray[Any, Any]
BATCH = 250_000  # rows, about, of one batch of output


def window_rows(
    query: Query, keys: list[pa.Array], starts: Array, ends: Array, results: list[pa.Array], late: bool = False
) -> pa.RecordBatch:
    """Windows as they come out; their bounds are times. Of several ranges there is no one start."""
    import pyarrow as pa

    schema = query.output_schema()
    type_ = schema.field("window_end").type
    several = isinstance(query.windows, Windows) and query.windows.ranges
    bounds = [ends] if several else [starts, ends]
    columns = [*keys, *(from_integers(pa.array(bound), type_) for bound in bounds), *results]
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
    keys_ = [column.take(pa.array(key)) for column in run.key_columns]
    return window_rows(query, keys_, *window_bounds(windows, end), window_results(run, (from_, to), end))


def window_bounds(windows: Windows, end: Array) -> tuple[Array, Array]:
    """The times at which windows start and end, from their ends in panes."""
    return windows.instants(end - windows.range // windows.grain), windows.instants(end)


def window_results(run: Run, stretches: tuple[Array, Array], end: Array) -> list[pa.Array]:
    """The results of windows that end there (in panes), each within a stretch of the run; of several ranges, aggregation by aggregation."""
    windows = run.layout.query.windows
    assert isinstance(windows, Windows)
    held, _ = windows.in_panes
    each = []
    for range_ in windows.each_range:
        found = stretches if range_ == held else (_core.first_from(run.times, *stretches, end - range_), stretches[1])
        each.append(run.layout.results(run.columns, found))
    return [results[i] for i in range(len(run.layout.query.aggs)) for results in each]


def missed_batch(run: Run, last_end: int) -> pa.RecordBatch | None:
    """The windows that end up to last_end (in panes) and hold a slice of the run, without values: closed ones that missed rows."""
    import pyarrow as pa

    query = run.layout.query
    windows = query.windows
    assert isinstance(windows, Windows)
    range_, slide = windows.range // windows.grain, windows.slide // windows.grain
    _, _, key, end = _core.window_stretches(run.starts, run.times, range_, slide, -FAR, last_end)
    if not len(key):
        return None
    nothing = [pa.nulls(len(key), query.output_schema().field(name).type) for name in query.feature_names]
    keys = [column.take(pa.array(key)) for column in run.key_columns]
    return window_rows(query, keys, *window_bounds(windows, end), nothing, late=True)


def window_batches(run: Run, first_end: int, last_end: int) -> Iterator[pa.RecordBatch]:
    """The same in batches of bounded size: some keys at a time, or a part of a long key."""
    windows = run.layout.query.windows
    assert isinstance(windows, Windows)
    range_, slide = windows.in_panes
    filled = run.starts[1:] > run.starts[:-1]
    oldest, newest = np.zeros(len(filled), np.int64), np.full(len(filled), -1)
    oldest[filled], newest[filled] = run.times[run.starts[:-1][filled]], run.times[run.starts[1:][filled] - 1]
    # A key has no more windows than lie between its first slice and its last, and no more than its slices are in.
    span = np.minimum(newest + range_, last_end) - np.maximum(oldest, first_end)
    most = np.minimum(np.maximum(span // slide + 2, 0), np.diff(run.starts) * (range_ // slide + 1))
    total = np.concatenate([[0], np.cumsum(most)])
    first = 0
    while first < len(filled):
        last = max(first + 1, int(np.searchsorted(total, total[first] + BATCH, side="right")) - 1)
        stretches = [(first_end, last_end)]
        if total[last] - total[first] > 4 * BATCH:
            # Every part reads a whole range of slices before its first window, so it must be longer than a range.
            step = max(BATCH, 4 * (range_ // slide)) * slide
            low, high = max(first_end, int(oldest[first])), min(last_end, int(newest[first]) + range_)
            stretches = [(end, min(end + step - 1, high)) for end in range(low, high + 1, step)]
        for low, high in stretches:
            batch = window_batch(run, low, high, (first, last))
            if batch is not None:
                yield batch
        first = last
