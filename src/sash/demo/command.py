"""The demo's way: stream, check, race Spark's own windows, make a training set, ask, draw."""

from __future__ import annotations

import argparse
import shutil
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

    from sash.pipeline.progress import Meter

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
    from sash.demo.training import training_set
    from sash.spark import session

    with tempfile.TemporaryDirectory(prefix="sash-demo-") as temporary:
        folder = args.out if args.out is not None else Path(temporary)
        folder.mkdir(parents=True, exist_ok=args.out is None)
        print("starting Spark ...", flush=True)
        with stderr_to(folder / "spark.log"):
            spark = session("sash demo", master=args.master)
        try:
            done = check(spark, flights, folder, args.batches)
            raced = race(spark, folder) if done else {}
        finally:
            spark.stop()
        if done is None or raced is None:
            return 1
        print("\nA training set: what was known of an airline at an airport just before each of these flights", flush=True)
        print("\n".join(training_set(flights)))
        print("\nThree questions that nobody declared before, answered from the tiles, without Spark:", flush=True)
        print("\n".join(answers(folder / "tiles_stream")))
        args.chart.parent.mkdir(parents=True, exist_ok=True)
        draw(args.chart, flights, folder / "tiles_stream", raced)
        kept = f", the tiles are in {folder / 'tiles_stream'}. See them on a page, or ask them:" if args.out else ""
        print(f"\nThe chart is in {args.chart}{kept}")
        if args.out:
            called = sys.argv[0] if Path(sys.argv[0]).name == "sash" else "sash"
            print(f"  {called} serve {folder / 'tiles_stream'}      then open http://127.0.0.1:8017/")
            print(f"  {called} query {folder / 'tiles_stream'} --agg delay --by 1d --plot out/days.png")
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
        print(f"{name:9} the same in batch ...", flush=True)
        define(name, spark.read.parquet(str(folder / "source" / "flights"))).write.parquet(str(folder / f"{name}_batch"))
        ours, theirs = (spark.read.parquet(str(folder / f"{name}_{kind}")) for kind in ("stream", "batch"))
        same = same_rows(ours, theirs)
        equal &= same
        rate = f"{streamed.rows / streamed.seconds:,.0f} flights/s"
        print(f"{name:9} {ours.count():>9,} {described}")
        print(f"{'':9} {streamed.rows:,} flights in {streamed.batches} micro-batches, {streamed.late:,} late, {rate}")
        print(f"{'':9} stream = batch, row by row: {'yes' if same else 'NO'}", flush=True)
    return done if equal else None


def race(spark: SparkSession, folder: Path) -> dict[str, Streamed] | None:
    """Stream the first file through our windows and through Spark's own; None if a window differs."""
    files = [min((folder / "source" / "flights").glob("*.parquet")), *(folder / "source").glob("[!f]*/*.parquet")]
    for file in files:
        place = folder / "race" / "source" / file.parent.name
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place / file.name)  # with its time: Spark takes files oldest first
    raced = {}
    for name, called in (("own", "Spark's window()"), ("windows", "Sash")):
        print(f"race      the same flights, windows of 1 h every 2 minutes, by {called} ...", flush=True)
        raced[called] = stream(spark, folder / "race", name)
    ours, theirs = (spark.read.parquet(str(folder / "race" / f"{name}_stream")) for name in ("windows", "own"))
    exact = [*KEY, "window_start", "flights", "worst"]  # a mean may differ in its last bit, by the order of additions
    same = same_rows(ours.select(exact), theirs.select(exact))
    for called, streamed in raced.items():
        print(
            f"{'':9} {called:17} {streamed.rows:,} flights in {streamed.seconds:.1f} s, {streamed.rows / streamed.seconds:,.0f} flights/s"
        )
    print(f"{'':9} the same {ours.count():,} windows: {'yes' if same else 'NO'}", flush=True)
    return raced if same else None


def spark_windows(df: Any) -> Any:
    """The demo's windows by Spark's own window(): a flight is copied into each of the thirty that it is in."""
    from pyspark.sql import functions as F

    window = F.window("scheduled", "1 hour", "2 minutes").alias("window")
    results = (F.count(F.lit(1)).alias("flights"), F.avg("dep_delay").alias("delay"), F.max("dep_delay").alias("worst"))
    counted = df.withWatermark("scheduled", WATERMARK).groupBy(*KEY, window).agg(*results)
    return counted.select(
        *KEY, F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), "flights", "delay", "worst"
    )


def stream(spark: SparkSession, folder: Path, name: str) -> Streamed:
    """Stream all files through a definition into Parquet, or for tiles into a store, one file at a time."""
    from sash.pipeline.progress import Meter, Screen, source_files
    from sash.spark import metrics, tile_sink
    from sash.wheel import TileStore

    source, checkpoint, out = folder / "source", folder / "checkpoints" / name, str(folder / f"{name}_stream")
    flights = spark.readStream.schema(spark.read.parquet(str(source / "flights")).schema).option("maxFilesPerTrigger", 1)
    rows = flights.parquet(str(source / "*"))
    writer = (spark_windows(rows) if name == "own" else define(name, rows)).writeStream
    if name == "tiles":
        writer = writer.foreachBatch(tile_sink(TileStore.create(out, aggs=DELAYS, grain="1m", key=KEY), str(checkpoint)))
    else:
        writer = writer.format("parquet").option("path", out)
    meter = Meter("Spark's own" if name == "own" else name, source_files(str(source / "*")), checkpoint)
    screen = Screen([meter])
    start = time.perf_counter()
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    while not query.awaitTermination(0.3):
        screen.show(_news(meter, query))
    seconds = time.perf_counter() - start
    screen.show(_news(meter, query), last=True)
    progress = query.recentProgress
    came = sum(p.numInputRows for p in progress) - 1  # the heartbeat is no flight
    late = 0 if name == "own" else sum(metrics(p)["late"] for p in progress)
    return Streamed(came, late, len(progress), seconds)


def _news(meter: Meter, query: Any) -> list[Meter]:
    """The meter, if its query reported since; Spark's own windows count no rows as ours do."""
    if not meter.read(query):
        return []
    meter.counted["rows"] = max(meter.counted["rows"], meter.input_rows)
    return [meter]


def same_rows(ours: DataFrame, theirs: DataFrame) -> bool:
    """Whether two DataFrames hold the same rows, each as often."""
    return bool(ours.exceptAll(theirs).isEmpty() and theirs.exceptAll(ours).isEmpty())
