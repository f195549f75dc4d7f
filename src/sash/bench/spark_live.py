"""How long an answer takes at a steady rate, and what a million keys take of memory."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sash import agg
from sash.bench.machine import say
from sash.bench.spark_stream import PROVIDER, ROCKSDB, Race, run_race

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["latency", "latency_table", "million_keys"]

RATE: Final = 10_000  # rows/s
TICK: Final = 0.1  # seconds between two files
SCHEMA: Final = "k long, t timestamp, v long"


class Feed:
    """Writes a file of rows every tick, each row with the time at which it came to be."""

    def __init__(self, folder: Path, keys: int) -> None:
        folder.mkdir(parents=True)
        self.folder, self.keys = folder, keys
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rng = np.random.default_rng(1)
        n, number, before = int(RATE * TICK), 0, time.time()
        while not self._stop.wait(max(0.0, before + TICK - time.time())):
            now = before + TICK
            times = (np.linspace(before, now, n, endpoint=False) * 1e6).astype(np.int64)
            before = now
            columns = {"k": rng.integers(0, self.keys, n), "t": pa.array(times).cast(pa.timestamp("us", "UTC")), "v": rng.integers(0, 9, n)}
            path = self.folder / f".{number}"
            pq.write_table(pa.table(columns), path)
            path.rename(self.folder / f"{number:06d}.parquet")
            number += 1


def latency(spark: SparkSession, keys: int = 100, seconds: float = 40.0, warm: float = 20.0) -> list[dict[str, Any]]:
    """Percentiles, over rows, of the time from a row to the end of the micro-batch that told its windows anew (update mode).

    Windows of 10 minutes every 10 s; micro-batches as fast as they go.
    """
    from pyspark.sql import functions as F

    from sash.spark import windows

    def ours(df: DataFrame) -> DataFrame:
        aggs = {"n": agg.count(), "s": agg.sum("v"), "last": agg.max("t")}
        return windows(df, time="t", range="600s", slide="10s", key="k", aggs=aggs, watermark="10s", emit="update")

    def own(df: DataFrame) -> DataFrame:
        grouped = df.withWatermark("t", "10 seconds").groupBy("k", F.window("t", "600 seconds", "10 seconds"))
        return grouped.agg(F.count("*").alias("n"), F.sum("v").alias("s"), F.max("t").alias("last"))

    results = []
    hdfs = ROCKSDB.replace("RocksDBStateStoreProvider", "HDFSBackedStateStoreProvider")
    for name, define, provider in (("sash", ours, ROCKSDB), ("spark rocksdb", own, ROCKSDB), ("spark hdfs", own, hdfs)):
        spark.conf.set(PROVIDER, provider)
        try:
            waits, batches = _waits(spark, define, keys, seconds, warm)
        finally:
            spark.conf.set(PROVIDER, ROCKSDB)
        p50, p99 = np.percentile(waits, [50, 99])
        results.append({"contender": name, "keys": keys, "rows_per_s": RATE, "p50": p50, "p99": p99, "micro_batches": batches})
        say(f"latency {name:14} p50 {p50:.2f} s  p99 {p99:.2f} s  {batches} micro-batches")
    return results


def _waits(
    spark: SparkSession, define: Callable[[DataFrame], DataFrame], keys: int, seconds: float, warm: float
) -> tuple[np.ndarray[Any, Any], int]:
    from pyspark.sql import functions as F

    folder = Path(tempfile.mkdtemp(prefix="sash-bench-"))
    newest: list[tuple[float, float]] = []  # of each micro-batch: the newest row's time, and when it was answered

    def sink(df: DataFrame, _: int) -> None:
        last = df.agg(F.max(F.unix_micros("last"))).first()[0]
        if last is not None:
            newest.append((last / 1e6, time.time()))

    try:
        with Feed(folder / "source", keys):
            rows = spark.readStream.schema(SCHEMA).parquet(str(folder / "source"))
            query = define(rows).writeStream.outputMode("update").foreachBatch(sink).option("checkpointLocation", str(folder / "c")).start()
            query.awaitTermination(warm + seconds)
            query.stop()
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    begun = newest[0][1] + warm
    # Rows come evenly: those of a micro-batch lie between the newest of the one before and its own newest.
    parts = [
        done - np.arange(before, last, 0.001) for (before, _), (last, done) in itertools.pairwise(newest) if done >= begun and last > before
    ]
    return np.concatenate(parts), len(parts)


def latency_table(results: list[dict[str, Any]]) -> str:
    """Lay the percentiles out as text."""
    lines = [f"{'contender':16}{'p50 s':>8}{'p99 s':>8}{'micro-batches':>15}"]
    lines += [f"{r['contender']:16}{r['p50']:>8.2f}{r['p99']:>8.2f}{r['micro_batches']:>15}" for r in results]
    return "\n".join(lines)


def million_keys(spark: SparkSession, keys: int = 1_000_000, batches: int = 8) -> dict[str, Any]:
    """Stream windows of a million keys, and watch the memory of this process, the JVM and the Python workers."""
    peak, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.5):
            peak[0] = max(peak[0], _resident(os.getpid()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        race = Race(keys, 600, 10, batches, limit=400.0)
        result = run_race(spark, race, only=["sash"])
    finally:
        stop.set()
        watcher.join()
    say(f"{keys:,} keys: {result['throughput']:,.0f} rows/s, at most {peak[0] / 2**30:.1f} GiB in all processes")
    return result | {"bytes": peak[0]}


def _resident(root: int) -> int:
    """The memory of a process and all it started, each page once."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total
