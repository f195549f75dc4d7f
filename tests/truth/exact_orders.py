"""Exact sums over orders, cuts and algorithms, for a given time."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np

from sash import swag
from tests.truth.test_exact import ALGORITHMS, KINDS, bits, drawn, wanted


def soak(seed: int, seconds: float) -> int:
    """Add the same items in many ways until the time is over; the number of sums that were compared to the bit."""
    end, sums = time.monotonic() + seconds, 0
    rng = random.Random(seed)
    while time.monotonic() < end:
        name = rng.choice(sorted(KINDS))
        a = KINDS[name](exact=True)
        items = drawn(rng.random(), rng.choice((3, 60, 400)))
        true = bits(wanted(name, items))
        for _ in range(20):
            order = rng.sample(items, len(items))
            cuts = [0, *sorted(rng.sample(range(1, len(items)), rng.randint(0, min(6, len(items) - 1)))), len(items)]
            algorithm = rng.choice(ALGORITHMS)
            window = getattr(swag, algorithm)(a)
            for first, last in itertools.pairwise(cuts):
                window.bulk_insert(np.array(order[first:last]), np.arange(first, last))
            if bits(window.query()) != true:
                raise AssertionError(f"seed {seed}: exact {name} by {algorithm} of {order}")
            sums += 1
    return sums
