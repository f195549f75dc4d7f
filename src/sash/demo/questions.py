"""Three questions to the demo's tiles, with what each answer cost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from sash.time import timestamp, timestamp_text
from sash.wheel import TileStore

__all__ = ["answers", "worst_day"]

DAY = 86_400_000_000


def answers(path: Path) -> list[str]:
    """Ask, and tell what came out, how it was put together, and how long it took."""
    begun = time.perf_counter()
    store = TileStore(path)
    delay = store.wheels("delay")
    opened = time.perf_counter() - begun
    assert store.span is not None
    first, last = store.span
    held = f"{len(store):,} slices of {len(delay)} airports and airlines"
    lines = [f"  opened {held} in {opened * 1e3:,.0f} ms; complete up to {timestamp_text(delay.watermark)}"]

    def told(question: str, answer: str, seconds: float, plan: Any) -> None:
        lines.extend(["", f"  {question}", f"    {answer}    {seconds * 1e3:.2f} ms"])
        lines.extend("    " + line for line in str(plan).splitlines()[:2])  # what is asked, and the plan that was chosen

    start, end = timestamp("2013-01-07 06:00"), timestamp("2013-01-07 12:30")
    if first <= start and end <= delay.watermark:
        begun = time.perf_counter()
        value = delay.query(("EWR", "UA"), start, end)
        seconds = time.perf_counter() - begun
        asked = "How late was United from Newark on the morning of 7 January, 06:00 to 12:30?"
        told(asked, f"{_minutes(value)} on average", seconds, delay.explain(start, end, ("EWR", "UA")))
    begun = time.perf_counter()
    day, value = worst_day(delay, first, last)
    seconds = time.perf_counter() - begun
    told("Which day was the worst?", f"{timestamp_text(day)[:10]}: {_minutes(value)} on average", seconds, delay.explain(day, day + DAY))
    start = day - 3 * DAY if day - 3 * DAY >= first else first
    begun = time.perf_counter()
    top = delay.top(3, start, day + DAY)
    seconds = time.perf_counter() - begun
    said = ", ".join(f"{carrier} from {origin} {_minutes(value)}" for (origin, carrier), value in top)
    told("Who was the latest in the days that led to it?", said, seconds, delay.explain(start, day + DAY))
    return lines


def worst_day(delay: Any, first: int, last: int) -> tuple[int, float]:
    """The day with the largest mean delay over all flights, and that mean."""
    start = -(-first // DAY) * DAY
    days = [(day, value) for day, value in delay.group_by_all(start, last // DAY * DAY, DAY) if value is not None]
    return max(days, key=lambda row: row[1])


def _minutes(value: float | None) -> str:
    return "no flight" if value is None else f"{value:.1f} min"
