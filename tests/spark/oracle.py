"""What a stream must give, from first principles: the watermark replayed batch by batch, every result from scratch."""

from collections.abc import Callable, Collection
from typing import Any

Event = tuple[Any, float, Any]  # key, time in seconds, value


def watermarks(batches: list[list[Event]], delay: float, start: float = float("-inf"), unseen: Collection[int] = ()) -> list[float]:
    """The watermark during each micro-batch, and during the batch without data that follows the last.

    The times of batches that are `unseen` do not move it.
    """
    marks, newest = [start], float("-inf")
    for i, batch in enumerate(batches):
        newest = max([newest, *(time for _, time, _ in batch if time is not None and i not in unseen)])
        marks.append(max(marks[-1], newest - delay))
    return marks


def ends(time: float, length: float, slide: float, offset: float = 0) -> list[float]:
    """The ends of the windows that a time is in."""
    last = (time - offset) // slide * slide + offset
    starts = []
    while last > time - length:
        starts.append(last)
        last -= slide
    return [start + length for start in starts]


def windows(
    batches: list[list[Event]],
    length: float,
    slide: float,
    delay: float,
    result: Callable[[list[Any]], Any],
    offset: float = 0,
    unseen: Collection[int] = (),
) -> list[dict[tuple[Any, float], Any]]:
    """Per micro-batch, {(key, window end): result of its values}; late rows count in open windows only."""
    marks = watermarks(batches, delay, unseen=unseen)
    open_: dict[tuple[Any, float], list[Any]] = {}
    out = []
    for i, mark in enumerate(marks):
        before = marks[max(0, i - 1)]
        for key, time, value in batches[i] if i < len(batches) else []:
            for end in ends(time, length, slide, offset) if time is not None else []:
                if end > before:
                    open_.setdefault((key, end), []).append(value)
        closed = [window for window in open_ if window[1] <= mark]
        out.append({window: result(open_.pop(window)) for window in closed})
    return out


def rolling(
    batches: list[list[Event]],
    periods: list[float],
    delay: float,
    result: Callable[[list[Any]], Any],
    closed: str = "right",
    late: str = "drop",
    unseen: Collection[int] = (),
) -> list[list[tuple[Any, ...]]]:
    """Per micro-batch, the rows that became final as (key, time, value, a result per period)."""
    marks = watermarks(batches, delay, unseen=unseen)
    past: list[Event] = []
    waiting: list[Event] = []
    out = []
    for i, mark in enumerate(marks):
        before = marks[max(0, i - 1)]
        for event in batches[i] if i < len(batches) else []:
            if event[1] is None:
                continue
            if event[1] > before:
                waiting.append(event)
            elif late == "accept":
                past.append(event)
        final = [e for e in waiting if e[1] <= mark]
        waiting = [e for e in waiting if e[1] > mark]
        past += final
        out.append([(*e, *(result(frame(past, e, period, closed)) for period in periods)) for e in final])
    return out


def frame(events: list[Event], event: Event, period: float, closed: str) -> list[Any]:
    """The values of the event's key in its look-back."""
    key, t, _ = event
    right = closed in ("right", "both")
    left = closed in ("left", "both")
    return [v for k, u, v in events if k == key and (u < t or (right and u == t)) and (u > t - period or (left and u == t - period))]
