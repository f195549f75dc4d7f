"""The public functions: check the definition, pick the plan, say what was picked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sash.agg import Aggregation
from sash.engine.tiles import tile_aggregation
from sash.errors import DefinitionError
from sash.spark.batch import batch
from sash.spark.definition import Definition, define
from sash.spark.guard import guarded, quoted
from sash.spark.history import reached, since, told_since, unseen, whole_slices
from sash.spark.labels import as_rows, with_labels
from sash.spark.settings import Settings
from sash.spark.started import refusing
from sash.spark.stream import stream
from sash.spark.tile_sink import TOLD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def windows(
    df: DataFrame,
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
    history: DataFrame | None = None,
    history_until: Any = None,
    idle: Any = None,
) -> DataFrame:
    """Aggregate over windows [start, start + range), one every slide, for each key.

    Gives the key columns, `window_start`, `window_end` and a column per aggregation; a window without rows gives no row. In a
    stream a window comes out once, when the watermark reaches its end. A late row counts in the windows that are still open, as in
    Spark; `late="flag"` also tells the closed ones that missed it: without values, `_late` true.

    A list of ranges gives one row per key and end: `window_end`, then `{name}_{range}` for each. `empty="once"` also gives the first
    window of a key that has no row any more, with the results of nothing. With `tz`, range and slide are whole days, weeks or months
    there, and windows start at local midnights.

    With `history`, a batch DataFrame of the same columns, rows before `history_until` count from there and the others from `df`: a
    stream begins with the state that history leaves, and gives the windows that end after it, as batch over both does.

    With `idle`, the watermark of a stream also follows the clock, the delay and `idle` behind it, so that last windows close where no
    rows come. A row that is further behind the clock is then late.

    Cost: independent of range / slide, but for the output.

    >>> hourly = windows(df, time="at", range="1 hour", slide="1 minute", key="zone", aggs={"n": agg.count()})  # doctest: +SKIP
    >>> hourly.columns                                                                                   # doctest: +SKIP
    ['zone', 'window_start', 'window_end', 'n']
    """
    return _plan(
        df,
        define(
            "windows",
            df,
            time=time,
            range=range,
            slide=slide,
            session=session,
            aggs=aggs,
            key=key,
            watermark=watermark,
            offset=offset,
            emit=emit,
            late=late,
            max_ahead=max_ahead,
            tie=tie,
            empty=empty,
            tz=tz,
            history=history,
            since=since(df, history, history_until),
            idle=idle,
        ),
    )


def rolling(
    df: DataFrame,
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
    at: DataFrame | None = None,
    at_time: str | None = None,
    history: DataFrame | None = None,
    history_until: Any = None,
    idle: Any = None,
) -> DataFrame:
    """Give every row the aggregations of its key's rows in each look-back: (t - period, t].

    Adds a column `{name}_{lookback}` for each aggregation and look-back: `"1h"`, `"100rows"`, or None for the whole past. In a
    stream a row comes out once, when the watermark reaches its time, with what batch would give it. `"30d/1h"` is coarse at its far
    end: it begins at the full hour, at least thirty days back, and holds one partial per hour of what is older than the watermark.

    With `at`, another table that has the key columns, every row of that one comes out instead, once, with the rows of `df` before
    its time `at_time`: [t - period, t) unless `closed` says otherwise, so that nothing from t on can leak into it.

    With `history`, a batch DataFrame of the same columns, rows before `history_until` count from there and the others from `df`: a
    stream begins with the state that history leaves, and gives the rows from then on, as batch over both does. With `idle`, the
    watermark also follows the clock, the delay and `idle` behind it.

    >>> out = rolling(df, time="at", lookbacks=["1h", "1d"], key="zone", aggs={"sum": agg.sum("fare")})  # doctest: +SKIP
    >>> out.columns                                                                                      # doctest: +SKIP
    ['at', 'zone', 'fare', 'sum_1h', 'sum_1d']
    """
    labels = None
    if at is not None:
        rows = df
        df, labels = with_labels(rows, at, time=time, at_time=at_time, key=key, aggs=aggs, tie=tie)
        history = None if history is None else as_rows(history, like=df, rows=rows)
    elif at_time is not None:
        raise DefinitionError(f"at_time={at_time!r} names the time column of at=, which is missing. Add it, or drop at_time.")
    return _plan(
        df,
        define(
            "rolling",
            df,
            time=time,
            lookbacks=lookbacks,
            aggs=aggs,
            key=key,
            watermark=watermark,
            emit=emit,
            closed=closed,
            delay=delay,
            late=late,
            max_ahead=max_ahead,
            tie=tie,
            labels=labels,
            history=history,
            since=since(df, history, history_until),
            idle=idle,
        ),
    )


def tiles(
    df: DataFrame,
    *,
    time: str,
    grain: Any,
    aggs: Mapping[str, Aggregation],
    key: str | Sequence[str] | None = None,
    watermark: Any = None,
    tie: str | None = None,
    emit: str = "final",
    max_ahead: Any = None,
    history: DataFrame | None = None,
    history_until: Any = None,
    idle: Any = None,
) -> DataFrame:
    """Cut time into slices of one grain and give each key's partials: what wheels are built from.

    Gives the key columns, `slice_start`, `slice_end` and a column per aggregation that can be merged over time and over sources:
    the value itself where it can (count, sum, min, max), a struct for mean (sum, count) and minmax, bytes for the others. In a stream a
    slice comes out once, when the watermark reaches its end; with `emit="update"` as it stands, whenever rows came for it: what
    tile_sink(..., provisional=True) takes.

    With `history_until`, rows before it are dropped and counted as seen, and the slices that end after it come out: for a store that
    already has those before it, from `write_history`. Where it is within a slice, `history` has the rows of the slice's beginning.
    With `idle`, the watermark also follows the clock, the delay and `idle` behind it.

    >>> minutes = tiles(df, time="at", grain="1 minute", key="zone", aggs={"fare": agg.mean("fare")})  # doctest: +SKIP
    >>> minutes.columns                                                                              # doctest: +SKIP
    ['zone', 'slice_start', 'slice_end', 'fare']
    """
    partials = {name: tile_aggregation(a) if isinstance(a, Aggregation) else a for name, a in aggs.items()}
    asked: dict[str, Any] = {"time": time, "range": grain, "aggs": partials, "key": key, "watermark": watermark, "tie": tie, "emit": emit}
    asked["max_ahead"] = max_ahead
    if history is None and history_until is not None:
        whole_slices(history_until, grain)
        history = df.sparkSession.createDataFrame([], df.schema)
    out = windows(df, **asked, history=history, history_until=history_until, idle=idle)
    out = out.withColumnsRenamed({"window_start": "slice_start", "window_end": "slice_end"})
    if not df.isStreaming:
        return out
    return refusing(out if emit == "final" else out.withMetadata("slice_end", {**out.schema["slice_end"].metadata, TOLD: emit}))


def _plan(df: DataFrame, definition: Definition) -> DataFrame:
    settings = Settings.read(df.sparkSession, definition.what)
    rows = unseen(guarded(df, definition, settings), definition, settings).select(*map(quoted, definition.columns))
    if definition.streaming:
        return refusing(stream(rows, definition, settings))
    if definition.history is not None:
        rows = rows.unionByName(reached(definition.history, definition.query).select(*map(quoted, definition.columns)))
    return told_since(batch(rows, definition, settings), definition.query)
