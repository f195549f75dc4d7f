"""What a figure was measured on, and how: pinned, warmed, repeated."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

import numpy as np

from sash import _bench

__all__ = ["facts", "nanoseconds_per_tick", "pinned", "say", "spread", "timed"]


def facts() -> dict[str, Any]:
    """Describe the machine and the software of a measurement."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        processor = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), processor)
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    for name in ("sash", "pandas", "polars", "duckdb", "bottleneck", "numbagg", "numba", "pyspark"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "compiler": _bench.compiler(),
        "versions": versions,
    }


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """Keep this process on one core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@functools.cache
def nanoseconds_per_tick() -> float:
    """Compare the counter that the core's loops read with the clock, over 50 ms."""
    clock, tick = time.perf_counter_ns(), _bench.ticks()
    while time.perf_counter_ns() - clock < 50_000_000:
        pass
    return (time.perf_counter_ns() - clock) / float(_bench.ticks() - tick)


def timed(call: Callable[[], Any], repeats: int) -> list[float]:
    """Time a call a few times, after one that does not count."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def spread(values: list[float]) -> dict[str, float]:
    """Give the median, the least and the greatest of repeated measurements."""
    return {"median": statistics.median(values), "least": min(values), "greatest": max(values)}


def say(text: str) -> None:
    """Report progress where it does not mix with results."""
    print(text, file=sys.stderr, flush=True)
