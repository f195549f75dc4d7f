"""The shapes of what is asked: windows of a range and slide, of a calendar, sessions; look-backs by time, by rows, by hops."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar

import numpy as np

from sash.engine import calendar
from sash.errors import DefinitionError

__all__ = ["CLOSED", "FAR", "FOREVER", "CalendarWindows", "Hops", "Lookback", "Rolling", "Rows", "Sessions", "Windows"]

Array = np.ndarray[Any, Any]

FOREVER = 2**63 - 1  # the watermark that flushes everything
FAR = 2**62  # panes and times beyond any real one, with room to add to

CLOSED = ("right", "left", "both", "neither")


@dataclass(frozen=True)
class Windows:
    """Windows [start, end) of a range, one every slide; starts are multiples of slide plus offset. Microseconds."""

    range: int
    slide: int
    offset: int = 0
    ranges: tuple[tuple[str, int], ...] = ()  # several in one row, by their labels; ``range`` is then the longest of them
    empty_once: bool = False  # a key whose window falls empty gives one row, with the results of nothing

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise DefinitionError(f"a window needs a range and a slide above 0, not {self.range} and {self.slide}.")
        for length in (self.range, *(length for _, length in self.ranges)):
            if self.slide > length:
                raise DefinitionError(f"the slide ({self.slide}) is larger than the range ({length}): rows would fall between windows.")
        if self.ranges and self.range != max(length for _, length in self.ranges):
            raise DefinitionError(f"the range ({self.range}) is not the longest of the ranges.")

    @property
    def grain(self) -> int:
        """The width of a pane: every window is a whole number of panes."""
        return gcd(self.range, self.slide, *(length for _, length in self.ranges))

    @property
    def each_range(self) -> tuple[int, ...]:
        """The ranges of an output row, in panes: all that were asked for, one or several."""
        return tuple(length // self.grain for _, length in self.ranges) or (self.range // self.grain,)

    def panes_of(self, times: Array) -> Array:
        """The number of the pane that each of these times is in."""
        return np.asarray((times - self.offset) // self.grain)

    def instants(self, panes: Array) -> Array:
        """The times at which panes begin."""
        return np.asarray(panes * self.grain + self.offset)

    # The same in panes, counted from the offset: what the engine stores.

    @property
    def in_panes(self) -> tuple[int, int]:
        """For how long a slice makes a window come out, and the slide.

        That is the range; with `empty_once` a slide more: the first window that a key is not in any more is told too.
        """
        slide = self.slide // self.grain
        return self.range // self.grain + self.empty_once * slide, slide

    def last_pane_end(self, watermark: int | None) -> int:
        """The last pane end at or before a watermark."""
        return -FAR if watermark is None else FAR if watermark >= FOREVER else (watermark - self.offset) // self.grain

    def open_pane(self, watermark: int | None) -> int:
        """The first pane that some window after this watermark holds."""
        slide = self.slide // self.grain
        return ((self.last_pane_end(watermark) - self.range // self.grain) // slide + 1) * slide

    def oldest_pane(self, watermark: int | None) -> int:
        """The first pane that still matters: one slide before the open ones where a window that fell empty is told."""
        return self.open_pane(watermark) - self.empty_once * (self.slide // self.grain)

    def closed_end(self, watermark: int | None) -> int:
        """The end, in panes, of the last window that this watermark closed: older panes missed a window."""
        slide, range_ = self.slide // self.grain, self.range // self.grain
        return (self.last_pane_end(watermark) - range_) // slide * slide + range_


@dataclass(frozen=True)
class CalendarWindows(Windows):
    """Windows of whole days, weeks or months of a time zone; range and slide count them, and a pane is one of them."""

    kind: str = "days"
    tz: str = "UTC"
    grain: ClassVar[int] = 1  # type: ignore[assignment]

    def panes_of(self, times: Array) -> Array:
        """The number of the day, week or month that each of these times is in."""
        return calendar.numbers_of(self.kind, self.tz, times)

    def instants(self, panes: Array) -> Array:
        """The local midnights at which panes begin."""
        return calendar.instants(self.kind, self.tz, panes)

    def last_pane_end(self, watermark: int | None) -> int:
        """The last pane end at or before a watermark: the beginning of the pane that it is in."""
        if watermark is None or watermark >= FOREVER:
            return -FAR if watermark is None else FAR
        return calendar.number_of(self.kind, self.tz, watermark)


@dataclass(frozen=True)
class Sessions:
    """Windows of rows that follow each other within a gap: [first, last + gap). Microseconds; a pane is a microsecond."""

    gap: int
    grain: ClassVar[int] = 1
    offset: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.gap <= 0:
            raise DefinitionError(f"a session needs a gap above 0, not {self.gap}.")

    def open_pane(self, watermark: int | None) -> int:
        """The first time whose session, if it were alone, is open at this watermark."""
        return self.oldest_pane(watermark)

    def oldest_pane(self, watermark: int | None) -> int:
        """The first time that still matters."""
        return -FAR if watermark is None else FAR if watermark >= FOREVER else watermark - self.gap + 1

    def closed_end(self, watermark: int | None) -> int:
        """Rows before this are late."""
        return self.oldest_pane(watermark)


@dataclass(frozen=True)
class Rows:
    """A look-back of the last n rows instead of a period."""

    n: int


@dataclass(frozen=True)
class Hops:
    """A look-back that is coarse at its far end: it begins at a multiple of the hop, at least the period back."""

    period: int
    hop: int

    def begin(self, time: int) -> int:
        """The first time that a look-back from this one takes."""
        return (time - self.period) // self.hop * self.hop


Lookback = int | Rows | Hops | None


@dataclass(frozen=True)
class Rolling:
    """Look-backs of every row, each (label, microseconds); ``Rows(n)`` counts rows, ``None`` is the whole past.

    Closed right is (t - p, t], left [t - p, t), both [t - p, t], neither (t - p, t); a look-back of n rows is the same
    interval of row numbers, so that right is n rows with the row itself. A delay shifts all of them into the past: right is
    then (t - delay - p, t - delay]. Of ``Hops`` only the near end is open or closed: the far end always takes its whole hop.
    """

    lookbacks: tuple[tuple[str, Lookback], ...]
    closed: str = "right"
    delay: int = 0

    def __post_init__(self) -> None:
        if self.closed not in CLOSED:
            raise DefinitionError(f"closed={self.closed!r} is not one of {', '.join(CLOSED)}.")
        if not self.lookbacks:
            raise DefinitionError("rolling needs at least one look-back, e.g. '1h'.")
        for label, period in self.lookbacks:
            size = period.n if isinstance(period, Rows) else min(period.period, period.hop) if isinstance(period, Hops) else period
            if size is not None and size <= 0:
                raise DefinitionError(f"the look-back {label!r} must be longer than 0, not {size}.")
        if self.delay < 0:
            raise DefinitionError(f"the delay is {self.delay}: it shifts look-backs into the past and can't be negative.")
        if self.delay and self.kept_rows:
            raise DefinitionError("a delay shifts look-backs in time, and one of them counts rows. Leave out the delay, or that look-back.")

    def oldest_time(self, watermark: int | None) -> int:
        """The first time that some look-back of a row after this watermark reaches."""
        if watermark is None or watermark >= FOREVER:
            return FOREVER if watermark is not None else -FAR
        first = watermark + 1 - self.delay
        reached = [self.exact_from(watermark)]
        reached += [p.begin(first) for _, p in self.lookbacks if isinstance(p, Hops)]
        return min(reached)

    def exact_from(self, watermark: int) -> int:
        """The first time whose rows must be told apart at this watermark; older ones are reached hop by hop, or not at all."""
        first = watermark + 1 - self.delay  # where look-backs of the next row end
        needed = [first - p + (not self.takes_left) for _, p in self.lookbacks if isinstance(p, int)]
        if self.delay and (self.whole_past or self.hop):
            needed.append(first + self.takes_right)  # a younger row is not yet in the past of every later row
        return min(needed, default=watermark + 1 if self.hop else FOREVER)

    @property
    def hop(self) -> int:
        """The length of the hops that rows may be combined to where only coarse look-backs reach them; 0 if none does."""
        return gcd(*(p.hop for _, p in self.lookbacks if isinstance(p, Hops)))

    @property
    def kept_rows(self) -> int:
        """How many rows per key are kept whatever their age."""
        return max((p.n for _, p in self.lookbacks if isinstance(p, Rows)), default=0)

    @property
    def whole_past(self) -> bool:
        """Whether some look-back is the whole past."""
        return any(p is None for _, p in self.lookbacks)

    @property
    def takes_left(self) -> bool:
        """Whether a row exactly one period back counts."""
        return self.closed in ("left", "both")

    @property
    def takes_right(self) -> bool:
        """Whether the row itself, and those of equal time, count."""
        return self.closed in ("right", "both")
