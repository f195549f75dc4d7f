"""Durations and timestamps: the one parser for every room.

An int is in the caller's unit. Everything else becomes int64 microseconds: ``timedelta``, ``"90s"``, Spark's
``"5 minutes"``; ``datetime`` and ``datetime64`` become microseconds since the epoch in UTC (naive means UTC).
"""

import datetime as dt
import re
from typing import Any, Final

import numpy as np

__all__ = ["MICROS", "Duration", "duration", "duration_text", "timestamp", "timestamp_text", "timestamps"]

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
_CALENDAR: Final = {"mo", "mon", "month", "months", "y", "yr", "year", "years", "quarter", "quarters"}
_PIECE: Final = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([^\W\d_]+)\s*")
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)

Duration = int | str | dt.timedelta | np.timedelta64


def duration(value: Duration) -> int:
    """Read a duration: an int in the caller's unit as it is, anything else as microseconds.

    >>> duration("90s"), duration("5 minutes"), duration("1h 30m"), duration(42)
    (90000000, 300000000, 5400000000, 42)
    >>> duration("1 month")
    Traceback (most recent call last):
    ...
    ValueError: '1 month' is not a duration: months and years have no fixed length. Use days or weeks, e.g. '30d'.
    """
    match value:
        case bool():
            raise TypeError(f"{value!r} is not a duration. Use an int, a timedelta, or text such as '90s'.")
        case int() | np.integer():
            return int(value)
        case dt.timedelta():
            return value // _MICROSECOND
        case np.timedelta64():
            return int(value.astype("timedelta64[us]").astype(np.int64))
        case str():
            return _parse_duration(value)
    raise TypeError(f"{value!r} is not a duration. Use an int, a timedelta, or text such as '90s'.")


def _parse_duration(text: str) -> int:
    rest = text.strip().removeprefix("interval ").removeprefix("INTERVAL ")
    total, at = 0.0, 0
    exact = 0
    while at < len(rest) and (piece := _PIECE.match(rest, at)):
        number, word = piece.group(1), piece.group(2).lower()
        if word in _CALENDAR:
            raise ValueError(f"{text!r} is not a duration: months and years have no fixed length. Use days or weeks, e.g. '30d'.")
        if word not in _WORDS:
            break
        micros = MICROS[_WORDS[word]]
        if "." in number:
            total += float(number) * micros
        else:
            exact += int(number) * micros
        at = piece.end()
    if not rest or at < len(rest):
        raise ValueError(f"{text!r} is not a duration. Use a number and a unit of us ms s m h d w, e.g. '90s' or '5 minutes'.")
    if total != int(total):
        raise ValueError(f"{text!r} is not a whole number of microseconds. Use a finer unit.")
    return exact + int(total)


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
    match value:
        case bool():
            pass
        case int() | np.integer():
            return int(value)
        case dt.datetime():
            return ((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - _EPOCH) // _MICROSECOND
        case dt.date():
            return (value - _EPOCH.date()) // _MICROSECOND
        case np.datetime64():
            if np.isnat(value):
                raise ValueError("NaT is not a time. Drop the entry, or give it a time.")
            return int(value.astype("datetime64[us]").astype(np.int64))
        case str():
            try:
                return timestamp(dt.datetime.fromisoformat(value.strip()))
            except ValueError:
                raise ValueError(f"{value!r} is not a time. Use ISO 8601, e.g. '2013-07-01 12:30:00'.") from None
    raise TypeError(f"{value!r} is not a time. Use an int, a datetime, or a datetime64.")


def timestamps(values: Any) -> np.ndarray[Any, Any]:
    """Read many points in time as an int64 array, or a float64 array if they are floats.

    >>> import numpy as np
    >>> timestamps(np.array(["1970-01-01T00:00:01"], dtype="datetime64[s]"))
    array([1000000])
    """
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values.to_numpy(zero_copy_only=False) if hasattr(values, "null_count") else values.to_numpy()
    array = np.asarray(values)
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            raise ValueError("NaT is not a time. Drop the entries without a time first.")
        return array.astype("datetime64[us]").astype(np.int64)
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            raise ValueError("NaN is not a time. Drop the entries without a time first.")
        return array.astype(np.float64, copy=False)
    if array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    return np.fromiter((timestamp(value) for value in array.tolist()), dtype=np.int64, count=array.size)


def timestamp_text(micros: int) -> str:
    """Write microseconds since the epoch as ISO 8601 in UTC, without a needless tail.

    >>> timestamp_text(86_400_000_000), timestamp_text(1)
    ('1970-01-02 00:00', '1970-01-01 00:00:00.000001')
    """
    moment = _EPOCH + dt.timedelta(microseconds=micros)
    spec = "microseconds" if moment.microsecond else "seconds" if moment.second else "minutes"
    return moment.replace(tzinfo=None).isoformat(" ", spec)
