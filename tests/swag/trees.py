"""Trees for the tests of Fiba and BTree: walked at random, filled, and which branches they reached."""

from __future__ import annotations

import random
from collections import Counter

from sash.swag import Fiba, Window
from tests.oracles import Brute, free_monoid


def walk(window: Window, seed: int, steps: int, most: int, ties: str = "combine") -> None:
    """Random operations in lockstep with a sorted list, in phases of growth and of decay; checked after every step."""
    rng = random.Random(seed)
    brute = Brute(ties)
    now = serial = 0
    for step in range(steps):
        growing = (step // 60) % 2 == 0
        times = brute.times()
        kind = rng.random()
        if kind < (0.5 if growing else 0.15):
            lag = rng.choice([0, 0, 5, most])
            count = rng.choice([1, 1, rng.randint(2, most // 4)])
            batch = sorted(now + rng.randint(1, 3) if lag == 0 else now - rng.randint(0, lag) for _ in range(count))
            if lag == 0:
                batch = [t + i for i, t in enumerate(batch)]
            values = list(range(serial, serial + count))
            serial += count
            now = max(now, *batch)
            if count > 1 and rng.random() < 0.7:
                window.bulk_insert(values, batch)
            else:
                for value, time in zip(values, batch, strict=True):
                    window.insert(value, time)
            for value, time in zip(values, batch, strict=True):
                brute.insert(value, time)
        elif kind < 0.75 and times:
            for time in rng.sample(times, min(len(times), rng.randint(1, 8))):
                assert window.evict(time) == brute.evict(time)
        elif kind < 0.9 and times:
            time = times[min(len(times) - 1, int(len(times) * rng.random() ** (1 if growing else 0.5)))] - rng.randint(0, 1)
            window.bulk_evict(time)
            brute.bulk_evict(time)
        elif times:
            window.evict()
            brute.evict()
        a, b = sorted((now - rng.randint(0, 2 * most), now - rng.randint(0, 2 * most)))
        assert window.query(a, b) == tuple(brute.values(a, b))
        assert window.query() == tuple(brute.values())
        assert len(window) == len(brute)
        window.check()


def reached(window: Window) -> Counter[str]:
    return Counter(window._counts()["reached"])


def filled(n: int, arity: int, kind: type[Window] = Fiba) -> Window:
    window = kind(free_monoid(), min_arity=arity)
    for t in range(n):
        window.insert(t, t)
    return window
