"""A wheel as a list of raw items: every answer is computed from scratch."""

from __future__ import annotations

import dataclasses
from typing import Any

from sash import agg


@dataclasses.dataclass
class Window:
    """A window as the brute force keeps it: the start of the next, or of the search for the next session."""

    name: str
    range: int = 0
    slide: int = 0
    session: int = 0
    first: int = 0
    next: int = 0


class BruteWheel:
    """Raw items of a wheel, in ticks of its grain; watermark and times are in units."""

    def __init__(self, aggregation: agg.Aggregation, start: int = 0, grain: int = 1) -> None:
        self.aggregation, self.start, self.grain = aggregation, start, grain
        self.watermark = start
        self.items: dict[int, list[tuple[Any, int]]] = {}
        self.late = 0
        self.windows: list[Window] = []

    @property
    def now(self) -> int:
        return self.watermark // self.grain

    @property
    def first_tick(self) -> int:
        return self.start // self.grain

    def insert(self, value: Any, time: int) -> bool:
        if time < self.watermark:
            self.late += 1
            return False
        self.items.setdefault(time // self.grain, []).append((value, time))
        return True

    def any(self, a: int, b: int) -> bool:
        return any(a <= t < b for t in self.items)

    def value(self, a: int, b: int) -> Any:
        """Lower the fold of the items of ticks [a, b), ticks in order, items of a tick as they came."""
        partial = self.aggregation.identity()
        for tick in sorted(t for t in self.items if a <= t < b):
            for value, time in self.items[tick]:
                partial = self.aggregation.combine(partial, self.aggregation.lift(value, time))
        return self.aggregation.lower(partial)

    # --- windows

    def install(self, name: str, range: int, slide: int, offset: int) -> None:
        begin = -(-self.watermark // self.grain)
        first = offset + slide * -(-(begin - offset) // slide)
        self.windows.append(Window(name, range, slide, first=first, next=first))

    def install_session(self, name: str, gap: int) -> None:
        begin = -(-self.watermark // self.grain)
        self.windows.append(Window(name, session=gap, first=begin, next=begin))

    def session_from(self, tick: int, gap: int) -> tuple[int, int] | None:
        """The first and last tick of the first session that begins at or after a tick, of closed ticks."""
        ticks = sorted(t for t in self.items if tick <= t < self.now)
        if not ticks:
            return None
        last = ticks[0]
        for t in ticks[1:]:
            if t - last > gap:
                break
            last = t
        return ticks[0], last

    def advance_to(self, time: int, empty: bool = True) -> list[tuple[str, int, int, Any]]:
        self.watermark = max(self.watermark, time)
        out = []
        for order, w in enumerate(self.windows):
            if w.session:
                while (found := self.session_from(w.next, w.session)) and found[1] + w.session < self.now:
                    first, last = found
                    out.append((last + w.session, order, w.name, first, self.value(first, last + 1)))
                    w.next = last + 1
            else:
                while w.next + w.range <= self.now:
                    if empty or self.any(w.next, w.next + w.range):
                        out.append((w.next + w.range, order, w.name, w.next, self.value(w.next, w.next + w.range)))
                    w.next += w.slide
        out.sort(key=lambda r: r[:2])
        return [(name, start * self.grain, end * self.grain, value) for end, _, name, start, value in out]

    def merge(self, other: BruteWheel) -> None:
        for tick, items in other.items.items():
            self.items.setdefault(tick, []).extend(items)
        self.watermark = min(self.watermark, other.watermark)
        self.start = min(self.start, other.start)
        self.late += other.late
        for w in self.windows:
            w.next = w.first
            if w.session:
                while (found := self.session_from(w.next, w.session)) and found[1] + w.session < self.now:
                    w.next = found[1] + 1
            else:
                while w.next + w.range <= self.now:
                    w.next += w.slide


def coverable(levels: list[tuple[int, int, int]], grain: int, a: int, b: int) -> bool:
    """Tell whether every tick of [a, b) lies in a held slot that lies in [a, b); levels as (size, lo, hi) in units."""
    at = a
    while at < b:
        for size, lo, hi in reversed(levels):
            ticks = size // grain
            if at % ticks == 0 and lo // grain <= at and at + ticks <= min(b, hi // grain):
                at += ticks
                break
        else:
            return False
    return True
