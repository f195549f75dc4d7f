"""The demo's way: stream, check, ask, draw."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sash import agg
from sash.commands.run import stderr_to
from sash.demo.flights import departures, out_of_order, write_batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Streamed", "add_arguments", "check", "run"]

KEY: Final = ["origin", "carrier"]
WATERMARK: Final = "1 day"  # the longest delay of the year is 21 h 41 min
DELAYS: Final = {"flights": agg.count(), "delay": agg.mean("dep_delay"), "worst": agg.max("dep_delay")}
LOOKBACKS: Final = ["1h", "6h", "24h"]
ASKED: Final[dict[str, Any]] = {"time": "scheduled", "key": KEY, "aggs": DELAYS, "watermark": WATERMARK}
DESCRIBED: Final = {
    "windows": "of 1 h, one every 2 minutes",
    "features": f"rows with look-backs of {', '.join(LOOKBACKS)}",
    "tiles": "slices of 1 minute, kept on disk",
}


class Streamed(NamedTuple):
    """What a streaming query did."""

    rows: int
    late: int
    batches: int
    seconds: float
    rates: list[float]  # flights per second of the batches that had any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash demo`."""
    parser.add_argument("--flights", type=int, metavar="N", help="stop after the first N flights (default: all 328,521)")
    parser.add_argument("--batches", type=int, default=5, metavar="N", help="micro-batches to cut the year into (default: 5)")
    parser.add_argument("--master", default="local[*]", help="where Spark runs (default: this machine, all cores)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep results and tiles in this new folder")
    parser.add_argument(
        "--chart", type=Path, default=Path("sash-demo.png"), metavar="FILE", help="where the chart goes (default: sash-demo.png)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the demo; 0 if stream = batch, 1 if not."""
    flights = departures(args.flights)
    print(f"{flights.num_rows:,} flights left New York in 2013; {out_of_order(flights):.0%} of them come out of order", flush=True)
    from sash.demo.chart import draw
    from sash.demo.questions import answers
    from sash.spark import session

    with tempfile.TemporaryDirectory(prefix="sash-demo-") as temporary:
        folder = args.out if args.out is not None else Path(temporary)
        folder.mkdir(parents=True, exist_ok=args.out is None)
        with stderr_to(folder / "spark.log"):
            spark = session("sash demo", master=args.master)
        try:
            done = check(spark, flights, folder, args.batches)
        finally:
            spark.stop()
        if done is None:
            return 1
        print("\nThree questions that nobody declared before, answered from the tiles, without Spark:", flush=True)
        print("\n".join(answers(folder / "tiles_stream")))
        args.chart.parent.mkdir(parents=True, exist_ok=True)
        draw(args.chart, flights, folder / "tiles_stream", done)
        print(
            f"\nThe chart is in {args.chart}"
            + (f", the tiles are in {folder / 'tiles_stream'}: ask them with sash query, or look at them on a page:" if args.out else "")
        )
        if args.out:
            called = sys.argv[0] if Path(sys.argv[0]).name == "sash" else "sash"
            print(f"  {called} serve {folder / 'tiles_stream'}")
    return 0


def define(name: str, df: Any) -> Any:
    """One of the demo's three results, of a stream or a batch."""
    from sash.spark import rolling, tiles, windows

    match name:
        case "windows":
            return windows(df, range="1 hour", slide="2 minutes", **ASKED)
        case "features":
            return rolling(df, lookbacks=LOOKBACKS, **ASKED)
    return tiles(df, grain="1m", **ASKED)


def check(spark: SparkSession, flights: pa.Table, folder: Path, batches: int) -> dict[str, Streamed] | None:
    """Stream the flights, compute the same in batch, report; what was streamed, None if any row differs."""
    write_batches(flights, folder / "source", batches)
    equal, done = True, {}
    for name, described in DESCRIBED.items():
        done[name] = streamed = stream(spark, folder, name)
        define(name, spark.read.parquet(str(folder / "source" / "flights"))).write.parquet(str(folder / f"{name}_batch"))
        ours, theirs = (spark.read.parquet(str(folder / f"{name}_{kind}")) for kind in ("stream", "batch"))
        same = same_rows(ours, theirs)
        equal &= same
        rate = f"{streamed.rows / streamed.seconds:,.0f} flights/s"
        print(f"{name:9} {ours.count():>9,} {described}")
        print(f"{'':9} {streamed.rows:,} flights in {streamed.batches} micro-batches, {streamed.late:,} late, {rate}")
        print(f"{'':9} stream = batch, row by row: {'yes' if same else 'NO'}", flush=True)
    return done if equal else None


def stream(spark: SparkSession, folder: Path, name: str) -> Streamed:
    """Stream all files through a definition into Parquet, or for tiles into a store, one file at a time."""
    from sash.spark import metrics, tile_sink
    from sash.wheel import TileStore

    source, checkpoint, out = folder / "source", str(folder / "checkpoints" / name), str(folder / f"{name}_stream")
    flights = spark.readStream.schema(spark.read.parquet(str(source / "flights")).schema).option("maxFilesPerTrigger", 1)
    writer = define(name, flights.parquet(str(source / "*"))).writeStream
    if name == "tiles":
        writer = writer.foreachBatch(tile_sink(TileStore.create(out, aggs=DELAYS, grain="1m", key=KEY), checkpoint))
    else:
        writer = writer.format("parquet").option("path", out)
    start = time.perf_counter()
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    seconds = time.perf_counter() - start
    progress = query.recentProgress
    rows = sum(p.numInputRows for p in progress) - 1  # the heartbeat is no flight
    rates = [float(p.processedRowsPerSecond) for p in progress if p.numInputRows > 1]
    return Streamed(rows, sum(metrics(p)["late"] for p in progress), len(progress), seconds, rates)


def same_rows(ours: DataFrame, theirs: DataFrame) -> bool:
    """Whether two DataFrames hold the same rows, each as often."""
    return bool(ours.exceptAll(theirs).isEmpty() and theirs.exceptAll(ours).isEmpty())
