"""Whole Spark checkpoints: a stream is started, stopped, and started again by a later version on what the earlier one left.

``python -m tests.golden.checkpoints 0.2`` in the root of the project writes those of a version. The source makes its own rows, so that a
checkpoint holds no path.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import tarfile
import tempfile
from typing import Any

from sash import agg

HERE = pathlib.Path(__file__).parent
AGGS = {"n": agg.count(), "s": agg.sum("v"), "hi": agg.max("v"), "c": agg.collect("v")}
JOBS: dict[str, dict[str, Any]] = {
    "windows": {"range": "30s", "slide": "10s"},
    "sessions": {"session": "4s"},
    "rolling": {"lookbacks": ["20s", "5rows", None]},
}
FIRST, MORE = 4, 2  # micro-batches before and after the stop


def results(spark: Any, name: str) -> Any:
    """The stream of a job: sixty rows a micro-batch, ten seconds each, out of order by up to seven seconds."""
    from sash.spark import rolling, windows

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 60).option("numPartitions", 1)
    source = source.option("startTimestamp", 1_700_000_000_000).option("advanceMillisPerBatch", 10_000)
    rows = source.load().selectExpr(
        "timestamp + make_dt_interval(0, 0, 0, cast(value * 5 % 8 as decimal(18, 6))) as at",
        "concat('key ', value % 3) as key",
        "value * 7 % 31 as v",
    )
    ask = rolling if "lookbacks" in JOBS[name] else windows
    return ask(rows, time="at", key="key", watermark="9s", aggs=AGGS, **JOBS[name])


def run(spark: Any, name: str, checkpoint: pathlib.Path, batches: int) -> list[list[str]]:
    """Run so many micro-batches on a checkpoint; the rows of each, as text."""
    out: list[list[str]] = []

    def keep(df: Any, batch: int) -> None:
        out.append(sorted(str(row) for row in df.collect()))

    for _ in range(batches):
        writer = results(spark, name).writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
        writer.trigger(once=True).start().awaitTermination()
    return out


def _move(checkpoint: pathlib.Path, old: str, new: str) -> None:
    """Change the folder that a checkpoint's own metadata names: Spark writes it down in full."""
    for checksum in checkpoint.rglob(".*.crc"):
        checksum.unlink()
    for file in checkpoint.glob("state/*/_metadata/v2/*"):
        file.write_text(file.read_text().replace(f"file:{old}/", f"file:{new}/"))


def unpack(version: str, name: str, folder: pathlib.Path) -> pathlib.Path:
    """Put a checkpoint into a folder, to go on from."""
    with tarfile.open(HERE / version / "checkpoints" / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    _move(folder / name, "/checkpoint", str(folder / name))
    return folder / name


def write(version: str) -> None:
    """Write the checkpoints of a version, and what comes out after each of them."""
    from sash.spark import session

    spark = session(master="local[2]", **{"spark.sql.shuffle.partitions": 2})
    out = HERE / version / "checkpoints"
    out.mkdir(parents=True, exist_ok=True)
    answers = {}
    for name in JOBS:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = pathlib.Path(folder) / name
            run(spark, name, checkpoint, FIRST)
            kept = pathlib.Path(shutil.copytree(checkpoint, pathlib.Path(folder) / "kept"))
            _move(kept, str(checkpoint), "/checkpoint")
            with tarfile.open(out / f"{name}.tar.xz", "w:xz") as archive:
                archive.add(kept, name)
            answers[name] = run(spark, name, checkpoint, MORE)
    (out / "answers.json").write_text(json.dumps(answers, indent=1))
    spark.stop()


if __name__ == "__main__":
    write(sys.argv[1])
