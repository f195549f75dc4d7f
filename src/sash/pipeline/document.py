"""A pipeline file, read and checked: every mistake in it is found at once, each with its line and its fix."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sash.agg import Aggregation
from sash.errors import DefinitionError
from sash.pipeline.ends import FILES, Sink, Source, read_history, read_sink, read_source
from sash.pipeline.expressions import aggregation
from sash.pipeline.lines import Path as Place
from sash.pipeline.lines import line_of, lines
from sash.pipeline.values import PipelineErrors, Values
from sash.time import duration

__all__ = ["FILES", "LETTERS", "Pipeline", "PipelineErrors", "Section", "Sink", "Source", "read"]

_TOP: Final = (
    "name", "time", "key", "watermark", "checkpoint", "trigger", "max_ahead", "retries", "packages",
    "source", "history", "windows", "rolling", "tiles", "spark",
)  # fmt: skip
_SHARED: Final = ("name", "aggs", "key", "watermark", "tie", "max_ahead")
_KEYS: Final = {
    "windows": (*_SHARED, "range", "slide", "session", "offset", "emit", "late", "empty", "tz", "sink"),
    "rolling": (*_SHARED, "lookbacks", "closed", "delay", "emit", "late", "sink"),
    "tiles": (*_SHARED, "grain", "path", "retention", "provisional"),
}
LETTERS: Final = "dead_letters"  # the name of the query that writes them
_AVAILABLE: Final = "available now"
_RETRIES: Final = 5
_COORDINATES: Final = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+")
_ROWS: Final = re.compile(r"\s*[1-9]\d*\s*rows?\s*")


@dataclasses.dataclass(frozen=True)
class Section:
    """One [[windows]], [[rolling]] or [tiles]: a query of its own."""

    kind: str
    name: str
    asked: Mapping[str, Any]  # the arguments of sash.spark's function of that name
    sink: Sink | None  # None: tiles, which go to a store
    store: str | None
    retention: str | None
    place: Place

    @property
    def mode(self) -> str:
        """Spark's output mode."""
        return _mode(self.asked)


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A checked pipeline file."""

    file: Path
    name: str
    source: Source
    sections: tuple[Section, ...]
    checkpoint: str
    every: str | None  # the trigger's interval; None: all that is there now, then stop
    spark: Mapping[str, str]
    lines: Mapping[Place, int]
    packages: tuple[str, ...] = ()
    retries: int = _RETRIES
    history: tuple[Source, str] | None = None  # and up to when it counts

    def line(self, place: Place) -> int:
        """The line of a key of the file."""
        return line_of(dict(self.lines), place)


def read(file: str | Path) -> Pipeline:
    """Read a pipeline file, or raise PipelineErrors with all that is wrong with it."""
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DefinitionError(f"{path} does not exist. Give the path of a pipeline file.") from None
    except (IsADirectoryError, UnicodeDecodeError):
        raise DefinitionError(f"{path} is not a text file. Give the path of a pipeline file.") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(where[1]) if where else text.count("\n") + 1
        said = str(error).partition(" (at ")[0]
        raise PipelineErrors(path, [(line, f'this is not TOML: {said}. Text stands in quotes: key = "value".')]) from None
    return _Reader(path, lines(text), document).pipeline()


class _Reader(Values):
    """Reads a document."""

    def __init__(self, file: Path, where: dict[Place, int], document: dict[str, Any]) -> None:
        super().__init__(file, where)
        self.document = document

    def pipeline(self) -> Pipeline:
        top = self.document
        self.unknown((), top, _TOP, "a pipeline")
        source = read_source(self, self.table(("source",), top, needed="[source] with format and path: where the rows come from"))
        history = read_history(self, self.table(("history",), top))
        self.text(("time",), top, needed='time = "the column that says when"')
        name = self.text(("name",), top) or self.file.stem
        checkpoint = self.text(("checkpoint",), top, needed='checkpoint = "a folder", where the stream notes how far it is')
        every = self.trigger(top)
        sections = self.sections(top)
        spark = self.options(("spark",), top)
        packages = self.packages(top)
        retries = self.retries(top)
        self.names(sections)
        if self.found:
            raise PipelineErrors(self.file, self.found)
        assert source is not None
        assert checkpoint is not None
        return Pipeline(
            self.file, name, source, tuple(sections), self.resolved(checkpoint), every, spark, self.where, packages, retries, history
        )

    def packages(self, top: Mapping[str, Any]) -> tuple[str, ...]:
        found = self.texts(("packages",), top, '["org.apache.spark:spark-avro_2.13:4.0.0"]')
        for one in found:
            if not _COORDINATES.fullmatch(one):
                self.wrong(("packages",), f"{one!r} is not a package. Write group:artifact:version, as Maven does.")
        return found

    def retries(self, top: Mapping[str, Any]) -> int:
        value = top.get("retries", _RETRIES)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.wrong(("retries",), f"retries = {value!r} is not how often a query is started again. Use a whole number from 0.")
        return _RETRIES

    def trigger(self, top: Mapping[str, Any]) -> str | None:
        value = top.get("trigger", _AVAILABLE)
        if value == _AVAILABLE:
            return None
        if not isinstance(value, str):
            self.wrong(("trigger",), f'trigger is {value!r}. Use "{_AVAILABLE}", or how often, e.g. "10 seconds".')
            return None
        every = self.length(("trigger",), top)
        return None if every is None else f"{duration(every) // 1000} milliseconds"

    def sections(self, top: Mapping[str, Any]) -> list[Section]:
        found = []
        for kind in ("windows", "rolling"):
            tables = top.get(kind, [])
            if not isinstance(tables, list):
                self.wrong((kind,), f"write [[{kind}]] with two brackets: there may be several.")
                continue
            found += [self.section(kind, (kind, i), table, top) for i, table in enumerate(tables)]
        if (tiles := self.table(("tiles",), top)) is not None:
            found.append(self.section("tiles", ("tiles",), tiles, top))
        if not any(kind in top for kind in ("windows", "rolling", "tiles")):
            self.wrong((), "there is nothing to compute. Add [[windows]], [[rolling]] or [tiles].")
        return found

    def section(self, kind: str, place: Place, table: Mapping[str, Any], top: Mapping[str, Any]) -> Section:
        what = "[tiles]" if kind == "tiles" else f"[[{kind}]]"
        self.unknown(place, table, _KEYS[kind], what)
        number = "" if len(place) == 1 or place[1] == 0 else str(int(place[1]) + 1)
        name = self.text((*place, "name"), table) or f"{kind}{number}"
        if not re.fullmatch(r"[\w.-]+", name):
            self.wrong((*place, "name"), f"the name {name!r} names a folder of the checkpoint: use letters, digits, _ . and - only.")
        asked: dict[str, Any] = {"time": top.get("time"), "aggs": self.aggs(place, table)}
        asked["key"] = self.key(place, table, top)
        inherited = table if "watermark" in table else top
        at = (*place, "watermark") if "watermark" in table else ("watermark",)
        asked["watermark"] = self.length(at, inherited)
        if "watermark" not in inherited:
            self.wrong(
                place, 'there is no watermark, so no result would ever be final. Add watermark = "10 minutes": how late rows may come.'
            )
        if (tie := self.text((*place, "tie"), table)) is not None:
            asked["tie"] = tie
        if "max_ahead" in table or "max_ahead" in top:
            own = "max_ahead" in table
            asked["max_ahead"] = self.length((*place, "max_ahead") if own else ("max_ahead",), table if own else top)
        getattr(self, kind)(place, table, asked)
        sink = None if kind == "tiles" else read_sink(self, (*place, "sink"), table, what, _mode(asked))
        store = self.text((*place, "path"), table, needed='path = "a folder" for the tile store') if kind == "tiles" else None
        retention = self.length((*place, "retention"), table) if kind == "tiles" else None
        return Section(kind, name, asked, sink, self.resolved(store) if store else None, retention, place)

    def windows(self, place: Place, table: Mapping[str, Any], asked: dict[str, Any]) -> None:
        if (tz := self.text((*place, "tz"), table)) is not None:
            asked["tz"] = tz
        for key in ("range", "slide", "session", "offset"):
            asked[key] = self.span((*place, key), table, tz is not None)
        if "range" not in table and "session" not in table:
            self.wrong(place, 'these windows have no range. Add range = "1 hour", with slide = "1 minute"; or session = "30 minutes".')
        if "session" in table and (other := next((k for k in ("range", "slide", "offset") if k in table), None)):
            self.wrong((*place, other), f"session and {other} do not go together: a session is as long as its rows make it. Drop one.")
        shortest = asked["range"] if isinstance(asked["range"], str) else None
        if shortest and asked["slide"] and tz is None and duration(asked["slide"]) > duration(shortest):
            self.wrong(
                (*place, "slide"),
                f"slide = {asked['slide']!r} is longer than range = {asked['range']!r}: rows in between would count nowhere.",
            )
        self.one_of((*place, "emit"), table, asked, ("final", "update"))
        self.one_of((*place, "late"), table, asked, ("drop", "flag"))
        self.one_of((*place, "empty"), table, asked, ("drop", "once"))

    def span(self, place: Place, table: Mapping[str, Any], calendar: bool) -> Any:
        """A length of time; of the calendar, where a time zone is given; several ranges in a list."""
        value = table.get(str(place[-1]))
        if place[-1] == "range" and isinstance(value, list) and value:
            return [self.span(place, {"range": one}, calendar) for one in value]
        return self.text(place, table) if calendar else self.length(place, table)

    def rolling(self, place: Place, table: Mapping[str, Any], asked: dict[str, Any]) -> None:
        given = table.get("lookbacks")
        if not isinstance(given, list) or not given:
            self.wrong(
                (*place, "lookbacks"), 'lookbacks must be a list with at least one entry: lookbacks = ["1h", "24h", "100rows", "all"].'
            )
            given = []
        for value in given:
            if value != "all" and not (isinstance(value, str) and _ROWS.fullmatch(value)):
                for part in value.split("/", 1) if isinstance(value, str) else [value]:  # "30d/1h": in hops of an hour
                    self.length((*place, "lookbacks"), {"lookbacks": part})
        asked["lookbacks"] = [None if value == "all" else value for value in given]
        if "delay" in table:
            asked["delay"] = self.length((*place, "delay"), table)
        self.one_of((*place, "closed"), table, asked, ("right", "left", "both", "neither"))
        self.one_of((*place, "emit"), table, asked, ("final", "event", "changed"))
        self.one_of((*place, "late"), table, asked, ("drop", "accept", "flag"))

    def tiles(self, place: Place, table: Mapping[str, Any], asked: dict[str, Any]) -> None:
        asked["grain"] = self.length((*place, "grain"), table, needed='grain = "1m": how long a slice is')
        if not isinstance(table.get("provisional", False), bool):
            self.wrong(
                (*place, "provisional"), f"provisional = {table['provisional']!r} is neither true nor false. Write provisional = true."
            )
        elif table.get("provisional"):
            asked["emit"] = "update"

    def key(self, place: Place, table: Mapping[str, Any], top: Mapping[str, Any]) -> list[str] | None:
        where = (*place, "key") if "key" in table else ("key",)
        value = table.get("key", top.get("key"))
        names = [value] if isinstance(value, str) else value
        if names is not None and (not isinstance(names, list) or not all(isinstance(name, str) for name in names)):
            self.wrong(where, f'key is {value!r}. Write the name of a column, or a list: key = ["zone", "hour"].')
            return None
        return names or None

    def aggs(self, place: Place, table: Mapping[str, Any]) -> dict[str, Aggregation]:
        found = {}
        given = table.get("aggs")
        if not isinstance(given, dict) or not given:
            self.wrong((*place, "aggs"), 'there is nothing to aggregate. Add aggs = { n = "count", fare = "mean(fare)" }.')
            return {}
        for name, text in given.items():
            try:
                found[name] = aggregation(text)
            except (ValueError, OverflowError) as error:
                self.wrong((*place, "aggs", name), f"{name}: {error}")
        return found

    def names(self, sections: list[Section]) -> None:
        seen: dict[str, Section] = {}
        for section in sections:
            if section.name == LETTERS:
                self.wrong((*section.place, "name"), f"the name {LETTERS!r} is that of the query that writes them. Give another.")
        for section in sections:
            if (other := seen.setdefault(section.name, section)) is not section:
                first = line_of(self.where, other.place)
                self.wrong((*section.place, "name"), f"the name {section.name!r} is taken by line {first}. Give this one another name.")


def _mode(asked: Mapping[str, Any]) -> str:
    return "update" if asked.get("emit") in ("update", "changed") else "append"
