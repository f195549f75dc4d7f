"""Races of streaming windows() against Spark's own windows, in one session, on the same files, results compared."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sash import agg
from sash.bench.machine import say, spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Race", "races", "run_race", "run_races", "table"]

WARM: Final = 2  # micro-batches that do not count
WARM_UP: Final = 6  # of a run before, which does not count at all
SPAN: Final = 200_000_000  # microseconds of stream time per micro-batch
START: Final = 1_700_000_000_000_000
AGGS: Final = {"n": agg.count(), "s": agg.sum("v"), "m": agg.max("v")}
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS: Final = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"


@dataclasses.dataclass(frozen=True)
class Race:
    """One line of the table; range and slide in seconds."""

    keys: int
    range: int
    slide: int
    batches: int = 10
    rows: int = 400_000  # of a micro-batch
    limit: float = 90.0  # seconds for each contender; then what it finished counts
    disorder: int = 5  # seconds: how late a row is at most

    @property
    def watermark(self) -> str:
        """The delay that no row exceeds."""
        return f"{max(10, 2 * self.disorder)} seconds"


def races(quick: bool, keys: int | None = None, ratio: int | None = None) -> list[Race]:
    """List the races: (60, 1) has the ratio of (600, 10) and the output of (600, 1)."""
    all_ = [Race(k, range_, slide) for k in (100, 10_000) for range_, slide in ((60, 1), (600, 10), (600, 1), (10, 10))]
    all_ += [Race(k, 600, 10) for k in (1, 100_000)]
    chosen = [r for r in all_ if keys in (None, r.keys) and ratio in (None, r.range // r.slide)]
    return [dataclasses.replace(r, batches=5, rows=200_000, limit=20.0) for r in chosen] if quick else chosen


def run_races(spark: SparkSession, several: list[Race], only: list[str] | None = None) -> list[dict[str, Any]]:
    """Run races one after another; a JVM gets faster for minutes, by up to a third, so the first of several is run before it counts."""
    if len(several) > 1:
        run_race(spark, several[0], only)
    return [run_race(spark, race, only) for race in several]


def run_race(spark: SparkSession, race: Race, only: list[str] | None = None) -> dict[str, Any]:
    """Run every contender on the same micro-batches; rates are input rows/s over all warm micro-batches.

    Every contender first runs without a clock, for a tenth of its time and then until it has done a few micro-batches or used
    up a third: the JVM compiles the planner's and the operators' code for most of a minute.
    """
    folder = Path(tempfile.mkdtemp(prefix="sash-bench-"))
    contenders = {name: c for name, c in _contenders(race).items() if only is None or name in only}
    outputs: dict[str, list[tuple[int, ...]]] = {}
    rates, parts = {}, {}
    try:
        write(folder / "source", race)
        for turn, limit, least, most in (("warm", race.limit / 10, WARM_UP, race.limit / 3), ("measured", race.limit, 1, math.inf)):
            for name, (define, provider) in contenders.items():
                spark.conf.set(PROVIDER, provider)
                done = _run(spark, define, folder, f"{turn} {name}", limit, least, most)
                if turn == "measured":
                    outputs[name] = [p.output for p in done]
                    counted = done[WARM:] if len(done) > WARM else done[-1:]
                    rate = sum(p.rows for p in counted) / sum(p.seconds for p in counted)
                    rates[name] = spread([p.rows / p.seconds for p in counted]) | {"mean": rate, "micro_batches": len(counted)}
                    parts[name] = _parts(counted)
                    say(f"windows {race.keys:,} keys {race.range}/{race.slide} s  {name:14} {rate:10,.0f} rows/s")
        _compare(outputs)
    finally:
        spark.conf.set(PROVIDER, ROCKSDB)
        shutil.rmtree(folder, ignore_errors=True)
    ours = rates["sash"]["mean"]
    ratios = {name: ours / rate["mean"] for name, rate in rates.items() if name != "sash"}
    return {**dataclasses.asdict(race), "throughput": ours, "rates": rates, "ratios": ratios, "milliseconds": parts}


def table(results: list[dict[str, Any]]) -> str:
    """Lay the races out as text."""
    lines = [f"{'keys':>7}{'range/slide':>13}{'rows/s':>11}  times faster than"]
    for r in results:
        ratios = "  ".join(f"{name} {ratio:.1f}" for name, ratio in r["ratios"].items())
        lines.append(f"{r['keys']:>7,}{r['range']:>9}/{r['slide']:<3}{r['throughput']:>11,.0f}  {ratios}")
    return "\n".join(lines)


def write(folder: Path, race: Race) -> None:
    """Write two files per micro-batch, a core's worth each, in the order in which they are to be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    for part in range(2 * race.batches):
        n = race.rows // 2
        times = START + part * SPAN // 2 + np.sort(rng.integers(0, SPAN // 2, n)) - rng.integers(0, race.disorder * 1_000_000 + 1, n)
        columns = {"k": rng.integers(0, race.keys, n), "t": pa.array(times).cast(pa.timestamp("us", "UTC")), "v": rng.integers(0, 1000, n)}
        path = folder / f"{part:03d}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (part + 1, part + 1))


def _contenders(race: Race) -> dict[str, tuple[Callable[[DataFrame], DataFrame], str]]:
    from pyspark.sql import functions as F

    from sash.spark import windows

    range_, slide = f"{race.range} seconds", f"{race.slide} seconds"

    def ours(df: DataFrame) -> DataFrame:
        return windows(df, time="t", range=range_, slide=slide, key="k", aggs=AGGS, watermark=race.watermark)

    def own(df: DataFrame) -> DataFrame:
        grouped = df.withWatermark("t", race.watermark).groupBy("k", F.window("t", range_, slide))
        return grouped.agg(F.count("*").alias("n"), F.sum("v").alias("s"), F.max("v").alias("m"))

    def two_steps(df: DataFrame) -> DataFrame:
        slices = df.withWatermark("t", race.watermark).groupBy("k", F.window("t", slide).alias("w"))
        slices = slices.agg(F.count("*").alias("n"), F.sum("v").alias("s"), F.max("v").alias("m"))
        again = slices.groupBy("k", F.window(F.window_time("w"), range_, slide))
        return again.agg(F.sum("n").alias("n"), F.sum("s").alias("s"), F.max("m").alias("m"))

    return {
        "sash": (ours, ROCKSDB),
        "spark rocksdb": (own, ROCKSDB),
        "spark hdfs": (own, HDFS),
        "two steps": (two_steps, HDFS),
    }


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a micro-batch read, how long it took, and the sums of what it gave."""

    rows: int
    seconds: float
    output: tuple[int, ...]
    parts: dict[str, float]


def _run(
    spark: SparkSession, define: Callable[[DataFrame], DataFrame], folder: Path, name: str, limit: float, least: int, most: float
) -> list[Progress]:
    """Run a query for `limit` seconds; then, up to `most`, until it has done `least` micro-batches."""
    from pyspark.sql import functions as F

    rows = spark.readStream.schema("k long, t timestamp, v long").option("maxFilesPerTrigger", 2).parquet(str(folder / "source"))
    totals = [F.count("*").alias("rows"), *(F.sum(column).alias(column) for column in AGGS)]
    query = (
        define(rows)
        .observe("bench", *totals)
        .writeStream.format("noop")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(folder / name))
        .start()
    )
    begun = time.monotonic()
    while query.isActive:
        spent, done = time.monotonic() - begun, sum(p.numInputRows > 0 for p in query.recentProgress)
        if spent > most or (spent > limit and done >= least):
            break
        query.awaitTermination(0.2)
    query.stop()
    error = query.exception()
    if error is not None:
        raise RuntimeError(f"{name} failed: {error}")
    return [
        Progress(
            p.numInputRows,
            p.durationMs["triggerExecution"] / 1000,
            tuple(v or 0 for v in p.observedMetrics["bench"]),
            {**p.durationMs, **{f"state {k}": sum(getattr(o, k) for o in p.stateOperators) for k in ("commitTimeMs", "allUpdatesTimeMs")}},
        )
        for p in query.recentProgress
        if p.numInputRows
    ]


def _parts(done: list[Progress]) -> dict[str, float]:
    return {name: float(np.median([p.parts.get(name, 0) for p in done])) for name in done[0].parts}


def _compare(outputs: dict[str, list[tuple[int, ...]]]) -> None:
    """Hold every contender's output against ours, micro-batch by micro-batch, as far as it came."""
    ours = outputs["sash"]
    for name, theirs in outputs.items():
        common = min(len(ours), len(theirs))
        if theirs[:common] != ours[:common]:
            raise AssertionError(f"{name} and sash disagree: {theirs[:common]} and {ours[:common]}")
