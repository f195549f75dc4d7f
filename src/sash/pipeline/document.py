"""A pipeline file, read and checked: every mistake in it is found at once, each with its line and its fix."""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sash.agg import Aggregation
from sash.errors import DefinitionError
from sash.pipeline.expressions import aggregation
from sash.pipeline.lines import Path as Place
from sash.pipeline.lines import line_of, lines
from sash.time import duration

__all__ = ["Pipeline", "PipelineErrors", "Section", "Sink", "Source", "read"]

FILES: Final = ("parquet", "csv", "json", "orc", "text")
_TOP: Final = ("name", "time", "key", "watermark", "checkpoint", "trigger", "max_ahead", "source", "windows", "rolling", "tiles", "spark")
_SHARED: Final = ("name", "aggs", "key", "watermark", "tie", "max_ahead", "sink")
_KEYS: Final = {
    "source": ("format", "path", "table", "schema", "options"),
    "windows": (*_SHARED, "range", "slide", "session", "offset", "emit"),
    "rolling": (*_SHARED, "lookbacks", "closed", "delay", "emit", "late"),
    "tiles": ("name", "aggs", "key", "watermark", "tie", "grain", "path", "retention", "provisional"),
    "sink": ("format", "path", "mode", "options"),
}
_AVAILABLE: Final = "available now"


class PipelineErrors(DefinitionError):
    """All that is wrong with a pipeline file."""

    def __init__(self, file: Path, found: list[tuple[int, str]]) -> None:
        self.found = sorted(set(found))
        said = [f"{file}:{line}: {message}" for line, message in self.found]
        count = "1 thing is" if len(said) == 1 else f"{len(said)} things are"
        super().__init__("\n".join([f"{count} wrong with {file}", *said]))


@dataclasses.dataclass(frozen=True)
class Source:
    """Where rows come from: files, a table, or any format that Spark knows."""

    format: str
    path: str | None
    schema: str | None
    options: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Sink:
    """Where rows go."""

    format: str
    path: str | None
    options: Mapping[str, str]


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


class _Reader:
    """Reads a document and notes what is wrong, going on as far as it can."""

    def __init__(self, file: Path, where: dict[Place, int], document: dict[str, Any]) -> None:
        self.file, self.where, self.document = file, where, document
        self.found: list[tuple[int, str]] = []

    def wrong(self, place: Place, message: str) -> None:
        self.found.append((line_of(self.where, place), message))

    def pipeline(self) -> Pipeline:
        top = self.document
        self.unknown((), top, _TOP, "a pipeline")
        source = self.source(self.table(("source",), top, needed="[source] with format and path: where the rows come from"))
        self.text(("time",), top, needed='time = "the column that says when"')
        name = self.text(("name",), top) or self.file.stem
        checkpoint = self.text(("checkpoint",), top, needed='checkpoint = "a folder", where the stream notes how far it is')
        every = self.trigger(top)
        sections = self.sections(top)
        spark = self.options(("spark",), top)
        self.names(sections)
        if self.found:
            raise PipelineErrors(self.file, self.found)
        assert source is not None
        assert checkpoint is not None
        return Pipeline(self.file, name, source, tuple(sections), self.resolved(checkpoint), every, spark, self.where)

    # --- values

    def unknown(self, place: Place, table: Mapping[str, Any], allowed: tuple[str, ...], what: str) -> None:
        for key in table:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, 1)
                fix = f"Did you mean {near[0]}?" if near else f"It takes {', '.join(allowed)}."
                self.wrong((*place, key), f"{key!r} is not a key of {what}. {fix}")

    def table(self, place: Place, parent: Mapping[str, Any], needed: str | None = None) -> Mapping[str, Any] | None:
        value = parent.get(str(place[-1]))
        if value is None:
            if needed:
                self.wrong(place[:-1], f"there is no {needed}. Add it.")
            return None
        if not isinstance(value, dict):
            self.wrong(place, f"{place[-1]} is {value!r}, not a table. Write [{place[-1]}] on a line, and its keys below.")
            return None
        return value

    def text(self, place: Place, parent: Mapping[str, Any], needed: str | None = None) -> str | None:
        value = parent.get(str(place[-1]))
        if value is None and needed:
            self.wrong(place[:-1], f"there is no {place[-1]}. Add {needed}.")
        if value is not None and (not isinstance(value, str) or not value.strip()):
            self.wrong(place, f'{place[-1]} is {value!r}. Write it as text: {place[-1]} = "...".')
            return None
        return value

    def length(self, place: Place, parent: Mapping[str, Any], needed: str | None = None) -> str | None:
        value = parent.get(str(place[-1]))
        if value is None:
            if needed:
                self.wrong(place[:-1], f"there is no {place[-1]}. Add {needed}.")
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.wrong(place, f'{place[-1]} = {value} has no unit. Write it as text with one: {place[-1]} = "{value}s".')
            return None
        try:
            duration(value)
        except (TypeError, ValueError, OverflowError) as error:
            self.wrong(place, f"{place[-1]}: {error}")
            return None
        return str(value)

    def options(self, place: Place, parent: Mapping[str, Any]) -> dict[str, str]:
        table = self.table(place, parent) or {}
        found = {}
        for key, value in _flat(table):
            if isinstance(value, list | dict):
                self.wrong((*place, key), f"the option {key} is {value!r}. Options are text, numbers, true or false.")
            found[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return found

    def resolved(self, path: str) -> str:
        """A path as Spark takes it: one without a scheme is relative to the file."""
        return path if "://" in path else str((self.file.parent / path).resolve())

    # --- parts

    def source(self, table: Mapping[str, Any] | None) -> Source | None:
        if table is None:
            return None
        self.unknown(("source",), table, _KEYS["source"], "[source]")
        schema = self.text(("source", "schema"), table)
        options = self.options(("source", "options"), table)
        if "table" in table:
            name = self.text(("source", "table"), table)
            for other in ("format", "path", "schema"):
                if other in table:
                    self.wrong(("source", other), f"table and {other} do not go together: a table knows its own. Drop {other}.")
            return Source("table", name, None, options)
        kind = self.text(
            ("source", "format"), table, needed='format = "parquet" (or csv, json, or any that Spark knows), or table = "name"'
        )
        path = self.text(("source", "path"), table)
        if kind in FILES and path is None and "path" not in table:
            self.wrong(("source",), f'a source of {kind} files has no path. Add path = "folder".')
        if kind in ("csv", "json") and schema is None and "schema" not in table:
            self.wrong(
                ("source", "format"),
                f"a stream of {kind} files needs a schema: it can't be guessed from files still to come. "
                'Add schema = "at timestamp, zone string, fare double".',
            )
        full = None if path is None else self.resolved(path)
        if kind in FILES and full is not None and "://" not in full and not _exists(full):
            self.wrong(("source", "path"), f"{full} does not exist. Give the folder with the files, or make it.")
        return Source(kind or "", full, schema, options)

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
        if kind != "tiles" and ("max_ahead" in table or "max_ahead" in top):
            own = "max_ahead" in table
            asked["max_ahead"] = self.length((*place, "max_ahead") if own else ("max_ahead",), table if own else top)
        getattr(self, kind)(place, table, asked)
        sink = None if kind == "tiles" else self.sink(place, table, what)
        store = self.text((*place, "path"), table, needed='path = "a folder" for the tile store') if kind == "tiles" else None
        retention = self.length((*place, "retention"), table) if kind == "tiles" else None
        return Section(kind, name, asked, sink, self.resolved(store) if store else None, retention, place)

    def windows(self, place: Place, table: Mapping[str, Any], asked: dict[str, Any]) -> None:
        for key in ("range", "slide", "session", "offset"):
            asked[key] = self.length((*place, key), table)
        if "range" not in table and "session" not in table:
            self.wrong(place, 'these windows have no range. Add range = "1 hour", with slide = "1 minute"; or session = "30 minutes".')
        if "session" in table and (other := next((k for k in ("range", "slide", "offset") if k in table), None)):
            self.wrong((*place, other), f"session and {other} do not go together: a session is as long as its rows make it. Drop one.")
        if asked["range"] and asked["slide"] and duration(asked["slide"]) > duration(asked["range"]):
            self.wrong(
                (*place, "slide"),
                f"slide = {asked['slide']!r} is longer than range = {asked['range']!r}: rows in between would count nowhere.",
            )
        self.one_of((*place, "emit"), table, asked, ("final", "update"))

    def rolling(self, place: Place, table: Mapping[str, Any], asked: dict[str, Any]) -> None:
        given = table.get("lookbacks")
        if not isinstance(given, list) or not given:
            self.wrong(
                (*place, "lookbacks"), 'lookbacks must be a list with at least one entry: lookbacks = ["1h", "24h", "100rows", "all"].'
            )
            given = []
        for value in given:
            if value != "all" and not (isinstance(value, str) and re.fullmatch(r"\s*[1-9]\d*\s*rows?\s*", value)):
                self.length((*place, "lookbacks"), {"lookbacks": value})
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

    def one_of(self, place: Place, table: Mapping[str, Any], asked: dict[str, Any], allowed: tuple[str, ...]) -> None:
        key = str(place[-1])
        if key in table and table[key] not in allowed:
            self.wrong(place, f"{key} = {table[key]!r} is not known. Use one of {', '.join(allowed)}.")
        elif key in table:
            asked[key] = table[key]

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

    def sink(self, place: Place, table: Mapping[str, Any], what: str) -> Sink | None:
        where = (*place, "sink")
        given = self.table(where, table)
        if "sink" not in table:
            self.wrong(place, f'{what} has no sink. Add sink = {{ format = "parquet", path = "out/" }}, or {{ format = "console" }}.')
        if given is None:
            return None
        self.unknown(where, given, _KEYS["sink"], "a sink")
        kind = self.text((*where, "format"), given, needed='format = "parquet" (or csv, console, or any that Spark knows)')
        path = self.text((*where, "path"), given)
        if kind in FILES and path is None:
            self.wrong(where, f'a sink of {kind} files has no path. Add path = "folder".')
        return Sink(kind or "", self.resolved(path) if path else None, self.options((*where, "options"), given))

    def names(self, sections: list[Section]) -> None:
        seen: dict[str, Section] = {}
        for section in sections:
            if (other := seen.setdefault(section.name, section)) is not section:
                first = line_of(self.where, other.place)
                self.wrong((*section.place, "name"), f"the name {section.name!r} is taken by line {first}. Give this one another name.")


def _flat(table: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Options with dots in their names, which TOML reads as tables of tables."""
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        found += _flat(value, f"{before}{key}.") if isinstance(value, dict) else [(before + key, value)]
    return found


def _exists(path: str) -> bool:
    import glob

    return bool(glob.glob(path))
