"""The public functions: check the definition, run it, give the same kind of frame back."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sash.agg import Aggregation
from sash.engine.definition import Columns, define_rolling, define_windows, labelled, max_ahead_of, watermark_delay
from sash.engine.query import MARK, Query, Windows
from sash.engine.tiles import tile_aggregation
from sash.engine.types import as_integers
from sash.errors import DefinitionError
from sash.frames.arrow import check_times
from sash.frames.kinds import Frame, frame_of, is_of
from sash.frames.lazy import lazily
from sash.frames.run import rolling_columns, windows_table

__all__ = ["rolling", "tiles", "windows"]


def windows(
    df: Any,
    *,
    time: str,
    range: Any = None,
    slide: Any = None,
    session: Any = None,
    aggs: Mapping[str, Aggregation],
    key: str | Sequence[str] | None = None,
    watermark: Any = None,
    offset: Any = None,
    emit: str = "final",
    late: str = "drop",
    max_ahead: Any = None,
    tie: str | None = None,
    empty: str = "drop",
    tz: str | None = None,
) -> Any:
    """Aggregate over windows [start, start + range), one every slide, for each key.

    Gives the key columns, `window_start`, `window_end` and a column per aggregation, sorted by key (nulls last) and end; a window
    without rows gives no row. Takes a pandas or Polars frame (eager or lazy), an Arrow table, batch or reader, a DuckDB relation or
    anything that exports an Arrow stream, and gives the same kind. As in `sash.spark`, where everything has arrived: `watermark`,
    `emit` and `late` say nothing more.

    A list of ranges gives one row per key and end: `window_end`, then `{name}_{range}` for each. `empty="once"` also gives the first
    window of a key that has no row any more, with the results of nothing. With `tz`, range and slide are whole days, weeks or months
    there, and windows start at local midnights.

    Cost: independent of range / slide, but for the output; keys in parallel on all cores.

    >>> import pyarrow as pa
    >>> from sash import agg, windows
    >>> at = pa.array([0, 70, 80, 130], pa.timestamp("s"))
    >>> trips = pa.table({"at": at, "zone": ["a", "b", "a", "a"], "fare": [5, 7, 8, 9]})
    >>> hourly = windows(trips, time="at", range="2m", slide="1m", key="zone", aggs={"fares": agg.sum("fare")})
    >>> hourly.select(["zone", "window_end", "fares"]).to_pandas()
      zone          window_end  fares
    0    a 1970-01-01 00:01:00      5
    1    a 1970-01-01 00:02:00     13
    2    a 1970-01-01 00:03:00     17
    3    a 1970-01-01 00:04:00      9
    4    b 1970-01-01 00:02:00      7
    5    b 1970-01-01 00:03:00      7
    """
    asked = {
        "time": time,
        "range": range,
        "slide": slide,
        "session": session,
        "aggs": aggs,
        "key": key,
        "offset": offset,
        "emit": emit,
        "late": late,
        "tie": tie,
        "empty": empty,
        "tz": tz,
    }
    watermark_delay(watermark)
    return _run(df, _windows, define_windows, max_ahead, asked)


def rolling(
    df: Any,
    *,
    time: str,
    lookbacks: Iterable[Any],
    aggs: Mapping[str, Aggregation],
    key: str | Sequence[str] | None = None,
    watermark: Any = None,
    emit: str = "final",
    closed: str | None = None,
    delay: Any = None,
    late: str = "drop",
    max_ahead: Any = None,
    tie: str | None = None,
    at: Any = None,
    at_time: str | None = None,
) -> Any:
    """Give every row the aggregations of its key's rows in each look-back: (t - period, t].

    Adds a column `{name}_{lookback}` for each aggregation and look-back: `"1h"`, `"100rows"`, or None for the whole past. Rows keep
    their order and, in pandas, their index; they need not be sorted. A row without a time is left out. Takes what `windows` takes
    and gives the same kind. `"30d/1h"` is coarse at its far end: it begins at the full hour, at least thirty days back.

    With `at`, another frame that has the key columns, every row of that one comes out instead, once and in its order, with the rows
    of `df` before its time `at_time`: [t - period, t) unless `closed` says otherwise, so that nothing from t on can leak into it.

    Cost: a sort by key and time, then amortised O(1) combines per row, look-back and aggregation; on all cores.

    >>> import pyarrow as pa
    >>> from sash import agg, rolling
    >>> at = pa.array([0, 70, 80, 130], pa.timestamp("s"))
    >>> trips = pa.table({"at": at, "zone": ["a", "b", "a", "a"], "fare": [5, 7, 8, 9]})
    >>> rolling(trips, time="at", lookbacks=["1m", "1h"], key="zone", aggs={"s": agg.sum("fare")}).drop_columns("at").to_pandas()
      zone  fare  s_1m  s_1h
    0    a     5     5     5
    1    b     7     7     7
    2    a     8     8    13
    3    a     9    17    22
    """
    asked = {
        "time": time,
        "lookbacks": lookbacks,
        "aggs": aggs,
        "key": key,
        "emit": emit,
        "closed": closed,
        "delay": delay,
        "late": late,
        "tie": tie,
    }
    watermark_delay(watermark)
    if at is None and at_time is not None:
        raise DefinitionError(f"at_time={at_time!r} names the time column of at=, which is missing. Add it, or drop at_time.")
    if at is not None:
        return _rolling_at(df, at, at_time, max_ahead, asked)
    return _run(df, _rolling, partial(define_rolling, carry=False), max_ahead, asked)


def tiles(
    df: Any,
    *,
    time: str,
    grain: Any,
    aggs: Mapping[str, Aggregation],
    key: str | Sequence[str] | None = None,
    watermark: Any = None,
    tie: str | None = None,
    emit: str = "final",
    max_ahead: Any = None,
) -> Any:
    """Cut time into slices of one grain and give each key's partials: what wheels are built from.

    Gives the key columns, `slice_start`, `slice_end` and a column per aggregation that can be merged over time and over sources:
    the value itself where it can (count, sum, min, max), a struct for mean (sum, count) and minmax, bytes for the others.

    >>> import pyarrow as pa
    >>> from sash import agg, tiles
    >>> trips = pa.table({"at": pa.array([0, 70, 80], pa.timestamp("s")), "fare": [5, 7, 8]})
    >>> tiles(trips, time="at", grain="1m", aggs={"fare": agg.mean("fare")}).column("fare").to_pylist()
    [{'sum': 5, 'count': 1}, {'sum': 15, 'count': 2}]
    """
    if isinstance(aggs, Mapping):
        aggs = {name: tile_aggregation(a) if isinstance(a, Aggregation) else a for name, a in aggs.items()}
    asked = {"time": time, "range": grain, "aggs": aggs, "key": key, "tie": tie, "emit": emit}
    watermark_delay(watermark)
    return _run(df, _tiles, define_windows, max_ahead, asked)


def _run(df: Any, run: Any, define: Any, max_ahead: Any, asked: dict[str, Any]) -> Any:
    def on_frame(df: Any) -> Any:
        frame = frame_of(df)
        query = define(frame, **asked)
        return run(frame, query, max_ahead_of(frame, max_ahead))

    return lazily(df, on_frame) if is_of(df, "polars", "LazyFrame") else on_frame(df)


def _windows(frame: Frame, query: Query, ahead: tuple[int, str | None] | None, start: str = "window_start", end: str = "window_end") -> Any:
    batch = frame.batch(query.schema, query.keys, query.time)
    kept = kept_rows(frame, query, batch, ahead, keep_untimed=True)
    table = windows_table(query, batch if kept is None else batch.filter(kept))
    names = {"window_start": start, "window_end": end}
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    bounds = {name: query.time for name in (start, end) if name in table.column_names}
    return frame.new(_nullable(table, query), {**{name: name for name in query.keys}, **bounds})


def _tiles(frame: Frame, query: Query, ahead: tuple[int, str | None] | None) -> Any:
    return _windows(frame, query, ahead, "slice_start", "slice_end")


def _rolling(frame: Frame, query: Query, ahead: tuple[int, str | None] | None) -> Any:
    batch = frame.batch(query.schema, query.keys, query.time)
    kept = kept_rows(frame, query, batch, ahead)
    results = rolling_columns(query, batch if kept is None else batch.filter(kept))
    return frame.extended(kept, _nullable(results, query))


def _rolling_at(df: Any, at: Any, at_time: str | None, max_ahead: Any, asked: dict[str, Any]) -> Any:
    """Look-backs at the times of another frame, which comes out with them."""

    def on_frames(at: Any) -> Any:
        rows, other = frame_of(df.collect() if is_of(df, "polars", "LazyFrame") else df), frame_of(at)
        known = {name: asked[name] for name in ("time", "key", "aggs", "tie")}
        labels, used = labelled(rows, other, at_time=at_time, **known)
        theirs = [name for name in other.names if name not in used and name != labels.time]
        schema = pa.schema([*rows.schema(used), *other.schema(theirs), pa.field(MARK, pa.bool_())])
        query = define_rolling(Columns(schema.names, schema), labels=labels, **asked)
        batch = rows.batch(pa.schema([schema.field(name) for name in used]), query.keys, query.time)
        kept = kept_rows(rows, query, batch, max_ahead_of(rows, max_ahead))
        time = other.column(labels.time, schema.field(query.time).type)
        check_times(labels.time, time)
        timed = None if not time.null_count else time.is_valid()
        keyed = [other.column(name, schema.field(name).type) for name in query.keys]
        points = pa.table([*keyed, time], names=[*query.keys, query.time]).combine_chunks()
        points = points if timed is None else points.filter(timed)
        batch = batch if kept is None else batch.filter(kept)
        results = rolling_columns(query, batch, pa.RecordBatch.from_arrays([_whole(c) for c in points.columns], names=points.column_names))
        return other.extended(timed, _nullable(results, query))

    return lazily(at, on_frames) if is_of(at, "polars", "LazyFrame") else on_frames(at)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)


def _nullable(table: pa.Table, query: Query) -> pa.Table:
    """Mark the columns that can't hold a null, whatever comes in: counts, which are 0 of nothing."""
    names = [name for name, a in query.aggs if a.result is not None and a.result.kind == "integer" and a.empty is not None]
    ranges = query.windows.ranges if isinstance(query.windows, Windows) else ()
    labels = [f"_{label}" for label, _ in (ranges if query.rolling is None else query.rolling.lookbacks)] or [""]
    sure = {f"{name}{label}" for name in names for label in labels} | {"_late"}
    return table.cast(pa.schema([field.with_nullable(field.name not in sure) for field in table.schema]))


def kept_rows(
    frame: Frame, query: Query, batch: pa.RecordBatch, ahead: tuple[int, str | None] | None, keep_untimed: bool = False
) -> pa.Array | None:
    """Which rows count: those with a time that is not too far ahead; None if all do."""
    times = batch.column(query.time)
    kept = None if keep_untimed or not times.null_count else times.is_valid()
    if ahead is not None:
        period, column = ahead
        now = pa.scalar(clock.time_ns() // 1000) if column is None else as_integers(_arrivals(frame, column))
        near = pc.fill_null(pc.less_equal(pc.subtract(as_integers(times), now), period), True)
        kept = near if kept is None else pc.and_(kept, near)
    return kept


def _arrivals(frame: Frame, column: str) -> pa.Array:
    frame.check_time(column)
    return frame.column(column)
