"""What is asked of a keyed stream: which windows, of which columns, for which keys.

A ``Query`` is plain, immutable data: it travels to Spark's workers, and its fingerprint is in every stored state.
"""

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING, Any, ClassVar

from sash import codec
from sash.engine.types import is_integer, key_width, result_type
from sash.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from sash.agg import Aggregation
    from sash.engine.layout import Layout

__all__ = ["Commit", "Packed", "Query", "Rolling", "Rows", "Sessions", "Windows"]

FOREVER = 2**63 - 1  # the watermark that flushes everything
FAR = 2**62  # panes and times beyond any real one, with room to add to

CLOSED = ("right", "left", "both", "neither")
LATE = ("drop", "accept", "flag")
EMIT = ("final", "update", "event", "changed")


@dataclass(frozen=True)
class Windows:
    """Windows [start, end) of a range, one every slide; starts are multiples of slide plus offset. Microseconds."""

    range: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise DefinitionError(f"a window needs a range and a slide above 0, not {self.range} and {self.slide}.")
        if self.slide > self.range:
            raise DefinitionError(f"the slide ({self.slide}) is larger than the range ({self.range}): rows would fall between windows.")

    @property
    def grain(self) -> int:
        """The width of a pane: every window is a whole number of panes."""
        return gcd(self.range, self.slide)

    # The same in panes, counted from the offset: what the engine stores.

    @property
    def in_panes(self) -> tuple[int, int]:
        """Range and slide."""
        return self.range // self.grain, self.slide // self.grain

    def last_pane_end(self, watermark: int | None) -> int:
        """The last pane end at or before a watermark."""
        return -FAR if watermark is None else FAR if watermark >= FOREVER else (watermark - self.offset) // self.grain

    def oldest_pane(self, watermark: int | None) -> int:
        """The first pane that some window after this watermark holds."""
        slide = self.slide // self.grain
        return ((self.last_pane_end(watermark) - self.range // self.grain) // slide + 1) * slide

    def closed_end(self, watermark: int | None) -> int:
        """The end, in panes, of the last window that this watermark closed: older panes missed a window."""
        slide, range_ = self.slide // self.grain, self.range // self.grain
        return (self.last_pane_end(watermark) - range_) // slide * slide + range_


@dataclass(frozen=True)
class Sessions:
    """Windows of rows that follow each other within a gap: [first, last + gap). Microseconds; a pane is a microsecond."""

    gap: int
    grain: ClassVar[int] = 1
    offset: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.gap <= 0:
            raise DefinitionError(f"a session needs a gap above 0, not {self.gap}.")

    def oldest_pane(self, watermark: int | None) -> int:
        """The first time whose session, if it were alone, is open at this watermark."""
        return -FAR if watermark is None else FAR if watermark >= FOREVER else watermark - self.gap + 1

    def closed_end(self, watermark: int | None) -> int:
        """Rows before this are late."""
        return self.oldest_pane(watermark)


@dataclass(frozen=True)
class Rows:
    """A look-back of the last n rows instead of a period."""

    n: int


@dataclass(frozen=True)
class Rolling:
    """Look-backs of every row, each (label, microseconds); ``Rows(n)`` counts rows, ``None`` is the whole past.

    Closed right is (t - p, t], left [t - p, t), both [t - p, t], neither (t - p, t); a look-back of n rows is the same
    interval of row numbers, so that right is n rows with the row itself. A delay shifts all of them into the past: right is
    then (t - delay - p, t - delay].
    """

    lookbacks: tuple[tuple[str, int | Rows | None], ...]
    closed: str = "right"
    delay: int = 0

    def __post_init__(self) -> None:
        if self.closed not in CLOSED:
            raise DefinitionError(f"closed={self.closed!r} is not one of {', '.join(CLOSED)}.")
        if not self.lookbacks:
            raise DefinitionError("rolling needs at least one look-back, e.g. '1h'.")
        for label, period in self.lookbacks:
            size = period.n if isinstance(period, Rows) else period
            if size is not None and size <= 0:
                raise DefinitionError(f"the look-back {label!r} must be longer than 0, not {size}.")
        if self.delay < 0:
            raise DefinitionError(f"the delay is {self.delay}: it shifts look-backs into the past and can't be negative.")
        if self.delay and self.kept_rows:
            raise DefinitionError("a delay shifts look-backs in time, and one of them counts rows. Leave out the delay, or that look-back.")

    def oldest_time(self, watermark: int | None) -> int:
        """The first time that some look-back of a row after this watermark reaches."""
        periods = [p + self.delay for _, p in self.lookbacks if isinstance(p, int)]
        if self.delay and self.whole_past:
            periods.append(self.delay)  # what is younger is not yet in the whole past
        if not periods or watermark is None or watermark >= FOREVER:
            return FOREVER if watermark is not None else -FAR
        return watermark + 1 - max(periods) + (not self.takes_left)

    @property
    def kept_rows(self) -> int:
        """How many rows per key are kept whatever their age."""
        return max((p.n for _, p in self.lookbacks if isinstance(p, Rows)), default=0)

    @property
    def whole_past(self) -> bool:
        """Whether some look-back is the whole past."""
        return any(p is None for _, p in self.lookbacks)

    @property
    def takes_left(self) -> bool:
        """Whether a row exactly one period back counts."""
        return self.closed in ("left", "both")

    @property
    def takes_right(self) -> bool:
        """Whether the row itself, and those of equal time, count."""
        return self.closed in ("right", "both")


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
    def feature_names(self) -> list[str]:
        """The names of the result columns, aggregation by aggregation and, in it, look-back by look-back."""
        if self.rolling is None:
            return [name for name, _ in self.aggs]
        return [f"{name}_{label}" for name, _ in self.aggs for label, _ in self.rolling.lookbacks]

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
            fields += [pa.field("window_start", time_type), pa.field("window_end", time_type)]
            fields += [pa.field(name, type_) for (name, _), type_ in zip(self.aggs, types, strict=True)]
            return pa.schema([*fields, pa.field("_late", pa.bool_())] if self.late == "flag" else fields)
        fields = [*self.schema]
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
        if self.rolling is not None:
            plain = tuple((label, ("rows", p.n) if isinstance(p, Rows) else p) for label, p in self.rolling.lookbacks)
            parts |= {"look-backs": plain, "closed": self.rolling.closed, "delay": self.rolling.delay}
        return parts

    def fingerprint(self) -> bytes:
        """16 bytes that differ when anything that the state depends on differs."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> bytes:
        return codec.fingerprint(self.definition)

    def check_definition(self, stored: dict[str, Any]) -> None:
        """Raise a ValueError that names what differs from the definition a state was stored with."""
        mine = self.definition
        changed = [_difference(name, stored.get(name), mine.get(name)) for name in {**stored, **mine} if stored.get(name) != mine.get(name)]
        if changed:
            raise ValueError(
                f"this state was stored with another definition: {'; '.join(changed)}. Start a new checkpoint, or restore the definition."
            )

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


def _columns(aggregation: "Aggregation") -> "Iterator[str]":
    for _, part in aggregation.parts:
        yield from _columns(part)
    yield from (column for _, column in aggregation.columns())


def _difference(name: str, stored: Any, mine: Any) -> str:
    if name.startswith("aggregation ") and stored is not None and mine is not None:
        if stored[0] == mine[0]:
            return f"{name} has other code or parameters than it had"
        stored, mine = stored[0], mine[0]
    return f"{name} was {'absent' if stored is None else stored}, is {'absent' if mine is None else mine}"
