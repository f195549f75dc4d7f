"""A stream in a process of its own that is killed, the JVM included, at a given point of a given micro-batch.

    python killed.py SOURCE FOLDER POINT BATCH WHAT CACHE

WHAT is windows, sessions, tiles, rolling, history (look-backs with history behind them, from SOURCE/../history), or spark, for Spark's
own windows; CACHE is true or false. The points come in the order in which a micro-batch passes them;
`worker` kills only the Python worker of one task, once.
"""

import glob
import os
import signal
import sys
import threading
import time
from collections.abc import Set
from pathlib import Path

# Written by Spark's JVM: noticed by the file, mostly within a fraction of a millisecond. Every tenth log has an ending.
FILES = {
    "the source's log is written": "checkpoint/sources/0/{batch}{ending}",
    "the offset is written": "checkpoint/offsets/{batch}",
    "the state of a partition is written": "checkpoint/state/0/*/{version}*.changelog",
    "the state of all partitions is written": "checkpoint/state/0/*/{version}*.changelog",
    "a file of the sink is written": "out/*.parquet",
    "the sink's log is written": "out/_spark_metadata/{batch}{ending}",
    "the commit is written": "checkpoint/commits/{batch}",
}
HISTORY_UNTIL = "2024-01-01 00:02:30"
# In our own code, in a worker.
CALLS = ("rows come to the map side", "a bucket is done", "the operator is done")
POINTS = (*[*FILES][:2], *CALLS, *[*FILES][2:])
# What must not be there yet when the kill was in time.
NEXT = {
    "the source's log is written": "the offset is written",
    "the offset is written": "the state of a partition is written",
    "rows come to the map side": "the state of a partition is written",
    "a bucket is done": "the state of all partitions is written",
    "the operator is done": "the state of all partitions is written",
    "the state of a partition is written": "the state of all partitions is written",
    "the state of all partitions is written": "the sink's log is written",
    "a file of the sink is written": "the sink's log is written",
    "the sink's log is written": "the commit is written",
}


def passed(folder: str | Path, point: str, batch: int, before: Set[str] = frozenset()) -> bool:
    """Whether a batch has come to a point, by the files that were not there before."""
    return len(files(folder, point, batch) - before) >= (2 if "all" in point else 1)


def in_time(folder: str | Path, point: str, batch: int) -> bool:
    """Whether a batch that was killed had come to a point, and not to the next."""
    reached = point in CALLS or passed(folder, point, batch)
    return reached and not (passed(folder, NEXT[point], batch) if point in NEXT else passed(folder, "the offset is written", batch + 1))


def files(folder: str | Path, point: str, batch: int) -> set[str]:
    """The files by which a point is noticed."""
    numbers = {"batch": batch, "version": batch + 1, "ending": ".compact" if batch % 10 == 9 else ""}
    return set(glob.glob(f"{folder}/{FILES[point].format(**numbers)}"))


def kill_all(folder: str, point: str, batch: int) -> None:
    """Kill driver and JVM, which are one process group, and the workers, which are another; note who did it."""
    note = Path(folder, f"killed by {os.getpid()}")  # renamed when it is whole: two workers may come here at once
    note.write_text(f"{batch}: {point}")
    note.rename(Path(folder, "killed"))
    os.killpg(int(os.environ["KILLED_GROUP"]), signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)


def watch(folder: str, point: str, batch: int) -> None:
    """Kill when the file of a point is there; files that are there before the batch do not count."""
    before: set[str] = set()
    while True:
        if "sink is" in point and not files(folder, "the offset is written", batch):
            before = files(folder, point, batch)
        elif passed(folder, point, batch, before):
            kill_all(folder, point, batch)
        time.sleep(0.0002)  # between two looks: the file is written by the JVM, which tells nobody


def define(what: str, df, source: str):
    """The query."""
    from sash import agg
    from sash.spark import rolling, tiles, windows

    if what == "spark":
        from pyspark.sql import functions as F

        counted = df.withWatermark("at", "20 seconds").groupBy("key", F.window("at", "60 seconds", "10 seconds"))
        counted = counted.agg(F.count("*").alias("n"), F.sum("value").alias("total"), F.max("value").alias("high"))
        return counted.select("key", "window.start", "window.end", "n", "total", "high")
    asked = {"time": "at", "key": "key", "watermark": "20s"}
    asked["aggs"] = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}
    if what == "history":
        past = df.sparkSession.read.schema(df.schema).parquet(str(Path(source).with_name("history")))
        asked |= {"history": past, "history_until": HISTORY_UNTIL, "watermark": "400s"}
    if what == "sessions":
        return windows(df, session="3s", **asked)
    if what == "tiles":
        return tiles(df, grain="10s", **asked)
    return windows(df, range="60s", slide="10s", **asked) if what == "windows" else rolling(df, lookbacks=["60s"], **asked)


def main(source: str, folder: str, point: str, kill_at: int, what: str, cache: str) -> None:
    os.environ["KILLED_GROUP"] = str(os.getpgrp())
    from pyspark import TaskContext

    import sash.spark.stream as plan
    from sash.spark import session

    def here(name: str) -> None:
        if name == point and int(TaskContext.get().getLocalProperty("streaming.sql.batchId")) == kill_at:
            kill_all(folder, point, kill_at)
        marker = f"{folder}/a worker was killed"
        if point == "worker" and name == CALLS[1] and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)

    # Classes and functions of this file travel to the workers by value, so ours are there as they are here.
    class Operator(plan.BucketProcessor):
        def init(self, handle):
            import sash.engine.store

            sash.engine.store.SMALL = 1_000  # small states in deltas too
            super().init(handle)

        def handleInputRows(self, key, rows, timerValues):
            yield from super().handleInputRows(key, rows, timerValues)
            here(CALLS[1])

        def close(self):
            if TaskContext.get() is not None:
                here(CALLS[2])

    make_packer = plan.packer

    def packer(*args, **options):
        pack = make_packer(*args, **options)

        def with_kills(batches):
            here(CALLS[0])
            yield from pack(batches)

        return with_kills

    plan.BucketProcessor, plan.packer = Operator, packer
    if point in FILES:
        threading.Thread(target=watch, args=(folder, point, kill_at), daemon=True).start()
    # A task may fail: that of a killed worker is run again. One core where one partition's state must come before the other's.
    cores = 1 if "of a partition" in point else 2
    spark = session(master=f"local[{cores},4]", **{"spark.sql.shuffle.partitions": 2, "spark.sash.cache": cache})
    rows = spark.readStream.schema("key string, at timestamp, value long").option("maxFilesPerTrigger", 1).parquet(source)
    query = (
        define(what, rows, source)
        .writeStream.format("parquet")
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start(f"{folder}/out")
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), *sys.argv[5:])
