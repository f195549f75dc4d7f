"""Races of batch windows() and rolling() against Spark's own, in one session, on the same rows, results compared.

A contender that would take minutes gets fewer rows, the first in time; all are held against ours on those.
"""

from __future__ import annotations

import dataclasses
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

__all__ = ["BatchRace", "batch_races", "run_batch_race", "run_rolling_race", "table"]

ROWS: Final = 3_200_000
KEYS: Final = 100
START: Final = 1_700_000_000_000_000
RANGE: Final = 3600
WARM: Final = 3  # runs of each contender that do not count
SEGMENT_TREE: Final = "spark.sql.window.segmentTree.enabled"
LOOKBACKS: Final = ("100m", "200m", "300m", "400m")  # 2,500, 5,000, 7,500 and 10,000 rows: 25 rows a minute and key
AGGS: Final = {"n": agg.count(), "s": agg.sum("v"), "a": agg.mean("v"), "m": agg.max("v")}

Contender = tuple[Callable[["DataFrame"], "DataFrame"], int]  # and how many rows it gets


@dataclasses.dataclass(frozen=True)
class BatchRace:
    """Windows of an hour; the slide is in seconds."""

    slide: int
    rows: int = ROWS
    keys: int = KEYS


def batch_races(quick: bool, keys: int | None = None, ratio: int | None = None) -> list[BatchRace]:
    """List the races: range / slide from 1 to 3,600, and from one key to 10,000 in a full run."""
    many = (KEYS,) if quick else (KEYS, 1, 10_000)
    all_ = [BatchRace(slide, keys=k) for k in many for slide in (RANGE, 60, 10, 1) if k == KEYS or slide == 60]
    chosen = [race for race in all_ if keys in (None, race.keys) and ratio in (None, RANGE // race.slide)]
    return [dataclasses.replace(race, rows=ROWS // 2) for race in chosen] if quick else chosen


def run_batch_race(spark: SparkSession, race: BatchRace, repeats: int = 3) -> dict[str, Any]:
    """Time windows() against window() and two ways in two steps."""
    from pyspark.sql import functions as F

    folder = Path(tempfile.mkdtemp(prefix="sash-bench-"))
    try:
        write(folder / "rows", race.rows, race.keys, race.rows // 222)  # four hours: 222 rows a second
        contenders = _window_contenders(race)
        totals = [F.count("*"), *(F.sum(name) for name in ("n", "s", "m"))]
        rates = _race(spark, contenders, folder / "rows", totals, repeats, "two steps, frames")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(
        f"batch windows {race.keys:,} keys {RANGE}/{race.slide} s  "
        + "  ".join(f"{name} {rate['median']:,.0f}" for name, rate in rates.items())
    )
    return {**dataclasses.asdict(race), "ratio": RANGE // race.slide, **_ratios(rates)}


def run_rolling_race(spark: SparkSession, rows: int = ROWS, repeats: int = 3) -> dict[str, Any]:
    """Time rolling() against Spark's frames with the segment tree, and without."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    from sash.spark import rolling

    def ours(df: DataFrame) -> DataFrame:
        return rolling(df, time="t", lookbacks=LOOKBACKS, key="k", aggs=AGGS)

    def frames(tree: bool) -> Callable[[DataFrame], DataFrame]:
        def plan(df: DataFrame) -> DataFrame:
            spark.conf.set(SEGMENT_TREE, str(tree).lower())
            over = Window.partitionBy("k").orderBy(F.unix_micros("t"))
            columns = []
            for name, call in (("n", F.count("*")), ("s", F.sum("v")), ("a", F.avg("v")), ("m", F.max("v"))):
                for lookback in LOOKBACKS:
                    period = int(lookback[:-1]) * 60_000_000
                    columns.append(call.over(over.rangeBetween(1 - period, 0)).alias(f"{name}_{lookback}"))
            return df.select("*", *columns)

        return plan

    keys = 2
    folder = Path(tempfile.mkdtemp(prefix="sash-bench-"))
    try:
        write(folder / "rows", rows, keys, rows * 60 // 25 // keys)
        contenders: dict[str, Contender] = {
            "sash": (ours, rows),
            "segment tree": (frames(True), rows),
            "default": (frames(False), min(rows // 16, 60_000)),  # frames grow for the first 20,000 of them
        }
        totals = [F.count("*"), *(F.sum(f"{name}_{lookback}") for name in ("n", "s", "m") for lookback in LOOKBACKS)]
        rates = _race(spark, contenders, folder / "rows", totals, repeats)
    finally:
        spark.conf.unset(SEGMENT_TREE)
        shutil.rmtree(folder, ignore_errors=True)
    say("batch rolling  " + "  ".join(f"{name} {rate['median']:,.0f}" for name, rate in rates.items()))
    return {"rows": rows, "keys": keys, "lookbacks": list(LOOKBACKS), **_ratios(rates)}


def table(results: list[dict[str, Any]]) -> str:
    """Lay races out as text."""
    lines = [f"{'keys':>7}{'range/slide':>12}{'rows/s':>12}  times faster than"]
    for r in results:
        ratios = "  ".join(f"{name} {ratio:.1f}" for name, ratio in r["ratios"].items())
        lines.append(f"{r['keys']:>7,}{r.get('ratio', 'rolling'):>12}{r['throughput']:>12,.0f}  {ratios}")
    return "\n".join(lines)


def write(folder: Path, rows: int, keys: int, span: int) -> None:
    """Write rows of `span` seconds in four files, in order of time but for 5 seconds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    for part in range(4):
        n = rows // 4
        times = START + part * span * 250_000 + np.sort(rng.integers(0, span * 250_000, n)) - rng.integers(0, 5_000_000, n)
        columns = {"k": rng.integers(0, keys, n), "t": pa.array(times).cast(pa.timestamp("us", "UTC")), "v": rng.integers(0, 1000, n)}
        pq.write_table(pa.table(columns), folder / f"{part}.parquet")


def _window_contenders(race: BatchRace) -> dict[str, Contender]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    from sash.spark import windows

    range_, slide = f"{RANGE} seconds", f"{race.slide} seconds"
    counted = [F.count("*").alias("n"), F.sum("v").alias("s"), F.max("v").alias("m")]
    merged = {"n": F.sum("n"), "s": F.sum("s"), "m": F.max("m")}

    def ours(df: DataFrame) -> DataFrame:
        return windows(df, time="t", range=range_, slide=slide, key="k", aggs={name: AGGS[name] for name in "nsm"})

    def own(df: DataFrame) -> DataFrame:
        return df.groupBy("k", F.window("t", range_, slide)).agg(*counted)

    def two_windows(df: DataFrame) -> DataFrame:
        slices = df.groupBy("k", F.window("t", slide).alias("w")).agg(*counted)
        return slices.groupBy("k", F.window("w.start", range_, slide)).agg(*(call.alias(name) for name, call in merged.items()))

    def two_frames(df: DataFrame) -> DataFrame:
        df.sparkSession.conf.set(SEGMENT_TREE, "true")
        slices = df.groupBy("k", F.window("t", slide).alias("w")).agg(*counted)
        micros = F.unix_micros("w.start")
        over = Window.partitionBy("k").orderBy(micros).rangeBetween((race.slide - RANGE) * 1_000_000, 0)
        return slices.select("k", "w", *(call.over(over).alias(name) for name, call in merged.items()))

    copies = RANGE // race.slide
    few = min(race.rows, max(20_000, 96_000_000 // copies))
    return {
        "sash": (ours, race.rows),
        "spark": (own, few),
        "two steps, windows": (two_windows, race.rows if copies <= 60 else few),
        "two steps, frames": (two_frames, race.rows),
    }


def _race(
    spark: SparkSession, contenders: dict[str, Contender], path: Path, totals: list[Any], repeats: int, other: str = ""
) -> dict[str, dict[str, float]]:
    """Rates of all contenders; all but `other`, which gives fewer windows, must agree with the first."""
    whole = spark.read.parquet(str(path)).orderBy("t")
    samples: dict[int, DataFrame] = {}
    for _, rows in contenders.values():
        if rows not in samples:
            cut = path.parent / f"first {rows}"
            whole.limit(rows).repartition(4).write.parquet(str(cut))
            samples[rows] = spark.read.parquet(str(cut))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(WARM + repeats):  # in turns, none of them first in a cold JVM
        for name, (plan, rows) in contenders.items():
            if turn and (seconds[name][0] > 20 or sum(seconds[name]) > 60):
                continue  # after so long a run, the JVM was warm for most of it
            start = time.perf_counter()
            plan(samples[rows]).write.format("noop").mode("overwrite").save()
            seconds[name].append(time.perf_counter() - start)
    first = next(iter(contenders.values()))[0]
    rates = {}
    for name, (plan, rows) in contenders.items():
        rates[name] = spread([rows / s for s in seconds[name][WARM:] or seconds[name][-1:]]) | {"rows": rows}
        if name not in ("sash", other):
            few = min(rows, 400_000)
            few = rows if few not in samples else few
            ours, theirs = (tuple(p(samples[few]).agg(*totals).first()) for p in (first, plan))
            if ours != theirs:
                raise AssertionError(f"{name} and sash disagree: {theirs} and {ours}")
    return rates


def _ratios(rates: dict[str, dict[str, float]]) -> dict[str, Any]:
    ours = rates["sash"]["median"]
    return {"throughput": ours, "rates": rates, "ratios": {name: ours / rate["median"] for name, rate in rates.items() if name != "sash"}}
