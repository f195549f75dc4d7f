"""Ten million slices in one micro-batch into a tile store: put by the executors, or all of them through the driver."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from sash.bench.experiments import Finding
from sash.bench.machine import say
from sash.bench.tables import columns

__all__ = ["findings", "measure", "plot", "table", "written"]

KEYS: Final = 10_000
MINUTE: Final = 60_000_000
START: Final = 1_700_006_400_000_000  # a midnight
WAYS: Final = ("by the executors", "through the driver")


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Write a small and a large micro-batch each way, every one in a process of its own, for its peak of memory."""
    large = options.rows or (500_000 if options.quick else 10_000_000)
    cells = []
    for way in WAYS:
        for slices in (large // 10, large):
            code = "import sys; from sash.bench.spark_tiles import written; written(*sys.argv[1:])"
            done = subprocess.run([sys.executable, "-c", code, way, str(slices)], stdout=subprocess.PIPE, text=True, check=True)
            cells.append({"experiment": name, "part": way, "slices": slices, **json.loads(done.stdout.splitlines()[-1])})
            cell = cells[-1]
            say(f"{name:10} {way:20} {slices:12,} slices {cell['seconds']:8.1f} s, the driver grew by {cell['grown'] / 2**20:,.0f} MiB")
    return cells


def written(way: str, slices: str) -> None:
    """Write one micro-batch, and print its seconds and by how much the peak of the driver's own process grew."""
    from pyspark.sql import functions as F

    from sash import agg
    from sash.spark import session
    from sash.spark.tile_sink import put_slices
    from sash.wheel import TileStore

    count = int(slices)
    spark = session("sash bench", master="local[2]", **{"spark.driver.memory": "4g", "spark.driver.maxResultSize": "0"})

    def tiles(upto: int) -> Any:
        minute = F.floor(F.col("id") / KEYS) * MINUTE + START
        return (
            spark.range(upto)
            .select(
                F.format_string("zone-%05d", F.col("id") % KEYS).alias("zone"),
                F.timestamp_micros(minute.cast("long")).alias("slice_start"),
                F.col("id").alias("trips"),
                (F.col("id") % 97).alias("fare"),
            )
            .repartition(2, "zone")
        )

    with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder:
        aggs = {"trips": agg.count(), "fare": agg.sum("fare")}
        for warm, number in ((True, 10_000), (False, count)):
            store = TileStore.create(Path(folder) / str(warm), aggs=aggs, grain="1m", key="zone")
            upto = START + (number // KEYS + 1) * MINUTE
            before, begun = _peak(), time.perf_counter()
            if way == WAYS[0]:
                store.commit(put_slices(tiles(number), store, store.shape(), 0, upto), query="bench", batch=0, watermark=upto)
            else:
                store.write(tiles(number).toArrow(), query="bench", batch=0, watermark=upto)
            seconds, grown = time.perf_counter() - begun, _peak() - before
            assert len(store) == number
    spark.stop()
    print(json.dumps({"seconds": seconds, "grown": grown}))


def _peak() -> int:
    """The largest memory that this process has had, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the cells out as text."""
    rows = [[c["part"], c["slices"], c["seconds"], c["grown"] / 2**20] for c in cells]
    return columns(["slices are put", "slices", "seconds", "driver grew, MiB"], rows)


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw by how much the driver grew."""
    axes = figure.subplots()
    axes.barh([f"{c['part']}, {c['slices']:,}" for c in cells], [c["grown"] / 2**20 for c in cells])
    axes.invert_yaxis()
    axes.set(xlabel="MiB that the driver's own process grew by", title="One micro-batch of slices into a tile store")


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check that the driver's memory does not grow with the slices, and that it is not slower."""
    ours = [c for c in cells if c["part"] == WAYS[0]]
    theirs = [c for c in cells if c["part"] == WAYS[1]]
    grown = f"{ours[0]['grown'] / 2**20:,.0f} and {ours[1]['grown'] / 2**20:,.0f} MiB; through the driver {theirs[1]['grown'] / 2**20:,.0f}"
    ratio = theirs[1]["seconds"] / ours[1]["seconds"]
    return [
        Finding("spark-tiles: the driver's memory is flat", ours[1]["grown"] < ours[0]["grown"] + 32 * 2**20, grown),
        Finding("spark-tiles: not slower than through the driver", ratio >= 1, f"{ratio:.1f} times as fast"),
    ]
