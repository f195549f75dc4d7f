"""Tiles on disk: the slices of a stream as a Parquet data set, and wheels that are built from it, whole or in part."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sash.agg import Aggregation, struct
from sash.keys import write_key
from sash.time import MICROS, duration, duration_text, timestamp, timestamp_text
from sash.wheel import tile_segments as segments
from sash.wheel.errors import NotRetained, TileStoreError
from sash.wheel.keyed_wheels import KeyedWheels
from sash.wheel.tile_changes import Change, Part, Shape
from sash.wheel.tile_columns import insert, item_type
from sash.wheel.tile_files import FOLDER, Files, files_of
from sash.wheel.tile_manifest import Definition, Manifest, exists
from sash.wheel.tile_reading import MissingSegment, Wanted, check_segment, merged, read_segment, segment_keys, segment_schema
from sash.wheel.tile_segments import Slices
from sash.wheel.tile_table import Steps, check_names, lowered_type, shown_type, table_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TileStore"]

FEW_KEYS: Final = 16  # so many keys get their coarser levels when wheels are opened, not when they are first asked about
FARTHEST: Final = MICROS["w"]  # after the watermark, of what is provisional: rows dated later say nothing of now
_FOREVER: Final = 2**63 - 1

T = TypeVar("T")


class TileStore:
    """The slices of one stream on disk, as Parquet that any engine reads, and wheels over them.

    A store has one writer, a query, which adds its batches in order; a batch that is written again changes nothing. Readers see
    whole batches, also while the query runs.

    Cost: opening reads the manifest only; wheels(keys=...) reads the row groups that hold those keys.

    >>> import tempfile, pyarrow as pa
    >>> from sash import agg
    >>> store = TileStore.create(tempfile.mkdtemp() + "/fares", aggs={"fare": agg.sum("fare")}, grain="1m", key="zone")
    >>> minute = pa.array([0, 60_000_000, 60_000_000], pa.timestamp("us", "UTC"))
    >>> tiles = pa.table({"zone": ["a", "a", "b"], "slice_start": minute, "fare": [5, 7, 4]})
    >>> store.write(tiles, query="q", batch=0, watermark=120_000_000), store.write(tiles, query="q", batch=0, watermark=120_000_000)
    (True, False)
    >>> wheels = TileStore(store.path).wheels("fare")
    >>> wheels.query("a", 0, 120_000_000), wheels.query_all(60_000_000, 120_000_000)
    (12, 11)
    """

    def __init__(self, path: str | os.PathLike[str], aggs: Mapping[str, Aggregation] | None = None) -> None:
        segments.require_arrow()
        self._files = files_of(path)
        self.path = self._files.path("")
        self._given = dict(aggs or {})
        self._manifest = Manifest.load(self._files, self._given)
        self._opened: list[_Opened] = []

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        aggs: Mapping[str, Aggregation],
        grain: Any,
        key: str | Sequence[str] | None = None,
    ) -> TileStore:
        """Make an empty store, or open the one that is there, if it is of the same definition.

        Aggregations that it lacks are added: they are kept from its watermark on, and another query may go on from there.
        """
        wanted = _definition(aggs, grain, key)
        files = files_of(path)
        if not exists(files):
            _check_free(files)
            files.make()
            with files.changing() as lease:
                if not exists(files):  # another process may have made it meanwhile, of another definition
                    lease.keep()
                    Manifest(wanted).save(files)
        found = cls(path, aggs)
        if found._manifest.definition.fingerprint() != wanted.fingerprint():
            found._extend(wanted)
        return found

    @classmethod
    def found(
        cls,
        path: str | os.PathLike[str],
        *,
        aggs: Mapping[str, Aggregation],
        grain: Any,
        key: str | Sequence[str] | None = None,
    ) -> TileStore | None:
        """The store that is there, None where create() would make one; refuses what create() would refuse, and changes nothing."""
        wanted = _definition(aggs, grain, key)
        files = files_of(path)
        if not exists(files):
            _check_free(files)
            return None
        store = cls(path, aggs)
        if store._manifest.definition.fingerprint() != wanted.fingerprint():
            store._extended(store._manifest, wanted)
        return store

    def _extended(self, now: Manifest, wanted: Definition) -> Definition:
        """The definition with the aggregations that are added; TileStoreError where anything else is changed."""
        definition = now.definition.with_added(wanted)
        if definition is None or len(definition.aggs) == len(now.definition.aggs):
            raise TileStoreError(f"{self.path} is of another definition: {now.definition.differences(wanted)}. Use another folder.")
        return definition

    def _extend(self, wanted: Definition) -> None:
        with self._change() as change:
            now = change.now
            definition = self._extended(now, wanted)
            added = [name for name in definition.aggs if name not in now.definition.aggs]
            upto = None if now.watermark is None else now.watermark - now.watermark % now.definition.grain
            since = dict(now.since) if upto is None else {**now.since, **dict.fromkeys(added, upto)}
            prints = (*now.prints, now.definition.fingerprint())
            change.save(dataclasses.replace(now, definition=definition, since=since, prints=prints, free=True, open=None))

    # --- what it is

    @property
    def aggs(self) -> dict[str, Aggregation]:
        """The aggregations by name."""
        return dict(self._manifest.definition.aggs)

    @property
    def grain(self) -> int:
        """How long a slice is, in microseconds."""
        return self._manifest.definition.grain

    @property
    def key(self) -> tuple[str, ...]:
        """The key columns."""
        return self._manifest.definition.keys

    @property
    def watermark(self) -> int | None:
        """Up to where the slices are complete, in microseconds; None before the first batch."""
        return self._manifest.watermark

    @property
    def kept_from(self) -> int | None:
        """Before here slices were dropped by retention, in microseconds; None where none were."""
        return self._manifest.kept_from

    @property
    def batch(self) -> int:
        """The last batch that was written; -1 before the first."""
        return self._manifest.batch

    @property
    def provisional(self) -> tuple[int, int] | None:
        """From where to where there are slices that are not final yet, in microseconds; None where none are published.

        Slices more than a week after the first of them, of rows that are dated too late, do not count.
        """
        opened, mark = self._manifest.open, self.watermark
        if opened is None or not opened.rows or mark is None:
            return None
        return opened.start, min(opened.end, (max(mark, opened.start) + FARTHEST) // self.grain * self.grain)

    @property
    def open_known(self) -> bool:
        """Whether the last batch said which slices are open, be it none."""
        return self._manifest.open is not None

    def open_slices(self) -> pa.Table | None:
        """The slices that are not final yet, as they were written; None where there are none."""

        def read() -> pa.Table | None:
            opened = self._manifest.open
            return merged(self._files, self._manifest, [opened]).table if opened is not None and opened.rows else None

        return self._retried(read)

    @property
    def query(self) -> str | None:
        """The query that writes it."""
        return self._manifest.query

    @property
    def writer_is_free(self) -> bool:
        """Whether another query than the one that wrote last may go on from the watermark."""
        return self._manifest.free

    @property
    def span(self) -> tuple[int, int] | None:
        """From where to where there are slices, in microseconds; None where there are none."""
        if not self._manifest.segments:
            return None
        return min(segment.start for segment in self._manifest.segments), max(segment.end for segment in self._manifest.segments)

    @property
    def columns(self) -> dict[str, str]:
        """The columns and their Arrow types; none before the first slices."""
        return dict(self._manifest.columns)

    def __len__(self) -> int:
        return sum(segment.rows for segment in self._manifest.segments)

    @property
    def index_of(self) -> dict[str, Any] | None:
        """Of which table it is an index, as `sash index` noted it; None where it is of a stream."""
        return None if self._manifest.table is None else dict(self._manifest.table)

    @property
    def since(self) -> dict[str, int]:
        """From where on aggregations are kept that were added later, in microseconds."""
        return dict(self._manifest.since)

    def files(self) -> list[Any]:
        """The Parquet files that are the store now: for an engine that reads while others compact."""
        return [self._files.path(segment.file) for segment in self._manifest.segments]

    def __repr__(self) -> str:
        upto = "nothing written yet" if self.watermark is None else f"complete up to {timestamp_text(self.watermark)}"
        names = ", ".join(self._manifest.definition.aggs)
        return (
            f"<TileStore {self.path}: {names} by {duration_text(self.grain)}, {len(self):,} slices in {len(self.files())} segments, {upto}>"
        )

    # --- in

    def write(self, table: pa.Table, *, query: str, batch: int, watermark: Any, open: pa.Table | None = None) -> bool:
        """Add the slices of a query's batch, and move the watermark; False if the batch was written before.

        `table` holds what sash.spark.tiles() gives: key columns, `slice_start`, a column of partials per aggregation. A slice is
        written once, when the watermark has passed its end: one that ended by the watermark of an earlier batch is refused. `open`
        holds all slices that are not final yet; they take the place of those of the batch before, and wheels(provisional=True) adds
        them to the tiles.
        """
        upto = timestamp(watermark)
        with self._change() as change:
            if not self._takes(change.now, query, batch):
                return False
            shape = Shape.of(self._files, change.now)
            part = shape.write(self._files, table, batch, upto)
            opened = None if open is None else shape.write_open(self._files, open, batch, upto)
            self._add(change, [part], upto, opened=opened, query=query, batch=batch, free=False)
        return True

    def commit(self, parts: Sequence[Part], *, query: str, batch: int, watermark: Any) -> bool:
        """Add a batch whose segments other processes have put, by shape().write(); False if the batch was written before.

        Two of them must not hold slices of one key.
        """
        upto = timestamp(watermark)
        with self._change() as change:
            if not self._takes(change.now, query, batch):
                return False
            self._add(change, parts, upto, query=query, batch=batch, free=False)
        return True

    def awaits(self, query: str, batch: int) -> bool:
        """Whether a query's batch is still to be written; TileStoreError where the query may not write here."""
        return self._takes(self._reload(), query, batch)

    def shape(self) -> Shape:
        """What another process must know to write slices for commit()."""
        return Shape.of(self._files, self._reload())

    def write_history(self, table: Any, *, until: Any, of: Mapping[str, Any] | None = None) -> bool:
        """Add the slices that a batch job made of all there was before `until`; False if the store reaches that far already.

        `table` is what tiles() of a batch gives: Arrow, or what can be made into it, or the parts that other processes have put by
        shape().write() as batch 0. A query that writes later goes on from `until`; without one, more history may follow. `of` is kept
        with it: where an index notes what it is an index of.
        """
        upto = timestamp(until)
        if upto % self.grain:
            raise TileStoreError(f"until={timestamp_text(upto)} is not on the grain of {duration_text(self.grain)}. Use a multiple of it.")
        with self._change(-1 if _is_parts(table) else 0) as change:
            now = change.now
            if now.query is not None and not now.free:
                raise TileStoreError(f"{self.path} is written by the query {now.query}, which history can't overtake. Use another folder.")
            if now.watermark is not None and upto <= now.watermark:
                return False
            parts = table if _is_parts(table) else [Shape.of(self._files, now).write(self._files, _as_table(table), 0, upto)]
            self._add(change, parts, upto, query=None, batch=-1, free=False, table=now.table if of is None else dict(of))
        return True

    def replace(self, table: Any, *, start: Any = None, end: Any = None) -> int:
        """Put the slices that a batch job made of [start, end) in the place of those that are there, and give how many they are.

        For a store that batch jobs write, run again as often as need be. `table` is what tiles() of a batch gives, or the parts that
        other processes have put by shape().anew().write() as batch 0; an end that is left out is open. Wheels that are open stay as
        they are: open new ones.
        """
        first, last = (None if at is None else timestamp(at) for at in (start, end))
        with self._change(-1 if _is_parts(table) else 0) as change:
            now = change.now
            self._check_stretch(now, first, last)
            upto = _FOREVER if last is None else last
            parts = table if _is_parts(table) else [Shape.of(self._files, now).anew().write(self._files, _as_table(table), 0, upto)]
            new = [part.segment for part in parts if part.segment is not None]
            if first is not None and (early := min((segment.start for segment in new), default=first)) < first:
                raise TileStoreError(
                    f"a slice starts at {timestamp_text(early)}, before start={timestamp_text(first)}. Nothing was written."
                )
            reached = [at for at in (now.watermark, last, *(segment.end for segment in new)) if at is not None]
            kept = first if now.watermark is None else None if now.kept_from is None or first is None else min(first, now.kept_from)
            if not reached:
                return 0
            facts: dict[str, Any] = {"segments": change.without(first, last), "watermark": max(reached), "kept_from": kept}
            change.add(parts, **facts, query=None, batch=-1, free=False)
            return sum(segment.rows for segment in new)

    def check_stretch(self, start: Any = None, end: Any = None) -> None:
        """Raise a TileStoreError where replace() would."""
        self._check_stretch(self._manifest, *(None if at is None else timestamp(at) for at in (start, end)))

    def _check_stretch(self, now: Manifest, start: int | None, end: int | None) -> None:
        grain = now.definition.grain
        for at in (start, end):
            if at is not None and at % grain:
                raise TileStoreError(f"{timestamp_text(at)} is not on the grain of {duration_text(grain)}. Use a multiple of it.")
        if now.query is not None:
            raise TileStoreError(
                f"{self.path} is written by the query {now.query}: a batch can't replace what a stream has written. Use another folder."
            )
        if now.table is not None:
            raise TileStoreError(f"{self.path} is an index of a table, which sash index brings up to date. Use another folder.")
        if now.watermark is not None and start is not None and start > now.watermark:
            raise TileStoreError(
                f"{self.path} is complete up to {timestamp_text(now.watermark)}, and {timestamp_text(start)} is later: what lies between "
                f"would be taken for empty. Start at {timestamp_text(now.watermark)}."
            )
        if now.kept_from is not None and end is not None and end < now.kept_from:
            raise TileStoreError(
                f"{self.path} begins at {timestamp_text(now.kept_from)}, and {timestamp_text(end)} is earlier: what lies between would be "
                f"taken for empty. End at {timestamp_text(now.kept_from)}."
            )

    def release(self) -> None:
        """Let another query go on from the watermark: the next one that writes is the writer."""
        with self._change() as change:
            change.save(dataclasses.replace(change.now, free=True))

    def _takes(self, now: Manifest, query: str, batch: int) -> bool:
        """Whether a query's batch is still to be written; an error where the query may not write here."""
        if now.query == query:
            return batch > now.batch
        if now.query is not None and not now.free:
            raise TileStoreError(
                f"{self.path} is written by the query {now.query}, and this is {query}. A store has one writer: "
                "use another folder, or go on from the checkpoint that this one was written with, or release() it first."
            )
        return True

    def _add(self, change: Change, parts: Sequence[Part], upto: int, **changed: Any) -> None:
        before = change.now.watermark
        change.add(parts, watermark=upto if before is None else max(before, upto), **changed)
        change.merge_levels()

    def compact(self) -> int:
        """Merge all segments into one, and give how many there were.

        The query may go on meanwhile: it waits. Readers see the store before or after. Cost: all slices in memory once.
        """
        with self._change() as change:
            old = change.now.segments
            if len(old) > 1:
                change.merge(old, max(segment.level for segment in old) + 1)
            return len(old)

    def expire(self, before: Any, *, exactly: bool = True) -> int:
        """Drop the slices that end by `before`, for good, and give how many are gone from disk.

        `before` is a time, or a length of time back from the watermark, such as "90d"; after the watermark it is refused. Segments
        that hold both are written anew; without `exactly`, only once half of their time has passed, so that it costs little to call
        it after every batch. Wheels see the rest at once.
        """
        with self._change() as change:
            return change.expire(before, exactly)

    @contextlib.contextmanager
    def _change(self, upto: int = -1) -> Iterator[Change]:
        with Change.begin(self._files, self._reload, upto) as change:
            try:
                yield change
            finally:
                self._manifest = change.now

    def _reload(self) -> Manifest:
        self._manifest = Manifest.load(self._files, self._given, self._manifest.definition)
        return self._manifest

    # --- out

    def refresh(self) -> bool:
        """Take in what was written since; the wheels that were opened from here get the new slices. Whether there were any.

        NotRetained where slices that open wheels have not taken in were dropped meanwhile: open such wheels anew.
        """
        before = self._manifest
        self._reload()
        self._opened = [opened for opened in self._opened if opened.wheels() is not None]
        kept = self._manifest.kept_from
        for opened in self._opened:
            if kept is not None and opened.fed < min(kept, opened.end):
                raise NotRetained(
                    f"wheels of {self.path} were complete up to {timestamp_text(opened.fed)}, and what follows was dropped up to "
                    f"{timestamp_text(kept)} before they took it in. They stay as they are: open new ones, and refresh more often."
                )
        for opened in self._opened:
            # All is read before any of it goes in: wheels are brought up to date, or left as they were.
            self._feed(opened, self._retried(lambda opened=opened: list(self._read(opened.wanted(self)))))  # type: ignore[misc]
        return (before.batch, before.watermark) != (self._manifest.batch, self._manifest.watermark)

    def keys(self) -> list[Any]:
        """The keys that have slices: a value for one key column, a tuple for several, () for none."""
        found = self._retried(lambda: [segment_keys(self._files, self._manifest, segment) for segment in self._manifest.segments])
        return list({write_key(key): key for keys in found for key in keys}.values())

    def wheels(
        self,
        name: str | None = None,
        keys: Iterable[Any] | None = None,
        start: Any = None,
        end: Any = None,
        *,
        levels: Iterable[Any] | None = None,
        provisional: bool = False,
    ) -> KeyedWheels:
        """Build wheels of an aggregation (of all, as a struct, without a name) from the slices of some keys and some time.

        `keys` are values, or tuples where there are several key columns; None is all of them. Wheels over a part of the time
        refuse questions about the rest. refresh() brings them up to date. With `provisional`, they also hold what is not final
        yet and reach up to the end of it; such wheels stay as they are.
        """
        aggregation = self._aggregation(name)
        wanted = None if keys is None else self._wanted_keys(keys)
        shape: dict[str, Any] = {} if levels is None else {"levels": tuple(levels)}
        dtype = item_type(self.columns.get(name)) if name is not None else None

        def build() -> KeyedWheels:
            first, last = self._bounds(start, end, self.aggs if name is None else [name], provisional)
            made = KeyedWheels(aggregation, start=first, unit="us", grain=self.grain, dtype=dtype, **shape)
            opened = _Opened(weakref.ref(made), name, wanted, first, last)
            self._feed(opened, self._read(opened.wanted(self)))
            if provisional:
                self._feed_open(opened)
                return made
            for key in made.keys() if len(made) <= FEW_KEYS else ():
                made.landmark(key)  # makes the coarser levels of the key, which the first question would have to wait for
            self._opened.append(opened)
            return made

        return self._retried(build)

    def table(
        self,
        by: Any = None,
        keys: Iterable[Any] | None = None,
        start: Any = None,
        end: Any = None,
        aggs: Iterable[str] | None = None,
        *,
        tz: str | None = None,
    ) -> pa.Table:
        """Give the values of some keys and some time as an Arrow table: a row per key and step that holds something.

        `by` is the step, a multiple of the grain, which it is where none is given; with a time zone, whole days, weeks or months
        there. The columns are the key's, `slice_start`, `slice_end`, and one per aggregation; rows are by key, then time. Steps begin
        at multiples of their length; the first and the last are cut where the range is.

        Cost: one combine per slice, all slices of the range in memory.

        >>> import tempfile, pyarrow as pa
        >>> from sash import agg
        >>> store = TileStore.create(tempfile.mkdtemp() + "/fares", aggs={"fare": agg.mean("fare")}, grain="1m", key="zone")
        >>> fares = pa.array([{"sum": 6.0, "count": 3}, {"sum": 4.0, "count": 1}])
        >>> at = pa.array([0, 60_000_000], pa.timestamp("us", "UTC"))
        >>> store.write(pa.table({"zone": ["a", "a"], "slice_start": at, "fare": fares}), query="q", batch=0, watermark=120_000_000)
        True
        >>> store.table(by="1h").select(["zone", "fare"]).to_pylist()
        [{'zone': 'a', 'fare': 2.5}]
        """
        names = check_names(self, aggs)
        steps = Steps(by, self.grain, tz)
        wanted = None if keys is None else self._wanted_keys(keys)

        def build() -> pa.Table:
            first, last = self._stretch(start, end, names, steps)
            found = list(self._read(Wanted(wanted, first, last, tuple(names))))
            return table_of(found, self.value_schema(names), self.key, {name: self.aggs[name] for name in names}, steps, first, last)

        return self._retried(build)

    def edges(
        self, by: Any = None, start: Any = None, end: Any = None, aggs: Iterable[str] | None = None, *, tz: str | None = None
    ) -> list[int]:
        """Where the steps of table() begin, and where the last one ends, in microseconds."""
        steps = Steps(by, self.grain, tz)
        first, last = self._stretch(start, end, check_names(self, aggs), steps)
        inner = [int(at) for at in steps.edges(first, last) if first < at < last]
        return [first, *inner, last] if first < last else [first]

    def _stretch(self, start: Any, end: Any, names: Sequence[str], steps: Steps) -> tuple[int, int]:
        first, last = self._bounds(start, end, names)
        last = max(min(last, self._complete()), first)
        if start is None and self.kept_from is None and not any(name in self._manifest.since for name in names):
            first = int(steps.edges(first, first)[0])  # nothing is before: the first step is whole
        return first, last

    def value_schema(self, aggs: Iterable[str] | None = None) -> pa.Schema:
        """The columns of table() and their Arrow types."""
        import pyarrow as pa

        stored = self.schema()
        fields = [stored.field(name) for name in (*self.key, segments.START, segments.END)]
        for name in check_names(self, aggs):
            kind = lowered_type(self.aggs[name], stored.field(name).type)
            fields.append(pa.field(name, self._seen_type(name) if kind is None else kind))
        return pa.schema(fields)

    def _seen_type(self, name: str) -> pa.DataType:
        """The type that a value shows."""
        newest = max(self._manifest.segments, key=lambda segment: segment.end)
        wanted = Wanted(None, newest.start, newest.end, (name,))
        return shown_type(self.aggs[name], read_segment(self._files, self._manifest, newest, wanted).columns[name])

    def schema(self) -> pa.Schema:
        """The columns of the tiles and their Arrow types: keys, `slice_start`, `slice_end`, partials."""
        if not self._manifest.segments:
            raise TileStoreError(f"{self.path} has no slice yet, so its columns have no type. Wait until one is written.")
        newest = max(self._manifest.segments, key=lambda segment: segment.end)
        return self._retried(lambda: segment_schema(self._files, self._manifest, newest))

    def _complete(self) -> int:
        assert self.watermark is not None
        return self.watermark // self.grain * self.grain

    def _aggregation(self, name: str | None) -> Aggregation:
        aggs = self._manifest.definition.aggs
        if name is None:
            return struct(**aggs)
        if name not in aggs:
            raise TileStoreError(f"{self.path} has no aggregation {name!r}. It has {', '.join(aggs)}.")
        return aggs[name]

    def _bounds(self, start: Any, end: Any, names: Iterable[str], provisional: bool = False) -> tuple[int, int]:
        """The time to open, on the grain, for some aggregations."""
        kept, span = self._manifest.kept_from, self.span
        span = self.provisional if span is None and provisional else span
        if self.watermark is None or (span is None and start is None and kept is None):
            raise TileStoreError(f"{self.path} has no complete slice yet. Wait until the watermark of its stream has passed the first one.")
        added = {name: self._manifest.since[name] for name in names if name in self._manifest.since}
        newest = max(added, key=lambda name: added[name], default=None)
        if start is None:
            first = kept if kept is not None else span[0] if span is not None else self.watermark
            first = first if newest is None else max(first, added[newest])
        else:
            first = timestamp(start) // self.grain * self.grain
        if kept is not None and first < kept:
            raise NotRetained(f"{self.path} was told to drop what is before {timestamp_text(kept)}. Ask from there on.")
        if newest is not None and first < added[newest]:
            raise NotRetained(f"{self.path} keeps {newest} from {timestamp_text(added[newest])} on: it was added then. Ask from there on.")
        last = _FOREVER if end is None else -(-timestamp(end) // self.grain) * self.grain
        if last < first:
            raise ValueError(f"start {timestamp_text(first)} is after end {timestamp_text(last)}. A range is [start, end), start first.")
        return first, last

    def _wanted_keys(self, keys: Iterable[Any]) -> frozenset[Any]:
        if isinstance(keys, str | bytes):
            raise TypeError(f"keys={keys!r} is one key. Pass a list: keys=[{keys!r}].")
        asked = (tuple(key) if isinstance(key, list) else key for key in keys)
        wanted = frozenset({write_key(key): key for key in asked}.values())
        width = len(self.key)
        for key in wanted:
            if width != 1 and (not isinstance(key, tuple) or len(key) != width):
                columns = ", ".join(self.key) or "no columns"
                raise TileStoreError(f"{key!r} is not a key of {self.path}, whose key is {columns}. Pass tuples of {width} values.")
        return wanted

    def _retried(self, read: Callable[[], T]) -> T:
        """Read; where a segment is gone because others merged it, read the manifest again and start over."""
        while True:
            before = self._manifest.segments
            try:
                return read()
            except MissingSegment:
                if self._reload().segments == before:
                    raise

    def _read(self, wanted: Wanted) -> Iterator[Slices]:
        needed = [segment for segment in self._manifest.segments if segment.end > wanted.start and segment.start < wanted.end]
        for segment in needed:  # all of them first: a damaged store is found out before anything is read
            check_segment(self._files, segment)
        for segment in needed:
            yield read_segment(self._files, self._manifest, segment, wanted)

    def _feed(self, opened: _Opened, found: Iterable[Slices]) -> None:
        wheels = opened.wheels()
        if wheels is None or self.watermark is None:
            return
        for slices in found:
            insert(wheels, self._manifest.definition.aggs, opened.name, slices)
        upto = min(self.watermark // self.grain * self.grain, opened.end)
        if upto > opened.fed:
            wheels.advance_to(upto)
            opened.fed = upto

    def _feed_open(self, opened: _Opened) -> None:
        """Add the slices that are not final yet."""
        wheels, span = opened.wheels(), self.provisional
        if wheels is None or span is None or self._manifest.open is None:
            return
        wanted = dataclasses.replace(opened.wanted(self), end=min(opened.end, span[1]))
        if wanted.end > wanted.start:
            check_segment(self._files, self._manifest.open)
            insert(wheels, self.aggs, opened.name, read_segment(self._files, self._manifest, self._manifest.open, wanted))
            wheels.advance_to(wanted.end)


@dataclasses.dataclass
class _Opened:
    """Wheels that were built from a store: of what, and how far they are fed."""

    wheels: weakref.ref[KeyedWheels]
    name: str | None
    keys: frozenset[Any] | None
    fed: int
    end: int

    def wanted(self, store: TileStore) -> Wanted:
        """What they lack. A slice is written once, when it is complete: all that start before `fed` are in."""
        return Wanted(self.keys, self.fed, self.end, (self.name,) if self.name is not None else tuple(store.aggs))


def _definition(aggs: Mapping[str, Aggregation], grain: Any, key: str | Sequence[str] | None) -> Definition:
    """What create() is asked for; refuses what has no name before anything is made."""
    segments.require_arrow()
    length = duration(grain)
    if length < 1:
        raise ValueError(f"grain={grain!r} is not a length of time. Use e.g. grain='1m'.")
    wanted = Definition(dict(aggs), length, () if key is None else (key,) if isinstance(key, str) else tuple(key))
    wanted.fingerprint()
    return wanted


def _check_free(files: Files) -> None:
    """Refuse a place where something else is."""
    there = files.kind()
    if there == "file" or (there == "folder" and any(n != FOLDER and not n.startswith(".") for n in files.names())):
        raise TileStoreError(f"{files} is there and is no tile store. Use a new folder.")


def _is_parts(tiles: Any) -> bool:
    return isinstance(tiles, list) and all(isinstance(part, Part) for part in tiles)


def _as_table(tiles: Any) -> pa.Table:
    """What tiles() gave as an Arrow table: of Arrow itself, Spark, Polars, DuckDB or pandas."""
    import pyarrow as pa

    for method in ("toArrow", "to_arrow_table", "to_arrow"):
        if hasattr(tiles, method):
            tiles = getattr(tiles, method)()
            break
    if isinstance(tiles, pa.RecordBatchReader):
        tiles = tiles.read_all()
    return tiles if isinstance(tiles, pa.Table) else pa.table(tiles)
