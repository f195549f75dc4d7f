"""One envelope for bytes: magic, version, kind, fingerprint of the definition, checksum, payload.

::

    "SASH" | version u16 | kind length u8 | kind | fingerprint 16 bytes | crc32 u32 | payload

Payloads hold plain Python data (``encode``) and raw arrays. Nothing is ever unpickled.
"""

import contextlib
import datetime as dt
import decimal
import hashlib
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["decode", "encode", "fingerprint", "refusing", "seal", "unseal"]

MAGIC: Final = b"SASH"
VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sHB")
_TAIL: Final = struct.Struct("<16sI")


def seal(kind: str, print_: bytes, payload: bytes) -> bytes:
    """Put a payload in the envelope.

    >>> unseal("demo", fingerprint("x"), seal("demo", fingerprint("x"), b"payload"))
    b'payload'
    """
    name = kind.encode()
    return b"".join((_HEAD.pack(MAGIC, VERSION, len(name)), name, _TAIL.pack(print_, zlib.crc32(payload)), payload))


def unseal(kind: str, print_: bytes | None, data: bytes) -> bytes:
    """Take the payload out of the envelope, or say why not; ``print_=None`` accepts any definition.

    >>> unseal("demo", fingerprint("y"), seal("demo", fingerprint("x"), b"payload"))
    Traceback (most recent call last):
    ...
    ValueError: these bytes were made with another definition. Read them with the aggregation that wrote them.
    """
    view = memoryview(data)
    if len(view) < _HEAD.size or bytes(view[:4]) != MAGIC:
        raise ValueError("these bytes do not come from Sash: they do not start with its magic. Pass what to_bytes() gave.")
    _, version, length = _HEAD.unpack_from(view)
    if version > VERSION:
        raise ValueError(f"these bytes are of version {version}, newer than this Sash reads ({VERSION}). Use a newer Sash.")
    start = _HEAD.size + length + _TAIL.size
    if len(view) < start:
        raise ValueError("these bytes are damaged: they end inside the header. Store and pass all of them.")
    found = bytes(view[_HEAD.size : _HEAD.size + length]).decode(errors="replace")
    stored_print, checksum = _TAIL.unpack_from(view, start - _TAIL.size)
    payload = bytes(view[start:])
    if zlib.crc32(payload) != checksum:
        raise ValueError("these bytes are damaged: the checksum does not fit. Store and pass all of them, unchanged.")
    if found != kind:
        raise ValueError(f"these bytes hold a {found}, not a {kind}. Read them with the class that wrote them.")
    if print_ is not None and stored_print != print_:
        raise ValueError("these bytes were made with another definition. Read them with the aggregation that wrote them.")
    return payload


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Read a payload in here: whatever nonsense in it trips, the reader says with a ValueError that the bytes are damaged.

    >>> with refusing():
    ...     first, second = decode(encode(7))
    Traceback (most recent call last):
    ...
    ValueError: these bytes are damaged: cannot unpack non-iterable int object. Store and pass all of them, unchanged.
    """
    try:
        yield
    except (RuntimeError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError, OSError, EOFError, struct.error) as error:
        raise _damaged(error) from error
    except ValueError as error:
        if str(error).endswith("."):  # a sentence: it says what is wrong, and what to do
            raise
        raise _damaged(error) from error


def _damaged(error: Exception) -> ValueError:
    why = "they ask for more memory than there is" if isinstance(error, MemoryError) else str(error).partition("\n")[0].rstrip(".")
    why = why or type(error).__name__
    return ValueError(f"these bytes are damaged: {why}. Store and pass all of them, unchanged.")


def fingerprint(definition: Any) -> bytes:
    """Give 16 bytes that differ when a definition, made of plain data, differs."""
    return hashlib.blake2b(encode(definition), digest_size=16).digest()


# --- plain data -------------------------------------------------------------------------------------------------------


def encode(value: Any) -> bytes:
    """Write plain Python data as bytes: None, bool, int, float, str, bytes, tuple, list, dict, set, dates, Decimal.

    >>> decode(encode({"a": (1, 2.5, None), "b": [b"x", -(10**30)]}))
    {'a': (1, 2.5, None), 'b': [b'x', -1000000000000000000000000000000]}
    """
    out: list[bytes] = []
    _write(value, out)
    return b"".join(out)


def _sized(tag: bytes, body: bytes) -> bytes:
    return tag + struct.pack("<I", len(body)) + body


def _write(value: Any, out: list[bytes]) -> None:
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    match value:
        case None:
            out.append(b"N")
        case bool():
            out.append(b"T" if value else b"F")
        case int():
            if -(2**63) <= value < 2**63:
                out.append(b"i" + struct.pack("<q", value))
            else:
                out.append(_sized(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)))
        case float():
            out.append(b"f" + struct.pack("<d", value))
        case str():
            out.append(_sized(b"s", value.encode("utf-8", "surrogatepass")))
        case bytes() | bytearray():
            out.append(_sized(b"b", bytes(value)))
        case dt.datetime():
            out.append(_sized(b"D", value.isoformat().encode()))
        case dt.date():
            out.append(_sized(b"d", value.isoformat().encode()))
        case dt.timedelta():
            out.append(b"t" + struct.pack("<q", value // dt.timedelta(microseconds=1)))
        case decimal.Decimal():
            out.append(_sized(b"c", str(value).encode()))
        case tuple() | list():
            out.append((b"(" if isinstance(value, tuple) else b"[") + struct.pack("<I", len(value)))
            for item in value:
                _write(item, out)
        case dict():
            out.append(b"{" + struct.pack("<I", len(value)))
            for key, item in value.items():
                _write(key, out)
                _write(item, out)
        case set() | frozenset():
            members = sorted(encode(item) for item in value)
            out.append((b"S" if isinstance(value, set) else b"Z") + struct.pack("<I", len(members)) + b"".join(members))
        case _:
            raise TypeError(
                f"a partial of type {type(value).__name__} can't be stored. "
                "Use None, numbers, text, bytes, dates, tuples, lists, dicts or sets."
            )


def decode(data: bytes) -> Any:
    """Read what ``encode`` wrote; ValueError if it is damaged."""
    reader = _Reader(data)
    with refusing():
        value = reader.value()
    if reader.at != len(data):
        raise ValueError("these bytes are damaged: something follows the value. Store and pass all of them, unchanged.")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise ValueError("these bytes are damaged: they end too early. Store and pass all of them, unchanged.")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form: str, count: int) -> Any:
        return struct.unpack(form, self.take(count))[0]

    def sized(self) -> bytes:
        return self.take(self.number("<I", 4))

    def many(self) -> list[Any]:
        return [self.value() for _ in range(self.number("<I", 4))]

    def value(self) -> Any:
        match self.take(1):
            case b"N":
                return None
            case b"T":
                return True
            case b"F":
                return False
            case b"i":
                return self.number("<q", 8)
            case b"I":
                return int.from_bytes(self.sized(), "little", signed=True)
            case b"f":
                return self.number("<d", 8)
            case b"s":
                return self.sized().decode("utf-8", "surrogatepass")
            case b"b":
                return self.sized()
            case b"D":
                return dt.datetime.fromisoformat(self.sized().decode())
            case b"d":
                return dt.date.fromisoformat(self.sized().decode())
            case b"t":
                return dt.timedelta(microseconds=self.number("<q", 8))
            case b"c":
                return decimal.Decimal(self.sized().decode())
            case b"(":
                return tuple(self.many())
            case b"[":
                return self.many()
            case b"{":
                return {self.value(): self.value() for _ in range(self.number("<I", 4))}
            case b"S":
                return set(self.many())
            case b"Z":
                return frozenset(self.many())
            case tag:
                raise ValueError(f"these bytes are damaged: {tag!r} marks no value. Store and pass all of them, unchanged.")
