"""The ends of a pipeline, as its file says them: where rows come from, and where they go."""

from __future__ import annotations

import dataclasses
import glob
import json
from collections.abc import Mapping
from typing import Any, Final

from sash.pipeline.lines import Path as Place
from sash.pipeline.values import Values
from sash.time import timestamp

__all__ = ["FILES", "Sink", "Source", "read_history", "read_sink", "read_source"]

FILES: Final = ("parquet", "csv", "json", "orc", "text")
LAKES: Final = ("delta", "iceberg")
VALUES: Final = ("json", "avro", "csv")

_SOURCE: Final = ("format", "path", "table", "schema", "options", "value", "value_schema", "value_options", "select", "where")
_SINK: Final = ("format", "path", "table", "mode", "options", "select", "where", "merge", "batch_path")
_SERVERS: Final = "kafka.bootstrap.servers"
_TOPICS: Final = ("subscribe", "subscribePattern", "assign")


@dataclasses.dataclass(frozen=True)
class Value:
    """How the column `value` is taken apart: its format, its schema, and the options of Spark's parser."""

    format: str
    schema: str
    options: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Source:
    """Where rows come from, and what is made of them before anything else: files, a table, or any format that Spark knows."""

    format: str
    path: str | None
    schema: str | None
    options: Mapping[str, str]
    value: Value | None = None
    where: str | None = None
    select: tuple[str, ...] = ()
    dead_letters: Sink | None = None
    place: Place = dataclasses.field(default=("source",), compare=False)


@dataclasses.dataclass(frozen=True)
class Sink:
    """Where rows go, and what is made of them before."""

    format: str
    path: str | None
    options: Mapping[str, str]
    where: str | None = None
    select: tuple[str, ...] = ()
    table: str | None = None  # instead of a path
    batch_path: str | None = None  # where --batch writes, if elsewhere
    merge: tuple[str, ...] = ()  # rows of a table that agree in these columns are updated
    place: Place = dataclasses.field(default=(), compare=False)


def read_source(values: Values, table: Mapping[str, Any] | None) -> Source | None:
    """Read [source]."""
    if table is None:
        return None
    values.unknown(("source",), table, (*_SOURCE, "dead_letters"), "[source]")
    found = _read_from(values, ("source",), table, streaming=True)
    letters = None
    if "dead_letters" in table:
        letters = read_sink(values, ("source", "dead_letters"), table, "dead_letters")
        if "value" not in table:
            values.wrong(
                ("source", "dead_letters"),
                'dead_letters take what can\'t be parsed, and nothing is. Add value = "json" with value_schema, or drop dead_letters.',
            )
    return dataclasses.replace(found, dead_letters=letters)


def read_history(values: Values, table: Mapping[str, Any] | None) -> tuple[Source, str] | None:
    """Read [history]: a source of what happened before the stream, and up to when it counts."""
    if table is None:
        return None
    values.unknown(("history",), table, (*_SOURCE, "until"), "[history]")
    found = _read_from(values, ("history",), table, streaming=False)
    until = table.get("until")
    if until is None:
        values.wrong(
            ("history",), 'there is no until. Add until = "2024-03-01": rows before it count from here, later ones from the source.'
        )
        return None
    try:
        timestamp(str(until))
    except ValueError as error:
        values.wrong(("history", "until"), f"until: {error}")
    return found, str(until)


def _read_from(values: Values, place: Place, table: Mapping[str, Any], streaming: bool) -> Source:
    where = values.text((*place, "where"), table)
    select = values.texts((*place, "select"), table, '["at", "cents / 100 as fare"]')
    schema = values.text((*place, "schema"), table)
    options = values.options((*place, "options"), table)
    value = _value(values, place, table)
    if "table" in table:
        name = values.text((*place, "table"), table)
        for other in ("format", "path", "schema"):
            if other in table:
                values.wrong((*place, other), f"table and {other} do not go together: a table knows its own. Drop {other}.")
        return Source("table", name, None, options, value, where, select, place=place)
    kind = values.text((*place, "format"), table, needed='format = "parquet" (or csv, json, or any that Spark knows), or table = "name"')
    path = values.text((*place, "path"), table)
    if kind in FILES and path is None and "path" not in table:
        values.wrong(place, f'a source of {kind} files has no path. Add path = "folder".')
    if streaming and kind in ("csv", "json") and schema is None and "schema" not in table:
        values.wrong(
            (*place, "format"),
            f"a stream of {kind} files needs a schema: it can't be guessed from files still to come. "
            'Add schema = "at timestamp, zone string, fare double".',
        )
    if kind == "kafka":
        _check_kafka(values, place, options, _TOPICS, 'subscribe = "topic"', "read from")
    full = None if path is None else values.resolved(path)
    if kind in FILES and full is not None and "://" not in full and not glob.glob(full):
        values.wrong((*place, "path"), f"{full} does not exist. Give the folder with the files, or make it.")
    return Source(kind or "", full, schema, options, value, where, select, place=place)


def _check_kafka(values: Values, place: Place, options: Mapping[str, str], topics: tuple[str, ...], example: str, doing: str) -> None:
    known = {name.lower() for name in options}
    if _SERVERS not in known:
        values.wrong((*place, "options"), f'Kafka\'s servers are not given. Add options = {{ {_SERVERS} = "host:9092" }}.')
    if not any(topic.lower() in known for topic in topics):
        values.wrong((*place, "options"), f"the topic to {doing} is not given. Add options = {{ {example} }}.")


def _value(values: Values, place: Place, table: Mapping[str, Any]) -> Value | None:
    """Read how the column `value` is taken apart."""
    asked: dict[str, Any] = {}
    values.one_of((*place, "value"), table, asked, VALUES)
    schema = values.text((*place, "value_schema"), table)
    options = values.options((*place, "value_options"), table)
    if "value" not in table:
        for other in ("value_schema", "value_options"):
            if other in table:
                values.wrong((*place, other), f'{other} says how a value is taken apart, and its format is missing. Add value = "json".')
        return None
    if "value_schema" not in table:
        example = '"at timestamp, user struct<id: string>, cents long"' if table["value"] != "avro" else '\'{"type": "record", ...}\''
        values.wrong((*place, "value"), f"what is in the {table['value']} is not said. Add value_schema = {example}.")
    if asked.get("value") == "avro" and schema is not None and not _is_avro(schema):
        values.wrong(
            (*place, "value_schema"),
            "Avro is read by the schema that it was written with, as JSON. Write value_schema = "
            '\'{"type": "record", "name": "r", "fields": [{"name": "cents", "type": "long"}]}\'.',
        )
    return None if schema is None or "value" not in asked else Value(asked["value"], schema, options)


def _is_avro(schema: str) -> bool:
    try:
        return isinstance(json.loads(schema), dict)
    except ValueError:
        return False


def read_sink(values: Values, where: Place, parent: Mapping[str, Any], what: str, mode: str = "append") -> Sink | None:
    """Read a sink; `mode` is how its section tells results, which a mode that is given must agree with."""
    given = values.table(where, parent)
    if where[-1] not in parent:
        values.wrong(where[:-1], f'{what} has no sink. Add sink = {{ format = "parquet", path = "out/" }}, or {{ format = "console" }}.')
    if given is None:
        return None
    values.unknown(where, given, _SINK, "a sink")
    kind = values.text((*where, "format"), given, needed='format = "parquet" (or csv, console, or any that Spark knows)')
    path = values.text((*where, "path"), given)
    name = values.text((*where, "table"), given)
    options = values.options((*where, "options"), given)
    if kind in FILES and path is None and "path" not in given:
        values.wrong(where, f'a sink of {kind} files has no path. Add path = "folder".')
    if kind in FILES and name is not None:
        values.wrong((*where, "table"), f'a sink of {kind} files has a path, not a table. Write path = "folder".')
    if kind in LAKES and path is None and name is None and not {"path", "table"} & set(given):
        values.wrong(where, f'a sink of format {kind} has neither path nor table. Add path = "folder", or table = "catalog.name".')
    if kind == "kafka":
        _check_kafka(values, where, options, ("topic",), 'topic = "results"', "write to")
    if given.get("mode", mode) != mode:
        fix = "emit decides it, update for update and changed" if where[-1] == "sink" else "dead letters are appended"
        values.wrong((*where, "mode"), f"mode = {given['mode']!r} does not fit: here it is {mode}; {fix}. Drop mode.")
    batch_path = values.text((*where, "batch_path"), given)
    merge = values.texts((*where, "merge"), given, '["zone", "window_end"]')
    if merge and kind not in LAKES:
        values.wrong(
            (*where, "merge"), f"merge updates rows of a table, and {kind} files or topics have none. Use format delta or iceberg."
        )
    if kind in LAKES and mode == "update" and "merge" not in given:
        values.wrong(
            where,
            f"results that are told again need merge, which says what is updated: {kind} would hold each of them. "
            'Add merge = ["zone", "window_end"], or drop emit.',
        )
    return Sink(
        kind or "",
        values.resolved(path) if path else None,
        options,
        values.text((*where, "where"), given),
        values.texts((*where, "select"), given, '["zone", "window_end", "n"]'),
        name,
        values.resolved(batch_path) if batch_path else None,
        merge,
        where,
    )
