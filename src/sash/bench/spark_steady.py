"""Steady micro-batches of a minute through Structured Streaming, after an hour and after a day that fills the state."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sash import agg
from sash.bench.experiments import Finding
from sash.bench.machine import say
from sash.bench.tables import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["findings", "plot", "steady", "table"]

Cells = list[dict[str, Any]]

MINUTE: Final = 60_000_000
START: Final = 1_700_000_000_000_000 // MINUTE * MINUTE
FILLED: Final = (60, 1_440)  # minutes of range, all of them filled
WARM: Final = 4  # micro-batches that do not count, beside the one that fills
LIMIT: Final = 150.0  # seconds for a contender; what it finished counts
SCHEMA: Final = "k long, t timestamp, v long"
AGGS: Final = {"n": agg.count(), "s": agg.sum("v"), "m": agg.max("v")}


def _write(folder: Path, minutes: int, batches: int, keys: int, rows: int) -> None:
    """One file that fills the range, then one a minute; a tenth of the rows is late by up to ten minutes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    for number, (first, count) in enumerate([(0, minutes), *((minutes + i, 1) for i in range(batches))]):
        n = rows * count
        times = START + np.sort(rng.integers(first * MINUTE, (first + count) * MINUTE, n))
        late = rng.random(n) < 0.1
        times[late] -= rng.integers(0, 10 * MINUTE, int(late.sum()))
        values = {"k": rng.integers(0, keys, n), "t": pa.array(times).cast(pa.timestamp("us", "UTC")), "v": rng.integers(0, 1_000, n)}
        pq.write_table(pa.table(values), folder / f"{number:05d}.parquet")
        time.sleep(0.01)  # files are taken in order of their age


def _contenders(minutes: int) -> dict[str, Callable[[DataFrame], DataFrame]]:
    from pyspark.sql import functions as F

    from sash.spark import rolling, windows

    common: dict[str, Any] = {"time": "t", "key": "k", "aggs": AGGS, "watermark": "10 minutes"}

    def own(df: DataFrame) -> DataFrame:
        grouped = df.withWatermark("t", "10 minutes").groupBy("k", F.window("t", f"{minutes} minutes", "1 minute"))
        return grouped.agg(F.count("*").alias("n"), F.sum("v").alias("s"), F.max("v").alias("m"))

    return {
        "windows": lambda df: windows(df, range=f"{minutes}m", slide="1m", **common),
        "rolling": lambda df: rolling(df, lookbacks=[f"{minutes}m"], **common),
        "spark window()": own,
    }


def _run(spark: SparkSession, define: Callable[[DataFrame], DataFrame], source: Path, folder: Path) -> list[float]:
    """Milliseconds of addBatch of every micro-batch with rows, in order."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
    writer = define(rows).writeStream.format("noop").option("checkpointLocation", str(folder)).trigger(availableNow=True)
    query = writer.start()
    try:
        query.awaitTermination(LIMIT)
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        return [float(p["durationMs"]["addBatch"]) for p in query.recentProgress if p["numInputRows"] and "addBatch" in p["durationMs"]]
    finally:
        query.stop()


def steady(spark: SparkSession, quick: bool, keys: int | None = None, rows: int | None = None) -> Cells:
    """Measure windows(), rolling() and Spark's own window() where it can run."""
    batches, keys, rows = (8 if quick else 20), keys or 1_500, rows or 3_000
    cells: Cells = []
    for minutes in FILLED:
        folder = Path(tempfile.mkdtemp(prefix="sash-bench-"))
        try:
            _write(folder / "source", minutes, WARM + batches, keys, rows)
            for name, define in _contenders(minutes).items():
                if quick and name not in ("windows", "rolling"):
                    continue
                took = _run(spark, define, folder / "source", folder / name.replace(" ", "-"))[1 + WARM :]
                cell: dict[str, Any] = {"contender": name, "minutes": minutes, "keys": keys, "rows": rows, "batches": len(took)}
                cell["ms"] = statistics.median(took) if took else None
                cell["least"], cell["greatest"] = (min(took), max(took)) if took else (None, None)
                cells.append(cell)
                say(f"{name:16} {minutes:5} minutes  " + (f"{cell['ms']:,.0f} ms" if took else f"not done in {LIMIT:.0f} s"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return cells


def table(cells: Cells) -> str:
    """Lay out what a micro-batch took."""
    names = ["contender", "minutes", "ms", "least", "greatest", "batches"]
    return columns(
        ["contender", "minutes filled", "addBatch ms", "least", "greatest", "micro-batches"], [[c[n] for n in names] for c in cells]
    )


def plot(cells: Cells, axes: Any) -> None:
    """Draw the milliseconds over the minutes that are filled."""
    for name in dict.fromkeys(cell["contender"] for cell in cells):
        chosen = [cell for cell in cells if cell["contender"] == name and cell["ms"] is not None]
        axes.plot([cell["minutes"] for cell in chosen], [cell["ms"] for cell in chosen], marker="o", label=name)
    axes.set(xscale="log", xlabel="range / slide", ylabel="ms of a micro-batch of a minute (addBatch, median)", ylim=(0, None))
    axes.legend(fontsize=8)


def findings(cells: Cells) -> list[Finding]:
    """A day that is filled costs no more than an hour."""
    found = []
    for name in ("windows", "rolling"):
        ms = {cell["minutes"]: cell["ms"] for cell in cells if cell["contender"] == name and cell["ms"] is not None}
        if len(ms) == len(FILLED):
            times = ms[FILLED[1]] / ms[FILLED[0]]
            claim = f"{name}() on Spark: a micro-batch after a filled day takes at most 1.3 times one after a filled hour"
            found.append(Finding(claim, times <= 1.3, f"{ms[FILLED[1]]:,.0f} to {ms[FILLED[0]]:,.0f} ms, {times:.2f} times"))
    return found
