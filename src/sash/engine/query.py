"""What is asked of a keyed stream: which windows, of which columns, for which keys.

A ``Query`` is plain, immutable data: it travels to Spark's workers, and its fingerprint is in every stored state.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sash import codec
from sash.engine.shapes import CLOSED, FAR, FOREVER, CalendarWindows, Hops, Lookback, Rolling, Rows, Sessions, Windows
from sash.engine.types import is_integer, key_width, result_type
from sash.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from sash.agg import Aggregation
    from sash.engine.layout import Layout

__all__ = [
    "CLOSED",
    "EMIT",
    "FAR",
    "FOREVER",
    "LATE",
    "MARK",
    "CalendarWindows",
    "Commit",
    "Hops",
    "Labels",
    "Packed",
    "Query",
    "Rolling",
    "Rows",
    "Sessions",
    "Windows",
    "sees_rows",
]

LATE = ("drop", "accept", "flag")
EMIT = ("final", "update", "event", "changed")


@dataclass(frozen=True)
class Packed:
    """What the rows of one batch give to one bucket."""

    bucket: int
    max_time: int | None
    blob: bytes
    rows: int
    null_times: int


@dataclass(frozen=True)
class Commit:
    """What changed in a bucket's stored state: the new meta value, blobs to write, blobs to remove."""

    meta: bytes
    put: dict[int, bytes]
    remove: list[int]
    version: bytes = b""  # of this commit: no other has it


MARK = "__sash_label"  # the column that tells labels among rows


@dataclass(frozen=True)
class Labels:
    """The rows of another table, at whose times look-backs are asked for; they travel among the rows, with their mark true.

    A label's time is in the rows' time column, its keys in theirs; its other columns are columns of the schema too, null in rows.
    """

    columns: tuple[str, ...]  # as they come out
    time: str  # what their time column is called


@dataclass(frozen=True)
class Query:
    """Aggregations of a keyed stream over windows or look-backs. Times are int64 microseconds.

    ``schema`` describes the input batches: key columns, the time column, the aggregated columns; for ``rolling`` every
    column of the row. ``late`` says what becomes of a row with time <= the watermark of the last advance; in windows it
    counts in the open ones in any case, and "flag" tells the closed ones that missed it.
    """

    schema: "pa.Schema"
    time: str
    keys: tuple[str, ...]
    aggs: "tuple[tuple[str, Aggregation], ...]"
    windows: Windows | Sessions | None = None
    rolling: Rolling | None = None
    late: str = "drop"
    tie: str | None = None
    emit: str = "final"
    labels: Labels | None = None
    since: int | None = None  # where history ends and the stream begins: all before is told, and comes from history alone

    def __post_init__(self) -> None:
        if (self.windows is None) == (self.rolling is None):
            raise DefinitionError("a query has either windows or rolling look-backs.")
        if self.late not in LATE:
            raise DefinitionError(f"late={self.late!r} is not one of {', '.join(LATE)}.")
        if self.emit not in EMIT:
            raise DefinitionError(f"emit={self.emit!r} is not one of {', '.join(EMIT)}.")
        if self.emit in (("event", "changed") if self.windows else ("update",)):
            raise DefinitionError(f"emit={self.emit!r} is for {'look-backs' if self.windows else 'windows'}.")
        if self.emit == "update" and isinstance(self.windows, Sessions):
            raise DefinitionError("sessions grow together as rows come, so only emit='final' has a meaning for them.")
        if self.late == "flag" and isinstance(self.windows, Sessions):
            raise DefinitionError("late='flag' tells which windows missed rows: a session that never was has no bounds. Use late='drop'.")
        for name in (self.time, *self.keys, *self.value_columns, *((self.tie,) if self.tie else ())):
            if name not in self.schema.names:
                raise DefinitionError(f"there is no column {name!r}; the columns are {', '.join(self.schema.names)}.")
        if not is_integer(self.schema.field(self.time).type):
            raise DefinitionError(f"the time column {self.time!r} is {self.schema.field(self.time).type}. Cast it to a timestamp.")
        for name in self.keys:
            key_width(self.schema.field(name))
        names = self.output_schema().names
        if twice := {name for name in names if names.count(name) > 1}:
            raise DefinitionError(f"the output would have two columns named {', '.join(sorted(twice))}.")

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns that aggregations read by name, each once."""
        return tuple(dict.fromkeys(name for _, a in self.aggs for name in _columns(a)))

    @property
    def whole_rows(self) -> bool:
        """Whether some aggregation looks at rows as a whole."""
        return any(sees_rows(a) for _, a in self.aggs)

    @property
    def feature_names(self) -> list[str]:
        """The names of the result columns, aggregation by aggregation and, in it, look-back by look-back."""
        labels = [label for label, _ in (self._ranges if self.rolling is None else self.rolling.lookbacks)]
        return [f"{name}_{label}" for name, _ in self.aggs for label in labels] if labels else [name for name, _ in self.aggs]

    @property
    def _ranges(self) -> tuple[tuple[str, int], ...]:
        return self.windows.ranges if isinstance(self.windows, Windows) else ()

    @property
    def begins(self) -> int | None:
        """The watermark that a stream with history begins at: rows before ``since`` are final, and windows that end by it closed.

        A session that ends there is not closed: a row at that very time still joins it.
        """
        return self.since if self.since is None or isinstance(self.windows, Windows) else self.since - 1

    def _label_field(self, name: str) -> "pa.Field":
        assert self.labels is not None
        return self.schema.field(self.time).with_name(name) if name == self.labels.time else self.schema.field(name)

    def output_schema(self) -> "pa.Schema":
        """windows: keys, window_start, window_end, aggregations; rolling: the input row and {name}_{label}."""
        return self._output_schema

    @cached_property
    def _output_schema(self) -> "pa.Schema":
        import pyarrow as pa

        types = [result_type(a, self.schema, self.time) for _, a in self.aggs]
        if self.rolling is None:
            time_type = self.schema.field(self.time).type
            fields = [self.schema.field(name) for name in self.keys]
            bounds = ("window_end",) if self._ranges else ("window_start", "window_end")
            fields += [pa.field(name, time_type) for name in bounds]
            each = [type_ for type_ in types for _ in self._ranges or ("",)]
            fields += [pa.field(name, type_) for name, type_ in zip(self.feature_names, each, strict=True)]
            return pa.schema([*fields, pa.field("_late", pa.bool_())] if self.late == "flag" else fields)
        fields = [*self.schema] if self.labels is None else [self._label_field(name) for name in self.labels.columns]
        if self.emit == "changed":
            fields = [self.schema.field(name) for name in (*self.keys, self.time)]
        each = [type_ for type_ in types for _ in self.rolling.lookbacks]
        fields += [pa.field(name, type_) for name, type_ in zip(self.feature_names, each, strict=True)]
        if self.late == "flag" and self.emit != "changed":
            fields.append(pa.field("_late", pa.bool_()))
        return pa.schema(fields)

    @cached_property
    def definition(self) -> dict[str, Any]:
        """What stored state depends on, as plain data with a name for every part."""
        parts: dict[str, Any] = {f"column {f.name}": str(f.type) for f in self.schema}
        parts |= {"time": self.time, "key": self.keys, "late": self.late, "tie": self.tie}
        parts |= {f"aggregation {name}": (repr(a), codec.fingerprint(a.facts())) for name, a in self.aggs}
        parts["aggregations"] = tuple(name for name, _ in self.aggs)
        parts["emit"] = self.emit
        if isinstance(self.windows, Sessions):
            parts["session"] = self.windows.gap
        elif self.windows is not None:
            parts |= {"range": self.windows.range, "slide": self.windows.slide, "offset": self.windows.offset}
            if self.windows.ranges:
                parts["ranges"] = self.windows.ranges
            if self.windows.empty_once:
                parts["empty"] = "once"
            if isinstance(self.windows, CalendarWindows):
                parts |= {"calendar": self.windows.kind, "tz": self.windows.tz}
        if self.rolling is not None:
            plain = tuple((label, _plain(p)) for label, p in self.rolling.lookbacks)
            parts |= {"look-backs": plain, "closed": self.rolling.closed, "delay": self.rolling.delay}
        if self.labels is not None:
            parts["at"] = (self.labels.columns, self.labels.time)
        if self.since is not None:
            parts["history_until"] = self.since
        return parts

    def fingerprint(self) -> bytes:
        """16 bytes that differ when anything that the state depends on differs."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> bytes:
        return codec.fingerprint(self.definition)

    def check_names(self) -> None:
        """Raise a ValueError if an aggregation can't be stored because it has no name."""
        for _, aggregation in self.aggs:
            aggregation.fingerprint()

    @cached_property
    def layout(self) -> "Layout":
        """How this query runs."""
        from sash.engine.layout import Layout

        return Layout(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def _plain(period: Lookback) -> Any:
    if isinstance(period, Rows):
        return ("rows", period.n)
    return ("hops", period.period, period.hop) if isinstance(period, Hops) else period


def sees_rows(aggregation: "Aggregation") -> bool:
    """Whether an aggregation, or a part of it, looks at rows as a whole, not at columns by name."""
    if aggregation.parts:
        return any(sees_rows(part) for _, part in aggregation.parts)
    return callable(aggregation.where) or (aggregation.column is None and aggregation.callables)


def _columns(aggregation: "Aggregation") -> "Iterator[str]":
    for _, part in aggregation.parts:
        yield from _columns(part)
    yield from (column for _, column in aggregation.columns())
