"""A stream in a process of its own that is killed, the JVM included, at a given point of a given micro-batch.

    python killed.py SOURCE FOLDER POINT BATCH

The points, in the order in which a micro-batch passes them; `worker` kills only the Python worker of one task, once, and
`never` nothing.
"""

import glob
import os
import signal
import sys
import threading
import time

# Written by Spark's JVM: noticed by the file, within a fraction of a millisecond.
FILES = {
    "the source's log is written": "checkpoint/sources/0/{batch}",
    "the offset is written": "checkpoint/offsets/{batch}",
    "the state of a partition is written": "checkpoint/state/0/*/{version}*.changelog",
    "the state of all partitions is written": "checkpoint/state/0/*/{version}*.changelog",
    "a file of the sink is written": "out/*.parquet",
    "the sink's log is written": "out/_spark_metadata/{batch}",
    "the commit is written": "checkpoint/commits/{batch}",
}
# In our own code, in a worker.
CALLS = ("rows come to the map side", "rows come to the operator", "the operator is done")
POINTS = (*[*FILES][:2], *CALLS, *[*FILES][2:])


def kill_all() -> None:
    """Kill driver and JVM, which are one process group, and the workers, which are another."""
    os.killpg(int(os.environ["KILLED_GROUP"]), signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)


def watch(folder: str, point: str, batch: int) -> None:
    """Kill when the file of a point is there; files that are there before the batch do not count."""
    pattern = f"{folder}/" + FILES[point].format(batch=batch, version=batch + 1)
    begun = f"{folder}/checkpoint/offsets/{batch}"
    before: set[str] = set()
    needed = 2 if "all" in point else 1
    while True:
        if "sink is" in point and not os.path.exists(begun):
            before = set(glob.glob(pattern))
        elif len(set(glob.glob(pattern)) - before) >= needed:
            kill_all()
        time.sleep(0.0002)  # between two looks: the file is written by the JVM, which tells nobody


def main(source: str, folder: str, point: str, kill_at: int) -> None:
    os.environ["KILLED_GROUP"] = str(os.getpgrp())
    from pyspark import TaskContext

    import sash.spark.stream as plan
    from sash import agg
    from sash.spark import session, windows

    def here(name: str) -> None:
        if name == point and int(TaskContext.get().getLocalProperty("streaming.sql.batchId")) == kill_at:
            kill_all()
        marker = f"{folder}/a worker was killed"
        if point == "worker" and name == CALLS[1] and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)

    # Classes and functions of this file travel to the workers by value, so ours are there as they are here.
    class Operator(plan.BucketProcessor):
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
    spark = session(master="local[2,4]")  # a task may fail: that of a killed worker is run again
    rows = spark.readStream.schema("key string, at timestamp, value long").option("maxFilesPerTrigger", 1).parquet(source)
    aggs = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}
    query = (
        windows(rows, time="at", range="60s", slide="10s", key="key", aggs=aggs, watermark="20s")
        .writeStream.format("parquet")
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start(f"{folder}/out")
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
