"""The shape of a wheel: its unit, grain and levels, what each level retains, and times read in its units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from sash.time import MICROS, duration, duration_text, is_count, timestamp, timestamps
from sash.wheel.errors import Misaligned, length_text

__all__ = ["LEVELS", "Layout", "Retention", "Shape", "read_bounds", "read_times"]

Retention = Literal["keep", "drop"] | int
Layout = Literal["plain", "prefix"]

LEVELS: Final = ("1m", "1h", "1d", "1w")
MOST_LEVELS: Final = 12


class Shape(NamedTuple):
    """A wheel's unit, grain and levels, in units; what each level retains (0: all) and whether it stores prefixes."""

    micros: int
    grain: int
    levels: tuple[int, ...]
    retain: tuple[int, ...]
    prefix: tuple[bool, ...]

    @classmethod
    def read(cls, unit: str, grain: Any, levels: Iterable[Any], retention: Any, layout: Any) -> Shape:
        """Read the arguments of a wheel."""
        if unit not in MICROS:
            raise ValueError(f"unit={unit!r} is not known. Use one of {' '.join(MICROS)}.")
        self = cls(MICROS[unit], 1, (), (), ())
        fine = self.units(grain, "grain")
        if fine < 1:
            raise ValueError(f"grain={grain!r} is not a length of time. Use one unit or more.")
        sizes = [self.units(level, "levels") for level in ([levels] if isinstance(levels, str) else levels)]
        if levels is LEVELS:  # of the usual levels, those that fit this grain
            kept = [fine]
            for size in sizes:
                if size > kept[-1] and size % kept[-1] == 0:
                    kept.append(size)
            sizes = kept[1:]
        below = fine
        for size in sizes:
            if size <= below or size % below:
                raise ValueError(
                    f"levels: {length_text(size, self.micros)} is not a multiple of {length_text(below, self.micros)}, the level below. "
                    "Each level must hold a whole number of slots, at least two, of the one before."
                )
            below = size
        if len(sizes) + 1 > MOST_LEVELS:
            raise ValueError(f"there are {len(sizes)} levels above the grain. Use at most {MOST_LEVELS - 1}.")
        every = (fine, *sizes)
        retain = [self._retained(r, every, k) for k, r in enumerate(self._per_level("retention", retention, every, "keep"))]
        prefix = []
        for value in self._per_level("layout", layout, every, "plain"):
            if value not in ("plain", "prefix"):
                raise ValueError(f"layout={value!r} is not known. Use 'plain' or 'prefix', or a mapping of levels to these.")
            prefix.append(value == "prefix")
        return cls(self.micros, fine, tuple(sizes), tuple(retain), tuple(prefix))

    def _per_level(self, what: str, given: Any, sizes: tuple[int, ...], default: Any) -> list[Any]:
        if not isinstance(given, Mapping):
            return [given] * len(sizes)
        by_size = {self.units(level, what): value for level, value in given.items()}
        for size in by_size:
            if size not in sizes:
                known = ", ".join(length_text(s, self.micros) for s in sizes)
                raise ValueError(f"{what}: {length_text(size, self.micros)} is not a level of this wheel. Its levels are {known}.")
        return [by_size.get(size, default) for size in sizes]

    @staticmethod
    def _retained(value: Any, sizes: tuple[int, ...], k: int) -> int:
        if value == "keep":
            return 0
        if value == "drop":  # the last full turn; the coarsest level has none
            return sizes[k + 1] // sizes[k] if k + 1 < len(sizes) else 0
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**61:
            raise ValueError(
                f"retention={value!r} is not known. Use 'keep', 'drop', a number of slots (1 or more), or a mapping of levels to these."
            )
        return int(value)

    def units(self, value: Any, what: str) -> int:
        """Read a length of time in units."""
        length = duration(value)
        if is_count(value):
            return length
        if length % self.micros:
            raise Misaligned(f"{what}={value!r} is not a whole number of units of {duration_text(self.micros)}. Use a finer unit=.")
        return length // self.micros

    def grains(self, value: Any, what: str) -> int:
        """Read a length of time in grains."""
        length = self.units(value, what)
        if length % self.grain:
            raise Misaligned(
                f"{what}={value!r} is not a multiple of the wheel's grain, {length_text(self.grain, self.micros)}. "
                "Use one that is, or a wheel with a finer grain."
            )
        return length // self.grain

    def time(self, value: Any) -> int:
        """Read a point in time in units."""
        time = timestamp(value)
        return time if is_count(value) else time // self.micros

    def times(self, values: Any) -> np.ndarray[Any, Any]:
        """Read many points in time in units: integers as they are, datetimes by the unit."""
        return read_times(values, self.micros)

    def text(self) -> str:
        """Write grain and levels."""
        return f"grain {length_text(self.grain, self.micros)} and levels " + ", ".join(length_text(s, self.micros) for s in self.levels)


def read_times(values: Any, micros: int) -> np.ndarray[Any, Any]:
    """Read many points in time in units of so many microseconds: integers as they are, datetimes rounded down."""
    return _whole(timestamps(values, micros))


def read_bounds(values: Any, micros: int) -> np.ndarray[Any, Any]:
    """Read the bounds of ranges: not rounded, since the ranges would be others."""
    return _whole(timestamps(values, micros, Misaligned))


def _whole(times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if times.dtype.kind == "f" and times.size:
        raise TypeError("times are integers or datetimes, these are floats. Convert them, rounding as you mean to.")
    return np.ascontiguousarray(times, np.int64)
