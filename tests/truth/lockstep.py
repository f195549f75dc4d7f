"""Native windows and slides beside plain lists: random steps, every answer compared.

``soak_windows(seed, seconds)`` and ``soak_slides(seed, seconds)`` run from the seed on until the time is over, and give the number of
steps and of results that were compared.
"""

from __future__ import annotations

import bisect
import random
import time
from typing import Any

import numpy as np

from sash import agg, slide, swag
from sash.swag.algorithms import ALGORITHMS
from tests.truth.classes import TREES


def _low(values: list[int]) -> Any:
    return min(values) if values else None


def _high(values: list[int]) -> Any:
    return max(values) if values else None


def _distinct(values: list[int]) -> int:
    return len(set(values))


MADE = {"sum": (agg.sum, sum), "count": (agg.count, len), "min": (agg.min, _low), "max": (agg.max, _high)}
ALONE = {"SubtractOnEvict": "sum", "MonotonicDeque": "max", "OrderStatistics": "distinct"}  # what these are run with


def run_window(seed: Any) -> int:
    """Run one window of a class that the seed draws beside two lists; the number of steps."""
    rng = random.Random(f"window {seed}")
    name, kind = rng.choice(tuple(ALGORITHMS)), rng.choice(sorted(MADE))
    kind = ALONE.get(name, kind)
    make, plain = (agg.distinct, _distinct) if kind == "distinct" else MADE[kind]
    tree = name in TREES
    any_order = tree or name == "OrderStatistics"
    options: dict[str, Any] = {"ties": "keep"} if tree else {"max_delay": 0} if name == "Reordered" else {}
    window = getattr(swag, name)(make(), **options)
    times: list[int] = []
    values: list[int] = []
    now, bound, steps = 0, rng.choice((5, 40, 300)), rng.randint(20, 400)
    for step in range(steps):
        what = rng.random()
        if what < 0.5 or not times:
            now += rng.choice((0, 1, 1, 3))
            at = now - rng.choice((0, 0, 1, 5, 60)) if any_order else now
            value = rng.randrange(-1000, 1000)
            window.insert(value, at)
            place = bisect.bisect_right(times, at)
            times.insert(place, at)
            values.insert(place, value)
        elif what < 0.6:
            many = rng.randint(1, 30)
            at = now - rng.choice((0, 20)) if any_order else now
            new = []
            for _ in range(many):
                at += rng.choice((0, 1, 2))
                new.append((at, rng.randrange(-1000, 1000)))
            now = max(now, at)
            window.bulk_insert([v for _, v in new], [t for t, _ in new])
            for t, v in new:
                place = bisect.bisect_right(times, t)
                times.insert(place, t)
                values.insert(place, v)
        elif what < 0.8 or len(times) > bound:
            for _ in range(min(len(times), rng.choice((1, 1, 2)))):
                window.evict()
                del times[0], values[0]
        elif what < 0.95:
            at = times[0] + rng.randrange(-1, max(2, times[-1] - times[0]))
            window.bulk_evict(at)
            gone = bisect.bisect_right(times, at)
            del times[:gone], values[:gone]
        elif tree:
            start, end = sorted(times[0] + rng.randrange(-2, times[-1] - times[0] + 3) for _ in range(2))
            want = plain(values[bisect.bisect_left(times, start) : bisect.bisect_right(times, end)])
            if (got := window.query(start, end)) != want:
                raise AssertionError(f"seed {seed!r}, step {step}: {name} of {kind} from {start} to {end}: {got!r}, want {want!r}")
        elif rng.random() < 0.2:
            window = type(window).from_bytes(window.to_bytes(), window.aggregation)
        if (got := window.query()) != plain(values) or len(window) != len(values):
            raise AssertionError(f"seed {seed!r}, step {step}: {name} of {kind}: {got!r}, want {plain(values)!r}")
    window.check()
    return steps


def run_slide(seed: Any) -> int:
    """Slide over one array that the seed draws, and take every result again from the items; the number of results."""
    rng = random.Random(f"slide {seed}")
    n = rng.choice((1, 7, 60, 400))
    kind = rng.choice(sorted(MADE))
    make, plain = MADE[kind]
    values = np.array([rng.randrange(-1000, 1000) for _ in range(n)])
    algorithm = rng.choice(("auto", "auto", "daba_lite", "two_stacks_lite", "fiba", "block_fiba", "flat_fit"))
    if rng.random() < 0.4:
        size = rng.choice((1, 2, 5, 50, 1000))
        got = slide(values, agg=make(), size=size, algorithm=algorithm)
        wants = [plain(values[max(0, i + 1 - size) : i + 1].tolist()) for i in range(n)]
        told = f"size={size}"
    else:
        closed, period = rng.choice(("right", "left", "both", "neither")), rng.choice((1, 2, 5, 50, 10**6))
        steps = np.array([rng.choice((0, 0, 1, 1, 2, 9)) for _ in range(n)])
        times = np.cumsum(steps)
        got = slide(values, agg=make(), times=times, period=period, closed=closed, algorithm=algorithm)
        first = np.searchsorted(times, times - period, "left" if closed in ("left", "both") else "right")
        last = np.searchsorted(times, times, "right" if closed in ("right", "both") else "left")
        wants = [plain(values[a:b].tolist()) for a, b in zip(first, last, strict=True)]
        told = f"period={period}, closed={closed}"
    for i, want in enumerate(wants):
        if not (got[i] == want or (want is None and got[i] != got[i])):
            raise AssertionError(f"seed {seed!r}: slide of {kind}, {told}, {algorithm}, result {i}: {got[i]!r}, want {want!r}")
    return n


def soak_windows(seed: int, seconds: float) -> int:
    """Run windows until the time is over; the number of steps."""
    return _soak(run_window, seed, seconds)


def soak_slides(seed: int, seconds: float) -> int:
    """Slide until the time is over; the number of results."""
    return _soak(run_slide, seed, seconds)


def _soak(run: Any, seed: int, seconds: float) -> int:
    end, steps, i = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        steps += run(f"{seed}/{i}")
        i += 1
    return steps
