"""A KLL sketch that gives the same answer every time, in the bytes of Apache DataSketches.

The library drops every other item of a full level by chance, so that one question asked twice gets two answers. Here the coin is a
checksum of the level's own items: equal items give equal bytes, in whichever order two sketches are merged.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from typing import Any, Final, Self

import numpy as np

__all__ = ["Kll"]

_HEAD: Final = "<BBBBHBB"  # preamble ints, serial version, family, flags, k, m, unused
_REST: Final = "<QHBB"  # n, the smallest k that was merged, levels, unused
_FAMILY: Final = 15
_LEAST: Final = 8  # items that any level holds
_EMPTY, _SINGLE = 1, 4  # flags

Array = np.ndarray[Any, Any]


class Kll:
    """Numbers in levels; an item of level h stands for 2^h of them.

    I1  the weights of all items sum up to the number of items that were seen
    I2  levels above 0 are sorted, and all together fit the capacity that k allows
    """

    def __init__(self, k: int) -> None:
        self.k = self.min_k = k
        self.n = 0
        self.low, self.high = np.inf, -np.inf
        self.levels: list[Array] = [np.empty(0)]
        self._new: list[float] = []  # of level 0, not yet in its array

    def update(self, x: float) -> None:
        """Add a number; NaN is left out."""
        if x != x:
            return
        self._new.append(x)
        if len(self._new) >= self.k:
            self._settle()

    def _settle(self) -> None:
        new = np.array(self._new)
        self._new = []
        if len(new):
            self.n += len(new)
            self.low, self.high = min(self.low, float(new.min())), max(self.high, float(new.max()))
            self.levels[0] = np.concatenate([self.levels[0], new])
            self._compress()

    def merge(self, other: Kll) -> None:
        """Take in what another sketch has seen."""
        self._settle()
        other._settle()
        self.n += other.n
        self.min_k = min(self.min_k, other.min_k)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.levels += [np.empty(0) for _ in range(len(other.levels) - len(self.levels))]
        for h, theirs in enumerate(other.levels):
            both = np.concatenate([self.levels[h], theirs])
            self.levels[h] = both if h == 0 else np.sort(both)
        self._compress()

    def _compress(self) -> None:
        """Halve full levels, from the lowest up, until all items fit."""
        while sum(map(len, self.levels)) > _capacity(self.k, len(self.levels)):
            h = next(h for h, items in enumerate(self.levels) if len(items) >= _room(self.k, len(self.levels), h))
            if h + 1 == len(self.levels):
                self.levels.append(np.empty(0))
            items = np.sort(self.levels[h])
            coin = zlib.crc32(items.tobytes())
            odd = len(items) % 2
            rest = items[odd:] if coin & 2 else items[: len(items) - odd]  # an odd one stays where it is
            self.levels[h] = (items[:1] if coin & 2 else items[-1:]) if odd else np.empty(0)
            self.levels[h + 1] = np.sort(np.concatenate([self.levels[h + 1], rest[coin & 1 :: 2]]))

    def serialize(self) -> bytes:
        """Write it as the library does."""
        self._settle()
        if self.n == 0:
            return struct.pack(_HEAD, 2, 1, _FAMILY, _EMPTY, self.k, _LEAST, 0)
        if self.n == 1:
            return struct.pack(_HEAD, 2, 2, _FAMILY, _SINGLE, self.k, _LEAST, 0) + struct.pack("<d", self.low)
        count = len(self.levels)
        sizes = np.array([len(items) for items in self.levels])
        starts = _capacity(self.k, count) - sizes.sum() + np.r_[0, np.cumsum(sizes)[:-1]]
        return b"".join(
            (
                struct.pack(_HEAD, 5, 1, _FAMILY, 0, self.k, _LEAST, 0),
                struct.pack(_REST, self.n, self.min_k, count, 0),
                starts.astype("<u4").tobytes(),
                struct.pack("<dd", self.low, self.high),
                self.levels[0][::-1].astype("<f8").tobytes(),  # the youngest first
                *(items.astype("<f8").tobytes() for items in self.levels[1:]),
            )
        )

    @classmethod
    def deserialize(cls, data: bytes) -> Self:
        """Read what the library or serialize() wrote; ValueError if it is damaged."""
        try:
            _, version, family, flags, k, _, _ = struct.unpack_from(_HEAD, data)
            made = cls(k)
            if family != _FAMILY or version not in (1, 2):
                raise ValueError("it is no KLL sketch")
            if flags & _EMPTY:
                return made
            if flags & _SINGLE:
                made.update(struct.unpack_from("<d", data, 8)[0])
                made._settle()
                return made
            made.n, made.min_k, count, _ = struct.unpack_from(_REST, data, 8)
            at = 8 + struct.calcsize(_REST)
            starts = np.frombuffer(data, "<u4", count, at).astype(np.int64)
            made.low, made.high = struct.unpack_from("<dd", data, at + 4 * count)
            items = np.frombuffer(data, "<f8", -1, at + 4 * count + 16)
            ends = np.r_[starts, starts[0] + len(items)] - starts[0]
            if (np.diff(ends) < 0).any():
                raise ValueError("its levels do not fit")
            made.levels = [items[a:b] for a, b in itertools.pairwise(ends)]
            made.levels[0] = made.levels[0][::-1]
            if sum(len(level) << h for h, level in enumerate(made.levels)) != made.n:
                raise ValueError("its weights do not sum up to its items")
            return made
        except (struct.error, IndexError, ValueError) as error:
            raise ValueError(f"these bytes are damaged: {error}. Store and pass all of them, unchanged.") from error


def _room(k: int, levels: int, h: int) -> int:
    """How many items level h of so many holds: k at the top, each one below two thirds of it, at least 8."""
    depth = levels - h - 1
    if depth > 30:
        return _LEAST
    two_thirds: int = ((k << 1) << depth) // 3**depth
    return max(_LEAST, (two_thirds + 1) >> 1)


def _capacity(k: int, levels: int) -> int:
    return sum(_room(k, levels, h) for h in range(levels))
