"""A tile store killed between two steps that change the disk, again and again, for a given time."""

from __future__ import annotations

import contextlib
import pathlib
import random
import shutil
import tempfile
import time

from tests.wheel import test_tile_kills as kills


def soak(seed: int, seconds: float) -> int:
    """Kill changes of stores until the time is over; the number of kills after which the store was as before or as after."""
    end, done = time.monotonic() + seconds, 0
    rng = random.Random(seed)
    while time.monotonic() < end:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="sash-kills-"))
        try:
            name = rng.choice(("write", "compact", "expire", "expire_everything", "extend"))
            kills.prepared(folder / "ready", name)
            before = kills.answers(folder / "ready")
            kills.CHANGES[name](shutil.copytree(folder / "ready", folder / "whole"))
            after = kills.answers(folder / "whole")
            for step in rng.sample(range(40), 12):
                path = shutil.copytree(folder / "ready", folder / f"at{step}")
                with contextlib.suppress(kills.Killed), kills.dying_at(step):
                    kills.CHANGES[name](path)
                if (found := kills.answers(path)) not in (before, after):
                    raise AssertionError(f"seed {seed}: {name} killed at step {step}: {found!r}")
                done += 1
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return done
