"""Tiles on disk: the slices of a stream as a Parquet data set, and wheels that are built from it, whole or in part."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sash.agg import Aggregation, struct
from sash.keys import write_key
from sash.time import duration, duration_text, timestamp, timestamp_text
from sash.wheel import tile_segments as segments
from sash.wheel.errors import NotRetained, TileStoreError
from sash.wheel.keyed_wheels import KeyedWheels
from sash.wheel.tile_columns import insert, item_type
from sash.wheel.tile_manifest import FOLDER, Definition, Manifest, Segment, locked
from sash.wheel.tile_segments import MissingSegment, Slices, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TileStore"]

FAN: Final = 8  # so many segments of a level become one of the next: a store of n batches has O(log n) segments
MOST_ROWS: Final = 8_000_000  # a merge that would be larger waits for compact(): it happens inside a micro-batch
FEW_KEYS: Final = 16  # so many keys get their coarser levels when wheels are opened, not when they are first asked about
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

    def __init__(self, path: str | Path, aggs: Mapping[str, Aggregation] | None = None) -> None:
        segments.require_arrow()
        self.path = Path(path)
        self._given = dict(aggs or {})
        self._manifest = Manifest.load(self.path, self._given)
        self._opened: list[_Opened] = []

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        aggs: Mapping[str, Aggregation],
        grain: Any,
        key: str | Sequence[str] | None = None,
    ) -> TileStore:
        """Make an empty store, or open the one that is there, if it is of the same definition."""
        segments.require_arrow()
        keys = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        length = duration(grain)
        if length < 1:
            raise ValueError(f"grain={grain!r} is not a length of time. Use e.g. grain='1m'.")
        wanted = Definition(dict(aggs), length, keys)
        wanted.fingerprint()  # refuses what has no name before anything is made
        store = Path(path)
        if (store / FOLDER / "manifest.json").exists():
            found = cls(store, aggs)
            if found._manifest.definition.fingerprint() != wanted.fingerprint():
                raise TileStoreError(
                    f"{store} is of another definition: {found._manifest.definition.differences(wanted)}. Use another folder."
                )
            return found
        if store.exists() and (not store.is_dir() or any(p.name != FOLDER and not p.name.startswith(".") for p in store.iterdir())):
            raise TileStoreError(f"{store} is there and is no tile store. Use a new folder.")
        (store / FOLDER).mkdir(parents=True, exist_ok=True)
        with locked(store):
            if not (store / FOLDER / "manifest.json").exists():
                Manifest(wanted).save(store)
        return cls(store, aggs)

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
    def query(self) -> str | None:
        """The query that writes it."""
        return self._manifest.query

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

    def files(self) -> list[Path]:
        """The Parquet files that are the store now: for an engine that reads while others compact."""
        return [self.path / segment.file for segment in self._manifest.segments]

    def __repr__(self) -> str:
        upto = "nothing written yet" if self.watermark is None else f"complete up to {timestamp_text(self.watermark)}"
        names = ", ".join(self._manifest.definition.aggs)
        return (
            f"<TileStore {self.path}: {names} by {duration_text(self.grain)}, {len(self):,} slices in {len(self.files())} segments, {upto}>"
        )

    # --- in

    def write(self, table: pa.Table, *, query: str, batch: int, watermark: Any) -> bool:
        """Add the slices of a query's batch, and move the watermark; False if the batch was written before.

        `table` holds what sash.spark.tiles() gives: key columns, `slice_start`, a column of partials per aggregation. A slice is
        written once, when the watermark has passed its end: one that ended by the watermark of an earlier batch is refused.
        """
        upto = timestamp(watermark)
        with locked(self.path):
            now = self._reload()
            if now.query is not None and now.query != query:
                raise TileStoreError(
                    f"{self.path} is written by the query {now.query}, and this is {query}. A store has one writer: "
                    "use another folder, or go on from the checkpoint that this one was written with."
                )
            self._sweep(now)
            if batch <= now.batch:
                return False
            table, columns = self._checked(table, now, upto)
            added: tuple[Segment, ...] = ()
            if table.num_rows:
                file = f"tiles-{batch:08d}-{batch:08d}.parquet"
                slices = segments.sorted_slices(table, self.key, self.grain)
                added = (segments.write_segment(self.path, file, slices, now.definition.fingerprint(), batch, batch, 0, self.grain),)
            reached = upto if now.watermark is None else max(now.watermark, upto)
            self._save(
                dataclasses.replace(now, query=query, batch=batch, watermark=reached, columns=columns, segments=now.segments + added)
            )
            self._merge_levels()
        return True

    def _checked(self, table: pa.Table, now: Manifest, upto: int) -> tuple[pa.Table, tuple[tuple[str, str], ...]]:
        """Refuse slices that do not belong here, before anything is written."""
        import pyarrow as pa

        names = [*self.key, segments.START, *now.definition.aggs]
        for name in names:
            if name not in table.column_names:
                raise TileStoreError(
                    f"the tiles have no column {name!r}. They are {', '.join(table.column_names)}; {self.path} needs {', '.join(names)}."
                )
        starts = table[segments.START]
        if not pa.types.is_timestamp(starts.type) or starts.null_count:
            raise TileStoreError(f"slice_start is {starts.type} with {starts.null_count} nulls. It must be a timestamp without nulls.")
        times = segments.micros(starts)
        stamps = pa.timestamp("us", starts.type.tz)
        ends = segments.to_arrow(times + self.grain).cast(stamps)
        table = pa.table(
            {name: starts.cast(stamps) if name == segments.START else table[name] for name in names[: len(self.key) + 1]}
            | {segments.END: ends}
            | {name: table[name] for name in now.definition.aggs}
        )
        columns = tuple((field.name, str(field.type)) for field in table.schema)
        if now.columns and now.columns != columns:
            raise TileStoreError(
                f"the tiles have columns {dict(columns)}, and {self.path} has {dict(now.columns)}. Write tiles of one schema."
            )
        if not len(times):
            return table, now.columns
        if (times % self.grain).any():
            off = int(times[times % self.grain != 0][0])
            raise TileStoreError(f"a slice starts at {timestamp_text(off)}, which is not on the grain of {duration_text(self.grain)}.")
        last, first = int(times.max()) + self.grain, int(times.min()) + self.grain
        if last > upto:
            raise TileStoreError(
                f"a slice ends at {timestamp_text(last)}, after the watermark {timestamp_text(upto)}: it is not complete. "
                "Write slices when they are final."
            )
        if now.watermark is not None and first <= now.watermark:
            raise TileStoreError(
                f"a slice ends at {timestamp_text(first)}, and {self.path} was complete up to {timestamp_text(now.watermark)} before: "
                "a slice is written once. Nothing was written."
            )
        return table, columns

    def _merge_levels(self) -> None:
        """Merge as a binary counter carries: the newest segments, so many of one level, become one of the next."""
        while True:
            newest = self._manifest.segments[-FAN:]
            if len(newest) < FAN or len({segment.level for segment in newest}) > 1 or sum(segment.rows for segment in newest) > MOST_ROWS:
                return
            self._replace(newest, segments.merged(self.path, newest, self.key, self.grain), newest[0].level + 1)

    def _replace(self, old: Sequence[Segment], slices: Any, level: int) -> None:
        """Put one segment in the place of several that are side by side; under the lock."""
        now = self._manifest
        first, last = old[0].first, old[-1].last
        new: tuple[Segment, ...] = ()
        if slices is not None and len(slices.table):
            file = f"tiles-{first:08d}-{last:08d}.parquet"
            if file == old[0].file:  # written anew alone: who reads the old one must not meet the new one
                file = f"tiles-{first:08d}-{last:08d}-kept.parquet"
            new = (segments.write_segment(self.path, file, slices, now.definition.fingerprint(), first, last, level, self.grain),)
        at = now.segments.index(old[0])
        self._save(dataclasses.replace(now, segments=now.segments[:at] + new + now.segments[at + len(old) :]))
        for segment in old:
            segments.remove_segment(self.path, segment.file)

    def compact(self) -> int:
        """Merge all segments into one, and give how many there were.

        The query may go on meanwhile: it waits. Readers see the store before or after. Cost: all slices in memory once.
        """
        with locked(self.path):
            now = self._reload()
            self._sweep(now)
            if len(now.segments) > 1:
                level = max(segment.level for segment in now.segments) + 1
                self._replace(now.segments, segments.merged(self.path, now.segments, self.key, self.grain), level)
            return len(now.segments)

    def expire(self, before: Any, *, exactly: bool = True) -> int:
        """Drop the slices that end by `before`, for good, and give how many are gone from disk.

        `before` is a time, or a length of time back from the watermark, such as "90d". Units that hold both are written anew; without
        `exactly`, only once half of their time has passed, so that it costs little to call it after every batch. Wheels see the
        rest at once.
        """
        with locked(self.path):
            now = self._reload()
            self._sweep(now)
            if now.watermark is None:
                return 0
            cut = _back_from(now.watermark, before)
            cut -= cut % self.grain
            if now.kept_from is not None and cut <= now.kept_from:
                return 0
            held = len(self)
            for segment in [
                segment for segment in now.segments if cut > (segment.start if exactly else (segment.start + segment.end) // 2)
            ]:
                kept = None if segment.end <= cut else segments.merged(self.path, [segment], self.key, self.grain, cut)
                self._replace([segment], kept, segment.level)
            self._save(dataclasses.replace(self._manifest, kept_from=cut))
            return held - len(self)

    def _sweep(self, now: Manifest) -> None:
        """Delete what a process that was killed left behind: files written aside, and segments merged into others."""
        named = {segment.file for segment in now.segments}
        for path in self.path.glob(".tiles-*.tmp"):
            path.unlink(missing_ok=True)
        for path in self.path.glob("tiles-*.parquet"):
            if path.name not in named and int(path.stem.split("-")[2]) <= now.batch:
                segments.remove_segment(self.path, path.name)

    def _save(self, manifest: Manifest) -> None:
        manifest.save(self.path)
        self._manifest = manifest

    def _reload(self) -> Manifest:
        self._manifest = Manifest.load(self.path, self._given, self._manifest.definition)
        return self._manifest

    # --- out

    def refresh(self) -> bool:
        """Take in what was written since; the wheels that were opened from here get the new slices. Whether there were any."""
        before = self._manifest
        self._reload()
        self._opened = [opened for opened in self._opened if opened.wheels() is not None]
        for opened in self._opened:
            # All is read before any of it goes in: wheels are brought up to date, or left as they were.
            self._feed(opened, self._retried(lambda opened=opened: list(self._read(opened.wanted(self)))))  # type: ignore[misc]
        return (before.batch, before.watermark) != (self._manifest.batch, self._manifest.watermark)

    def keys(self) -> list[Any]:
        """The keys that have slices: a value for one key column, a tuple for several, () for none."""
        found = self._retried(
            lambda: [segments.segment_keys(self.path, segment, self.key, self.grain, self._print()) for segment in self._manifest.segments]
        )
        return list({write_key(key): key for keys in found for key in keys}.values())

    def wheels(
        self,
        name: str | None = None,
        keys: Iterable[Any] | None = None,
        start: Any = None,
        end: Any = None,
        *,
        levels: Iterable[Any] | None = None,
    ) -> KeyedWheels:
        """Build wheels of an aggregation (of all, as a struct, without a name) from the slices of some keys and some time.

        `keys` are values, or tuples where there are several key columns; None is all of them. Wheels over a part of the time
        refuse questions about the rest. refresh() brings them up to date.
        """
        aggregation = self._aggregation(name)
        first, last = self._bounds(start, end)
        wanted = None if keys is None else self._wanted_keys(keys)
        shape: dict[str, Any] = {} if levels is None else {"levels": tuple(levels)}
        dtype = item_type(self.columns.get(name)) if name is not None else None

        def build() -> KeyedWheels:
            made = KeyedWheels(aggregation, start=first, unit="us", grain=self.grain, dtype=dtype, **shape)
            opened = _Opened(weakref.ref(made), name, wanted, first, last)
            self._feed(opened, self._read(opened.wanted(self)))
            for key in made.keys() if len(made) <= FEW_KEYS else ():
                made.landmark(key)  # makes the coarser levels of the key, which the first question would have to wait for
            self._opened.append(opened)
            return made

        return self._retried(build)

    def _aggregation(self, name: str | None) -> Aggregation:
        aggs = self._manifest.definition.aggs
        if name is None:
            return struct(**aggs)
        if name not in aggs:
            raise TileStoreError(f"{self.path} has no aggregation {name!r}. It has {', '.join(aggs)}.")
        return aggs[name]

    def _bounds(self, start: Any, end: Any) -> tuple[int, int]:
        """The time to open, on the grain."""
        kept, span = self._manifest.kept_from, self.span
        if self.watermark is None or (span is None and start is None):
            raise TileStoreError(f"{self.path} has no complete slice yet. Wait until the watermark of its stream has passed the first one.")
        if start is None:
            assert span is not None
            first = span[0] if kept is None else kept
        else:
            first = timestamp(start) // self.grain * self.grain
        if kept is not None and first < kept:
            raise NotRetained(f"{self.path} was told to drop what is before {timestamp_text(kept)}. Ask from there on.")
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

    def _print(self) -> str:
        return self._manifest.definition.fingerprint()

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
            segments.check_segment(self.path, segment)
        for segment in needed:
            yield segments.read_segment(self.path, segment, self.key, self.grain, self._print(), wanted)

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


def _back_from(watermark: int, before: Any) -> int:
    """A time, or a length of time back from the watermark."""
    if isinstance(before, dt.timedelta):
        return watermark - duration(before)
    if isinstance(before, str):
        with contextlib.suppress(ValueError):
            return watermark - duration(before)
    return timestamp(before)
