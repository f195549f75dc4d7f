"""The keyed engine in its plainest form: rows in a list, every result from scratch.

Slow and meant to be obviously right: the same interface as the native engine, and its oracle.
"""

import decimal
import zlib
from collections.abc import Iterator, Mapping
from functools import cmp_to_key
from typing import Any, NamedTuple

import pyarrow as pa

from sash import codec
from sash.engine.query import Commit, Packed, Query, Rows, Windows
from sash.engine.types import items_of, value_of

__all__ = ["Bucket", "Slicer", "Sweep"]

FOREVER = 2**63 - 1


class Row(NamedTuple):
    key: tuple[Any, ...]
    time: int
    row: dict[str, Any]  # as it came
    items: dict[str, Any]  # as aggregations take it


def canonical(value: Any) -> Any:
    """Equal keys become equal: all NaNs are one key, and -0.0 is 0.0, as in Spark."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, decimal.Decimal):
        return (value.normalize(),)
    return value


def rows_of(query: Query, batch: pa.RecordBatch) -> list[Row]:
    times = items_of(batch.column(query.time))
    names = batch.schema.names
    items = {name: items_of(batch.column(name)) for name in names}
    rows = batch.to_pylist()
    return [
        Row(tuple(canonical(row[name]) for name in query.keys), time, row, {name: items[name][i] for name in names})
        for i, (row, time) in enumerate(zip(rows, times, strict=True))
        if time is not None
    ]


def to_blob(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_blob(blob: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(blob).read_next_batch()


def compare(a: Any, b: Any) -> int:
    """Null first, NaN last, otherwise as values compare."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if a != a or b != b:
        return int(a != a) - int(b != b)
    return int(a > b) - int(a < b)


in_order = cmp_to_key(compare)


def result(query: Query, aggregation: Any, rows: list[Row]) -> Any:
    """One aggregation over these rows, ordered by time, then by the tie column, then by value."""
    if aggregation.parts:
        return {name: result(query, part, rows) for name, part in aggregation.parts}
    name, where = aggregation.column, aggregation.where
    if where is not None:
        rows = [r for r in rows if (r.items[where] if isinstance(where, str) else where(r.items))]
    if name is None and aggregation.name == "count":
        items = [(r.time, 1) for r in rows]
    else:
        picked = [(r.time, r.items[query.tie] if query.tie else None, r.items if name is None else r.items[name]) for r in rows]
        picked = [p for p in picked if p[2] is not None]
        picked.sort(key=lambda p: (p[0], in_order(p[1]), in_order(_sortable(p[2]))))
        items = [(time, value) for time, _, value in picked]
    if aggregation.name == "sum" and not items:
        return None
    partial = aggregation.zero
    for time, item in items:
        partial = aggregation.combine_function(partial, aggregation.lift_function(item, time))
    return aggregation.lower_function(partial)


def first_end(windows: Windows, time: int) -> int:
    """The end of the first window that a row of this time is in."""
    return (time - windows.offset - windows.range) // windows.slide * windows.slide + windows.slide + windows.offset + windows.range


def last_end(windows: Windows, time: int) -> int:
    """The end of the last window that a row of this time is in."""
    return (time - windows.offset) // windows.slide * windows.slide + windows.offset + windows.range


class Slicer:
    """Cuts batches into buckets of keys: the map side, without state."""

    def __init__(self, query: Query, buckets: int) -> None:
        self.query, self.buckets = query, buckets

    def pack(self, batch: pa.RecordBatch) -> list[Packed]:
        """One Packed per bucket that has rows."""
        rows = batch.to_pylist()
        times = items_of(batch.column(self.query.time))
        indices: dict[int, list[int]] = {bucket: [] for bucket in range(self.buckets)}
        for i, row in enumerate(rows):
            key = repr(tuple(canonical(row[name]) for name in self.query.keys)).encode()
            indices[zlib.crc32(key) % self.buckets].append(i)
        packed = []
        for bucket, chosen in indices.items():
            known = [times[i] for i in chosen if times[i] is not None]
            if not chosen:
                continue
            blob = to_blob(batch.take(pa.array([i for i in chosen if times[i] is not None], pa.int64()))) if known else b""
            packed.append(Packed(bucket, max(known, default=None), blob, len(chosen), len(chosen) - len(known)))
        return packed


class Bucket:
    """The state of one bucket of keys: the reduce side."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.rows: list[Row] = []  # windows: all that some open window holds; rolling: final rows that still count
        self.pending: list[Row] = []  # rolling: rows that are not final
        self.flagged: list[Row] = []
        self.watermark: int | None = None
        self.late = 0

    @classmethod
    def load(cls, query: Query, meta: bytes, blobs: Mapping[int, bytes]) -> "Bucket":
        """Read a stored state; ValueError naming what changed if it is another definition's."""
        stored = codec.decode(codec.unseal("bucket", None, meta))
        assert stored["definition"] == query.definition
        bucket = cls(query)
        bucket.watermark, bucket.late = stored["watermark"], stored["late"]
        for name, data in codec.decode(blobs[0]).items():
            setattr(bucket, name, rows_of(query, from_blob(data)))
        return bucket

    @property
    def keys(self) -> int:
        """How many keys are held."""
        return len({r.key for r in self.rows + self.pending})

    @property
    def slices(self) -> int:
        """How many slices are held."""
        return len(self.rows) + len(self.pending)

    def add(self, blob: bytes) -> None:
        """Add what a Slicer packed; rows are late against the watermark of the last advance."""
        for row in rows_of(self.query, from_blob(blob)) if blob else []:
            if (windows := self.query.windows) is not None:
                self.late += self.watermark is not None and first_end(windows, row.time) <= self.watermark
                if self.watermark is None or last_end(windows, row.time) > self.watermark:
                    self.rows.append(row)
            elif self.watermark is None or row.time > self.watermark:
                self.pending.append(row)
            else:
                self.late += 1
                {"drop": [], "accept": self.rows, "flag": self.flagged}[self.query.late].append(row)

    def advance(self, watermark: int | None) -> list[pa.RecordBatch]:
        """Give everything that is final at this watermark, and drop what can't matter any more; None: all of it."""
        new = FOREVER if watermark is None else watermark
        if self.watermark is not None:
            new = max(new, self.watermark)
        out = self._windows(new) if self.query.windows is not None else self._rolling(new)
        self.watermark = new
        return [out] if out.num_rows else []

    def _windows(self, new: int) -> pa.RecordBatch:
        query, windows = self.query, self.query.windows
        assert windows is not None
        members: dict[tuple[Any, int], list[Row]] = {}
        for row in self.rows:
            for end in range(first_end(windows, row.time), last_end(windows, row.time) + 1, windows.slide):
                if end <= new and (self.watermark is None or end > self.watermark):
                    members.setdefault((row.key, end), []).append(row)
        self.rows = [r for r in self.rows if last_end(windows, r.time) > new]
        schema = query.output_schema()
        columns = [pa.array([rows[0].row[name] for rows in members.values()], schema.field(name).type) for name in query.keys]
        ends = [end for _, end in members]
        columns += [value_of(schema.field("window_start").type, [end - windows.range for end in ends])]
        columns += [value_of(schema.field("window_end").type, ends)]
        columns += [value_of(schema.field(name).type, [result(query, a, rows) for rows in members.values()]) for name, a in query.aggs]
        return pa.record_batch(columns, schema=schema)

    def _rolling(self, new: int) -> pa.RecordBatch:
        query, rolling = self.query, self.query.rolling
        assert rolling is not None
        order = [query.time, *([query.tie] if query.tie else []), *query.value_columns, *query.schema.names]
        final = [r for r in self.pending if r.time <= new]
        self.pending = [r for r in self.pending if r.time > new]
        by_key: dict[Any, list[Row]] = {}
        for row in sorted(self.rows + final, key=lambda r: [in_order(_sortable(r.items[name])) for name in order]):
            by_key.setdefault(row.key, []).append(row)
        values: dict[int, list[Any]] = {}
        for rows in by_key.values():
            for i, row in enumerate(rows):
                frames = [self._frame(rows, i, period) for _, period in rolling.lookbacks]
                values[id(row)] = [result(query, a, frame) for _, a in query.aggs for frame in frames]
        self.rows = [row for rows in by_key.values() for i, row in enumerate(rows) if self._counts(rows, i, new)]
        flagged, self.flagged = self.flagged, []
        schema = query.output_schema()
        columns = [pa.array([r.row[name] for r in final + flagged], query.schema.field(name).type) for name in query.schema.names]
        for j, name in enumerate(query.feature_names):
            columns.append(value_of(schema.field(name).type, [values[id(r)][j] for r in final] + [None] * len(flagged)))
        if query.late == "flag":
            columns.append(pa.array([False] * len(final) + [True] * len(flagged)))
        return pa.record_batch(columns, schema=schema)

    def _frame(self, rows: list[Row], i: int, period: int | Rows | None) -> list[Row]:
        rolling = self.query.rolling
        assert rolling is not None
        if isinstance(period, Rows):
            return rows[max(0, i - period.n + (not rolling.takes_left)) : i + rolling.takes_right]
        t = rows[i].time
        back = [r for r in rows if r.time < t or (rolling.takes_right and r.time == t)]
        return back if period is None else [r for r in back if r.time > t - period or (rolling.takes_left and r.time == t - period)]

    def _counts(self, rows: list[Row], i: int, watermark: int) -> bool:
        rolling = self.query.rolling
        assert rolling is not None
        for _, period in rolling.lookbacks:
            if period is None:
                return True
            if isinstance(period, Rows):
                if i >= len(rows) - period.n:
                    return True
            elif rows[i].time > watermark + 1 - period - rolling.takes_left:
                return True
        return False

    def commit(self) -> Commit:
        """What to store, so that load() gives this state again."""
        stored = {"definition": self.query.definition, "watermark": self.watermark, "late": self.late}
        schema = self.query.schema
        lists = {
            name: to_blob(pa.RecordBatch.from_pylist([r.row for r in getattr(self, name)], schema))
            for name in ("rows", "pending", "flagged")
        }
        return Commit(codec.seal("bucket", self.query.fingerprint(), codec.encode(stored)), {0: codec.encode(lists)}, [])


class Sweep:
    """The whole of a batch, rows sorted by key and time over several batches."""

    def __init__(self, query: Query) -> None:
        self.bucket = Bucket(query)

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take the next rows; gives what is final."""
        self.bucket.add(to_blob(batch))
        yield from ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Give what is left."""
        yield from self.bucket.advance(None)


def _sortable(value: Any) -> Any:
    return repr(value) if isinstance(value, dict | list | tuple) else value
