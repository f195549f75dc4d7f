"""What is asked of a keyed stream: which windows, of which columns, for which keys.

A ``Query`` is plain, immutable data: it travels to Spark's workers, and its fingerprint is in every stored state.
"""

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING, Any

from sash import codec
from sash.errors import DefinitionError
from sash.keyed.types import result_type

if TYPE_CHECKING:
    import pyarrow as pa
    from sash.agg import Aggregation

__all__ = ["Commit", "Packed", "Query", "Rolling", "Rows", "Windows"]

CLOSED = ("right", "left", "both", "neither")
LATE = ("drop", "accept", "flag")


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

    def first_end(self, time: int) -> int:
        """The end of the first window that a row of this time is in."""
        return (time - self.offset - self.range) // self.slide * self.slide + self.slide + self.offset + self.range

    def last_end(self, time: int) -> int:
        """The end of the last window that a row of this time is in."""
        return (time - self.offset) // self.slide * self.slide + self.offset + self.range


@dataclass(frozen=True)
class Rows:
    """A look-back of the last n rows instead of a period."""

    n: int


@dataclass(frozen=True)
class Rolling:
    """Look-backs of every row, each (label, microseconds); ``Rows(n)`` counts rows, ``None`` is the whole past.

    Closed right is (t - p, t], left [t - p, t), both [t - p, t], neither (t - p, t); a look-back of n rows is the same
    interval of row numbers, so that right is n rows with the row itself.
    """

    lookbacks: tuple[tuple[str, int | Rows | None], ...]
    closed: str = "right"

    def __post_init__(self) -> None:
        if self.closed not in CLOSED:
            raise DefinitionError(f"closed={self.closed!r} is not one of {', '.join(CLOSED)}.")
        if not self.lookbacks:
            raise DefinitionError("rolling needs at least one look-back, e.g. '1h'.")
        for label, period in self.lookbacks:
            size = period.n if isinstance(period, Rows) else period
            if size is not None and size <= 0:
                raise DefinitionError(f"the look-back {label!r} must be longer than 0, not {size}.")

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


@dataclass(frozen=True)
class Query:
    """Aggregations of a keyed stream over windows or look-backs. Times are int64 microseconds.

    ``schema`` describes the input batches: key columns, the time column, the aggregated columns; for ``rolling`` every
    column of the row. ``late`` says what becomes of a row with time <= the watermark of the last advance.
    """

    schema: "pa.Schema"
    time: str
    keys: tuple[str, ...]
    aggs: "tuple[tuple[str, Aggregation], ...]"
    windows: Windows | None = None
    rolling: Rolling | None = None
    late: str = "drop"
    tie: str | None = None

    def __post_init__(self) -> None:
        if (self.windows is None) == (self.rolling is None):
            raise DefinitionError("a query has either windows or rolling look-backs.")
        if self.late not in LATE:
            raise DefinitionError(f"late={self.late!r} is not one of {', '.join(LATE)}.")
        if self.late == "flag" and self.windows:
            raise DefinitionError("late='flag' marks rows, and windows give none: use it with rolling, or late='drop'.")
        for name in (self.time, *self.keys, *self.value_columns, *((self.tie,) if self.tie else ())):
            if name not in self.schema.names:
                raise DefinitionError(f"there is no column {name!r}; the columns are {', '.join(self.schema.names)}.")
        names = self.output_schema().names
        if twice := {name for name in names if names.count(name) > 1}:
            raise DefinitionError(f"the output would have two columns named {', '.join(sorted(twice))}.")

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns that aggregations read, each once."""
        read = (name for _, a in self.aggs for name in (a.column, a.where) if isinstance(name, str))
        return tuple(dict.fromkeys(read))

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

        types = [result_type(a, None if a.column is None else self.schema.field(a.column).type) for _, a in self.aggs]
        if self.rolling is None:
            time_type = self.schema.field(self.time).type
            fields = [self.schema.field(name) for name in self.keys]
            fields += [pa.field("window_start", time_type), pa.field("window_end", time_type)]
            fields += [pa.field(name, type_) for (name, _), type_ in zip(self.aggs, types, strict=True)]
            return pa.schema(fields)
        fields = [*self.schema]
        each = [type_ for type_ in types for _ in self.rolling.lookbacks]
        fields += [pa.field(name, type_) for name, type_ in zip(self.feature_names, each, strict=True)]
        if self.late == "flag":
            fields.append(pa.field("_late", pa.bool_()))
        return pa.schema(fields)

    @cached_property
    def definition(self) -> dict[str, Any]:
        """What stored state depends on, as plain data with a name for every part."""
        parts: dict[str, Any] = {f"column {f.name}": str(f.type) for f in self.schema}
        parts |= {"time": self.time, "key": self.keys, "late": self.late, "tie": self.tie}
        parts |= {f"aggregation {name}": _facts(a) for name, a in self.aggs}
        parts["aggregations"] = tuple(name for name, _ in self.aggs)
        if self.windows is not None:
            parts |= {"range": self.windows.range, "slide": self.windows.slide, "offset": self.windows.offset}
        if self.rolling is not None:
            plain = tuple((label, ("rows", p.n) if isinstance(p, Rows) else p) for label, p in self.rolling.lookbacks)
            parts |= {"look-backs": plain, "closed": self.rolling.closed}
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
        changed = [name for name in {**stored, **mine} if stored.get(name) != mine.get(name)]
        if not changed:
            return
        said = "; ".join(f"{name} was {stored.get(name, 'absent')}, is {mine.get(name, 'absent')}" for name in changed)
        raise ValueError(f"this state was stored with another definition: {said}. Start a new checkpoint, or restore the definition.")

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def _facts(aggregation: "Aggregation") -> Any:
    facts = (aggregation.name, aggregation.column, repr(aggregation.where), repr(getattr(aggregation, "params", ())))
    print_ = getattr(aggregation, "fingerprint", None)
    return (*facts, print_() if callable(print_) else print_) if print_ is not None else facts
