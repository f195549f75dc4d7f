"""Tile stores as tables of Spark: `spark.read.format("sash").option("by", "1h").load("tiles")`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from sash.errors import DefinitionError
from sash.spark.types import spark_schema
from sash.time import timestamp
from sash.wheel import TileStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["TileSource", "register"]

_OPTIONS = ("path", "by", "tz", "aggs", "start", "end", "partitions")
_ROWS = 2_000_000  # slices that a task reads, about


def register(spark: SparkSession) -> None:
    """Let a Spark session read tile stores; session() does it by itself.

    >>> register(spark)                                                                     # doctest: +SKIP
    >>> hours = spark.read.format("sash").option("by", "1h").load("tiles")                  # doctest: +SKIP
    """
    spark.dataSource.register(TileSource)
    if hasattr(DataSourceReader, "pushFilters"):  # without it Spark refuses sources that take filters
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


class TileSource(DataSource):  # type: ignore[misc]
    """A tile store as a table: the key, `slice_start`, `slice_end`, and the value of each aggregation.

    Options: `by`, the step of time, a multiple of the grain (default: the grain), with `tz` days, weeks or months there; `aggs`, names
    separated by commas; `start` and `end`; `partitions`. Filters on key columns and `slice_start` are pushed down, to the row
    groups that hold those keys and that time.
    """

    @classmethod
    def name(cls) -> str:
        return "sash"

    def schema(self) -> StructType:
        return spark_schema(_Question(self.options).schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(_Question(self.options))


class _Stretch(InputPartition):  # type: ignore[misc]
    """Some steps of time, which one task reads."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start, self.end = start, end


class _Question:
    """What the options ask for."""

    def __init__(self, options: Any) -> None:
        given = {str(name).lower(): value for name, value in dict(options).items()}
        unknown = set(given) - set(_OPTIONS)
        if unknown:
            raise DefinitionError(f"the source sash has no option {', '.join(sorted(unknown))}. It has {', '.join(_OPTIONS)}.")
        if "path" not in given:
            raise DefinitionError("the source sash reads a tile store. Name its folder: .load('tiles').")
        self.path, self.by, self.tz = given["path"], given.get("by"), given.get("tz")
        self.aggs = None if "aggs" not in given else [name.strip() for name in given["aggs"].split(",")]
        self.start, self.end = given.get("start"), given.get("end")
        self.partitions = None if "partitions" not in given else int(given["partitions"])
        self.keys: list[Any] | None = None

    def schema(self) -> pa.Schema:
        return TileStore(self.path).value_schema(self.aggs)

    def table(self, start: int, end: int) -> pa.Table:
        return TileStore(self.path).table(self.by, self.keys, start, end, self.aggs, tz=self.tz)

    def edges(self) -> list[int]:
        return TileStore(self.path).edges(self.by, self.start, self.end, self.aggs, tz=self.tz)


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, question: _Question) -> None:
        self._question = question
        self._since: int | None = None  # a step begins at or after it
        self._before: int | None = None  # a step begins before it

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take what narrows keys and time; Spark checks the rows all the same."""
        wanted: dict[str, set[Any]] = {}
        for one in filters:
            kind, column = type(one).__name__, ".".join(getattr(one, "attribute", ()))
            value: Any = getattr(one, "value", None)
            if column == "slice_start" and isinstance(value, dt.datetime) and value.tzinfo is not None:
                at = timestamp(value)
                if kind in ("GreaterThanOrEqual", "GreaterThan", "EqualTo"):
                    self._since = at if self._since is None else max(self._since, at)
                if kind in ("LessThan", "LessThanOrEqual", "EqualTo"):
                    before = at if kind == "LessThan" else at + 1
                    self._before = before if self._before is None else min(self._before, before)
            elif kind in ("EqualTo", "In") and _is_plain(found := {value} if kind == "EqualTo" else set(value)):
                wanted[column] = wanted[column] & found if column in wanted else found
        key = TileStore(self._question.path).key
        if key and all(name in wanted for name in key):
            keys: list[tuple[Any, ...]] = [()]
            for name in key:
                keys = [(*head, value) for head in keys for value in wanted[name]]
            self._question.keys = [one[0] for one in keys] if len(key) == 1 else list(keys)
        return filters

    def partitions(self) -> list[InputPartition]:
        """Stretches of whole steps, of as many slices each as a task can hold."""
        edges = self._question.edges()
        steps = [
            (a, b) for a, b in pairwise(edges) if (self._since is None or a >= self._since) and (self._before is None or a < self._before)
        ]
        store = TileStore(self._question.path)
        count = self._question.partitions or min(len(store) // _ROWS + 1, 64)
        count = max(1, min(count, len(steps)))
        cuts = [round(i * len(steps) / count) for i in range(count + 1)]
        return [_Stretch(steps[a][0], steps[b - 1][1]) for a, b in pairwise(cuts) if b > a]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read a stretch."""
        table = self._question.table(partition.start, partition.end)
        yield from table.cast(self._question.schema()).to_batches(max_chunksize=100_000)


def _is_plain(values: set[Any]) -> bool:
    """Whether all are values that keys are compared with as they are; times and decimals are left to Spark."""
    return all(isinstance(value, str | int | float | bytes | bool) for value in values)
