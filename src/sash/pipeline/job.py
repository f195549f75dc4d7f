"""A pipeline on Spark: its source, a streaming query per section and one for dead letters, their sinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from sash.errors import SashError
from sash.pipeline import checks
from sash.pipeline.columns import KeyErrors, dead_letters, for_sink, opened
from sash.pipeline.document import FILES, LETTERS, Pipeline, PipelineErrors, Section
from sash.pipeline.ends import Sink, Source
from sash.pipeline.failures import first_line
from sash.pipeline.lines import Path as Place
from sash.pipeline.replacing import merge_into
from sash.spark import explain, rolling, tile_sink, tiles, windows, write_history
from sash.spark.guard import quoted
from sash.time import timestamp
from sash.wheel import TileStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DEFINE", "OF_STREAMS", "Job", "Planned", "read_past", "read_rows"]

OF_STREAMS: Final = ("watermark", "emit", "max_ahead")  # in a batch everything has arrived
DEFINE: dict[str, Callable[..., Any]] = {"windows": windows, "rolling": rolling, "tiles": tiles}


class Planned:
    """A pipeline on a session: every section is planned before any starts, so that mistakes are found at once."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self.spark, self.pipeline = spark, pipeline
        self.results: dict[str, DataFrame] = {}
        self.outputs: dict[str, DataFrame] = {}  # the results as their sinks take them
        self._found = checks.of_places(pipeline)

    def _raise_found(self) -> None:
        if self._found:
            raise PipelineErrors(self.pipeline.file, self._found)

    def _try(self, place: Place, step: Callable[..., Any], *arguments: Any) -> Any:
        """Take a step; what is wrong is noted with the line that it is about."""
        try:
            return step(*arguments)
        except KeyErrors as error:
            self._found += [(self.pipeline.line((*place, key)), said) for key, said in error.found]
        except (SashError, ValueError) as error:
            self._found.append((self.pipeline.line(self._place(place, str(error))), str(error)))
        return None

    def _place(self, place: Place, message: str) -> Place:
        """The key of the file that a message is about, by the name it begins with."""
        word = message.partition("=")[0]
        if word.startswith("aggs["):
            return (*place, "aggs", word.split("'")[1])
        if any(message.startswith(repr(a)) for one in self.pipeline.sections if one.place == place for a in one.asked["aggs"].values()):
            return (*place, "aggs")
        own = (*place, word)
        return own if own in self.pipeline.lines or (word,) not in self.pipeline.lines else (word,)

    def _plan_sink(self, section: Section, result: DataFrame) -> None:
        """Give a result the form that its sink takes."""
        sink = section.sink
        assert sink is not None
        shaped = self._try(sink.place, for_sink, result, sink, section.asked["key"] or ())
        if shaped is not None:
            self.outputs[section.name] = shaped
            self._try(sink.place, checks.of_sink, self.spark, shaped, sink)

    def explain(self) -> str:
        """Say how every section is computed, and where it comes from and goes to."""
        source = self.pipeline.source
        lines = [f"{self.pipeline.name}: rows from {source.format} {source.path or ''}".rstrip()]
        for section in self.pipeline.sections:
            sink = section.sink
            goes = f"tile store {section.store}" if sink is None else f"{sink.format} {sink.path or sink.table or ''}".rstrip()
            lines += ["", f"{section.name} -> {goes}", explain(self.results[section.name])]
        return "\n".join(lines)


class Job(Planned):
    """A pipeline as a stream: a query per section. A dry one makes no store: it is only planned."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, *, dry: bool = False) -> None:
        super().__init__(spark, pipeline)
        self.stores: dict[str, TileStore] = {}
        rows = self._try(("source",), self._rows)
        self._past = None if pipeline.history is None else self._try(("history",), read_past, spark, pipeline)
        self._since = None if pipeline.history is None else timestamp(pipeline.history[1])
        for section in pipeline.sections:
            if section.sink is None:
                self._try(section.place, checks.of_store, section, self.checkpoint(section.name))
            if rows is not None:
                self._try(section.place, self._plan, section, rows)
        self._raise_found()
        if not dry:
            self._make_stores()

    def _rows(self) -> DataFrame:
        source = self.pipeline.source
        raw = read_rows(self.spark, source, streaming=True)
        if source.dead_letters is not None and source.value is not None:
            self._try((*source.place, LETTERS), self._plan_letters, raw)
        return opened(raw, source)

    def _plan_letters(self, raw: DataFrame) -> None:
        source = self.pipeline.source
        assert source.dead_letters is not None
        assert source.value is not None
        self.outputs[LETTERS] = dead_letters(raw, source.value, source.dead_letters)
        checks.of_sink(self.spark, self.outputs[LETTERS], source.dead_letters)

    def _plan(self, section: Section, rows: DataFrame) -> None:
        history = {} if self._past is None else {"history": self._past, "history_until": self._since}
        result = DEFINE[section.kind](rows, **section.asked, **history)
        self.results[section.name] = self.outputs[section.name] = result
        self._try(section.place, checks.of_checkpoint, self.spark, result, self.checkpoint(section.name))
        if section.sink is not None:
            self._try(section.sink.place, checks.of_stream_folder, section.sink)
            self._plan_sink(section, result)

    def _make_stores(self) -> None:
        """Make the stores of tiles, with the slices of history."""
        for section in self.pipeline.sections:
            if section.store is None:
                continue
            asked = section.asked
            store = TileStore.create(section.store, aggs=asked["aggs"], grain=asked["grain"], key=asked["key"])
            self.stores[section.name] = store
            if self._past is not None and self._since is not None and store.watermark is None:
                upto = self._since // store.grain * store.grain
                before = self._past.filter(F.col(quoted(asked["time"])) < F.timestamp_micros(F.lit(upto)))
                past = {name: value for name, value in asked.items() if name not in OF_STREAMS}
                write_history(store, tiles(before, **past), until=upto)

    def checkpoint(self, name: str) -> str:
        """The folder where a query notes how far it is."""
        return f"{self.pipeline.checkpoint}/{name}"

    def start(self) -> dict[str, Any]:
        """Start the query of every section, and that of dead letters."""
        names = [section.name for section in self.pipeline.sections]
        return {name: self.start_one(name) for name in [*names, *([LETTERS] if LETTERS in self.outputs else [])]}

    def start_one(self, name: str) -> Any:
        """Start one query, from its checkpoint where there is one."""
        pipeline, every = self.pipeline, self.pipeline.every
        section = next((one for one in pipeline.sections if one.name == name), None)
        sink = pipeline.source.dead_letters if section is None else section.sink
        mode = "append" if section is None else section.mode
        writer = self.outputs[name].writeStream.queryName(f"{pipeline.name} {name}").outputMode(mode)
        writer = writer.option("checkpointLocation", self.checkpoint(name))
        writer = writer.trigger(processingTime=every) if every is not None else writer.trigger(availableNow=True)
        if sink is None:
            assert section is not None
            write = tile_sink(self.stores[name], self.checkpoint(name), section.retention, provisional=mode == "update")
            return writer.foreachBatch(write).start()
        return _started(writer, sink)


def _started(writer: Any, sink: Sink) -> Any:
    if sink.merge:
        return writer.foreachBatch(merge_into(sink)).start()
    writer = writer.format(sink.format).options(**sink.options)
    if sink.table is not None:
        return writer.toTable(sink.table)
    return writer.option("path", sink.path).start() if sink.path is not None else writer.start()


def read_rows(spark: SparkSession, source: Source, *, streaming: bool) -> DataFrame:
    """Read a source as it is, as a stream or as a batch."""
    try:
        reader = (spark.readStream if streaming else spark.read).options(**_options(source, streaming))
        if source.format == "table":
            assert source.path is not None
            return reader.table(source.path)
        reader = reader.format(source.format)
        if source.schema is not None:
            reader = reader.schema(source.schema)
        elif streaming and source.format in FILES:
            assert source.path is not None
            reader = reader.schema(spark.read.format(source.format).options(**source.options).load(source.path).schema)
        return reader.load(source.path) if source.path is not None else reader.load()
    except Exception as error:  # whatever a connector raises
        raise KeyErrors([("", f"the {source.place[0]} can't be read: {first_line(error)}")]) from error


def read_past(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The rows of [history], as the source's are made."""
    assert pipeline.history is not None
    past = pipeline.history[0]
    return opened(read_rows(spark, past, streaming=False), past)


def _options(source: Source, streaming: bool) -> dict[str, str]:
    """Options of a stream that a batch would refuse are left out: it reads what is there."""
    of_stream = () if streaming else ("startingoffsets", "maxoffsetspertrigger", "minoffsetspertrigger")
    return {name: value for name, value in source.options.items() if name.lower() not in of_stream}
