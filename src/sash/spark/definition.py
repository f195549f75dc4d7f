"""A checked query and how it is to be run on one DataFrame: what only Spark knows of a definition."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from sash.engine import Query
from sash.engine.definition import Columns, define_rolling, define_windows, max_ahead_of, positive, watermark_delay
from sash.errors import DefinitionError
from sash.spark.types import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_WATERMARK = "spark.watermarkDelayMs"  # where Spark notes a watermark in a column's metadata


@dataclasses.dataclass(frozen=True)
class Definition:
    """A checked query and how it is to be run on one DataFrame."""

    what: str  # windows, rolling
    query: Query
    streaming: bool
    delay: int | None  # of the watermark that we put on, in microseconds; None where the DataFrame brings one, and in batch
    max_ahead: MaxAhead | None = None
    history: DataFrame | None = None  # rows from before the stream
    idle: int | None = None  # how far behind the clock the watermark follows it, beside the delay; None: it does not

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the input that go to the core; Spark drops the others before the rows leave the JVM."""
        return tuple(self.query.schema.names)

    @property
    def result_column(self) -> str:
        """The first column that the input does not have."""
        return "window_end" if self.query.windows is not None else self.query.feature_names[0]

    @property
    def output_mode(self) -> str:
        """Spark's output mode that fits `emit`."""
        return "update" if self.query.emit in ("update", "changed") else "append"


@dataclasses.dataclass(frozen=True)
class MaxAhead:
    """How far a row's time may be ahead, in microseconds, of a column or (None) of the micro-batch's clock."""

    period: int
    column: str | None


class SparkColumns(Columns):
    """The columns of a DataFrame, their types by Spark's names."""

    def __init__(self, df: DataFrame) -> None:
        super().__init__(df.columns)
        self._df = df

    def schema(self, names: Iterable[str]) -> pa.Schema:
        """The Arrow types of some columns; a DefinitionError names one that can't be carried."""
        return arrow_schema(T.StructType([self._df.schema[name] for name in names]))

    def check_time(self, name: str) -> None:
        """Raise a DefinitionError if a column holds no points in time."""
        kind = self._df.schema[name].dataType
        if not isinstance(kind, T.TimestampType | T.TimestampNTZType):
            raise DefinitionError(
                f"time={name!r} is of type {kind.simpleString()}, not a timestamp. Cast it first: F.col({name!r}).cast('timestamp')."
            )

    def check_key(self, name: str) -> None:
        """Raise a DefinitionError for a map: Spark's own error would come later and say less."""
        if isinstance(self._df.schema[name].dataType, T.MapType):
            raise DefinitionError(f"key={name!r} is a map, and maps can't be keys. Take an entry of it, or to_json() of it.")


def define(
    what: str, df: DataFrame, *, time: str, watermark: Any, max_ahead: Any, history: DataFrame | None, idle: Any, **asked: Any
) -> Definition:
    """Check the arguments of windows() or rolling()."""
    columns = SparkColumns(df)
    query = (define_windows if what == "windows" else define_rolling)(columns, time=time, streaming=df.isStreaming, **asked)
    delay = _watermark(df, time, watermark)
    return Definition(what, query, df.isStreaming, delay, _max_ahead(df, columns, delay, max_ahead), history, _idle(df, delay, idle))


def _watermark(df: DataFrame, time: str, watermark: Any) -> int | None:
    """The delay of the watermark to put on, None if the DataFrame has one or needs none."""
    delay = watermark_delay(watermark)
    if delay is not None and delay % 1000:
        raise DefinitionError(f"watermark={watermark!r} is not a whole number of milliseconds, which is how Spark counts it.")
    if not df.isStreaming:
        return None
    marked = [field.name for field in df.schema.fields if _WATERMARK in (field.metadata or {})]
    if marked and delay is not None:
        raise DefinitionError(
            f"the DataFrame already has a watermark on {marked[0]!r}, and watermark={watermark!r} would be a second. Drop one."
        )
    if marked and marked != [time]:
        raise DefinitionError(f"the watermark is on {marked[0]!r}, not on time={time!r}. Put it there, or use watermark= instead.")
    if not marked and delay is None:
        raise DefinitionError("a stream needs a watermark, to know when results are final. Add e.g. watermark='10 minutes'.")
    return delay


def _idle(df: DataFrame, delay: int | None, idle: Any) -> int | None:
    if idle is None:
        return None
    behind = positive("idle", idle)
    if not df.isStreaming:
        return None
    if delay is None:
        raise DefinitionError(
            f"idle={idle!r} moves the watermark, and the DataFrame brings one of its own, which Spark does not let others move. "
            "Use watermark= instead of withWatermark()."
        )
    return behind


def _max_ahead(df: DataFrame, columns: Columns, delay: int | None, max_ahead: Any) -> MaxAhead | None:
    if max_ahead is not None and df.isStreaming and delay is None:
        raise DefinitionError(
            f"max_ahead={max_ahead!r} comes too late: the DataFrame's own watermark counts rows from the future before they are refused. "
            "Use watermark= instead of withWatermark()."
        )
    read = max_ahead_of(columns, max_ahead)
    return None if read is None else MaxAhead(*read)
