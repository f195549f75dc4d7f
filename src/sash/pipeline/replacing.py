"""A stretch of time written once, however often it is run: replaced where the sink can, sent once where it can't."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sash.errors import SashError
from sash.pipeline.ends import Sink
from sash.spark.guard import quoted
from sash.time import timestamp, timestamp_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["STREAM_LOG", "Stretch", "hidden", "merge_into", "replace_delta", "replace_files", "replace_iceberg", "send_once"]

STREAM_LOG: Final = "_spark_metadata"  # of a stream's file sink: where it is, Spark reads no file that it does not name
_OURS: Final = re.compile(r"batch-(start|[\dTZ.]+)-(end|[\dTZ.]+)-")
_MICROS: Final = "%Y%m%dT%H%M%S.%fZ"


@dataclasses.dataclass(frozen=True)
class Stretch:
    """A range of time [start, end) in microseconds; None is open."""

    start: int | None = None
    end: int | None = None

    @classmethod
    def read(cls, start: str | None, end: str | None) -> Stretch:
        """Read what --from and --to say."""
        found = cls(*(None if text is None else timestamp(text) for text in (start, end)))
        if found.start is not None and found.end is not None and found.start >= found.end:
            raise SashError(f"--from {start} is not before --to {end}. Give a range of time, e.g. --from 2024-03-01 --to 2024-03-02.")
        return found

    def __str__(self) -> str:
        if self.start is None and self.end is None:
            return "all that is there"
        since = "the start" if self.start is None else timestamp_text(self.start)
        return f"{since} to {'the end' if self.end is None else timestamp_text(self.end)}"

    def contains(self, other: Stretch) -> bool:
        """Whether another one is within this one."""
        return _low(self) <= _low(other) and _high(other) <= _high(self)

    def overlaps(self, other: Stretch) -> bool:
        """Whether another one has something in common with this one."""
        return _low(self) < _high(other) and _low(other) < _high(self)

    def name(self) -> str:
        """As the names of files say it."""
        since, until = ("" if at is None else _utc(at).strftime(_MICROS) for at in (self.start, self.end))
        return f"batch-{since or 'start'}-{until or 'end'}-"

    @classmethod
    def of_name(cls, name: str) -> Stretch | None:
        """Read it from the name of a file; None where it is not one of ours."""
        found = _OURS.match(name)
        if found is None:
            return None
        return cls(*(None if text in ("start", "end") else timestamp(dt.datetime.strptime(text, _MICROS)) for text in found.groups()))

    def condition(self, column: str, by_end: bool) -> str | None:
        """The stretch as a condition of SQL on a column; None where it is all. `by_end`: windows count by their end."""
        low, high = (">", "<=") if by_end else (">=", "<")
        parts = [
            f"{quoted(column)} {sign} TIMESTAMP '{_utc(at).strftime('%Y-%m-%d %H:%M:%S.%f')} UTC'"
            for sign, at in ((low, self.start), (high, self.end))
            if at is not None
        ]
        return " AND ".join(parts) or None


def _utc(at: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at)


def _low(stretch: Stretch) -> float:
    return float("-inf") if stretch.start is None else stretch.start


def _high(stretch: Stretch) -> float:
    return float("inf") if stretch.end is None else stretch.end


def replace_files(spark: SparkSession, df: DataFrame, format_: str, options: Mapping[str, str], path: str, stretch: Stretch) -> int:
    """Write files named after the stretch in the place of those of all stretches within it, and give the number of rows.

    They are written aside first; then the old ones go and the new ones come. A run that is killed in between leaves the stretch
    missing or in part, never twice, and the next run mends it.
    """
    fs, root, of = _file_system(spark, path)
    if fs.exists(of(root, STREAM_LOG)):
        raise SashError(hidden(path))
    names = [status.getPath().getName() for status in fs.listStatus(root)] if fs.exists(root) else []
    there = [(name, was) for name in names if (was := Stretch.of_name(name)) is not None]
    _refuse_overlap(path, [was for _, was in there], stretch)
    aside = of(root, f"_batch-{uuid.uuid4().hex}")
    counted = _Counted(df)
    counted.write.format(format_).options(**options).save(aside.toString())
    for name, was in there:
        if stretch.contains(was):
            fs.delete(of(root, name), False)
    for status in fs.listStatus(aside):
        name = status.getPath().getName()
        if not name.startswith(("_", ".")):
            fs.rename(status.getPath(), of(root, stretch.name() + name))
    fs.delete(aside, True)
    return counted.rows


def hidden(path: str) -> str:
    """Say why a batch may not write where a stream does."""
    return (
        f"{path} is written by a stream, whose log hides the files of others. Give the batch a folder of its own: "
        'sink = { ..., batch_path = "..." }.'
    )


class _Counted:
    """A DataFrame whose rows are counted while it is written."""

    def __init__(self, df: DataFrame) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        self._seen = Observation()
        self.write = df.observe(self._seen, F.count(F.lit(1)).alias("rows")).write

    @property
    def rows(self) -> int:
        return int(self._seen.get["rows"])


def _refuse_overlap(path: str, there: list[Stretch], stretch: Stretch) -> None:
    for was in there:
        if stretch.overlaps(was) and not stretch.contains(was):
            raise SashError(
                f"{path} has a batch of {was}, and {stretch} covers a part of it: it can't be replaced in part. "
                "Run the same range again, or one that covers it whole."
            )


def _file_system(spark: SparkSession, path: str) -> tuple[Any, Any, Any]:
    """Hadoop's file system of a path, the path, and how another one is made from it."""
    jvm = spark._jvm
    assert jvm is not None
    path_of = jvm.org.apache.hadoop.fs.Path
    root = path_of(path)
    return root.getFileSystem(spark._jsc.hadoopConfiguration()), root, lambda parent, name: path_of(parent, name)  # type: ignore[union-attr]


def replace_delta(spark: SparkSession, df: DataFrame, sink: Sink, condition: str | None) -> None:
    """Replace the rows of a stretch in a Delta table, in one transaction."""
    writer = df.write.format("delta").mode("overwrite").options(**sink.options)
    if condition is not None:
        writer = writer.option("replaceWhere", condition)
    if sink.table is not None:
        writer.saveAsTable(sink.table)
    else:
        writer.save(sink.batch_path or sink.path)


def replace_iceberg(spark: SparkSession, df: DataFrame, sink: Sink, condition: str | None) -> None:
    """Replace the rows of a stretch in an Iceberg table, in one transaction; the table is made where there is none."""
    from pyspark.sql import functions as F

    name = sink.table
    if name is None:
        raise SashError('a batch into Iceberg needs a table. Write sink = { format = "iceberg", table = "catalog.schema.name" }.')
    writer = df.writeTo(name)
    if spark.catalog.tableExists(name):
        writer.overwrite(F.lit(True) if condition is None else F.expr(condition))
    else:
        writer.using("iceberg").create()


def merge_into(sink: Sink) -> Callable[[DataFrame, int], None]:
    """Give the function for foreachBatch that updates the rows of a table that agree in some columns, and adds the others.

    A batch that Spark runs again changes nothing.
    """
    assert sink.table is not None or sink.path is not None
    target = sink.table or f"{sink.format}.`{sink.path}`"

    def merge(df: DataFrame, batch: int) -> None:
        spark, view = df.sparkSession, f"sash_batch_{uuid.uuid4().hex}"
        empty = df.limit(0)
        if sink.table is None:
            empty.write.format(sink.format).options(**sink.options).mode("ignore").save(sink.path)
        elif not spark.catalog.tableExists(sink.table):
            empty.writeTo(sink.table).using(sink.format).create()
        df.createOrReplaceTempView(view)
        # <=> : a null key is a key
        same = " AND ".join(f"t.{name} <=> s.{name}" for name in map(quoted, sink.merge))
        spark.sql(f"MERGE INTO {target} t USING {view} s ON {same} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
        spark.catalog.dropTempView(view)

    return merge


def send_once(spark: SparkSession, df: DataFrame, sink: Sink, stretch: Stretch, noted: str) -> str:
    """Send a stretch to a sink that can replace nothing, such as Kafka, unless it was sent; what was is noted beside the checkpoint."""
    fs, note, _ = _file_system(spark, noted)
    sent = [Stretch(*pair) for pair in _read_note(spark, fs, note)]
    if stretch in sent:
        return f"{stretch} was sent before, and {sink.format} can replace nothing: nothing was sent. Delete {noted} to send it again"
    for was in sent:
        if stretch.overlaps(was):
            raise SashError(f"{stretch} has a part in common with {was}, which was sent to {sink.format}. Run the rest of it alone.")
    # Not counted while it is sent: a connector such as Kafka's writes in an execution of its own, and a count would be waited for in vain.
    writer = df.write.format(sink.format).options(**sink.options)
    if sink.table is not None:
        writer.mode("append").saveAsTable(sink.table)
    elif sink.path is not None:
        writer.mode("append").save(sink.batch_path or sink.path)
    else:
        writer.mode("overwrite" if sink.format == "noop" else "append").save()
    _write_note(fs, note, [(one.start, one.end) for one in (*sent, stretch)])
    return f"{stretch} to {sink.format}"


def _read_note(spark: SparkSession, fs: Any, note: Any) -> list[tuple[int | None, int | None]]:
    if not fs.exists(note):
        return []
    text = "\n".join(row["value"] for row in spark.read.text(note.toString()).collect())
    return [(start, end) for start, end in json.loads(text)]


def _write_note(fs: Any, note: Any, sent: list[tuple[int | None, int | None]]) -> None:
    fs.mkdirs(note.getParent())
    out = fs.create(note, True)
    out.writeBytes(json.dumps(sent))
    out.close()
