"""Reading segments: all that was asked for, checked, or an error and nothing.

What is read is checked against the checksums that were made when the segment was written, also where Parquet has none: the
footer, and the heads of pages. Only what is read is checked.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from sash import codec
from sash.errors import SashError
from sash.wheel.errors import TileStoreError
from sash.wheel.tile_files import Files
from sash.wheel.tile_manifest import Manifest, Segment
from sash.wheel.tile_segments import (
    CHUNKS,
    FOOTER,
    INDEX,
    PRINT,
    START,
    Array,
    Slices,
    Sorted,
    chunk_ranges,
    footer_of,
    index_name,
    index_of,
    key_values,
    micros,
    sorted_slices,
    to_arrow,
    to_numpy,
    write_index,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MissingSegment", "Wanted", "check_segment", "merged", "read_segment", "segment_keys", "segment_schema"]

_TAIL: Final = 1 << 16  # bytes that are read of a segment's end at once: most footers fit
_GAP: Final = 1 << 16  # bytes between two pieces that are read with them rather than in a second request


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which slices to read: of some keys (None: of all), that start in [start, end), and which columns."""

    keys: frozenset[Any] | None
    start: int
    end: int
    columns: tuple[str, ...]


class MissingSegment(TileStoreError):
    """A segment is gone: either lost, or merged into another since the manifest was read."""


def check_segment(files: Files, segment: Segment) -> None:
    """Refuse a segment that is not as long as the manifest says."""
    try:
        found = files.size(segment.file)
    except FileNotFoundError:
        raise _missing(files, segment) from None
    if found != segment.size:
        raise TileStoreError(
            f"{files.path(segment.file)} is damaged: it has {found:,} bytes, the manifest says {segment.size:,}. "
            "Restore it from a copy; the other segments were not touched, and nothing was read."
        )


def _missing(files: Files, segment: Segment) -> MissingSegment:
    path = files.path(segment.file)
    return MissingSegment(f"{path} is missing: the manifest names it, with {segment.rows:,} slices. Restore it from a copy.")


@contextlib.contextmanager
def _guarded(files: Files, segment: Segment) -> Iterator[None]:
    """Whatever a damaged file makes Arrow raise is said in one way."""
    try:
        yield
    except SashError:
        raise
    except FileNotFoundError:
        raise _missing(files, segment) from None
    except Exception as error:  # a damaged footer leaks errors of any kind
        path = files.path(segment.file)
        raise TileStoreError(
            f"{path} is damaged: {error or type(error).__name__}. Restore it from a copy; the other segments were not touched."
        ) from error


class _Index(NamedTuple):
    keys: pa.Table
    first: Array  # the row where each key begins
    chunks: Array | None  # checksums of column chunks, by row group, then column; None where version 1 wrote the segment
    footer: int | None


class _Opened:
    """A segment that is open for reading, with its index and its checked footer."""

    def __init__(self, files: Files, manifest: Manifest, segment: Segment) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.files, self.manifest, self.segment = files, manifest, segment
        self.source = files.open(segment.file)
        if self.source.size() != segment.size:
            check_segment(files, segment)
        self.index = self._read_index()
        tail = self.source.read_at(min(_TAIL, segment.size), max(segment.size - _TAIL, 0))
        length = int.from_bytes(tail[-8:-4], "little") + 8
        if length > len(tail):
            tail = self.source.read_at(min(length, segment.size), max(segment.size - length, 0))
        footer = bytes(tail[-length:])
        if self.index.footer is not None and zlib.crc32(footer) != self.index.footer:
            raise ValueError("the checksum of its footer does not fit")
        self.metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + footer))
        stored = (self.metadata.schema.to_arrow_schema().metadata or {}).get(PRINT, b"").decode()
        if not manifest.accepts(stored):
            raise TileStoreError(
                f"{files.path(segment.file)} holds tiles of another definition than its manifest. Restore the file that belongs there."
            )

    def _read_index(self) -> _Index:
        """Read where each key's rows begin; where the index is missing or damaged, make it again from the tiles."""
        import pyarrow as pa

        try:
            payload = codec.unseal(INDEX, None, self.files.read(index_name(self.segment.file)))
        except (OSError, ValueError):
            payload = self._made_index()
        table = pa.ipc.open_file(pa.BufferReader(payload)).read_all()
        checks = table.schema.metadata or {}
        checked = self.segment.checksum is not None and FOOTER in checks
        chunks = np.frombuffer(checks[CHUNKS], "<u4") if checked else None
        return _Index(table, to_numpy(table[""]), chunks, int.from_bytes(checks[FOOTER], "little") if checked else None)

    def _made_index(self) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = self.source.read_at(self.segment.size, 0)
        if self.segment.checksum is not None and zlib.crc32(data) != self.segment.checksum:
            raise ValueError("its checksum does not fit")
        footer_of(memoryview(data))
        keys, grain = self.manifest.definition.keys, self.manifest.definition.grain
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        payload = index_of(sorted_slices(file.read([*keys, START]), keys, grain), data)
        stored = (file.schema_arrow.metadata or {}).get(PRINT, b"").decode()
        with contextlib.suppress(OSError, ValueError):  # who may only read makes it for itself
            write_index(self.files, self.segment.file, payload, stored)
        return payload

    def read(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Read columns of some row groups, checked."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        source = self.source
        if self.index.chunks is not None:
            ranges = chunk_ranges(self.metadata)
            schema = self.metadata.schema
            paths = [schema.column(i).path for i in range(len(schema))]
            leaves = [i for i, path in enumerate(paths) if any(path == name or path.startswith(f"{name}.") for name in columns)]
            wanted = [(*ranges[g][i], int(self.index.chunks[g * len(paths) + i])) for g in groups for i in leaves]
            pieces = _Pieces(self.source, wanted, self.segment.size)
            if not isinstance(source, pa.MemoryMappedFile):  # whose bytes are there to be read again
                source = pa.PythonFile(pieces, mode="r")
        file = pq.ParquetFile(source, metadata=self.metadata, page_checksum_verification=True, pre_buffer=False)
        return file.read_row_groups(list(groups), list(columns))


class _Pieces(io.RawIOBase):
    """Pieces of a file, read with few requests, checked, and served as if they were the file."""

    def __init__(self, source: pa.NativeFile, wanted: Iterable[tuple[int, int, int]], size: int) -> None:
        self._size, self._at = size, 0
        self._pieces: list[tuple[int, memoryview]] = []
        ranges = sorted(wanted)
        i = 0
        while i < len(ranges):
            start, end, j = ranges[i][0], sum(ranges[i][:2]), i + 1
            while j < len(ranges) and ranges[j][0] <= end + _GAP:
                end, j = max(end, sum(ranges[j][:2])), j + 1
            source.seek(start)
            data = memoryview(source.read_buffer(end - start))  # without a copy where it is mapped into memory
            for offset, length, checksum in ranges[i:j]:
                if zlib.crc32(data[offset - start : offset - start + length]) != checksum:
                    raise ValueError(f"the checksum of the {length:,} bytes from {offset:,} on does not fit")
            self._pieces.append((start, data))
            i = j

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        at = bisect.bisect_right(self._pieces, self._at, key=lambda piece: piece[0]) - 1
        start, data = self._pieces[at] if at >= 0 else (0, memoryview(b""))
        end = self._size if size < 0 else self._at + size
        if at < 0 or end > start + len(data):
            raise OSError(f"the bytes from {self._at:,} to {end:,} belong to no column that is read")
        found = bytes(data[self._at - start : end - start])
        self._at = end
        return found


def read_segment(files: Files, manifest: Manifest, segment: Segment, wanted: Wanted) -> Slices:
    """Read some slices of a segment: all that was asked for, or an error and nothing."""
    names = manifest.definition.keys
    with _guarded(files, segment):
        opened = _Opened(files, manifest, segment)
        keys, first = opened.index.keys, opened.index.first
        bounds = np.r_[first, segment.rows]
        chosen = np.arange(len(first)) if wanted.keys is None else _positions(keys, names, first, wanted.keys)
        rows, codes = _rows(bounds, chosen)
        held = opened.metadata.row_group(0).num_rows  # of every row group but the last
        groups = np.arange(opened.metadata.num_row_groups)
        if wanted.keys is not None:
            ends = zip(bounds[chosen], bounds[chosen + 1], strict=True)
            groups = np.unique(np.concatenate([np.zeros(0, np.int64), *(np.arange(a // held, -(-b // held)) for a, b in ends)]))
        table = opened.read(groups.tolist(), [START, *wanted.columns])
        if wanted.keys is not None:
            place = np.searchsorted(groups, rows // held)
            table = table.take(to_arrow(place * held + rows % held))
        times = micros(table[START])
        if len(times) != len(codes):
            raise ValueError(f"it has {len(times):,} slices, its index says {len(codes):,}")
    if segment.start < wanted.start or segment.end > wanted.end:
        inside = np.flatnonzero((times >= wanted.start) & (times < wanted.end))
        table, times, codes = table.take(to_arrow(inside)), times[inside], codes[inside]
    return Slices([keys[name].take(to_arrow(chosen)) for name in names], len(chosen), codes, times, table.select(list(wanted.columns)))


def segment_schema(files: Files, manifest: Manifest, segment: Segment) -> pa.Schema:
    """The columns of a segment and their types."""
    with _guarded(files, segment):
        return _Opened(files, manifest, segment).metadata.schema.to_arrow_schema().remove_metadata()


def segment_keys(files: Files, manifest: Manifest, segment: Segment) -> list[Any]:
    """The keys of a segment: of its index alone."""
    with _guarded(files, segment):
        index = _Opened(files, manifest, segment).index
        return key_values([index.keys[name] for name in manifest.definition.keys], len(index.first))


def merged(files: Files, manifest: Manifest, segments: Iterable[Segment], before: int | None = None, until: int | None = None) -> Sorted:
    """The slices of several segments as one; without those that end by `before` or start from `until` on.

    What a segment has no column of is null.
    """
    import pyarrow as pa

    tables = []
    for segment in segments:
        with _guarded(files, segment):
            opened = _Opened(files, manifest, segment)
            held = opened.metadata.schema.to_arrow_schema().names
            table = opened.read(range(opened.metadata.num_row_groups), held)
        if before is not None and segment.start < before:
            table = table.take(to_arrow(np.flatnonzero(micros(table[START]) >= before)))
        if until is not None and segment.end > until:
            table = table.take(to_arrow(np.flatnonzero(micros(table[START]) < until)))
        tables.append(table.replace_schema_metadata(None))
    whole = pa.concat_tables(tables, promote_options="default").combine_chunks()
    order = [name for name, _ in manifest.columns if name in whole.column_names]
    return sorted_slices(whole.select(order), manifest.definition.keys, manifest.definition.grain)


def _rows(bounds: Array, chosen: Array) -> tuple[Array, Array]:
    """The rows of the chosen keys, and which of the chosen each is of."""
    counts = bounds[chosen + 1] - bounds[chosen]
    codes = np.repeat(np.arange(len(chosen)), counts)
    starts = np.repeat(bounds[chosen] - np.r_[0, np.cumsum(counts)[:-1]], counts) if len(chosen) else np.zeros(0, np.int64)
    return starts + np.arange(len(codes)), codes


def _positions(keys: pa.Table, names: Sequence[str], first: Array, wanted: frozenset[Any]) -> Array:
    """Where the wanted keys stand among a segment's, which are in order: by halving for a few, by looking at all for many."""
    count = len(first)
    if not names:
        return np.arange(count) if () in wanted else np.zeros(0, np.int64)
    columns = [keys[name] for name in names]

    def rank(i: int) -> list[tuple[int, Any]]:
        return [_rank(column[i].as_py()) for column in columns]

    ranks = {key: [_rank(part) for part in ([key] if len(names) == 1 else key)] for key in wanted}
    for key, asked in ranks.items() if count else ():
        try:
            asked < rank(0)  # noqa: B015  what can't be compared is of another type
        except TypeError:
            told = ", ".join(f"{name} {keys[name].type}" for name in names)
            raise TileStoreError(f"{key!r} is not a key here: the key is {told}. Pass values of that type.") from None
    if len(wanted) > count // 16:
        asked_for = {tuple(asked) for asked in ranks.values()}  # by rank: NaN is no member of a set of values
        each = ([_rank(value) for value in column.to_pylist()] for column in columns)
        return np.fromiter((i for i, parts in enumerate(zip(*each, strict=True)) if parts in asked_for), np.int64)
    places = [(bisect.bisect_left(range(count), asked, key=rank), asked) for asked in ranks.values()]
    return np.array(sorted({at for at, asked in places if at < count and rank(at) == asked}), np.int64)


def _rank(value: Any) -> tuple[int, Any]:
    """The order of keys in a segment: values, then NaN, then null."""
    return (2, 0) if value is None else (1, 0) if value != value else (0, value)
