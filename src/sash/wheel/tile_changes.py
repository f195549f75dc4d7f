"""Changes of a tile store: each becomes true with one put of the manifest, or not at all.

First the new segments are put, then the manifest that names them, then the old segments are deleted. A process that is killed in
between leaves files that no manifest names: the next change deletes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sash.time import duration, duration_text, timestamp, timestamp_text
from sash.wheel import tile_segments as segments
from sash.wheel.errors import TileStoreError
from sash.wheel.tile_files import FOLDER, Files, Lease
from sash.wheel.tile_manifest import Manifest, Segment
from sash.wheel.tile_reading import MissingSegment, check_segment, merged

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Change", "Columns", "Part", "Shape", "back_from"]

FAN: Final = 8  # so many segments of a level become one of the next: a store of n batches has O(log n) segments
MOST_ROWS: Final = 8_000_000  # a merge that would be larger waits for compact(): it happens inside a micro-batch

_TILES: Final = re.compile(r"\.?(tiles-\d+-(\d+)(?:-\w+)?)\.(?:parquet|index)(?:\..*tmp)?$")  # a segment or an index, perhaps put aside
_ASIDE: Final = re.compile(r"\.?manifest\.json\..*tmp$")

Columns = tuple[tuple[str, str], ...]


class Part(NamedTuple):
    """What one process has put for a change."""

    segment: Segment | None
    columns: Columns

    def text(self) -> str:
        """Write it as text, to be sent to the process that changes the manifest."""
        return json.dumps([None if self.segment is None else dataclasses.asdict(self.segment), self.columns])

    @classmethod
    def read(cls, text: str) -> Part:
        """Read what text() wrote."""
        segment, columns = json.loads(text)
        return cls(None if segment is None else Segment(**segment), tuple((name, kind) for name, kind in columns))


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a process must know of a store to write slices for it; the one that changes the manifest gets only names and counts."""

    store: str
    keys: tuple[str, ...]
    aggs: tuple[str, ...]
    grain: int
    fingerprint: str
    columns: Columns
    watermark: int | None

    @classmethod
    def of(cls, files: Files, now: Manifest) -> Shape:
        """The shape of a store as it is now."""
        d = now.definition
        return cls(str(files), d.keys, tuple(d.aggs), d.grain, d.fingerprint(), now.columns, now.watermark)

    def anew(self) -> Shape:
        """The same for slices that take the place of others: they may lie before the watermark."""
        return dataclasses.replace(self, watermark=None)

    def write(self, files: Files, table: pa.Table, batch: int, upto: int) -> Part:
        """Check slices and put them as a segment, which no manifest names yet; there is none where there are no slices."""
        table, columns = self._checked(table, upto)
        if not table.num_rows:
            return Part(None, columns)
        slices = segments.sorted_slices(table, self.keys, self.grain, once=True)
        return Part(segments.write_segment(files, slices, self.fingerprint, batch, batch, 0, self.grain), columns)

    def write_open(self, files: Files, table: pa.Table, batch: int, upto: int) -> Part:
        """Check slices that are not final yet, perhaps none, and put them where no other engine takes them for tiles."""
        table, columns = self._checked(table, upto, final=False)
        slices = segments.sorted_slices(table, self.keys, self.grain, once=True)
        return Part(segments.write_segment(files, slices, self.fingerprint, batch, batch, 0, self.grain, f"{FOLDER}/"), columns)

    def _checked(self, table: pa.Table, upto: int, final: bool = True) -> tuple[pa.Table, Columns]:
        """Refuse slices that do not belong here, before anything is written."""
        import pyarrow as pa

        names = [*self.keys, segments.START, *self.aggs]
        for name in names:
            if name not in table.column_names:
                raise TileStoreError(
                    f"the tiles have no column {name!r}. They are {', '.join(table.column_names)}; {self.store} needs {', '.join(names)}."
                )
        starts = table[segments.START]
        if not pa.types.is_timestamp(starts.type) or starts.null_count:
            raise TileStoreError(f"slice_start is {starts.type} with {starts.null_count} nulls. It must be a timestamp without nulls.")
        times = segments.micros(starts)
        stamps = pa.timestamp("us", starts.type.tz)
        ends = segments.to_arrow(times + self.grain).cast(stamps)
        table = pa.table(
            {name: starts.cast(stamps) if name == segments.START else table[name] for name in names[: len(self.keys) + 1]}
            | {segments.END: ends}
            | {name: table[name] for name in self.aggs}
        )
        columns = tuple((field.name, str(field.type)) for field in table.schema)
        self.fit(columns)
        if not len(times):
            return table, self.columns
        if (times % self.grain).any():
            off = int(times[times % self.grain != 0][0])
            raise TileStoreError(f"a slice starts at {timestamp_text(off)}, which is not on the grain of {duration_text(self.grain)}.")
        last, first = int(times.max()) + self.grain, int(times.min()) + self.grain
        if not final:
            if first <= upto:
                raise TileStoreError(
                    f"a slice ends at {timestamp_text(first)}, by the watermark {timestamp_text(upto)}: it is final. Write it so."
                )
            return table, columns
        if last > upto:
            raise TileStoreError(
                f"a slice ends at {timestamp_text(last)}, after the watermark {timestamp_text(upto)}: it is not complete. "
                "Write slices when they are final."
            )
        if self.watermark is not None and first <= self.watermark:
            raise TileStoreError(
                f"a slice ends at {timestamp_text(first)}, and {self.store} was complete up to {timestamp_text(self.watermark)} before: "
                "a slice is written once. Nothing was written."
            )
        return table, columns

    def fit(self, columns: Columns) -> None:
        """Refuse columns of another type than the store's; those of an aggregation that was added later may be new."""
        known = dict(self.columns)
        if known and any(known.get(name, kind) != kind for name, kind in columns):
            raise TileStoreError(
                f"the tiles have columns {dict(columns)}, and {self.store} has {dict(self.columns)}. Write tiles of one schema."
            )


class Change:
    """A change of a store under its lock: `now` is the manifest that is true."""

    def __init__(self, files: Files, now: Manifest, lease: Lease) -> None:
        self.files, self.now, self._lease = files, now, lease

    @classmethod
    @contextlib.contextmanager
    def begin(cls, files: Files, load: Callable[[], Manifest], upto: int = -1) -> Iterator[Change]:
        """Wait for the lock, read the manifest, delete what was left behind by batches up to a number."""
        with files.changing() as lease:
            change = cls(files, load(), lease)
            change._sweep(max(change.now.batch, upto))
            yield change

    def save(self, manifest: Manifest) -> None:
        """Make another manifest true, and delete the segments that it no longer names."""
        self._lease.keep()
        manifest.save(self.files)
        named = {segment.file for segment in _named(manifest)}
        gone = [segment.file for segment in _named(self.now) if segment.file not in named]
        self.now = manifest
        for file in gone:
            segments.remove_segment(self.files, file)

    def add(self, parts: Sequence[Part], opened: Part | None = None, **changed: Any) -> None:
        """Take in segments that were put for this change.

        A slice that was open before is final now, or in `opened` again, or not known any more.
        """
        known = dict(self.now.columns)
        shape = Shape.of(self.files, self.now)
        for part in (*parts, *([] if opened is None else [opened])):
            if part.segment is None:
                continue
            shape.fit(part.columns)
            try:
                check_segment(self.files, part.segment)
            except MissingSegment:
                raise TileStoreError(
                    f"{self.files.path(part.segment.file)} was put by another process and is not there. Use a path that all machines share."
                ) from None
            known |= {name: kind for name, kind in part.columns if name not in known}
            shape = dataclasses.replace(shape, columns=tuple(known.items()))
        new = tuple(part.segment for part in parts if part.segment is not None)
        changed["open"] = None if opened is None else opened.segment
        changed["segments"] = (*changed.get("segments", self.now.segments), *new)
        self.save(dataclasses.replace(self.now, columns=tuple(known.items()), **changed))

    def merge_levels(self) -> None:
        """Merge as a binary counter carries: the newest segments, so many of one level, become one of the next."""
        while True:
            held = self.now.segments
            run = next((i for i, segment in enumerate(reversed(held)) if segment.level != held[-1].level), len(held))
            newest = held[len(held) - run :]  # more than FAN where many processes wrote one batch
            if sum(segment.rows for segment in newest) > MOST_ROWS:
                newest = newest[-FAN:]
            if len(newest) < FAN or sum(segment.rows for segment in newest) > MOST_ROWS:
                return
            self.merge(newest, newest[0].level + 1)

    def merge(self, old: Sequence[Segment], level: int) -> None:
        """Put one segment in the place of several that are side by side."""
        new = self._written(merged(self.files, self.now, old), old, level)
        at = self.now.segments.index(old[0])
        self.save(dataclasses.replace(self.now, segments=self.now.segments[:at] + new + self.now.segments[at + len(old) :]))

    def _written(self, slices: Any, old: Sequence[Segment], level: int) -> tuple[Segment, ...]:
        if not len(slices.table):
            return ()
        d = self.now.definition
        return (segments.write_segment(self.files, slices, d.fingerprint(), old[0].first, old[-1].last, level, d.grain),)

    def expire(self, before: Any, exactly: bool) -> int:
        """Drop slices that end by a time; what is dropped and from where on slices are kept becomes true at once."""
        now, grain = self.now, self.now.definition.grain
        if now.watermark is None:
            return 0
        cut = back_from(now.watermark, before)
        if cut > now.watermark:
            raise TileStoreError(
                f"expire({before!r}) is {timestamp_text(cut)}, after the watermark {timestamp_text(now.watermark)}: slices that are "
                "still to come would be dropped. Give a time before the watermark, or a length of time back from it, such as '90d'. "
                "Nothing was dropped."
            )
        cut -= cut % grain
        if now.kept_from is not None and cut <= now.kept_from:
            return 0
        kept: list[Segment] = []
        for segment in now.segments:
            if cut <= (segment.start if exactly else (segment.start + segment.end) // 2):
                kept.append(segment)
            elif segment.end > cut:
                kept += self._written(merged(self.files, now, [segment], cut), [segment], segment.level)
        self.save(dataclasses.replace(now, kept_from=cut, segments=tuple(kept)))
        return sum(segment.rows for segment in now.segments) - sum(segment.rows for segment in kept)

    def without(self, start: int | None, end: int | None) -> tuple[Segment, ...]:
        """The segments without the slices that start in [start, end), None being open; nothing is true yet."""
        now, kept = self.now, list[Segment]()
        for segment in now.segments:
            if (end is not None and segment.start >= end) or (start is not None and segment.end <= start):
                kept.append(segment)
                continue
            if start is not None and segment.start < start:
                kept += self._written(merged(self.files, now, [segment], until=start), [segment], segment.level)
            if end is not None and segment.end > end:
                kept += self._written(merged(self.files, now, [segment], before=end), [segment], segment.level)
        return tuple(kept)

    def _sweep(self, upto: int) -> None:
        """Delete what a process that was killed left behind: files put aside, and segments and indexes that no manifest names.

        A batch that is being written has a number after `upto`: its files stay.
        """
        named = {segment.file.rpartition("/")[2].removesuffix(".parquet") for segment in _named(self.now)}
        for folder in ("", f"{FOLDER}/"):
            for name in self.files.names(folder):
                found = _TILES.match(name)
                left = found and found[1] not in named and int(found[2]) <= upto
                if left or (folder and _ASIDE.match(name)):
                    self.files.delete(f"{folder}{name}")


def _named(manifest: Manifest) -> tuple[Segment, ...]:
    """The segments of a manifest, those that are not final too."""
    return manifest.segments if manifest.open is None else (*manifest.segments, manifest.open)


def back_from(watermark: int, before: Any) -> int:
    """A time, or a length of time back from the watermark."""
    length: int | None = None
    if isinstance(before, dt.timedelta):
        length = duration(before)
    elif isinstance(before, str):
        with contextlib.suppress(ValueError):
            length = duration(before)
    if length is None:
        return timestamp(before)
    if length < 0:
        raise TileStoreError(
            f"{before!r} is a negative length of time. Give one back from the watermark, such as '90d'. Nothing was dropped."
        )
    return watermark - length
