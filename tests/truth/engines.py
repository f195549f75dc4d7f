"""The engine's buckets in every form beside the models of tests/engine, for a given time."""

from __future__ import annotations

import random
import time
from unittest import mock

from sash.engine import store
from tests.engine import test_machine

FORMS = ("auto", "array", "tree", "column")


def soak(seed: int, seconds: float) -> int:
    """Run buckets until the time is over; the number of rows and advances that were compared."""
    end, steps = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        rng = random.Random(seed)
        with (
            mock.patch.dict("os.environ", {"SASH_ENGINE_FORM": rng.choice(FORMS)}),
            mock.patch.object(store, "SMALL", rng.choice((0, 100_000))),
        ):
            query, model = test_machine.drawn(rng)
            steps += test_machine.life(query, model, rng, 3_000)
        seed += 1_000_000_007
    return steps
