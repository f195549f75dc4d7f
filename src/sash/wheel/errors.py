"""Why a wheel refuses a range."""

from __future__ import annotations

from sash.errors import SashError
from sash.time import duration_text, timestamp_text

__all__ = ["BeyondWatermark", "Misaligned", "NotRetained", "TileStoreError", "length_text", "merge_refusal", "refusal", "time_text"]


class BeyondWatermark(SashError, ValueError):
    """A range ends after the watermark: what lies there is not complete.

    >>> from sash import agg
    >>> from sash.wheel import Wheel
    >>> w = Wheel(agg.sum(), unit="s")
    >>> _ = w.advance_to(60)
    >>> w.query(0, 90)
    Traceback (most recent call last):
    ...
    sash.wheel.errors.BeyondWatermark: [0, 90) ends after the watermark, 60. Advance the wheel first, or pass clamp=True for the part
    before it.
    """


class NotRetained(SashError, ValueError):
    """A range needs slots that were dropped, or lies before the wheel's start.

    >>> from sash import agg
    >>> from sash.wheel import Wheel
    >>> w = Wheel(agg.sum(), unit="s", start=3_600)
    >>> _ = w.advance_to(7_200)
    >>> w.query(0, 7_200)
    Traceback (most recent call last):
    ...
    sash.wheel.errors.NotRetained: [0, 7200) begins before the wheel does, at 3600. Ask from there on.
    """


class Misaligned(SashError, ValueError):
    """A time or a length is not a multiple of the wheel's grain.

    >>> from sash import agg
    >>> from sash.wheel import Wheel
    >>> w = Wheel(agg.sum(), unit="s", grain="1m")
    >>> _ = w.advance_to(3_600)
    >>> w.query(0, 90)
    Traceback (most recent call last):
    ...
    sash.wheel.errors.Misaligned: 90 is not a multiple of the wheel's grain, 1m. Use 60 or 120.
    """


class TileStoreError(SashError, ValueError):
    """A tile store can't be read, or refuses a write: it is damaged, of another definition, or another query's.

    >>> import tempfile
    >>> from sash.wheel import TileStore
    >>> try:
    ...     TileStore(tempfile.mkdtemp())
    ... except TileStoreError as error:
    ...     print(str(error).partition(": ")[2].partition(".")[0])
    it is no tile store
    """


_DATED = 366 * 86_400_000_000  # closer to the epoch than a year, a time is more likely a plain number


def time_text(time: int, unit: int) -> str:
    """Write a time of a wheel: as a number, and as a date where it looks like one.

    >>> time_text(90, 1), time_text(1_372_636_800, 1_000_000)
    ('90', '1372636800 (2013-07-01 00:00)')
    """
    return str(time) if abs(time * unit) < _DATED else f"{time} ({timestamp_text(time * unit)})"


def length_text(length: int, unit: int) -> str:
    """Write a length of time of a wheel.

    >>> length_text(60, 1_000_000), length_text(7, 1)
    ('1m', '7us')
    """
    return duration_text(length * unit)


def refusal(
    why: str, start: int, end: int, piece_start: int, piece_end: int, first: int, watermark: int, levels: list[tuple[int, int]], unit: int
) -> Exception:
    """Say why a wheel that begins at ``first`` can't answer [start, end)."""

    def show(time: int) -> str:
        return time_text(time, unit)

    asked = f"[{show(start)}, {show(end)})"
    grain = levels[0][0]
    match why:
        case "reversed":
            return ValueError(f"start {show(start)} is after end {show(end)}. A range is [start, end), start first.")
        case "misaligned":
            off = start if start % grain else end
            below = off - off % grain
            return Misaligned(
                f"{show(off)} is not a multiple of the wheel's grain, {length_text(grain, unit)}. "
                f"Use {show(below)} or {show(below + grain)}."
            )
        case "beyond_watermark":
            return BeyondWatermark(
                f"{asked} ends after the watermark, {show(watermark)}. Advance the wheel first, or pass clamp=True for the part before it."
            )
        case "before_start":
            return NotRetained(f"{asked} begins before the wheel does, at {show(first)}. Ask from there on.")
        case _:
            held = ", ".join(f"{length_text(size, unit)} from {show(lo)}" for size, lo in levels)
            return NotRetained(
                f"{asked} needs [{show(piece_start)}, {show(piece_end)}), which is no longer held in slots that fit. Held: {held}. "
                "Ask for whole slots of a level that goes back far enough, or give the wheel a longer retention."
            )


def merge_refusal(start: int, end: int, unit: int) -> NotRetained:
    """Say what a merge would need."""
    return NotRetained(
        f"the wheels can't be merged: [{time_text(start, unit)}, {time_text(end, unit)}) has to be taken apart and is no longer held. "
        "Advance both wheels to one watermark first, or give them a longer retention."
    )
