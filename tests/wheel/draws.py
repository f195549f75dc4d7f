"""What the state machines of wheels and of keyed wheels draw alike: values, times near the watermark, ranges."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.wheel.oracle import BruteWheel


def some_value(data: st.DataObject, name: str, floats: bool) -> Any:
    if floats:
        return data.draw(st.integers(-8, 8).map(lambda x: x / 4))
    return data.draw(st.one_of(st.integers(-1000, 1000), st.none()) if name != "free" else st.integers(0, 1000))


def some_time(data: st.DataObject, brute: BruteWheel) -> int:
    ahead = data.draw(st.one_of(st.integers(-2, 10), st.integers(-2, 40), st.integers(0, 800)))
    return brute.watermark + ahead * brute.grain + data.draw(st.integers(0, brute.grain - 1))


def some_range(data: st.DataObject, brute: BruteWheel) -> tuple[int, int]:
    """Two ticks, in any order."""
    span = brute.now - brute.first_tick
    recent = st.integers(0, min(span, 30)).map(lambda d: brute.now - d)
    edge = st.one_of(recent, st.integers(brute.first_tick - 1, brute.now + 1), st.sampled_from([brute.first_tick, brute.now]))
    if span > 500:  # the ends of a long gap, and the little that happened
        edge = st.one_of(recent, st.sampled_from([brute.first_tick, brute.now]), st.sampled_from(sorted(brute.items) or [brute.now]))
    return data.draw(edge), data.draw(edge)
