"""What the user asks for, checked before anything runs: names, columns, ranges and look-backs become a Query.

The same for every kind of frame; a kind says what it must of itself by a class of ``Columns``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sash.agg import Aggregation
from sash.engine import calendar
from sash.engine.query import LATE, Labels, Query, sees_rows
from sash.engine.shapes import CLOSED, CalendarWindows, Hops, Lookback, Rolling, Rows, Sessions, Windows
from sash.errors import DefinitionError
from sash.time import duration, duration_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Columns", "define_rolling", "define_windows", "labelled", "max_ahead_of", "positive", "watermark_delay"]

_ROWS = re.compile(r"\s*(\d+)\s*rows?\s*")


class Columns:
    """The columns of an input as a definition looks at them: here those of an Arrow schema."""

    def __init__(self, names: Sequence[str], types: pa.Schema | None = None) -> None:
        self.names = tuple(names)
        self._types = types

    def schema(self, names: Iterable[str]) -> pa.Schema:
        """The Arrow types of some columns; a DefinitionError names one that can't be carried."""
        import pyarrow as pa

        assert self._types is not None
        return pa.schema([self._types.field(name) for name in names])

    def check_time(self, name: str) -> None:
        """Raise a DefinitionError if a column holds no points in time."""
        import pyarrow as pa

        type_ = self.schema([name]).field(0).type
        if not pa.types.is_timestamp(type_):
            raise DefinitionError(f"time={name!r} is of type {type_}, not a timestamp. Cast it first: {self.cast_to_time(name)}.")

    def cast_to_time(self, name: str) -> str:
        """Say how a column is made one of timestamps."""
        return f"column {name!r} .cast(pa.timestamp('us'))"

    def check_key(self, name: str) -> None:
        """Raise a DefinitionError if a column can't be a key. The engine refuses some types by itself; those are not listed here."""

    def require(self, role: str, name: Any) -> None:
        """Raise a DefinitionError unless this is the name of a column."""
        if not isinstance(name, str):
            raise DefinitionError(
                f"{role}={name!r} is not the name of a column. Pass a string; for an expression, make a column of it first."
            )
        if name not in self.names:
            there = f"The columns are {', '.join(map(str, self.names))}" if self.names else "There are none"
            raise DefinitionError(f"{role}={name!r} is not a column. {there}.{self.near(name)}")

    def near(self, name: str) -> str:
        """Say where else in the input the name is, and how to make a column of it; nothing where it is nowhere."""
        return ""


def define_windows(
    columns: Columns,
    *,
    time: str,
    range: Any = None,
    slide: Any = None,
    session: Any = None,
    aggs: Mapping[str, Aggregation],
    key: str | Sequence[str] | None = None,
    offset: Any = None,
    emit: str = "final",
    late: str = "drop",
    tie: str | None = None,
    empty: str = "drop",
    tz: str | None = None,
    since: int | None = None,
    streaming: bool = False,
) -> Query:
    """Check the arguments of windows()."""
    keys, bound = _check_columns(columns, time, key, aggs, tie)
    _one_of("emit", emit, ("final", "update"))
    _one_of("late", late, LATE)
    _one_of("empty", empty, ("drop", "once"))
    if empty == "once" and emit != "final":
        raise DefinitionError(f"empty='once' tells a window that fell empty when it is final, and emit={emit!r} tells open ones. Drop one.")
    shape: Windows | Sessions
    if session is not None:
        shape = _sessions(session, emit, range=range, slide=slide, offset=offset, tz=tz, empty=None if empty == "drop" else empty)
    else:
        shape = _sliding(range, slide, offset, empty == "once") if tz is None else _by_calendar(tz, range, slide, offset, empty == "once")
    used = _used(columns, time, keys, bound, tie)
    return _query(columns, used, streaming, time=time, keys=keys, aggs=bound, windows=shape, late=late, tie=tie, emit=emit, since=since)


def _sessions(session: Any, emit: str, **others: Any) -> Sessions:
    for name, value in others.items():
        if value is not None:
            raise DefinitionError(
                f"session={session!r} and {name}={value!r} do not go together: a session is as long as its rows make it. Drop one."
            )
    if emit != "final":
        raise DefinitionError(f"emit={emit!r} is not for sessions, which grow together as rows come. Use emit='final'.")
    return Sessions(positive("session", session))


def _ranges(given: Any, read: Callable[[str, Any], int]) -> tuple[int, tuple[tuple[str, int], ...]]:
    """The longest of the ranges, and all of them by their labels where a list was given."""
    if given is None:
        raise DefinitionError("windows() needs a range, e.g. range='1 hour', slide='1 minute', or session='30 minutes'.")
    if not isinstance(given, list | tuple):
        return read("range", given), ()
    if not given:
        raise DefinitionError("range=[] is empty. Give at least one range, e.g. range=['1h', '6h'].")
    ranges = tuple((_label(value), read("range", value)) for value in given)
    return max(length for _, length in ranges), ranges


def _label(value: Any) -> str:
    """A duration as written, or as text where it was not written as such."""
    return value if isinstance(value, str) else duration_text(positive("range", value))


def _step(slide: Any, longest: int, given: Any, ranges: tuple[tuple[str, int], ...], read: Callable[[str, Any], int]) -> int:
    if slide is None and len(ranges) > 1:
        raise DefinitionError(f"range={given!r} needs a slide: several ranges have no common one of their own. Add e.g. slide='1 minute'.")
    step = longest if slide is None else read("slide", slide)
    shortest = min((length for _, length in ranges), default=longest)
    if step > shortest:
        raise DefinitionError(
            f"slide={slide!r} is larger than range={given!r}: rows between two windows would count nowhere. "
            "Make the slide at most the range."
        )
    return step


def _sliding(range: Any, slide: Any, offset: Any, empty_once: bool) -> Windows:
    longest, ranges = _ranges(range, positive)
    step = _step(slide, longest, range, ranges, positive)
    shift = 0 if offset is None else _duration("offset", offset) % step
    return Windows(longest, step, shift, ranges, empty_once)


_CALENDAR = re.compile(r"\s*(\d+)?\s*(d|w|days?|weeks?|months?)\s*")
_KINDS = {"d": "days", "w": "weeks", "day": "days", "week": "weeks", "month": "months"}


def _by_calendar(tz: str, range: Any, slide: Any, offset: Any, empty_once: bool) -> CalendarWindows:
    if offset is not None:
        raise DefinitionError(f"tz={tz!r} and offset={offset!r} do not go together: these windows start at local midnights. Drop one.")
    calendar.zone(tz)
    kinds: dict[str, Any] = {}

    def units(name: str, value: Any) -> int:
        written = _CALENDAR.fullmatch(value) if isinstance(value, str) else None
        if written is None or int(written[1] or 1) == 0:
            raise DefinitionError(
                f"{name}={value!r} is not a whole number of days, weeks or months, which windows with tz={tz!r} are made of. "
                f"Write e.g. {name}='1 day'; for hours and minutes drop tz, their length is the same everywhere."
            )
        kinds[_KINDS.get(written[2], written[2])] = value
        return int(written[1] or 1)

    longest, ranges = _ranges(range, units)
    step = _step(slide, longest, range, ranges, units)
    if len(kinds) > 1:
        told = " and ".join(map(repr, kinds.values()))
        raise DefinitionError(f"{told} are of different kinds. Use days, weeks or months for both range and slide.")
    return CalendarWindows(longest, step, 0, ranges, empty_once, kind=next(iter(kinds)), tz=tz)


def define_rolling(
    columns: Columns,
    *,
    time: str,
    lookbacks: Iterable[Any],
    aggs: Mapping[str, Aggregation],
    key: str | Sequence[str] | None = None,
    emit: str = "final",
    closed: str | None = None,
    delay: Any = None,
    late: str = "drop",
    tie: str | None = None,
    labels: Labels | None = None,
    since: int | None = None,
    streaming: bool = False,
    carry: bool = True,
) -> Query:
    """Check the arguments of rolling().

    With ``carry`` a row goes through the engine with all its columns; without, only with those that the results depend on. With
    ``labels``, ``columns`` are those of rows and labels together (``labelled``).
    """
    keys, bound = _check_columns(columns, time, key, aggs, tie)
    if labels is not None and emit != "final":
        raise DefinitionError(f"emit={emit!r} tells rows or keys, and at= asks for the rows of another table. Use emit='final'.")
    closed = ("right" if labels is None else "left") if closed is None else closed
    _one_of("emit", emit, ("final", "event", "changed"))
    _one_of("late", late, LATE)
    if emit == "changed" and late == "flag":
        raise DefinitionError("late='flag' marks rows, and emit='changed' gives values of keys, not rows. Use late='drop' or 'accept'.")
    if emit == "changed" and not streaming:
        raise DefinitionError("emit='changed' tells what changes as time passes, so it needs a stream. Use emit='final' in batch.")
    _one_of("closed", closed, CLOSED)
    if isinstance(lookbacks, str) or not isinstance(lookbacks, Iterable):
        raise DefinitionError(f"lookbacks={lookbacks!r} is not a list. Write lookbacks=[{lookbacks!r}].")
    periods = tuple(_lookback(lookback) for lookback in lookbacks)
    if not periods:
        raise DefinitionError("rolling() needs at least one look-back, e.g. lookbacks=['1h', '6h'].")
    shift = 0 if delay is None else _duration("delay", delay)
    if shift < 0:
        raise DefinitionError(f"delay={delay!r} is negative: it shifts look-backs into the past, away from rows still to come.")
    shape = Rolling(periods, closed, shift)
    # Look-backs by rows order rows of equal time by all that is in them.
    whole = emit != "changed" and (carry or shape.kept_rows > 0)
    used = columns.names if whole or labels is not None else _used(columns, time, keys, bound, tie)
    asked = {"rolling": shape, "late": late, "tie": tie, "emit": emit, "labels": labels, "since": since}
    query = _query(columns, used, streaming, time=time, keys=keys, aggs=bound, **asked)
    if emit != "changed" and labels is None and (twice := set(query.output_schema().names[len(used) :]) & set(columns.names)):
        raise DefinitionError(f"the output would have two columns named {', '.join(sorted(twice))}. Rename one of them.")
    return query


def labelled(
    rows: Columns, at: Columns, *, time: str, at_time: str | None, key: Any, aggs: Any, tie: str | None
) -> tuple[Labels, list[str]]:
    """Check the table of labels; give its description, and the columns of the rows that the results depend on."""
    keys, bound = _check_columns(rows, time, key, aggs, tie)
    named = time if at_time is None else at_time
    for name in keys:
        if name not in at.names:
            raise DefinitionError(
                f"at has no key column {name!r}; its columns are {', '.join(at.names)}. Rename its key columns to the rows'."
            )
        mine, theirs = (side.schema([name]).field(0).type for side in (rows, at))
        if str(mine).removeprefix("large_") != str(theirs).removeprefix("large_"):  # offsets are not values
            raise DefinitionError(f"the key {name!r} is {mine} in the rows and {theirs} in at. Cast one of them.")
    at.require("at_time", named)
    at.check_time(named)
    if clash := sorted((set(rows.names) & set(at.names)) - {*keys, *({time} if named == time else ())}):
        raise DefinitionError(f"both tables have a column {clash[0]!r}, and it is neither a key nor the time. Rename or drop one of them.")
    used = _used(rows, time, keys, bound, tie)
    return Labels(tuple(at.names), named), list(used)


def _query(columns: Columns, used: tuple[str, ...], streaming: bool, **asked: Any) -> Query:
    """Make the query; what only the core can refuse is refused here too."""
    try:
        query = Query(schema=columns.schema(used), **asked)
        query.layout  # noqa: B018  made here to fail here
        if streaming:
            query.check_names()
    except DefinitionError:
        raise
    except (TypeError, ValueError) as error:
        raise DefinitionError(str(error)) from error
    return query


def _check_columns(
    columns: Columns, time: str, key: str | Sequence[str] | None, aggs: Mapping[str, Aggregation], tie: str | None
) -> tuple[tuple[str, ...], tuple[tuple[str, Aggregation], ...]]:
    keys = () if key is None else (key,) if isinstance(key, str) else tuple(key)
    names = columns.names
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise DefinitionError(f"the DataFrame has two columns named {twice[0]!r}. Rename one of them first.")
    for role, name in [("time", time), *(("key", k) for k in keys), *((("tie", tie),) if tie is not None else ())]:
        columns.require(role, name)
    columns.check_time(time)
    for name in keys:
        columns.check_key(name)
    if not isinstance(aggs, Mapping) or not aggs:
        raise DefinitionError(f"aggs={aggs!r} must be a dict of name to aggregation with at least one entry, e.g. {{'n': agg.count()}}.")
    for name, aggregation in aggs.items():
        if not isinstance(aggregation, Aggregation):
            raise DefinitionError(f"aggs[{name!r}] is {aggregation!r}, not an aggregation. Use sash.agg, e.g. agg.sum('fare').")
        for role, part in _parts(name, aggregation):
            if part.lacks_column:
                raise DefinitionError(f"{role} has no column. Name it: agg.{part.name}('column').")
            if part.column is not None:  # a place in a tuple is no column of a frame
                columns.require(f"{role} column", part.column)
            for argument, used in part.columns():
                columns.require(f"{role} {argument}", used)
    return keys, tuple(aggs.items())


def _parts(name: str, aggregation: Aggregation) -> Iterator[tuple[str, Aggregation]]:
    """An aggregation that is no struct, or the parts of one, each with where it stands."""
    if not aggregation.parts:
        yield f"aggs[{name!r}]", aggregation
    for inner, part in aggregation.parts:
        yield from _parts(f"{name}.{inner}", part)


def _used(
    columns: Columns, time: str, keys: tuple[str, ...], aggs: tuple[tuple[str, Aggregation], ...], tie: str | None
) -> tuple[str, ...]:
    """The columns that the query reads, each once; the others need not travel."""
    read: list[Any] = []
    for _, part in (pair for name, a in aggs for pair in _parts(name, a)):
        if sees_rows(part):
            return columns.names
        read += [column for _, column in part.columns()]
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


def positive(name: str, value: Any) -> int:
    """Read a duration above 0, in microseconds."""
    period = _duration(name, value)
    if period <= 0:
        raise DefinitionError(f"{name}={value!r} must be longer than 0, e.g. {name}='1 minute'.")
    return period


def _lookback(value: Any) -> tuple[str, Lookback]:
    """A look-back as written, and what it means: a period, a number of rows, a period in hops, or (None) the whole past."""
    if value is None:
        return "all", None
    if isinstance(value, int) and not isinstance(value, bool):
        return _lookback(f"{value}rows")
    if isinstance(value, str) and (rows := _ROWS.fullmatch(value)):
        if int(rows[1]) == 0:
            raise DefinitionError(f"the look-back {value!r} must have at least one row.")
        return f"{int(rows[1])}rows", Rows(int(rows[1]))
    if isinstance(value, str) and "/" in value:
        far, _, near = value.partition("/")
        hops = Hops(positive("look-back", far), positive("hop", near))
        if hops.hop > hops.period:
            raise DefinitionError(f"the look-back {value!r} has a hop longer than its period. Swap them: '{near.strip()}/{far.strip()}'.")
        return far.strip(), hops
    period = positive("look-back", value)
    return (value if isinstance(value, str) else duration_text(period)), period


def watermark_delay(watermark: Any) -> int | None:
    """How far the watermark is behind the largest time, in microseconds; None if nothing is said."""
    if watermark is None:
        return None
    delay = _duration("watermark", watermark)
    if delay < 0:
        raise DefinitionError(f"watermark={watermark!r} is negative. Use how late rows may come, e.g. watermark='10 minutes', or '0s'.")
    return delay


def max_ahead_of(columns: Columns, max_ahead: Any) -> tuple[int, str | None] | None:
    """Read max_ahead: a period ahead of the clock, or (period, column) ahead of an arrival column."""
    if max_ahead is None:
        return None
    period, column = max_ahead if isinstance(max_ahead, tuple) else (max_ahead, None)
    if column is not None:
        columns.require("max_ahead", column)
    return positive("max_ahead", period), column
