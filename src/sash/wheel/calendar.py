"""Steps of a calendar: whole days, weeks or months of a time zone, from local midnight to local midnight."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Final, NamedTuple

import numpy as np

from sash.engine.calendar import instants, number_of, zone

__all__ = ["Step", "calendar_step", "midnights", "zone"]

_WORDS: Final = {
    **dict.fromkeys(("d", "day", "days"), ("days", 1)),
    **dict.fromkeys(("w", "week", "weeks"), ("weeks", 1)),
    **dict.fromkeys(("mo", "mon", "month", "months"), ("months", 1)),
    **dict.fromkeys(("quarter", "quarters"), ("months", 3)),
    **dict.fromkeys(("y", "yr", "year", "years"), ("months", 12)),
}
_TEXT: Final = re.compile(r"\s*(\d+)\s*([A-Za-z]+)\s*$")
_DAYS: Final = {"days": 1, "weeks": 7, "months": 28}  # the shortest


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


def midnights(start: int, end: int, step: Step, tz: str) -> list[int]:
    """Give the local midnights at which steps begin, in microseconds: from the last one at or before start to the first at or after end.

    Several days, weeks or months are counted from 1970-01-01 there, weeks from its first Monday. A date that a zone left out begins
    nothing.

    >>> first, last = (int(dt.datetime(2024, 3, d, tzinfo=dt.UTC).timestamp()) * 10**6 for d in (30, 31))
    >>> days = midnights(first, last, Step(1, "days"), "Europe/Berlin")
    >>> [(b - a) // 3_600_000_000 for a, b in zip(days, days[1:])]
    [24, 23]
    """
    zone(tz)
    first = number_of(step.unit, tz, start) // step.size - 1  # one earlier: a zone may have gone back over midnight
    most = (max(end, start) - start) // (_DAYS[step.unit] * step.size * 86_400_000_000) + 5
    found = np.unique(instants(step.unit, tz, (first + np.arange(most)) * step.size))
    begin = int(np.searchsorted(found, start, "right")) - 1
    return [int(at) for at in found[begin : int(np.searchsorted(found, end, "left")) + 1]]
