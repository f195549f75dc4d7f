"""Days, weeks and months of a time zone: local midnights as instants. A day there has 23, 24 or 25 hours."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["Step", "calendar_step", "midnights", "zone"]

_WORDS: Final = {
    **dict.fromkeys(("d", "day", "days"), ("days", 1)),
    **dict.fromkeys(("w", "week", "weeks"), ("weeks", 1)),
    **dict.fromkeys(("mo", "mon", "month", "months"), ("months", 1)),
    **dict.fromkeys(("quarter", "quarters"), ("months", 3)),
    **dict.fromkeys(("y", "yr", "year", "years"), ("months", 12)),
}
_TEXT: Final = re.compile(r"\s*(\d+)\s*([A-Za-z]+)\s*$")
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MONDAY: Final = dt.date(1970, 1, 5).toordinal()
_FIRST_DAY: Final = dt.date(1970, 1, 1).toordinal()
_MICROSECOND: Final = dt.timedelta(microseconds=1)


class Step(NamedTuple):
    """A whole number of days, weeks or months."""

    size: int
    unit: str  # "days", "weeks" or "months"


def calendar_step(value: Any) -> Step:
    """Read a length of the calendar: whole days, weeks (from Monday), months, quarters or years.

    >>> calendar_step("1d"), calendar_step("2 weeks"), calendar_step("1 quarter")
    (Step(size=1, unit='days'), Step(size=2, unit='weeks'), Step(size=3, unit='months'))
    >>> calendar_step("36h")
    Traceback (most recent call last):
    ...
    ValueError: '36h' is no length of a calendar. With a time zone, use whole days, weeks or months, e.g. '1d', '1w' or '1 month'.
    """
    if isinstance(value, dt.timedelta) and value > dt.timedelta(0) and value % dt.timedelta(days=1) == dt.timedelta(0):
        return Step(value.days, "days")
    found = _TEXT.match(value) if isinstance(value, str) else None
    if found is None or found[2].lower() not in _WORDS or int(found[1]) < 1:
        raise ValueError(
            f"{value!r} is no length of a calendar. With a time zone, use whole days, weeks or months, e.g. '1d', '1w' or '1 month'."
        )
    unit, times = _WORDS[found[2].lower()]
    return Step(int(found[1]) * times, unit)


def zone(name: Any) -> ZoneInfo:
    """Read a time zone's name.

    >>> zone("Europe/Berlin").key
    'Europe/Berlin'
    """
    if isinstance(name, ZoneInfo):
        return name
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise ValueError(f"tz={name!r} is no time zone. Use a name such as 'Europe/Berlin', 'America/New_York' or 'UTC'.") from None


def midnights(start: int, end: int, step: Step, tz: ZoneInfo) -> list[int]:
    """Give the local midnights at which steps begin, in microseconds: from the last one at or before start to the first at or after end.

    Several days, weeks or months are counted from 1970-01-01 there, weeks from its first Monday. A date that a zone left out begins
    nothing.

    >>> day = midnights(*(int(dt.datetime(2024, 3, d, tzinfo=dt.UTC).timestamp()) * 10**6 for d in (30, 32 - 1)), Step(1, "days"),
    ...                 ZoneInfo("Europe/Berlin"))
    >>> [(b - a) // 3_600_000_000 for a, b in zip(day, day[1:])]
    [24, 23]
    """
    here = (_EPOCH + start * _MICROSECOND).astimezone(tz).date()
    at = _number(here, step) - 1  # one earlier: a zone may have gone back over midnight
    found = [_midnight(at, step, tz)]
    while found[-1] < end or found[-1] <= start:
        at += 1
        after = _midnight(at, step, tz)
        if after > found[-1]:
            found.append(after)
    first = max(i for i, time in enumerate(found) if time <= start)
    return found[first : len(found) if end > start else first + 1]


def _number(day: dt.date, step: Step) -> int:
    """Which step a date is in."""
    if step.unit == "months":
        return ((day.year - 1970) * 12 + day.month - 1) // step.size
    if step.unit == "weeks":
        return (day.toordinal() - _MONDAY) // (7 * step.size)
    return (day.toordinal() - _FIRST_DAY) // step.size


def _midnight(number: int, step: Step, tz: ZoneInfo) -> int:
    """The first instant of a step."""
    if step.unit == "months":
        months = number * step.size
        day = dt.date(1970 + months // 12, months % 12 + 1, 1)
    elif step.unit == "weeks":
        day = dt.date.fromordinal(_MONDAY + number * 7 * step.size)
    else:
        day = dt.date.fromordinal(_FIRST_DAY + number * step.size)
    # Where midnight is twice, the first; where it is left out, the instant at which the clock jumps over it.
    local = dt.datetime(day.year, day.month, day.day, tzinfo=tz)
    return (local - _EPOCH) // _MICROSECOND
