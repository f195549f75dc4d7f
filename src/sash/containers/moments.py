"""NumPy's moments and durations: as microseconds, and as Python's."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import numpy as np

__all__ = ["microseconds", "moments"]

Array = np.ndarray[Any, Any]
_EPOCH: Final = dt.datetime(1970, 1, 1)
# Of a unit: how many microseconds it has, or how many of it a microsecond has.
_COARSE: Final = {"W": 604_800_000_000, "D": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
_FINE: Final = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}


def microseconds(values: Array, exact: bool = False) -> Array:
    """Read datetime64 or timedelta64 of any unit as int64 microseconds; OverflowError where 64 bits do not hold them.

    What is finer is rounded down, or with ``exact`` refused.

    >>> import numpy as np
    >>> microseconds(np.array([1, -1], "M8[ns]")), microseconds(np.array([2], "m8[h]"))
    (array([ 0, -1]), array([7200000000]))
    """
    unit, many = np.datetime_data(values.dtype)
    kind = values.dtype.kind
    if unit == "generic" and len(values):
        raise ValueError(f"{values[0]!r} has no unit. Give it one, e.g. np.timedelta64(1, 's').")
    if unit in ("Y", "M") and kind == "m":
        raise ValueError(
            "months and years have no fixed length, so they are no durations. Use days or weeks, e.g. np.timedelta64(30, 'D')."
        )
    raw = values.astype(values.dtype.newbyteorder("=")).view(np.int64)
    if not len(raw):
        return raw
    low, high = int(raw.min()), int(raw.max())
    if unit in ("Y", "M"):  # a million years: more than 64 bits of microseconds hold, less than 64 bits of days do
        years = many if unit == "Y" else many / 12
        if min(low * years, -high * years) < -1_000_000:
            raise _too_far(values, raw, low if -low > high else high)
        return microseconds(values.astype("M8[D]"))
    if unit in _FINE:
        wide = raw if many == 1 else raw.astype(object) * many
        if exact and (rest := wide % _FINE[unit]).any():
            bad = values[int(np.flatnonzero(rest)[0])]
            raise ValueError(f"{bad!r} is not a whole number of microseconds. Use one that is.")
        return (wide // _FINE[unit]).astype(np.int64)
    scale = _COARSE[unit] * many
    for end in (low, high):
        if not -(2**63) <= end * scale < 2**63:
            raise _too_far(values, raw, end)
    return raw * scale


def _too_far(values: Array, raw: Array, end: int) -> OverflowError:
    given = values[int(np.flatnonzero(raw == end)[0])]
    return OverflowError(f"{given!r} does not fit int64 as microseconds. Use times nearer to 1970, or integers in a coarser unit.")


def moments(values: Array) -> list[Any]:
    """Give moments and durations as Python's date, datetime and timedelta, down to the microsecond; None for NaT."""
    gone = np.isnat(values)
    if gone.all():  # of any unit, and of none
        return [None] * len(values)
    unit = np.datetime_data(values.dtype)[0]
    micros = microseconds(np.where(gone, np.array(0, values.dtype), values)).tolist()
    try:
        if values.dtype.kind == "m":
            return [None if g else dt.timedelta(microseconds=x) for x, g in zip(micros, gone, strict=True)]
        out = [None if g else _EPOCH + dt.timedelta(microseconds=x) for x, g in zip(micros, gone, strict=True)]
    except OverflowError:
        raise OverflowError(f"{values.dtype} values beyond the years 1 to 9999 are no Python datetimes. Pass them as integers.") from None
    return [x if x is None else x.date() for x in out] if unit in ("Y", "M", "W", "D") else out
