"""What the user asks for, checked before anything runs: every mistake is an error here, none in a running query."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from sash.agg import Aggregation
from sash.engine import Query, Rolling, Rows, Sessions, Windows
from sash.errors import DefinitionError
from sash.spark.types import arrow_schema
from sash.time import duration, duration_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = re.compile(r"\s*(\d+)\s*rows?\s*")
_WATERMARK = "spark.watermarkDelayMs"  # where Spark notes a watermark in a column's metadata


@dataclasses.dataclass(frozen=True)
class Definition:
    """A checked query and how it is to be run on one DataFrame."""

    what: str  # windows, rolling
    query: Query
    columns: tuple[str, ...]  # of the input, that go to the core
    streaming: bool
    delay: int | None  # of the watermark that we put on, in microseconds; None where the DataFrame brings one, and in batch
    max_ahead: MaxAhead | None = None

    @property
    def result_column(self) -> str:
        """The first column that the input does not have."""
        return "window_end" if self.query.windows is not None else self.query.feature_names[0]

    @property
    def output_mode(self) -> str:
        """Spark's output mode that fits `emit`."""
        return "update" if self.query.emit in ("update", "changed") else "append"


@dataclasses.dataclass(frozen=True)
class MaxAhead:
    """How far a row's time may be ahead, in microseconds, of a column or (None) of the micro-batch's clock."""

    period: int
    column: str | None


def define_windows(
    df: DataFrame,
    *,
    time: str,
    range: Any,
    slide: Any,
    session: Any,
    aggs: Mapping[str, Aggregation],
    key: str | Sequence[str] | None,
    watermark: Any,
    offset: Any,
    emit: str,
    late: str,
    max_ahead: Any,
    tie: str | None,
) -> Definition:
    """Check the arguments of windows()."""
    keys, bound = _check_columns(df, time, key, aggs, tie)
    _one_of("emit", emit, ("final", "update"))
    _one_of("late", late, ("drop", "accept", "flag"))
    shape = _sessions(session, range, slide, offset, emit) if session is not None else _sliding(range, slide, offset)
    columns = _used(df, time, keys, bound, tie)
    query = _query(df, columns, time=time, keys=keys, aggs=bound, windows=shape, late=late, tie=tie, emit=emit)
    delay = _watermark(df, time, watermark)
    return Definition("windows", query, columns, df.isStreaming, delay, _max_ahead(df, delay, max_ahead))


def _sessions(session: Any, range: Any, slide: Any, offset: Any, emit: str) -> Sessions:
    for name, value in (("range", range), ("slide", slide), ("offset", offset)):
        if value is not None:
            raise DefinitionError(
                f"session={session!r} and {name}={value!r} do not go together: a session is as long as its rows make it. Drop one."
            )
    if emit != "final":
        raise DefinitionError(f"emit={emit!r} is not for sessions, which grow together as rows come. Use emit='final'.")
    return Sessions(_positive("session", session))


def _sliding(range: Any, slide: Any, offset: Any) -> Windows:
    if range is None:
        raise DefinitionError("windows() needs a range, e.g. range='1 hour', slide='1 minute', or session='30 minutes'.")
    length = _positive("range", range)
    step = length if slide is None else _positive("slide", slide)
    if step > length:
        raise DefinitionError(
            f"slide={slide!r} is larger than range={range!r}: rows between two windows would count nowhere. "
            "Make the slide at most the range."
        )
    shift = 0 if offset is None else _duration("offset", offset) % step
    return Windows(length, step, shift)


def define_rolling(
    df: DataFrame,
    *,
    time: str,
    lookbacks: Iterable[Any],
    aggs: Mapping[str, Aggregation],
    key: str | Sequence[str] | None,
    watermark: Any,
    emit: str,
    closed: str,
    delay: Any,
    late: str,
    max_ahead: Any,
    tie: str | None,
) -> Definition:
    """Check the arguments of rolling()."""
    keys, bound = _check_columns(df, time, key, aggs, tie)
    _one_of("emit", emit, ("final", "event", "changed"))
    _one_of("late", late, ("drop", "accept", "flag"))
    if emit == "changed" and late == "flag":
        raise DefinitionError("late='flag' marks rows, and emit='changed' gives values of keys, not rows. Use late='drop' or 'accept'.")
    if emit == "changed" and not df.isStreaming:
        raise DefinitionError("emit='changed' tells what changes as time passes, so it needs a stream. Use emit='final' in batch.")
    _one_of("closed", closed, ("right", "left", "both", "neither"))
    if isinstance(lookbacks, str) or not isinstance(lookbacks, Iterable):
        raise DefinitionError(f"lookbacks={lookbacks!r} is not a list. Write lookbacks=[{lookbacks!r}].")
    periods = tuple(_lookback(lookback) for lookback in lookbacks)
    if not periods:
        raise DefinitionError("rolling() needs at least one look-back, e.g. lookbacks=['1h', '6h'].")
    shift = 0 if delay is None else _duration("delay", delay)
    if shift < 0:
        raise DefinitionError(f"delay={delay!r} is negative: it shifts look-backs into the past, away from rows still to come.")
    columns = _used(df, time, keys, bound, tie) if emit == "changed" else tuple(df.columns)
    shape = Rolling(periods, closed, shift)
    query = _query(df, columns, time=time, keys=keys, aggs=bound, rolling=shape, late=late, tie=tie, emit=emit)
    behind = _watermark(df, time, watermark)
    return Definition("rolling", query, columns, df.isStreaming, behind, _max_ahead(df, behind, max_ahead))


def _query(df: DataFrame, columns: tuple[str, ...], **asked: Any) -> Query:
    """Make the query; what only the core can refuse is refused here too."""
    try:
        query = Query(schema=arrow_schema(T.StructType([df.schema[name] for name in columns])), **asked)
        query.layout  # noqa: B018  made here to fail here
        if df.isStreaming:
            query.check_names()
    except DefinitionError:
        raise
    except (TypeError, ValueError) as error:
        raise DefinitionError(str(error)) from error
    return query


def _check_columns(
    df: DataFrame, time: str, key: str | Sequence[str] | None, aggs: Mapping[str, Aggregation], tie: str | None
) -> tuple[tuple[str, ...], tuple[tuple[str, Aggregation], ...]]:
    keys = () if key is None else (key,) if isinstance(key, str) else tuple(key)
    names = df.columns
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DefinitionError(f"the DataFrame has two columns named {twice[0]!r}. Rename one of them first.")
    for role, name in [("time", time), *(("key", k) for k in keys), *((("tie", tie),) if tie is not None else ())]:
        _column(df, role, name)
    kind = df.schema[time].dataType
    if not isinstance(kind, T.TimestampType | T.TimestampNTZType):
        raise DefinitionError(
            f"time={time!r} is of type {kind.simpleString()}, not a timestamp. Cast it first: F.col({time!r}).cast('timestamp')."
        )
    for name in keys:
        if isinstance(df.schema[name].dataType, T.MapType):
            raise DefinitionError(f"key={name!r} is a map, and maps can't be keys. Take an entry of it, or to_json() of it.")
    if not isinstance(aggs, Mapping) or not aggs:
        raise DefinitionError(f"aggs={aggs!r} must be a dict of name to aggregation with at least one entry, e.g. {{'n': agg.count()}}.")
    for name, aggregation in aggs.items():
        if not isinstance(aggregation, Aggregation):
            raise DefinitionError(f"aggs[{name!r}] is {aggregation!r}, not an aggregation. Use sash.agg, e.g. agg.sum('fare').")
        for role, part in _parts(name, aggregation):
            params = dict(part.params)
            if part.column is None and params.get("by") is None and part.name != "count" and not part.callables:
                raise DefinitionError(f"{role} has no column. Name it: agg.{part.name}('column').")
            for argument, used in (("column", part.column), ("where", part.where), ("by", params.get("by")), ("of", params.get("of"))):
                if isinstance(used, str):
                    _column(df, f"{role} {argument}", used)
    return keys, tuple(aggs.items())


def _parts(name: str, aggregation: Aggregation) -> Iterator[tuple[str, Aggregation]]:
    """An aggregation that is no struct, or the parts of one, each with where it stands."""
    if not aggregation.parts:
        yield f"aggs[{name!r}]", aggregation
    for inner, part in aggregation.parts:
        yield from _parts(f"{name}.{inner}", part)


def _column(df: DataFrame, role: str, name: Any) -> None:
    if not isinstance(name, str):
        raise DefinitionError(f"{role}={name!r} is not the name of a column. Pass a string; for an expression, make a column of it first.")
    if name not in df.columns:
        raise DefinitionError(f"{role}={name!r} is not a column. The columns are {', '.join(df.columns)}.")


def _used(df: DataFrame, time: str, keys: tuple[str, ...], aggs: tuple[tuple[str, Aggregation], ...], tie: str | None) -> tuple[str, ...]:
    """The columns that the query reads, each once; Spark drops the others before the rows leave the JVM."""
    read: list[Any] = []
    for _, part in (pair for name, a in aggs for pair in _parts(name, a)):
        if callable(part.where) or (part.column is None and part.callables):
            return tuple(df.columns)  # these see the whole row
        params = dict(part.params)
        read += [part.column, part.where, params.get("by"), params.get("of")]
    return tuple(dict.fromkeys(name for name in (*keys, time, *read, tie) if isinstance(name, str)))


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise DefinitionError(f"{name}={value!r} is not known. Use one of {', '.join(map(repr, allowed))}.")


def _duration(name: str, value: Any) -> int:
    if isinstance(value, int):
        raise DefinitionError(f"{name}={value!r} has no unit. Write it as text with one, e.g. {name}='{value}s', or as a timedelta.")
    try:
        return duration(value)
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"{name}={value!r}: {error}") from error


def _positive(name: str, value: Any) -> int:
    period = _duration(name, value)
    if period <= 0:
        raise DefinitionError(f"{name}={value!r} must be longer than 0, e.g. {name}='1 minute'.")
    return period


def _lookback(value: Any) -> tuple[str, int | Rows | None]:
    """A look-back as written, and what it means: a period, a number of rows, or (None) the whole past."""
    if value is None:
        return "all", None
    if isinstance(value, int) and not isinstance(value, bool):
        return _lookback(f"{value}rows")
    if isinstance(value, str) and (rows := _ROWS.fullmatch(value)):
        if int(rows[1]) == 0:
            raise DefinitionError(f"the look-back {value!r} must have at least one row.")
        return f"{int(rows[1])}rows", Rows(int(rows[1]))
    period = _positive("look-back", value)
    return (value if isinstance(value, str) else duration_text(period)), period


def _watermark(df: DataFrame, time: str, watermark: Any) -> int | None:
    """The delay of the watermark to put on, None if the DataFrame has one or needs none."""
    delay = None
    if watermark is not None:
        delay = _duration("watermark", watermark)
        if delay < 0:
            raise DefinitionError(f"watermark={watermark!r} is negative. Use how late rows may come, e.g. watermark='10 minutes', or '0s'.")
        if delay % 1000:
            raise DefinitionError(f"watermark={watermark!r} is not a whole number of milliseconds, which is how Spark counts it.")
    if not df.isStreaming:
        return None
    marked = [field.name for field in df.schema.fields if _WATERMARK in (field.metadata or {})]
    if marked and delay is not None:
        raise DefinitionError(
            f"the DataFrame already has a watermark on {marked[0]!r}, and watermark={watermark!r} would be a second. Drop one."
        )
    if marked and marked != [time]:
        raise DefinitionError(f"the watermark is on {marked[0]!r}, not on time={time!r}. Put it there, or use watermark= instead.")
    if not marked and delay is None:
        raise DefinitionError("a stream needs a watermark, to know when results are final. Add e.g. watermark='10 minutes'.")
    return delay


def _max_ahead(df: DataFrame, delay: int | None, max_ahead: Any) -> MaxAhead | None:
    """Read max_ahead: a period ahead of the clock, or (period, column) ahead of an arrival column."""
    if max_ahead is None:
        return None
    if df.isStreaming and delay is None:
        raise DefinitionError(
            f"max_ahead={max_ahead!r} comes too late: the DataFrame's own watermark counts rows from the future before they are refused. "
            "Use watermark= instead of withWatermark()."
        )
    period, column = max_ahead if isinstance(max_ahead, tuple) else (max_ahead, None)
    if column is not None:
        _column(df, "max_ahead", column)
    return MaxAhead(_positive("max_ahead", period), column)
