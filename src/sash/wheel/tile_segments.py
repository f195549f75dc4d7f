"""Units: Parquet files of slices sorted by key and time, each with a small index of where its keys are.

Other engines read the Parquet alone. The index lets a few keys of many be read without a scan: a key's rows lie side by side,
so they are in one row group or a few.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from sash import codec
from sash.errors import missing_extra
from sash.wheel.errors import TileStoreError
from sash.wheel.tile_manifest import FOLDER, Segment, write_aside

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["END", "START", "Slices", "merged", "read_segment", "require_arrow", "sorted_slices", "write_segment"]

START: Final = "slice_start"
END: Final = "slice_end"
_ROWS: Final = 16_384  # of a row group: what is read at least for a key
_INDEX: Final = "tile index"
_PRINT: Final = b"sash.fingerprint"

Array = np.ndarray[Any, Any]


def require_arrow() -> None:
    """Say which extra brings Arrow where it is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise missing_extra("pyarrow", "store") from None


class Slices(NamedTuple):
    """Some slices of a segment: its keys that have any, which of them each row is of, when it starts, and the columns of partials."""

    keys: list[pa.ChunkedArray]
    held: int  # how many keys
    codes: Array
    times: Array
    columns: pa.Table

    def key_values(self) -> list[Any]:
        """The keys as a user names them."""
        return _values(self.keys, self.held)


class Sorted(NamedTuple):
    """Slices in the order they are stored: by key, then time."""

    table: pa.Table
    keys: dict[str, pa.Array]  # each once, in order
    first: Array  # the row where each key begins


def sorted_slices(table: pa.Table, keys: Sequence[str], grain: int) -> Sorted:
    """Sort slices by key and time, keeping the order of equal ones. Sorted stretches make it cheap: it is a merge of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = table.num_rows
    codes = np.zeros(count, np.int64)
    radices: list[tuple[Any, int]] = []  # a column's values in order, null last, and how many
    for name in keys:
        column = table[name].combine_chunks().dictionary_encode()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        values = column.dictionary
        order = pc.sort_indices(values)
        rank = np.empty(len(values) + 1, np.int64)
        rank[to_numpy(order.cast(pa.int64()))] = np.arange(len(values))
        rank[-1] = len(values)
        indices = to_numpy(pc.fill_null(column.indices.cast(pa.int64()), len(values)))
        radices.append((pa.concat_arrays([values.take(order), pa.nulls(1, values.type)]), len(values) + 1))
        codes = codes * radices[-1][1] + rank[indices]
    times = micros(table[START])
    ticks = (times - times.min()) // grain if count else times
    span = int(ticks.max()) + 1 if count else 1
    roomy = count == 0 or int(codes.max()) < 2**62 // span
    order = np.argsort(codes * span + ticks, kind="stable") if roomy else np.lexsort((ticks, codes))
    codes = codes[order]
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if count else np.zeros(0, np.int64)
    distinct = codes[first]
    columns: list[Any] = []
    for values, radix in reversed(radices):
        columns.append(values.take(to_arrow(distinct % radix)))
        distinct = distinct // radix
    return Sorted(table.take(to_arrow(order)), dict(zip(keys, reversed(columns), strict=True)), first)


# pa.array() and to_numpy() import pandas where it is installed: a quarter of a second, more than opening a store takes.


def to_arrow(values: Array) -> pa.Array:
    """An int64 array as an Arrow array over the same memory."""
    import pyarrow as pa

    whole = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def to_numpy(column: Any) -> Array:
    """A column of int64 or float64 without nulls as a NumPy array, over the same memory where it is in one piece."""
    import pyarrow as pa

    array = column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else None
    dtype = np.float64 if pa.types.is_floating(column.type) else np.int64
    if array is None or len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * 8)


def micros(column: Any) -> Array:
    """A column of times as int64 microseconds."""
    import pyarrow as pa

    return to_numpy(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()))


def write_segment(store: Path, file: str, slices: Sorted, fingerprint: str, first: int, last: int, level: int, grain: int) -> Segment:
    """Write a segment and its index aside, then rename them: a file of its name is whole."""
    import pyarrow.parquet as pq

    table = slices.table.replace_schema_metadata({_PRINT: fingerprint.encode(), b"sash.batches": f"{first}-{last}".encode()})
    aside = store / f".{file}.{os.getpid()}.tmp"
    # Keys come in runs, so their dictionaries cost nothing; checksums tell a damaged page from data.
    pq.write_table(table, aside, row_group_size=_ROWS, compression="zstd", compression_level=1, write_page_checksum=True)
    with aside.open("rb") as written:
        os.fsync(written.fileno())
    size = aside.stat().st_size
    _write_index(store, file, _index_of(slices), fingerprint)
    aside.replace(store / file)
    times = micros(table[START])
    start, end = (int(times.min()), int(times.max()) + grain) if len(times) else (0, 0)
    return Segment(file, first, last, level, table.num_rows, size, start, end)


def _index_path(store: Path, file: str) -> Path:
    return store / FOLDER / f"{Path(file).stem}.index"


def _index_of(slices: Sorted) -> bytes:
    """Where each key begins, as an Arrow file."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    table = pa.table({**slices.keys, "": to_arrow(slices.first)})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _write_index(store: Path, file: str, payload: bytes, fingerprint: str) -> None:
    write_aside(_index_path(store, file), codec.seal(_INDEX, bytes.fromhex(fingerprint), payload))


def remove_segment(store: Path, file: str) -> None:
    """Delete a segment that no manifest names any more."""
    (store / file).unlink(missing_ok=True)
    _index_path(store, file).unlink(missing_ok=True)


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which slices to read: of some keys (None: of all), that start in [start, end), and which columns."""

    keys: frozenset[Any] | None
    start: int
    end: int
    columns: tuple[str, ...]


def check_segment(store: Path, segment: Segment) -> None:
    """Refuse a segment that is not as long as the manifest says."""
    path = store / segment.file
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        raise MissingSegment(f"{path} is missing: the manifest names it, with {segment.rows:,} slices. Restore it from a copy.") from None
    if found != segment.size:
        raise TileStoreError(
            f"{path} is damaged: it has {found:,} bytes, the manifest says {segment.size:,}. "
            "Restore it from a copy; the other segments were not touched, and nothing was read."
        )


class MissingSegment(TileStoreError):
    """A segment is gone: either lost, or merged into another since the manifest was read."""


def read_segment(store: Path, segment: Segment, definition_keys: Sequence[str], grain: int, fingerprint: str, wanted: Wanted) -> Slices:
    """Read some slices of a segment: all that was asked for, or an error and nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_segment(store, segment)
    path = store / segment.file
    try:
        file = pq.ParquetFile(path, memory_map=True, page_checksum_verification=True)
        stored = (file.schema_arrow.metadata or {}).get(_PRINT, b"").decode()
        if stored != fingerprint:
            raise TileStoreError(f"{path} holds tiles of another definition than its manifest. Restore the file that belongs there.")
        keys, first = _index(store, segment, definition_keys, grain, fingerprint, file)
        bounds = np.r_[first, segment.rows]
        chosen = np.arange(len(first)) if wanted.keys is None else _positions(keys, definition_keys, first, wanted.keys)
        rows, codes = _rows(bounds, chosen)
        columns = [START, *wanted.columns]
        if wanted.keys is None:
            table = file.read(columns)
        elif len(chosen) == 0:
            table = file.read_row_groups([], columns)
        else:
            held = file.metadata.row_group(0).num_rows  # of every row group but the last
            ends = zip(bounds[chosen], bounds[chosen + 1], strict=True)
            groups = np.unique(np.concatenate([np.arange(a // held, -(-b // held)) for a, b in ends]))
            table = file.read_row_groups(groups.tolist(), columns)
            place = np.searchsorted(groups, rows // held)
            table = table.take(to_arrow(place * held + rows % held))
        times = micros(table[START])
    except FileNotFoundError:
        raise MissingSegment(f"{path} is missing: the manifest names it, with {segment.rows:,} slices. Restore it from a copy.") from None
    except (OSError, pa.ArrowException) as error:
        raise TileStoreError(f"{path} is damaged: {error}. Restore it from a copy; the other segments were not touched.") from error
    if segment.start < wanted.start or segment.end > wanted.end:
        inside = np.flatnonzero((times >= wanted.start) & (times < wanted.end))
        table, times, codes = table.take(to_arrow(inside)), times[inside], codes[inside]
    return Slices(
        [keys[name].take(to_arrow(chosen)) for name in definition_keys], len(chosen), codes, times, table.select(list(wanted.columns))
    )


def segment_keys(store: Path, segment: Segment, keys: Sequence[str], grain: int, fingerprint: str) -> list[Any]:
    """The keys of a segment: of its index alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_segment(store, segment)
    try:
        table, first = _index(store, segment, keys, grain, fingerprint, pq.ParquetFile(store / segment.file))
    except (OSError, pa.ArrowException) as error:
        raise TileStoreError(f"{store / segment.file} is damaged: {error}. Restore it from a copy.") from error
    return _values([table[name] for name in keys], len(first))


def _values(columns: Sequence[Any], count: int) -> list[Any]:
    """Keys as a user names them: a value for one column, a tuple for several, () for none."""
    lists = [column.to_pylist() for column in columns]
    if len(lists) == 1:
        return lists[0]  # type: ignore[no-any-return]
    return list(zip(*lists, strict=True)) if lists else [()] * count


def _rows(bounds: Array, chosen: Array) -> tuple[Array, Array]:
    """The rows of the chosen keys, and which of the chosen each is of."""
    counts = bounds[chosen + 1] - bounds[chosen]
    codes = np.repeat(np.arange(len(chosen)), counts)
    starts = np.repeat(bounds[chosen] - np.r_[0, np.cumsum(counts)[:-1]], counts) if len(chosen) else np.zeros(0, np.int64)
    return starts + np.arange(len(codes)), codes


def _index(store: Path, segment: Segment, keys: Sequence[str], grain: int, fingerprint: str, file: Any) -> tuple[pa.Table, Array]:
    """Read where each key's rows begin; where the index is missing or damaged, make it again from the tiles."""
    import pyarrow as pa

    try:
        payload = codec.unseal(_INDEX, bytes.fromhex(fingerprint), _index_path(store, segment.file).read_bytes())
    except (OSError, ValueError):
        payload = _index_of(sorted_slices(file.read([*keys, START]), keys, grain))
        with contextlib.suppress(OSError):  # who may only read makes it for itself
            _write_index(store, segment.file, payload, fingerprint)
    table = pa.ipc.open_file(pa.BufferReader(payload)).read_all()
    return table, to_numpy(table[""])


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
        asked_for = {tuple(asked) for asked in ranks.values()}
        each = zip(*([_rank(value) for value in column.to_pylist()] for column in columns), strict=True)
        return np.fromiter((i for i, key in enumerate(each) if key in asked_for), np.int64)
    places = [(bisect.bisect_left(range(count), asked, key=rank), asked) for asked in ranks.values()]
    return np.array(sorted(at for at, asked in places if at < count and rank(at) == asked), np.int64)


def _rank(value: Any) -> tuple[int, Any]:
    """The order of keys in a segment: values, then NaN, then null."""
    return (2, 0) if value is None else (1, 0) if value != value else (0, value)


def merged(store: Path, segments: Iterable[Segment], keys: Sequence[str], grain: int, before: int | None = None) -> Sorted:
    """The slices of several segments as one; without those that end by `before`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for segment in segments:
        check_segment(store, segment)
        try:
            table = pq.ParquetFile(store / segment.file, page_checksum_verification=True).read()
        except (OSError, pa.ArrowException) as error:
            raise TileStoreError(f"{store / segment.file} is damaged: {error}. Restore it from a copy; nothing was changed.") from error
        if before is not None and segment.start < before:
            table = table.take(to_arrow(np.flatnonzero(micros(table[START]) >= before)))
        tables.append(table.replace_schema_metadata(None))
    return sorted_slices(pa.concat_tables(tables).combine_chunks(), keys, grain)
