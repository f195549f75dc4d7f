"""The wheel: one writer, windows, and questions about any range of its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np

from sash import codec
from sash._core import WheelCore, WheelReader
from sash.agg.base import Aggregation
from sash.time import Duration
from sash.wheel import answers as _answers  # noqa: F401  (registers them with the core)
from sash.wheel.errors import Misaligned, length_text
from sash.wheel.replays import is_new, remember, taken_over
from sash.wheel.shape import LEVELS, Layout, Retention, Shape

__all__ = ["Reader", "Wheel", "WindowResult"]

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
        if not isinstance(write_ahead, int) or isinstance(write_ahead, bool) or not 1 <= write_ahead <= 2**26:
            raise ValueError(
                f"write_ahead={write_ahead!r} is not a number of grains. Use 1 to 2**26; further ahead than that is slower, not refused."
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
        self._merged: dict[str, int] = {}
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

    def merge(self, other: Wheel, *, source: str | None = None, sequence: int | None = None) -> bool:
        """Take in another wheel, fed by another stream, of equal grain and levels; the watermark becomes the smaller.

        What lay between the two watermarks is open again; this wheel's windows go on from the merged watermark, with both streams in
        them. Within a grain, this wheel's items come first. Cost: O(slots held).

        A merge that may come twice says what it is: with ``source`` and ``sequence``, the number of a delta of that source, a delta that
        was merged before changes nothing. Gives whether it was taken in.

        >>> from sash import agg
        >>> w, delta = Wheel(agg.sum(), unit="s"), Wheel(agg.sum(), unit="s")
        >>> _ = delta.insert(7, 30), delta.advance_to(60), w.advance_to(60)
        >>> w.merge(delta, source="worker 3", sequence=1), w.merge(delta, source="worker 3", sequence=1), w.landmark()
        (True, False, 7)
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
        if not is_new(self._merged, source, sequence):
            return False
        self._merge(other)
        remember(self._merged, source, sequence, other._merged)
        return True

    # --- bytes

    def to_bytes(self) -> bytes:
        """Store the wheel as bytes, in the codec's envelope with the fingerprint of its aggregation.

        >>> from sash import agg
        >>> w = Wheel(agg.sum(), unit="s"); _ = w.insert(7, 30), w.advance_to(60)
        >>> Wheel.from_bytes(w.to_bytes(), agg.sum()).landmark()
        7
        """
        return codec.seal("wheel", self.aggregation.fingerprint(), codec.encode((self._stored_options(), self._names, self._state())))

    @classmethod
    def from_bytes(cls, data: bytes, aggregation: Aggregation) -> Self:
        """Read a wheel that ``to_bytes`` stored; ValueError for damaged bytes or another definition's."""
        payload = codec.unseal("wheel", aggregation.fingerprint(), data)
        with codec.refusing():
            options, names, state = codec.decode(payload)
            return _rebuilt(cls, aggregation, options, names, state)

    def _stored_options(self) -> dict[str, Any]:
        return {**self._options, "merged": dict(self._merged)} if self._merged else self._options

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, (type(self), self.aggregation, self._stored_options(), list(self._names), self._state()))

    def __copy__(self) -> Self:
        return _rebuilt(type(self), self.aggregation, self._stored_options(), list(self._names), self._state())

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
    options, merged = taken_over(options)
    wheel = cls(aggregation, start=state[2], **options)
    wheel._restore(state)
    wheel._merged = merged
    wheel._names = list(names)
    return wheel
