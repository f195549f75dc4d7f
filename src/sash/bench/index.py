"""An index over a table: random ranges of seconds in a month of taxi trips, by wheels over tiles, by DuckDB and by Spark on the table."""

from __future__ import annotations

import argparse
import importlib.util
import random
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from sash.bench.experiments import Finding
from sash.bench.machine import say
from sash.bench.plots import marks
from sash.bench.tables import columns

__all__ = ["findings", "measure", "plot", "table"]

START: Final = 1_672_531_200_000_000  # 2023-01-01
SECONDS: Final = 31 * 86_400
PEERS: Final = 59e-6  # seconds: what µWheel's authors give for the same questions, from Rust


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Build the index of a month of trips, and ask COUNT and SUM over random ranges of seconds."""
    import duckdb
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    from sash import agg
    from sash.frames.index import update_index
    from sash.wheel import TileStore

    rows, asked = (300_000, 2_000) if options.quick else (3_066_766, 20_000)
    times, fares = _trips(rows)
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as temporary:
        trips = pa.table({"pickup": pa.array(times).cast(pa.timestamp("us")), "fare": fares})
        pq.write_table(trips, Path(temporary) / "trips.parquet")
        begun = time.process_time()
        store = TileStore.create(Path(temporary) / "index", aggs={"n": agg.count(), "fare": agg.sum("fare")}, grain="1s")
        update_index(store, ds.dataset(Path(temporary) / "trips.parquet"), "pickup", START + SECONDS * 1_000_000)
        built = time.process_time() - begun
        size = sum(path.stat().st_size for path in (Path(temporary) / "index").rglob("*") if path.is_file())
        begun = time.process_time()
        wheels = store.wheels(start=START)
        opened = time.process_time() - begun
        rng = random.Random(0)
        ranges = [tuple(START + s * 1_000_000 for s in sorted(rng.sample(range(SECONDS + 1), 2))) for _ in range(asked)]
        ours, answers = [], []
        for start, end in ranges:
            begun = time.perf_counter()
            answers.append(wheels.query((), start, end))
            ours.append(time.perf_counter() - begun)
        connection = duckdb.connect()
        connection.execute("create table trips as select * from trips")
        theirs = []
        for (start, end), answer in list(zip(ranges, answers, strict=True))[: 50 if options.quick else 500]:
            question = f"select count(*), sum(fare) from trips where pickup >= make_timestamp({start}) and pickup < make_timestamp({end})"
            begun = time.perf_counter()
            (count, total) = connection.execute(question).fetchone()  # type: ignore[misc]
            theirs.append(time.perf_counter() - begun)
            assert count == answer["n"]
            assert abs((total or 0.0) - answer["fare"]) <= 1e-6 * max(1.0, abs(answer["fare"]))
        raced = [("sash, wheels over the index", ours), ("DuckDB, the table itself", theirs)]
        if not options.quick and importlib.util.find_spec("pyspark") is not None:
            raced.append(("Spark, the table itself", _asked_of_spark(Path(temporary) / "trips.parquet", ranges[:30], answers)))
    facts: dict[str, Any] = {"experiment": name, "rows": rows, "bytes": size, "built": built, "opened": opened, "memory": wheels.memory}
    cells = [facts | _spread(who, found) for who, found in raced]
    for cell in cells:
        say(f"{name:10} {cell['part']:28} p50 {cell['p50'] * 1e6:12,.1f} us   p99 {cell['p99'] * 1e6:12,.1f} us")
    return cells


def _asked_of_spark(trips: Path, ranges: list[tuple[int, ...]], answers: list[dict[str, Any]]) -> list[float]:
    """Seconds of each question, the table in Spark's memory."""
    from pyspark.sql import functions as F

    from sash.spark import session

    spark = session("sash bench")
    table = spark.read.parquet(str(trips)).withColumn("at", F.unix_micros(F.col("pickup").cast("timestamp"))).cache()
    table.count()
    found = []
    for (start, end), answer in zip(ranges, answers, strict=False):
        begun = time.perf_counter()
        row = table.filter((F.col("at") >= start) & (F.col("at") < end)).agg(F.count("*").alias("n"), F.sum("fare").alias("fare")).first()
        found.append(time.perf_counter() - begun)
        assert row is not None
        assert row["n"] == answer["n"]
    spark.stop()
    return found


def _spread(who: str, seconds: list[float]) -> dict[str, Any]:
    p50, p99 = np.quantile(seconds, [0.5, 0.99])
    return {"part": who, "asked": len(seconds), "p50": float(p50), "p99": float(p99)}


def _trips(rows: int) -> tuple[Any, Any]:
    """A month in the shape of New York's yellow cabs: three million trips, few at night, fares in cents, long-tailed."""
    rng = np.random.default_rng(2023)
    by_hour = np.array([26, 18, 13, 9, 6, 7, 15, 29, 39, 43, 46, 49, 53, 55, 59, 61, 61, 66, 69, 61, 53, 52, 48, 37], float)
    hours = rng.choice(24, rows, p=by_hour / by_hour.sum())
    seconds = rng.integers(0, 31, rows) * 86_400 + hours * 3_600 + rng.integers(0, 3_600, rows)
    return START + np.sort(seconds) * 1_000_000, np.round(rng.lognormal(2.6, 0.6, rows), 2)


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the cells out as text: microseconds, a line per contender."""
    rows = [[c["part"], c["asked"], c["p50"] * 1e6, c["p99"] * 1e6] for c in cells]
    first = cells[0]
    told = (
        f"{first['rows']:,} trips; index {first['bytes'] / 2**20:,.1f} MiB on disk, {first['memory'] / 2**20:,.1f} MiB open; "
        f"built in {first['built']:,.1f} s and opened in {first['opened']:,.2f} s of CPU"
    )
    return columns(["who", "questions", "p50 us", "p99 us"], rows) + "\n" + told


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw p50 and p99 of each contender, on a logarithmic axis."""
    axes = figure.subplots()
    for name, mark in (("p50", "o"), ("p99", "s")):
        marks(axes, [c["part"] for c in cells], [c[name] * 1e6 for c in cells], name, mark)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    axes.set(xlabel="microseconds", title="COUNT and SUM over random ranges of seconds in a month")


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check the questions against the figure of µWheel's authors."""
    ours, theirs, *_ = cells
    figures = f"{ours['p50'] * 1e6:,.1f} us, {theirs['p50'] / ours['p50']:,.0f} times DuckDB on the table"
    return [Finding(f"index: half of the questions take less than {PEERS * 1e6:.0f} us", ours["p50"] < PEERS, figures)]
