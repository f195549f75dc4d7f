"""Tile stores: how long one key of many takes to open, what a question costs, and how long the shell waits for its answer."""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from sash import agg
from sash.bench.experiments import Finding
from sash.bench.machine import say
from sash.bench.plots import marks
from sash.bench.tables import columns
from sash.wheel import TileStore

__all__ = ["findings", "measure", "plot", "table", "write_store"]

MINUTE: Final = 60_000_000
START: Final = 1_700_006_400_000_000  # a midnight
DAY: Final = 1440  # minutes
LIMITS: Final = {"open one key": 0.3, "any range of a year": 0.001, "sash query, cold": 1.5}  # seconds


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Write a store of many keys by 30 days of minutes, a ninth of them present, and one of a year of one key; ask both."""
    keys = options.keys or (1_000 if options.quick else 10_000)
    repeats = options.repeats or 3
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as temporary:
        folder = Path(temporary)
        store, seconds = write_store(folder / "many", keys, 30, DAY, 168)
        cells = [_cell(name, "write", [seconds], len(store), keys)]
        zones = random.Random(0).sample(range(keys), repeats)
        cells.append(_cell(name, "open one key", [_opened(folder / "many", f"zone-{zone:05d}") for zone in zones], len(store), keys))
        fresh = "import sys; from sash.bench.tiles import opened_fresh; opened_fresh(*sys.argv[1:])"
        found = [float(_python("-c", fresh, str(folder / "many"), f"zone-{zone:05d}")) for zone in zones]
        cells.append(_cell(name, "open one key, fresh process", found, len(store), keys))
        year, _ = write_store(folder / "year", 1, 5, 73 * DAY, 73 * DAY)
        cells.append(_cell(name, "any range of a year", _asked(year, 20 if options.quick else 2_000), len(year), 1))
        shell = []
        for zone in zones:
            begun = time.perf_counter()
            _python("-m", "sash.cli", "query", str(folder / "many"), "--agg", "fare", "--key", f"zone-{zone:05d}", "--by", "1d")
            shell.append(time.perf_counter() - begun)
        cells.append(_cell(name, "sash query, cold", shell, len(store), keys))
    return cells


def _cell(name: str, part: str, seconds: list[float], slices: int, keys: int) -> dict[str, Any]:
    spread = {"median": statistics.median(seconds), "least": min(seconds), "greatest": max(seconds)}
    say(f"{name:10} {part:28} {spread['median'] * 1e3:12,.3f} ms")
    return {"experiment": name, "part": part, "slices": slices, "keys": keys, "seconds": spread}


def write_store(path: Path, keys: int, batches: int, length: int, present: int) -> tuple[TileStore, float]:
    """Write batches of so many minutes, each key in some of them, in any order."""
    import pyarrow as pa

    store = TileStore.create(path, aggs={"trips": agg.count(), "fare": agg.mean("fare")}, grain="1m", key="zone")
    rng = np.random.default_rng(0)
    names = pa.array([f"zone-{i:05d}" for i in range(keys)])
    spent = 0.0
    for batch in range(batches):
        minutes = np.argsort(rng.random((keys, length), dtype=np.float32), axis=1)[:, :present].ravel()
        order = rng.permutation(len(minutes))
        zones = pa.array(np.repeat(np.arange(keys, dtype=np.int32), present)[order])
        counts, fares = rng.integers(1, 9, len(order)), rng.random(len(order)) * 50
        table = pa.table(
            {
                "zone": names.take(zones),
                "slice_start": pa.array(START + (batch * length + minutes[order]) * MINUTE).cast(pa.timestamp("us", "UTC")),
                "trips": counts,
                "fare": pa.StructArray.from_arrays([pa.array(fares), pa.array(counts)], ["sum", "count"]),
            }
        )
        begun = time.perf_counter()
        store.write(table, query="bench", batch=batch, watermark=START + (batch + 1) * length * MINUTE)
        spent += time.perf_counter() - begun
    return store, spent


def _opened(path: Path, key: str) -> float:
    """Seconds until the wheels of one key can be asked."""
    begun = time.perf_counter()
    wheels = TileStore(path).wheels("fare", keys=[key])
    spent = time.perf_counter() - begun
    assert wheels.keys() == [key]
    return spent


def opened_fresh(path: str, key: str) -> None:
    """Print the seconds of the first opening in a process that has imported Sash and Arrow."""
    import pyarrow.parquet  # noqa: F401

    print(_opened(Path(path), key))


def _asked(store: TileStore, count: int) -> list[float]:
    """Seconds of each of many ranges over the year of one key."""
    wheels = store.wheels("fare")
    assert store.span is not None
    rng = random.Random(1)
    minutes = (store.span[1] - store.span[0]) // MINUTE
    out = []
    for _ in range(count):
        start, end = sorted(rng.sample(range(minutes + 1), 2))
        begun = time.perf_counter()
        wheels.query("zone-00000", START + start * MINUTE, START + end * MINUTE)
        out.append(time.perf_counter() - begun)
    return out


def _python(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the cells out as text: milliseconds, a line per part."""
    head = ["what", "keys", "slices", "median ms", "least", "greatest"]
    rows = [[c["part"], c["keys"], c["slices"], *(c["seconds"][n] * 1e3 for n in ("median", "least", "greatest"))] for c in cells]
    return columns(head, rows)


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw the milliseconds of each part, on a logarithmic axis."""
    axes = figure.subplots()
    shown = [c for c in cells if c["part"] != "write"]
    marks(axes, [c["part"] for c in shown], [c["seconds"]["median"] * 1e3 for c in shown])
    axes.set(xlabel="milliseconds (median)", title=f"A tile store of {cells[0]['slices']:,} slices of {cells[0]['keys']:,} keys")


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check what is promised of a store: by medians, whatever the size was."""
    found = {c["part"]: c for c in cells}
    return [
        Finding(
            f"tiles: {part} takes less than {limit * 1e3:,.0f} ms",
            found[part]["seconds"]["median"] < limit,
            f"{found[part]['seconds']['median'] * 1e3:.3f} ms of {found[part]['slices']:,} slices",
        )
        for part, limit in LIMITS.items()
    ]
