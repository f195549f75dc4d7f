"""Membership in fixed space: bloom."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any, Final

from sash import codec
from sash.agg.arguments import Where, plain
from sash.agg.base import INT64_MAX, INT64_MIN, Aggregation, ItemType, Native, Traits
from sash.agg.card import AN_ITEM, SKETCH, card
from sash.agg.forms import Result

__all__ = ["bloom"]

_WORD: Final = 2**64 - 1


def _mix(z: int) -> int:
    """Spread the bits of a 64-bit number over all of it."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _WORD
    return z ^ (z >> 31)


def _seed(x: Any) -> int:
    """Give 64 bits of an item: of a whole number itself, so that 1 and 1.0 are one item; of others a digest."""
    x = plain(x)
    if isinstance(x, float):
        if not (x.is_integer() and INT64_MIN <= x < INT64_MAX):
            bits: int = struct.unpack("<Q", struct.pack("<d", x if x == x else math.nan))[0]
            return bits
        x = int(x)
    if isinstance(x, int) and INT64_MIN <= x <= INT64_MAX:
        return x & _WORD
    try:
        return int.from_bytes(hashlib.blake2b(codec.encode(x), digest_size=8).digest(), "little")
    except TypeError:
        raise TypeError(f"{x!r} can't be hashed. bloom takes numbers, text, dates, bytes and tuples of them.") from None


@card(SKETCH, "4,096 bits", cost="O(bits)", error="2.2% wrongly present at 500 items; never wrongly absent", nan=AN_ITEM)
def bloom(
    column: str | None = None, *, bits: int = 4096, hashes: int = 4, where: Where = None, dtype: ItemType | None = None
) -> Aggregation:
    """Tell whether an item may be in the window: ``query(arg=item)``. False is certain; True is wrong at times.

    The chance of that for n different items is (1 - exp(-hashes n / bits)) ** hashes: 2.2% for 500 of them by default.
    Without arg the answer is the estimated number of different items.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.bloom()); w.bulk_insert(["a", "b"])
    >>> w.query(arg="a"), w.query(arg="z"), w.query()
    (True, False, 2)
    """
    for name, value, least in (("bits", bits, 8), ("hashes", hashes, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name}={value!r} is too small. Use a whole number from {least} on.")

    def lift(x: Any, t: Any = None) -> int:
        seed = _seed(x)
        place, step = _mix(seed + 0x9E3779B97F4A7C15 & _WORD), _mix(seed + 0x3C6EF372FE94F82A & _WORD) | 1
        filter_ = 0
        for _ in range(hashes):
            filter_ |= 1 << place % bits
            place = place + step & _WORD
        return filter_

    def lower(p: int, arg: Any = None) -> Any:
        if arg is not None:
            wanted = lift(arg)
            return p & wanted == wanted
        if p == 0:
            return None
        unset = max(bits - p.bit_count(), 1)
        return round(-bits / hashes * math.log(unset / bits))

    def run_time(item_type: ItemType) -> Native | None:
        return None if item_type == "object" else Native("bloom", (bits, hashes), ("count",), None)

    return Aggregation(
        "bloom",
        0,
        lift,
        int.__or__,
        lower,
        None,
        Traits(commutative=True, parametric=True, exact=False),
        column,
        where,
        dtype,
        run_time=run_time,
        result=Result("integer"),
        from_native=lambda stored: int.from_bytes(stored, "little"),
        params=tuple((k, v) for k, v, usual in (("bits", bits, 4096), ("hashes", hashes, 4)) if v != usual),
    )
