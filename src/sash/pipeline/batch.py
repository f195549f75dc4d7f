"""A pipeline run once over what is there, or over a range of it: to the same sinks, and a range that is run again is replaced.

What belongs to a range [start, end): the windows that end after its start and by its end, the rows of rolling in it, its slices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from sash.errors import DefinitionError, SashError
from sash.pipeline import checks
from sash.pipeline.columns import opened
from sash.pipeline.document import Pipeline, Section
from sash.pipeline.ends import FILES, Sink
from sash.pipeline.job import DEFINE, OF_STREAMS, Planned, read_past, read_rows
from sash.pipeline.replacing import Stretch, replace_delta, replace_files, replace_iceberg, send_once
from sash.spark.guard import quoted
from sash.spark.tile_sink import write_stretch
from sash.time import duration, duration_text, timestamp, timestamp_text
from sash.wheel import TileStore

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["BatchJob"]


class BatchJob(Planned):
    """A pipeline planned as a batch over a stretch of time."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, stretch: Stretch) -> None:
        super().__init__(spark, pipeline)
        self._stretch = stretch
        rows = self._try(("source",), self._rows)
        for section in pipeline.sections if rows is not None else ():
            self._try(section.place, self._plan, section, rows)
        self._raise_found()

    def _rows(self) -> DataFrame:
        """The rows of the source; with [history], those before its end from there."""
        pipeline = self.pipeline
        rows = opened(read_rows(self.spark, pipeline.source, streaming=False), pipeline.source)
        if pipeline.history is None:
            return rows
        past = self._try(("history",), read_past, self.spark, pipeline)
        time = F.col(quoted(next(section.asked["time"] for section in pipeline.sections)))
        until = timestamp(pipeline.history[1])
        if past is None:
            return rows
        return past.filter(_between(time, Stretch(end=until), closed="left")).unionByName(
            rows.filter(_between(time, Stretch(start=until), closed="left"))
        )

    def _plan(self, section: Section, rows: DataFrame) -> None:
        stretch, asked = self._stretch, {name: value for name, value in section.asked.items() if name not in OF_STREAMS}
        time = section.asked["time"]
        before = _reach(section)
        needed = dataclasses.replace(stretch, start=None if stretch.start is None or before is None else stretch.start - before)
        if time in rows.columns:  # else what follows says so
            rows = rows.filter(_between(F.col(quoted(time)), needed, closed="left"))
        result = DEFINE[section.kind](rows, **asked)
        if section.sink is None:
            self._plan_tiles(section)
        elif section.kind == "windows":
            result = result.filter(_between(F.col("window_end"), stretch, closed="right"))
        else:
            result = result.filter(_between(F.col(quoted(time)), stretch, closed="left"))
        self.results[section.name] = self.outputs[section.name] = result
        if section.sink is not None:
            self._try(section.sink.place, checks.of_batch_folder, section.sink)
            self._plan_sink(section, result)

    def _plan_tiles(self, section: Section) -> None:
        asked, stretch = section.asked, self._stretch
        grain = duration(asked["grain"])
        for name, at in (("--from", stretch.start), ("--to", stretch.end)):
            if at is not None and at % grain:
                raise DefinitionError(f"{name} {timestamp_text(at)} is not on the grain of {duration_text(grain)}. Use a multiple of it.")
        assert section.store is not None
        store = TileStore.found(section.store, aggs=asked["aggs"], grain=asked["grain"], key=asked["key"])
        if store is not None:
            store.check_stretch(stretch.start, stretch.end)

    def run(self) -> Iterator[str]:
        """Run the sections one after the other, and say what each has done."""
        for section in self.pipeline.sections:
            yield f"{section.name}: {self._written(section)}"

    def _written(self, section: Section) -> str:
        result, stretch = self.outputs[section.name], self._stretch
        if section.sink is None:
            asked = section.asked
            assert section.store is not None
            store = TileStore.create(section.store, aggs=asked["aggs"], grain=asked["grain"], key=asked["key"])
            slices = write_stretch(store, result, start=stretch.start, end=stretch.end)
            return f"{slices:,} slices of {stretch} in {section.store}"
        return _write(self.spark, result, section, section.sink, stretch, f"{self.pipeline.checkpoint}/batch/{section.name}.json")


def _reach(section: Section) -> int | None:
    """How far back before a result rows can count in it, in microseconds; None where nothing bounds it."""
    asked = section.asked
    if section.kind == "tiles":
        return 0
    if section.kind == "windows":
        if asked.get("session") is not None or asked.get("tz") is not None:
            return None
        ranges = asked["range"] if isinstance(asked["range"], list) else [asked["range"]]
        return max(map(duration, ranges))
    found = [duration(asked.get("delay") or 0)]
    for lookback in asked["lookbacks"]:
        if lookback is None or lookback.strip().endswith(("row", "rows")):
            return None
        found.append(sum(duration(part) for part in lookback.split("/")) + found[0])
    return max(found) + 1  # closed="both" and "left" reach one point further back


def _between(at: Column, stretch: Stretch, closed: str) -> Column:
    """Whether a time is in a stretch; `closed` is the end that belongs to it."""
    found = F.lit(True)
    if stretch.start is not None:
        start = F.timestamp_micros(F.lit(stretch.start))
        found = found & (at >= start if closed == "left" else at > start)
    if stretch.end is not None:
        end = F.timestamp_micros(F.lit(stretch.end))
        found = found & (at < end if closed == "left" else at <= end)
    return found


def _write(spark: SparkSession, df: DataFrame, section: Section, sink: Sink, stretch: Stretch, noted: str) -> str:
    time = "window_end" if section.kind == "windows" else section.asked["time"]
    path = sink.batch_path or sink.path
    if sink.format == "console":
        df.show(int(sink.options.get("numRows", 20)), sink.options.get("truncate", "true") == "true")
        return f"{stretch}, shown"
    if sink.format in FILES:
        assert path is not None
        return f"{replace_files(spark, df, sink.format, sink.options, path, stretch):,} rows of {stretch} in {path}"
    if sink.format in ("delta", "iceberg"):
        if time not in df.columns:
            raise SashError(
                f"a batch replaces a range by the column {time}, which select leaves out at the sink of {section.name}. Add it."
            )
        (replace_delta if sink.format == "delta" else replace_iceberg)(spark, df, sink, stretch.condition(time, section.kind == "windows"))
        return f"{stretch} in {sink.table or path}"
    return send_once(spark, df, sink, stretch, noted)
