"""A stream in a process of its own that kills itself, the JVM included, at a given point of a given micro-batch.

    python killed.py SOURCE FOLDER POINT BATCH      POINT: before or after the sink wrote the batch; never

A folder of output per micro-batch: a batch that is run again writes over what it wrote before.
"""

import os
import signal
import sys

from sash import agg
from sash.spark import session, windows


def main(source: str, folder: str, point: str, kill_at: str) -> None:
    spark = session(master="local[2]")

    def sink(df, batch):
        if (point, batch) == ("before", int(kill_at)):
            os.killpg(0, signal.SIGKILL)
        df.write.mode("overwrite").parquet(f"{folder}/out/{batch:03d}")
        if (point, batch) == ("after", int(kill_at)):
            os.killpg(0, signal.SIGKILL)

    rows = spark.readStream.schema("key string, at timestamp, value long").option("maxFilesPerTrigger", 1).parquet(source)
    aggs = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}
    query = (
        windows(rows, time="at", range="60s", slide="10s", key="key", aggs=aggs, watermark="20s")
        .writeStream.foreachBatch(sink)
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
