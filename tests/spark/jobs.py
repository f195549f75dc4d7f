"""Jobs that run in a process of their own: on a cluster, over Spark Connect, on another version of Spark.

    python jobs.py FOLDER NAME [SETTING=VALUE ...]

Reads FOLDER/source, writes what came out as FOLDER/NAME.json: {"batch": rows, "stream": rows, ...}
"""

import json
import sys

WINDOWS = {"time": "at", "range": "60s", "slide": "10s", "key": "key"}
ROLLING = {"time": "at", "lookbacks": ["30s", "5rows", None], "key": "key"}
DELAY = "400s"  # nothing is late


def aggs():
    from sash import agg

    return {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value"), "known": agg.distinct("value")}


def plain(row):
    """A row as JSON can hold it."""
    return [value if isinstance(value, int | float | str | list | None) else str(value) for value in row]


def where_it_ran(batches):
    """The files that Sash is loaded from on the workers, and the compilers there."""
    import shutil

    import pyarrow as pa

    import sash._core

    for _ in batches:
        found = [shutil.which(name) for name in ("cc", "gcc", "g++", "clang")]
        yield pa.RecordBatch.from_pydict({"file": [sash._core.__file__], "compilers": [str([f for f in found if f])]})


def main(folder, name, **settings):
    from sash.spark import explain, rolling, session, windows

    spark = session("sash job", **settings)
    schema = "key string, at timestamp, value long"
    rows = spark.read.schema(schema).parquet(f"{folder}/source")
    arriving = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/source")
    out = {
        "where": [plain(row) for row in rows.repartition(8).mapInArrow(where_it_ran, "file string, compilers string").distinct().collect()],
        "batch": [plain(row) for row in rows.transform(lambda df: windows(df, aggs=aggs(), **WINDOWS)).collect()],
        "rolling": [plain(row) for row in rolling(rows, aggs=aggs(), **ROLLING).collect()],
    }

    def run(what, asked, mode="append"):
        define = windows if asked is WINDOWS else rolling
        results = arriving.transform(lambda df: define(df, aggs=aggs(), watermark=DELAY, **asked))
        out[f"explain {what}"] = explain(results)
        path, checkpoint = f"{folder}/{name} {what}", f"{folder}/{name} {what} checkpoint"
        writer = results.writeStream.outputMode(mode).trigger(availableNow=True).option("checkpointLocation", checkpoint)
        writer.format("parquet").start(path).awaitTermination()
        out[what] = [plain(row) for row in spark.read.parquet(path).collect()]

    run("stream windows", WINDOWS)
    run("stream rolling", ROLLING)

    def sink(df, batch):  # a batch of its own in every micro-batch; its session is the server's
        counted = windows(df, aggs=aggs(), **WINDOWS)
        counted.write.mode("append").parquet(f"{folder}/{name} each")

    query = (
        arriving.writeStream.foreachBatch(sink).trigger(availableNow=True).option("checkpointLocation", f"{folder}/{name} each checkpoint")
    )
    query.start().awaitTermination()
    out["each"] = spark.read.parquet(f"{folder}/{name} each").selectExpr("sum(n)").first()[0]
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump(out, file)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:3], **dict(setting.split("=", 1) for setting in sys.argv[3:]))
