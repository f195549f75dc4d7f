"""One Spark session for all tests, streams made of files, and both ways of the workers' cache."""

import datetime as dt
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash.spark import session

Row = tuple[Any, ...]
EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def at(seconds: float) -> dt.datetime:
    """A time on the tests' time line: seconds since its start."""
    return EPOCH + dt.timedelta(seconds=seconds)


def seconds(time: dt.datetime) -> float:
    """Where a time that Spark gave is on the tests' time line; Spark gives it naive, in UTC."""
    return (time.replace(tzinfo=dt.UTC) - EPOCH).total_seconds()


@pytest.fixture(scope="session")
def spark():
    os.environ["TZ"] = "UTC"
    spark = session("sash tests", master="local[2]")
    yield spark
    spark.stop()


@pytest.fixture
def shared(monkeypatch, spark):
    """Let commands use the tests' session, and leave it open."""

    class Session:
        def __getattr__(self, name):
            return getattr(spark, name)

        def stop(self):
            pass

    monkeypatch.setattr("sash.spark.session", lambda *names, **conf: Session())
    return spark


@pytest.fixture(params=["cache", "no cache"])
def cache(request, spark) -> Iterator[bool]:
    """Run a test with the workers' cache of decoded buckets, and without: the cache hides faults of the reload."""
    spark.conf.set("spark.sash.cache", str(request.param == "cache").lower())
    yield request.param == "cache"
    spark.conf.unset("spark.sash.cache")


class Stream:
    """A stream of micro-batches, each one file of rows."""

    def __init__(self, spark: Any, folder: Path, schema: pa.Schema, batches: list[list[Row]]) -> None:
        self.spark, self.folder = spark, folder
        self.source = folder / "source"
        self.source.mkdir(parents=True)
        self.schema = schema
        self.files = 0
        for rows in batches:
            self.append(rows)

    def append(self, rows: list[Row]) -> None:
        """Add a micro-batch; files are read in the order of their times."""
        columns = list(zip(*rows, strict=True)) if rows else [[] for _ in self.schema]
        self.append_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema))

    def append_table(self, table: pa.Table) -> None:
        """Add a micro-batch of a table's rows."""
        path = self.source / f"{self.files:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + self.files, 1_700_000_000 + self.files))
        self.files += 1

    def read(self) -> Any:
        """The streaming DataFrame."""
        schema = self.batch().schema
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.source))

    def batch(self) -> Any:
        """The same rows as a batch DataFrame."""
        return self.spark.read.parquet(str(self.source))

    def start(
        self, transform: Callable[[Any], Any], sink: Callable[[Any, int], None], checkpoint: str = "checkpoint", mode: str = "append"
    ) -> Any:
        """Start a query that stops when all files are read."""
        writer = self.read().transform(transform).writeStream.foreachBatch(sink).outputMode(mode).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(self.folder / checkpoint)).start()

    def run(self, transform: Callable[[Any], Any], checkpoint: str = "checkpoint", mode: str = "append") -> list[list[Row]]:
        """Run until all files are read; the output of every micro-batch, also of the last ones without data."""
        out: list[list[Row]] = []

        def sink(df: Any, batch: int) -> None:
            out.append([tuple(row) for row in df.collect()])

        query = self.start(transform, sink, checkpoint, mode)
        query.awaitTermination()
        self.progress = [p for p in query.recentProgress]
        return out


@pytest.fixture
def stream(spark, tmp_path) -> Callable[..., Stream]:
    """Make a stream: stream(schema, batches)."""
    made = 0

    def make(schema: pa.Schema, batches: list[list[Row]]) -> Stream:
        nonlocal made
        made += 1
        return Stream(spark, tmp_path / f"stream{made}", schema, batches)

    return make
