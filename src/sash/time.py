"""Durations and timestamps: the one parser for every room.

An int is in the caller's unit. Everything else becomes int64 microseconds: ``timedelta``, ``"90s"``, Spark's
``"5 minutes"``; ``datetime`` and ``datetime64`` become microseconds since the epoch in UTC (naive means UTC; what is finer is rounded
down). Where times are floats, they stay floats. Whatever 64 bits do not hold is refused.
"""

import datetime as dt
import functools
import math
import re
from fractions import Fraction
from typing import Any, Final

import numpy as np

from sash.containers import column, microseconds, sized

__all__ = ["MICROS", "Duration", "duration", "duration_text", "is_count", "point", "stretch", "timestamp", "timestamp_text", "timestamps"]

MICROS: Final = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000}

_WORDS: Final = {
    **{word: "us" for word in ("us", "µs", "microsecond", "microseconds")},
    **{word: "ms" for word in ("ms", "millisecond", "milliseconds")},
    **{word: "s" for word in ("s", "sec", "secs", "second", "seconds")},
    **{word: "m" for word in ("m", "min", "mins", "minute", "minutes")},
    **{word: "h" for word in ("h", "hr", "hour", "hours")},
    **{word: "d" for word in ("d", "day", "days")},
    **{word: "w" for word in ("w", "week", "weeks")},
}
_CALENDAR: Final = {"mo", "mon", "month", "months", "y", "yr", "year", "years", "q", "quarter", "quarters"}
_PIECE: Final = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([^\W\d_]+)\s*")
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)

Duration = int | str | dt.timedelta | np.timedelta64


def is_count(value: Any) -> bool:
    """Tell whether a number is a plain integer, in the caller's unit; a timedelta64, which NumPy counts among them, is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def duration(value: Duration) -> int:
    """Read a duration: an int in the caller's unit as it is, anything else as microseconds.

    >>> duration("90s"), duration("5 minutes"), duration("1h 30m"), duration("1.001ms"), duration(42)
    (90000000, 300000000, 5400000000, 1001, 42)
    >>> duration(np.timedelta64(2, "h"))
    7200000000
    >>> duration("1 month")
    Traceback (most recent call last):
    ...
    ValueError: '1 month' is not a duration: months and years have no fixed length. Use days or weeks, e.g. '30d'.
    """
    if is_count(value):
        return _fitting(int(value), "duration")  # type: ignore[arg-type]
    if type(value).__name__ == "NaTType" or (isinstance(value, np.timedelta64) and np.isnat(value)):
        raise ValueError(f"{value!r} is not a duration. Use an int, a timedelta, or text such as '90s'.")
    match value:
        case bool():
            pass
        case dt.timedelta():
            whole, rest = divmod(value, _MICROSECOND)
            if rest:  # pandas has nanoseconds
                raise ValueError(f"{value!r} is not a whole number of microseconds. Use one that is.")
            return _fitting(int(whole), "duration")
        case np.timedelta64():
            return int(microseconds(np.array([value]), exact=True)[0])
        case str():
            return _fitting(_parse_duration(value), "duration")
    raise TypeError(f"{value!r} is not a duration. Use an int, a timedelta, or text such as '90s'.")


def stretch(value: Duration | float) -> int | float:
    """Read a duration between times that may be floats: a float stays one, in the unit of the times."""
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            raise ValueError("NaN is not a duration. Use a number, a timedelta, or text such as '90s'.")
        return float(value)
    return duration(value)


def _fitting(number: int, what: str) -> int:
    if not -(2**63) <= number < 2**63:
        raise OverflowError(f"{what} {number} does not fit int64. Use a coarser unit.")
    return number


@functools.lru_cache(maxsize=1024)  # a server reads the same few again and again
def _parse_duration(text: str) -> int:
    rest = text.strip().removeprefix("interval ").removeprefix("INTERVAL ")
    total, at = Fraction(0), 0
    while at < len(rest) and (piece := _PIECE.match(rest, at)):
        number, word = piece.group(1), piece.group(2)
        if word == "M" or word.lower() in _CALENDAR:
            hint = " A minute is written 'm'." if word == "M" else ""
            raise ValueError(f"{text!r} is not a duration: months and years have no fixed length. Use days or weeks, e.g. '30d'.{hint}")
        if word.lower() not in _WORDS:
            break
        total += Fraction(number) * MICROS[_WORDS[word.lower()]]
        at = piece.end()
    if not rest or at < len(rest):
        raise ValueError(f"{text!r} is not a duration. Use a number and a unit of us ms s m h d w, e.g. '90s' or '5 minutes'.")
    if total.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of microseconds. Use a finer unit.")
    return int(total)


def duration_text(micros: int) -> str:
    """Write a duration in the largest unit that divides it.

    >>> duration_text(90_000_000), duration_text(3_600_000_000), duration_text(0)
    ('90s', '1h', '0s')
    """
    if micros == 0:
        return "0s"
    unit = next(u for u in ("w", "d", "h", "m", "s", "ms", "us") if micros % MICROS[u] == 0)
    return f"{micros // MICROS[unit]}{unit}"


def timestamp(value: Any) -> int:
    """Read a point in time: an int as it is, datetimes, dates and datetime64 as microseconds since the epoch, UTC.

    >>> import datetime as dt
    >>> timestamp(dt.datetime(1970, 1, 2)), timestamp("1970-01-01 00:00:01"), timestamp(7)
    (86400000000, 1000000, 7)
    """
    if is_count(value):
        return _fitting(int(value), "time")
    if type(value).__name__ in ("NaTType", "NAType") or (isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value)):
        raise ValueError(f"{value!r} is not a time. Drop the entry, or give it a time.")
    match value:
        case dt.datetime():
            return int(((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - _EPOCH) // _MICROSECOND)
        case dt.date():
            return (value - _EPOCH.date()) // _MICROSECOND
        case np.datetime64():
            return int(microseconds(np.array([value]))[0])
        case dt.timedelta() | np.timedelta64():
            raise TypeError(f"{value!r} is a duration, not a time. Use an int, a datetime, or a datetime64.")
        case str():
            try:
                return timestamp(dt.datetime.fromisoformat(value.strip()))
            except ValueError:
                raise ValueError(f"{value!r} is not a time. Use ISO 8601, e.g. '2013-07-01 12:30:00'.") from None
    if hasattr(value, "as_py"):  # a scalar of Arrow
        return timestamp(value.as_py())
    raise TypeError(f"{value!r} is not a time. Use an int, a datetime, or a datetime64.")


def point(value: Any) -> int | float:
    """Read a point in time where times may be floats: a float stays one; an int may lie beyond what a window holds.

    >>> point(2.5), point("1970-01-01 00:00:01"), point(2**64)
    (2.5, 1000000, 18446744073709551616)
    """
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            raise ValueError("NaN is not a time. Drop the entry, or give it a time.")
        return float(value)
    return int(value) if is_count(value) else timestamp(value)


def timestamps(values: Any, unit: int = 1, misaligned: type[ValueError] | None = None) -> np.ndarray[Any, Any]:
    """Read many points in time as an int64 array, or a float64 array if they are floats; NaN, NaT and null are no times.

    Integers stay as they are. Datetimes become microseconds, or units of so many microseconds: rounded down, or, with an error given
    for what is ``misaligned``, refused.

    >>> import numpy as np
    >>> timestamps(np.array(["1970-01-01T00:00:01"], dtype="datetime64[s]")), timestamps([1, 2.5])
    (array([1000000]), array([1. , 2.5]))
    >>> timestamps([2**63])
    Traceback (most recent call last):
    ...
    OverflowError: time 9223372036854775808 does not fit int64. Use a coarser unit.
    """
    values = sized(values, "a column of times")
    if isinstance(values, list | tuple):
        return _points(values, unit, misaligned)
    read = column(values)
    if read.nulls is not None:
        at = int(np.flatnonzero(read.nulls)[0])
        raise ValueError(f"entry {at} has no time (null or NaT). Drop the entries without a time first.")
    match read.values.dtype.kind:
        case "M":
            return _in_units(microseconds(read.values), unit, misaligned)
        case "m":
            raise TypeError("these are durations (timedelta64), not times. Use integers, datetimes or datetime64.")
        case "f":
            return _floats(read.values)
        case "i" | "u":
            if read.values.dtype.kind == "u" and len(read.values):
                _fitting(int(read.values.max()), "time")
            return np.ascontiguousarray(read.values, np.int64)
    return _points(read.values.tolist(), unit, misaligned)


def _in_units(micros: np.ndarray[Any, Any], unit: int, misaligned: type[ValueError] | None) -> np.ndarray[Any, Any]:
    if unit == 1:
        return micros
    if misaligned is not None and (rest := micros % unit).any():
        bad = timestamp_text(int(micros[int(np.flatnonzero(rest)[0])]))
        raise misaligned(f"{bad} is not a whole number of units of {duration_text(unit)}. Use a time that is.")
    return micros // unit


def _floats(values: Any) -> np.ndarray[Any, Any]:
    array = np.ascontiguousarray(values, np.float64)
    if np.isnan(array).any():
        raise ValueError("NaN is not a time. Drop the entries without a time first.")
    return array


def _points(values: list[Any] | tuple[Any, ...], unit: int, misaligned: type[ValueError] | None) -> np.ndarray[Any, Any]:
    """Python objects as times, each by its own kind."""
    points: list[int | float] = list(values)
    if not set(map(type, values)) <= {int}:
        for i, value in enumerate(values):
            plain = is_count(value) or isinstance(value, float | np.floating)
            points[i] = point(value) if plain else int(_in_units(np.array([timestamp(value)]), unit, misaligned)[0])
    if not any(isinstance(p, float) for p in points):
        try:
            return np.array(points, np.int64)
        except OverflowError:
            raise next(
                OverflowError(f"time {p} does not fit int64. Use a coarser unit.") for p in points if not -(2**63) <= p < 2**63
            ) from None
    for p in points:
        if isinstance(p, int) and not _is_float(p):
            raise ValueError(f"time {p} stands among floats, and no float is equal to it. Use integers throughout, or smaller times.")
    return np.array(points, np.float64)


def _is_float(number: int) -> bool:
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def timestamp_text(micros: int) -> str:
    """Write microseconds since the epoch as ISO 8601 in UTC, without a needless tail.

    >>> timestamp_text(86_400_000_000), timestamp_text(1)
    ('1970-01-02 00:00', '1970-01-01 00:00:00.000001')
    """
    moment = _EPOCH + dt.timedelta(microseconds=micros)
    spec = "microseconds" if moment.microsecond else "seconds" if moment.second else "minutes"
    return moment.replace(tzinfo=None).isoformat(" ", spec)
