"""One codec of keys, for windows, slides, wheels, the engine and tiles: what is a key, and which keys are one.

A key is a bool, an integer, a float, text, bytes, a date, a timestamp, a Decimal, None, or a tuple of these. It comes out as it
went in, and is another key than an equal value of another type: 1, 1.0, True and "1" are four. One key are: every NaN;
0.0 and -0.0; Decimals that are equal; instants that are equal, whatever their zone, and they come out in UTC. A timestamp
without a zone is no instant, and another key.

The core writes the common types; the others are written here, as a tag and bytes behind their length.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from typing import Any, Final

import numpy as np

from sash._core import read_key, write_key

__all__ = ["is_key", "read", "read_key", "write", "write_key"]

_EPOCH: Final = dt.datetime(1970, 1, 1)
_UTC_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO: Final = dt.timedelta(microseconds=1)
_NULLS: Final = frozenset({"NAType", "NaTType"})


def is_key(value: Any) -> bool:
    """Tell whether a value can be a key.

    >>> import datetime
    >>> is_key((1, datetime.date(2024, 5, 1))), is_key([1])
    (True, False)
    """
    try:
        write_key(value)
    except TypeError:
        return False
    return True


def write(value: Any) -> bytes | tuple[Any] | None:
    """Write what the core does not: its bytes, (the same key in a form that it knows,), or None for what is no key."""
    if isinstance(value, int):
        return _sized(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    if type(value).__name__ in _NULLS:
        return (None,)
    if isinstance(value, np.datetime64):
        return _numpy_time(value)
    if isinstance(value, np.generic):
        plain = value.item()
        return None if isinstance(plain, np.generic) else (plain,)
    if isinstance(value, dt.datetime):
        if getattr(value, "nanosecond", 0):
            raise TypeError(f"{value!r} can't be a key: it has nanoseconds. Round it to microseconds.")
        if value.tzinfo is None:
            return _sized(b"m", struct.pack("<q", (value - _EPOCH) // _MICRO))
        return _sized(b"z", struct.pack("<q", (value - _UTC_EPOCH) // _MICRO))
    if isinstance(value, dt.date):
        return _sized(b"d", struct.pack("<q", value.toordinal() - _EPOCH.toordinal()))
    if isinstance(value, decimal.Decimal):
        return _sized(b"c", _decimal_text(value).encode())
    if isinstance(value, bytearray | memoryview):
        return (bytes(value),)
    return None


def read(tag: bytes, body: bytes) -> Any:
    """Read what ``write`` wrote; ValueError where the bytes are damaged."""
    match tag:
        case b"I":
            return int.from_bytes(body, "little", signed=True)
        case b"c":
            try:
                return decimal.Decimal(body.decode())
            except (decimal.InvalidOperation, UnicodeDecodeError):
                raise ValueError("these bytes are damaged: a stored key is no Decimal.") from None
    if len(body) != 8:
        raise ValueError("these bytes are damaged: a stored key is of no known length.")
    (number,) = struct.unpack("<q", body)
    try:
        match tag:
            case b"m":
                return _EPOCH + number * _MICRO
            case b"z":
                return _UTC_EPOCH + number * _MICRO
            case b"d":
                return dt.date.fromordinal(number + _EPOCH.toordinal())
    except OverflowError:
        raise ValueError("these bytes are damaged: a stored key is of no year that there is.") from None
    raise ValueError(f"these bytes are damaged: {tag!r} marks no key.")


def _sized(tag: bytes, body: bytes) -> bytes:
    return tag + struct.pack("<I", len(body)) + body


def _numpy_time(value: np.datetime64) -> bytes | tuple[Any]:
    if np.isnat(value):
        return (None,)
    if np.datetime_data(value)[0] in ("Y", "M", "W", "D"):
        return (value.astype("datetime64[D]").item(),)
    micros = value.astype("datetime64[us]")
    if micros != value:
        raise TypeError(f"{value!r} can't be a key: it is not a whole number of microseconds. Round it.")
    return (micros.item(),)


def _decimal_text(value: decimal.Decimal) -> str:
    if value.is_nan():
        return "NaN"
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return str(value)  # infinite
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    return f"{'-' if sign and kept else ''}{kept or '0'}E{exponent + len(text) - len(kept) if kept else 0}"
