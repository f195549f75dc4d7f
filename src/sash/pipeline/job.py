"""A pipeline on Spark: its source, a streaming query per section, their sinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sash.errors import SashError
from sash.pipeline.document import FILES, Pipeline, PipelineErrors, Section
from sash.spark import explain, rolling, tile_sink, tiles, windows
from sash.wheel import TileStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Job"]

_DEFINE: dict[str, Callable[..., Any]] = {"windows": windows, "rolling": rolling, "tiles": tiles}


class Job:
    """A pipeline planned on a session: every section is defined before any starts, so that mistakes are found at once.

    A dry one makes no store: it is only planned.
    """

    def __init__(self, spark: SparkSession, pipeline: Pipeline, *, dry: bool = False) -> None:
        self.spark, self.pipeline = spark, pipeline
        self.results: dict[str, DataFrame] = {}
        self.stores: dict[str, TileStore] = {}
        found: list[tuple[int, str]] = []
        try:
            rows = self._source()
        except Exception as error:
            raise PipelineErrors(
                pipeline.file, [(pipeline.line(("source",)), f"the source can't be read: {_first_line(error)}")]
            ) from error
        for section in pipeline.sections:
            try:
                self.results[section.name] = _DEFINE[section.kind](rows, **section.asked)
                if section.kind == "tiles" and not dry:
                    asked = section.asked
                    assert section.store is not None
                    self.stores[section.name] = TileStore.create(section.store, aggs=asked["aggs"], grain=asked["grain"], key=asked["key"])
            except (SashError, ValueError) as error:
                found.append((pipeline.line(self._place(section, str(error))), str(error)))
        if found:
            raise PipelineErrors(pipeline.file, found)

    def _place(self, section: Section, message: str) -> tuple[str | int, ...]:
        """The key of the file that a message is about, by the name it begins with."""
        word = message.partition("=")[0]
        if word.startswith("aggs["):
            return (*section.place, "aggs", word.split("'")[1])
        own = (*section.place, word)
        return own if own in self.pipeline.lines or (word,) not in self.pipeline.lines else (word,)

    def _source(self) -> DataFrame:
        source = self.pipeline.source
        reader = self.spark.readStream.options(**source.options)
        if source.format == "table":
            assert source.path is not None
            return reader.table(source.path)
        reader = reader.format(source.format)
        if source.schema is not None:
            reader = reader.schema(source.schema)
        elif source.format in FILES:
            assert source.path is not None
            reader = reader.schema(self.spark.read.format(source.format).options(**source.options).load(source.path).schema)
        return reader.load(source.path) if source.path is not None else reader.load()

    def checkpoint(self, section: Section) -> str:
        """The folder where a section's query notes how far it is."""
        return f"{self.pipeline.checkpoint}/{section.name}"

    def start(self) -> dict[str, Any]:
        """Start the query of every section."""
        return {section.name: self._start(section) for section in self.pipeline.sections}

    def _start(self, section: Section) -> Any:
        pipeline, result, sink = self.pipeline, self.results[section.name], section.sink
        every = pipeline.every
        writer = result.writeStream.queryName(f"{pipeline.name} {section.name}").option("checkpointLocation", self.checkpoint(section))
        writer = writer.trigger(processingTime=every) if every is not None else writer.trigger(availableNow=True)
        mode = "update" if section.asked.get("emit") in ("update", "changed") else "append"
        writer = writer.outputMode(mode)
        if sink is None:
            store, checkpoint = self.stores[section.name], self.checkpoint(section)
            return writer.foreachBatch(tile_sink(store, checkpoint, section.retention, provisional=mode == "update")).start()
        writer = writer.format(sink.format).options(**sink.options)
        return writer.option("path", sink.path).start() if sink.path is not None else writer.start()

    def explain(self) -> str:
        """Say how every section is computed, and where it comes from and goes to."""
        source = self.pipeline.source
        lines = [f"{self.pipeline.name}: rows from {source.format} {source.path or ''}".rstrip()]
        for section in self.pipeline.sections:
            goes = f"tile store {section.store}" if section.sink is None else f"{section.sink.format} {section.sink.path or ''}".rstrip()
            lines += ["", f"{section.name} -> {goes}", explain(self.results[section.name])]
        return "\n".join(lines)


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def failure(error: Any) -> str:
    """What went wrong in a query, in a line: Sash's own words where they are in it, else Spark's first line."""
    text = str(error)
    for line in text.splitlines():
        for kind in ("sash.errors.", "sash.wheel.errors."):
            if kind in line:
                return line.partition(kind)[2].partition(": ")[2].strip() or line.strip()
    return _first_line(error)
