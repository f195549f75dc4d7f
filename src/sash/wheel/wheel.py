"""The wheel: one writer, windows, and questions about any range of its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, Self, TypeVar

import numpy as np

from sash import codec
from sash._core import WheelAnswers, WheelCore, WheelReader, register_hooks
from sash.agg.base import Aggregation
from sash.time import MICROS, Duration, duration, duration_text, is_count, timestamp, timestamps
from sash.wheel.errors import Misaligned, length_text, time_text
from sash.wheel.plan import Plan, explained

__all__ = ["Reader", "Wheel", "WindowResult"]

Retention = Literal["keep", "drop"] | int
Layout = Literal["plain", "prefix"]

LEVELS: Final = ("1m", "1h", "1d", "1w")
MOST_LEVELS: Final = 12
# A scan of so many slots costs what planning and carrying out a combined plan does. Measured on seven days of seconds, the two cost
# the same at about 380 slots for a sum of integers, 200 of floats, 150 for a mean and 130 for a maximum.
SIMD_THRESHOLD: Final = 160
HINTS: Final = ("auto", "none", "simd", "inverse")


class WindowResult(NamedTuple):
    """One window that ended: [start, end) and its value.

    >>> from sash import agg
    >>> w = Wheel(agg.sum(), unit="s")
    >>> w.window(60, name="minute")
    'minute'
    >>> w.insert(5, time=30)
    True
    >>> w.advance_to(60)
    [WindowResult(name='minute', start=0, end=60, value=5)]
    """

    name: str
    start: int
    end: int
    value: Any


Reader = WheelReader


class Wheel(WheelCore):
    """Aggregates indexed over time (µWheel), fed out of order under a watermark.

    Cost: an insert is one combine, an advance about one per grain, a query as ``explain`` says; memory one partial per slot held.

    >>> from sash import agg
    >>> w = Wheel(agg.sum(), unit="s")
    >>> w.insert_many([1, 2, 3], times=[0, 59, 60])     # in any order, at or after the watermark
    0
    >>> w.advance_to(3600)                              # everything before has arrived
    []
    >>> w.query(0, 60), w.query(59, 61), w.landmark()   # [start, end)
    (3, 5, 6)
    >>> w.insert(9, 3599), w.late                       # older than the watermark: refused, counted
    (False, 1)
    """

    def __init__(
        self,
        aggregation: Aggregation,
        start: Any = 0,
        unit: str = "us",
        grain: Duration = "1s",
        levels: Iterable[Duration] = LEVELS,
        retention: Retention | Mapping[Duration, Retention] = "keep",
        layout: Layout | Mapping[Duration, Layout] = "plain",
        write_ahead: int = 64,
        hints: str | Iterable[str] = "auto",
        simd_threshold: int | None = None,
        *,
        dtype: str | None = None,
        _chunk: int = 0,
    ) -> None:
        if not isinstance(aggregation, Aggregation):
            raise TypeError(f"{aggregation!r} is not an aggregation. Pass one of sash.agg, e.g. Wheel(agg.sum()).")
        if not aggregation.associative:
            raise TypeError(f"{aggregation.name} is not associative. A wheel needs that; only Recalc does not.")
        shape = Shape.read(unit, grain, levels, retention, layout)
        if any(shape.prefix) and not aggregation.invertible:
            raise TypeError(f"{aggregation.name} has no inverse, which layout='prefix' needs. Use layout='plain'.")
        if not isinstance(write_ahead, int) or isinstance(write_ahead, bool) or not 1 <= write_ahead <= 2**32:
            raise ValueError(
                f"write_ahead={write_ahead!r} is not a number of grains. Use 1 to 2**32; further ahead than that is slower, not refused."
            )
        asked = (hints,) if isinstance(hints, str) else tuple(hints)
        for hint in asked:
            if hint not in HINTS:
                raise ValueError(f"hints={hint!r} is not known. Use one or more of {', '.join(map(repr, HINTS))}.")
        if simd_threshold is not None and (isinstance(simd_threshold, bool) or not isinstance(simd_threshold, int | np.integer)):
            raise TypeError(f"simd_threshold={simd_threshold!r} is no number. Use the number of combines up to which a scan is preferred.")
        if simd_threshold is not None and not 0 <= simd_threshold < 2**63:
            raise ValueError(
                f"simd_threshold={simd_threshold} is not in reach. Use the number of combines up to which a scan is preferred."
            )
        threshold = simd_threshold
        if threshold is None and ("simd" in asked or ("auto" in asked and aggregation.commutative and not aggregation.callables)):
            threshold = SIMD_THRESHOLD
        if "none" in asked:
            threshold = None
        begin = shape.time(start)
        if begin % shape.grain:
            raise Misaligned(
                f"start {begin} is not a multiple of the grain, {length_text(shape.grain, shape.micros)}. "
                f"Use {begin - begin % shape.grain} or another that is."
            )
        rows = [
            (size // shape.grain, retain, prefix)
            for size, retain, prefix in zip((shape.grain, *shape.levels), shape.retain, shape.prefix, strict=True)
        ]
        inverse = "inverse" in asked and aggregation.invertible
        super().__init__(
            aggregation.with_unit(shape.micros), dtype, shape.micros, shape.grain, begin, rows, write_ahead, inverse, threshold, _chunk
        )
        self._shape = shape
        self._names: list[str] = []
        self._options: dict[str, Any] = {
            "unit": unit,
            "grain": shape.grain,
            "levels": shape.levels,
            "retention": {size: retain or "keep" for size, retain in zip((shape.grain, *shape.levels), shape.retain, strict=True)},
            "layout": {size: "prefix" if p else "plain" for size, p in zip((shape.grain, *shape.levels), shape.prefix, strict=True)},
            "write_ahead": write_ahead,
            "hints": asked,
            "simd_threshold": simd_threshold,
            "dtype": dtype,
        }

    # --- in

    def insert_many(self, values: Any, times: Any) -> int:
        """Add whole columns, and tell how many items were late: the main path, fast for NumPy and Arrow.

        >>> from sash import agg
        >>> import numpy as np
        >>> w = Wheel(agg.max(), grain="1m")
        >>> w.insert_many(np.array([4.0, 2.5]), np.array(["2013-07-01T00:00:30", "2013-07-01T00:02"], dtype="datetime64[s]"))
        0
        """
        return self._insert_many(values, self._shape.times(times))

    def window(
        self,
        range: Duration | None = None,
        slide: Duration | None = None,
        offset: Duration = 0,
        name: str | None = None,
        *,
        session: Duration | None = None,
    ) -> str:
        """Install a window, and give its name: tumbling, sliding, or a session that ends after a gap without items.

        Windows start at multiples of ``slide`` plus ``offset``, as in Spark; the first is the first that starts at or after the
        watermark. A session ends one gap after its last grain with items, and an item exactly at that end still joins it, as in Spark.
        Cost: one combine per grain, and a constant number per slide.

        >>> from sash import agg
        >>> w = Wheel(agg.count(), unit="s")
        >>> w.window("2m", "1m", name="visits")
        'visits'
        >>> w.insert(1, 70)
        True
        >>> w.advance_to(180)
        [WindowResult(name='visits', start=0, end=120, value=1), WindowResult(name='visits', start=60, end=180, value=1)]
        """
        shape = self._shape
        if session is not None:
            if range is not None or slide is not None:
                raise ValueError("a session has a gap, neither range nor slide. Use window(session=gap), or window(range, slide).")
            gap = shape.grains(session, "session")
            if gap < 1:
                raise ValueError(f"session={session!r} is not a gap. Use at least one grain, {length_text(shape.grain, shape.micros)}.")
            ticks = (0, 0, 0, gap)
            text = f"session {length_text(gap * shape.grain, shape.micros)}"
        elif range is None:
            raise TypeError("a window has a range. Use window(range, slide), or window(session=gap).")
        else:
            length = shape.grains(range, "range")
            step = length if slide is None else shape.grains(slide, "slide")
            if length < 1 or step < 1:
                raise ValueError(f"range={range!r}, slide={slide!r}: a window and a slide are at least one grain long.")
            if step > length:
                raise ValueError(
                    f"slide={slide!r} is longer than range={range!r}: items in between would not count. Use a slide up to the range."
                )
            ticks = (length, step, shape.grains(offset, "offset"), 0)
            text = length_text(length * shape.grain, shape.micros)
            if step != length:
                text += f" by {length_text(step * shape.grain, shape.micros)}"
        chosen = text if name is None else name
        if name is None and chosen in self._names:
            chosen = _unused(text, self._names)
        if chosen in self._names:
            raise ValueError(f"a window named {chosen!r} is installed already. Give this one another name=.")
        self._install(*ticks)
        self._names.append(chosen)
        return chosen

    def advance_to(self, time: Any, *, empty: bool = True, errors: str = "raise") -> list[WindowResult]:
        """Move the watermark, and give the windows that end by then: by end, then by order of installation.

        Windows without items are among them unless ``empty=False``. A time before the watermark changes nothing.

        Where a result can't be given (it does not fit int64, or ``lower`` raises), the error names its window, and the wheel keeps
        the results of this call, all of them: the next call gives them before its own. With ``errors="keep"`` such a result has its
        error as its value.

        >>> from sash import agg
        >>> w = Wheel(agg.sum(), unit="s"); _ = w.window("1m"), w.insert_many([2**62, 2**62, 1], [0, 1, 60])
        >>> w.advance_to(120)
        Traceback (most recent call last):
        ...
        OverflowError: the result does not fit int64. Use float items (dtype='float64') or a smaller window.
        This is the result of window '1m' of [0, 60). No result of this advance is lost: the next advance_to() gives them all;
        with errors='keep', this one has its error as its value.
        >>> [r.value for r in w.advance_to(120, errors="keep")][1]
        1
        """
        if errors not in ("raise", "keep"):
            raise ValueError(f"errors={errors!r} is not known. Use 'raise', or 'keep' to have errors as values.")
        return self._advance_to(time, empty, WindowResult, self._names, errors == "keep")

    # --- out

    def reader(self) -> Reader:
        """Give a read-only view at the present watermark, for any thread; take a new one to see more.

        A reader stays at its watermark, and keeps what it can see from being dropped, for as long as it lives. Cost: O(levels).

        >>> from sash import agg
        >>> w = Wheel(agg.sum(), unit="s"); _ = w.insert(7, 30), w.advance_to(60)
        >>> r = w.reader(); _ = w.advance_to(120)
        >>> r.watermark, r.landmark()
        (60, 7)
        """
        return self._reader()

    def merge(self, other: Wheel) -> None:
        """Take in another wheel, fed by another stream, of equal grain and levels; the watermark becomes the smaller.

        What lay between the two watermarks is open again; this wheel's windows go on from the merged watermark, with both streams in
        them. Within a grain, this wheel's items come first. Cost: O(slots held).
        """
        if not isinstance(other, Wheel):
            raise TypeError(f"{other!r} is not a wheel. Merge wheels of the same aggregation.")
        if self.aggregation != other.aggregation:
            raise ValueError(
                f"one wheel aggregates {self.aggregation!r}, the other {other.aggregation!r}. Merge wheels of one aggregation."
            )
        mine, theirs = self._shape, other._shape
        if (mine.micros, mine.grain, mine.levels) != (theirs.micros, theirs.grain, theirs.levels):
            raise ValueError(f"one wheel has {mine.text()}, the other {theirs.text()}. Merge wheels of equal unit, grain and levels.")
        self._merge(other)

    # --- bytes

    def to_bytes(self) -> bytes:
        """Store the wheel as bytes, in the codec's envelope with the fingerprint of its aggregation.

        >>> from sash import agg
        >>> w = Wheel(agg.sum(), unit="s"); _ = w.insert(7, 30), w.advance_to(60)
        >>> Wheel.from_bytes(w.to_bytes(), agg.sum()).landmark()
        7
        """
        return codec.seal("wheel", self.aggregation.fingerprint(), codec.encode((self._options, self._names, self._state())))

    @classmethod
    def from_bytes(cls, data: bytes, aggregation: Aggregation) -> Self:
        """Read a wheel that ``to_bytes`` stored; ValueError for damaged bytes or another definition's."""
        payload = codec.unseal("wheel", aggregation.fingerprint(), data)
        with codec.refusing():
            options, names, state = codec.decode(payload)
            return _rebuilt(cls, aggregation, options, names, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, (type(self), self.aggregation, self._options, list(self._names), self._state()))

    def __copy__(self) -> Self:
        return _rebuilt(type(self), self.aggregation, self._options, list(self._names), self._state())

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<Wheel of {self.aggregation!r}, {self._shape.text()}, from {self.start} to {self.watermark}>"


W = TypeVar("W", bound=Wheel)


def _unused(text: str, names: list[str]) -> str:
    i = 2
    while f"{text} #{i}" in names:
        i += 1
    return f"{text} #{i}"


def _rebuilt(cls: type[W], aggregation: Aggregation, options: dict[str, Any], names: list[str], state: tuple[Any, ...]) -> W:
    wheel = cls(aggregation, start=state[2], **options)
    wheel._restore(state)
    wheel._names = list(names)
    return wheel


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


# --- what a wheel and its readers share


def query_many(self: WheelAnswers, starts: Any, ends: Any, *, clamp: bool = False) -> np.ndarray[Any, Any]:
    """Give the values of many ranges [start, end) at once, as an array.

    >>> from sash import agg
    >>> w = Wheel(agg.sum(), unit="s", layout="prefix"); _ = w.insert_many([1, 2], [0, 61]), w.advance_to(120)
    >>> w.query_many([0, 0, 60], [60, 120, 61]).tolist()
    [1, 3, 0]
    """
    return self._query_many(read_bounds(starts, self._unit), read_bounds(ends, self._unit), clamp)


def interval(self: WheelAnswers, length: Duration, *, arg: Any = None) -> Any:
    """Give the value of the last ``length`` before the watermark: [watermark - length, watermark).

    A watermark inside a grain counts from where that grain begins: the rest of it is still open.
    """
    whole = units(self, length)
    if whole < 0:
        raise ValueError(f"interval({length!r}) is negative. Use the length of time before the watermark.")
    return self._interval(whole, arg)


def group_by(self: WheelAnswers, start: Any, end: Any, every: Duration, *, tz: str | None = None) -> list[tuple[int, Any]]:
    """Give (bucket start, value) for every ``every`` from start on, empty buckets included; the last ends at ``end``.

    With a time zone, ``every`` is whole days, weeks (from Monday) or months there: buckets begin at local midnights, the first at start.

    >>> from sash import agg
    >>> w = Wheel(agg.max(), unit="s"); _ = w.insert_many([1, 2], [0, 61]), w.advance_to(120)
    >>> w.group_by(0, 90, "30s")
    [(0, 1), (30, None), (60, 2)]
    """
    return [(first, self.query(first, last)) for first, last in buckets(self, start, end, every, tz)]


def explain(self: WheelAnswers, start: Any, end: Any, *, clamp: bool = False) -> Plan:
    """Give the plan for a range: what is read, at what cost, and what was rejected.

    >>> from sash import agg
    >>> w = Wheel(agg.max(), unit="s"); _ = w.advance_to(86_400)
    >>> print(w.explain(43_200, 66_600))
    max over [43200, 66600)    35 combines for 23,400 grains of 1s
      combined   1h x 6, 1m x 30                                                 35   <- chosen
      prefix     no level with prefixes holds it with both ends on its slots
      landmark   the range is not the whole wheel
      single     1m x 390                                                       389
      inverse    max is not invertible and commutative
    """
    return explained(self, start, end, clamp)


def buckets(self: WheelAnswers, start: Any, end: Any, every: Duration, tz: str | None = None) -> list[tuple[int, int]]:
    """Cut [start, end) into buckets; the last ends at ``end``."""
    first, last = read_bounds([start, end], self._unit).tolist()
    if first > last or last > self.watermark:
        self.query(first, last)  # says so, before a list of all buckets is made
    if tz is not None:
        return _local_buckets(first, last, every, tz, self._unit)
    step = units(self, every)
    if step < 1:
        raise ValueError(f"every={every!r} is not a length of time. Use at least one grain.")
    return [(at, min(at + step, last)) for at in range(first, last, step)]


def _local_buckets(first: int, last: int, every: Any, tz: str, unit: int) -> list[tuple[int, int]]:
    from sash.wheel.calendar import calendar_step, midnights

    inner = [at for at in midnights(first * unit, last * unit, calendar_step(every), tz) if first * unit < at < last * unit]
    off = next((at for at in inner if at % unit), None)
    if off is not None:
        raise Misaligned(f"midnight in {tz} is at {time_text(off, 1)} microseconds, between two units of the wheel. Use a finer unit.")
    edges = [first, *(at // unit for at in inner), last]
    return list(pairwise(edges)) if first < last else []


def units(self: WheelAnswers, length: Duration) -> int:
    """Read a length of time in a wheel's units."""
    return Shape(self._unit, 1, (), (), ()).units(length, "length")


register_hooks(query_many=query_many, interval=interval, group_by=group_by, explain_range=explain)
