"""Days, weeks and months of a time zone, numbered: local midnights to instants and back."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from sash.errors import DefinitionError

__all__ = ["KINDS", "instants", "number_of", "numbers_of", "zone"]

KINDS = ("days", "weeks", "months")
Array = np.ndarray[Any, Any]
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_MONDAY = dt.date(1970, 1, 5)
_CHUNK = 512  # units whose starts are computed at once


def zone(name: str) -> ZoneInfo:
    """Find a time zone by its name.

    >>> zone("Europe/Berlin").key
    'Europe/Berlin'
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise DefinitionError(f"tz={name!r} is not a known time zone. Use a name such as 'Europe/Berlin' or 'UTC'.") from error


def _first_day(kind: str, number: int) -> dt.date:
    """The local date that a unit begins on; day 0 is 1970-01-01, week 0 begins on Monday 1970-01-05, month 0 is January 1970."""
    if kind == "days":
        return dt.date(1970, 1, 1) + dt.timedelta(number)
    if kind == "weeks":
        return _MONDAY + dt.timedelta(7 * number)
    return dt.date(1970 + number // 12, number % 12 + 1, 1)


@lru_cache(maxsize=4096)
def _starts(kind: str, tz: str, chunk: int) -> Array:
    """The instants, in microseconds, at which the units of a chunk begin.

    A midnight that a change of clocks skips is the instant of the change; one that comes twice is the first of both.
    """
    place = zone(tz)
    days = [_first_day(kind, chunk * _CHUNK + i) for i in range(_CHUNK)]
    return np.array([_midnight(day, place) for day in days], np.int64)


def _midnight(day: dt.date, place: ZoneInfo) -> int:
    local = dt.datetime.combine(day, dt.time(), tzinfo=place)
    instant = local.astimezone(dt.UTC)
    if instant.astimezone(place).replace(tzinfo=None) != local.replace(tzinfo=None):  # clocks skip it
        instant = _change_after(instant - dt.timedelta(days=1), place)
    return (instant - _EPOCH) // _MICROSECOND


def _change_after(low: dt.datetime, place: ZoneInfo) -> dt.datetime:
    """The first instant after this one at which the offset from UTC differs, to the second."""
    offset = low.astimezone(place).utcoffset()
    high = low + dt.timedelta(days=2)
    while high - low > dt.timedelta(seconds=1):
        middle = low + (high - low) // 2
        low, high = (middle, high) if middle.astimezone(place).utcoffset() == offset else (low, middle)
    return high.replace(microsecond=0)


def instants(kind: str, tz: str, numbers: Array) -> Array:
    """The instants, in microseconds, at which these units begin."""
    numbers = np.asarray(numbers, np.int64)
    out = np.empty(numbers.shape, np.int64)
    chunks = numbers // _CHUNK
    for chunk in np.unique(chunks):
        here = chunks == chunk
        out[here] = _starts(kind, tz, int(chunk))[numbers[here] - chunk * _CHUNK]
    return out


_LENGTH = {"days": 86_400_000_000, "weeks": 7 * 86_400_000_000, "months": 2_629_746_000_000}


def numbers_of(kind: str, tz: str, times: Array) -> Array:
    """The number of the unit that each of these instants is in."""
    times = np.asarray(times, np.int64)
    if not len(times):
        return np.zeros(0, np.int64)
    low, high = int(times.min()), int(times.max())
    shift = 4 * 86_400_000_000 if kind == "weeks" else 0
    first, last = (int((t - shift) // _LENGTH[kind]) for t in (low, high))
    units = np.arange(first - 2, last + 3)  # a month is up to two days off its mean, a local day up to one off UTC's
    begins = instants(kind, tz, units)
    return np.asarray(units[np.searchsorted(begins, times, side="right") - 1], np.int64)


def number_of(kind: str, tz: str, time: int) -> int:
    """The number of the unit that an instant is in."""
    return int(numbers_of(kind, tz, np.array([time]))[0])
