"""Segments: Parquet files of slices sorted by key and time, each with a small index of where its keys are.

Other engines read the Parquet alone. The index lets a few keys of many be read without a scan: a key's rows lie side by side,
so they are in one row group or a few. It also holds the checksums of the footer and of every column chunk.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from sash import codec
from sash.errors import missing_extra
from sash.time import timestamp_text
from sash.wheel.errors import TileStoreError
from sash.wheel.tile_files import FOLDER, Files
from sash.wheel.tile_manifest import Segment

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "END",
    "START",
    "Slices",
    "footer_of",
    "index_name",
    "index_of",
    "key_values",
    "micros",
    "remove_segment",
    "require_arrow",
    "sorted_slices",
    "to_arrow",
    "to_numpy",
    "write_index",
    "write_segment",
]

START: Final = "slice_start"
END: Final = "slice_end"
PRINT: Final = b"sash.fingerprint"  # in a segment's footer: of the definition
CHUNKS: Final = b"sash.chunks"  # in an index: CRC-32 of every column chunk, by row group, then column, 4 bytes each, little-endian
FOOTER: Final = b"sash.footer"  # in an index: CRC-32 of the footer with its length and magic, 4 bytes, little-endian
INDEX: Final = "tile index"
_ROWS: Final = 16_384  # of a row group: what is read at least for a key

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
        return key_values(self.keys, self.held)


class Sorted(NamedTuple):
    """Slices in the order they are stored: by key, then time."""

    table: pa.Table
    keys: dict[str, pa.Array]  # each once, in order
    first: Array  # the row where each key begins


def sorted_slices(table: pa.Table, keys: Sequence[str], grain: int, *, once: bool = False) -> Sorted:
    """Sort slices by key and time, keeping the order of equal ones. Sorted stretches make it cheap: it is a merge of them.

    With `once`, two slices of one key and time are refused.
    """
    count = table.num_rows
    codes, radices = key_codes(table, keys)
    times = micros(table[START])
    ticks = (times - times.min()) // grain if count else times
    span = int(ticks.max()) + 1 if count else 1
    roomy = count == 0 or int(codes.max()) < 2**62 // span
    order = np.argsort(codes * span + ticks, kind="stable") if roomy else np.lexsort((ticks, codes))
    codes = codes[order]
    if once:
        ticks = ticks[order]
        again = np.flatnonzero((codes[1:] == codes[:-1]) & (ticks[1:] == ticks[:-1]))
        if len(again):
            row = int(order[again[0] + 1])
            key = key_values([table[name].slice(row, 1) for name in keys], 1)[0]
            whose = f" of the key {key!r}" if keys else ""
            raise TileStoreError(
                f"the slice{whose} that starts at {timestamp_text(int(times[row]))} is there twice. A slice holds all of one key and one "
                "grain of time: combine what belongs together first. Nothing was written."
            )
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if count else np.zeros(0, np.int64)
    return Sorted(table.take(to_arrow(order)), keys_of(codes[first], keys, radices), first)


Radices = list[tuple[Any, int]]  # of each key column: its values in order, null last, and how many


def key_codes(table: pa.Table, keys: Sequence[str]) -> tuple[Array, Radices]:
    """Number the keys of rows in their order: equal ones alike, also NaN and null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = np.zeros(table.num_rows, np.int64)
    radices: Radices = []
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
    return codes, radices


def keys_of(codes: Array, keys: Sequence[str], radices: Radices) -> dict[str, pa.Array]:
    """The key columns that numbers stand for."""
    columns: list[Any] = []
    for values, radix in reversed(radices):
        columns.append(values.take(to_arrow(codes % radix)))
        codes = codes // radix
    return dict(zip(keys, reversed(columns), strict=True))


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


def write_segment(
    files: Files, slices: Sorted, fingerprint: str, first: int, last: int, level: int, grain: int, folder: str = ""
) -> Segment:
    """Put a segment and its index, under a name that was never used before."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = slices.table.replace_schema_metadata({PRINT: fingerprint.encode(), b"sash.batches": f"{first}-{last}".encode()})
    sink = pa.BufferOutputStream()
    # Keys come in runs, so their dictionaries cost nothing; checksums tell a damaged page from data.
    pq.write_table(table, sink, row_group_size=_ROWS, compression="zstd", compression_level=1, write_page_checksum=True)
    data = sink.getvalue()
    # The name is made by chance: one that was read in an older manifest never comes to mean another file, also after a kill.
    file = f"{folder}tiles-{first:08d}-{last:08d}-{secrets.token_hex(6)}.parquet"
    write_index(files, file, index_of(slices, data), fingerprint)
    files.put(file, data)
    times = micros(table[START])
    start, end = (int(times.min()), int(times.max()) + grain) if len(times) else (0, 0)
    return Segment(file, first, last, level, table.num_rows, data.size, start, end, zlib.crc32(data))


def remove_segment(files: Files, file: str) -> None:
    """Delete a segment that no manifest names any more."""
    files.delete(file)
    files.delete(index_name(file))


# --- the index of a segment


def index_name(file: str) -> str:
    """The name of a segment's index."""
    return f"{FOLDER}/{file.rpartition('/')[2].removesuffix('.parquet')}.index"


def index_of(slices: Sorted, data: Any) -> bytes:
    """Where each key begins, as an Arrow file; in its schema's metadata, the checksums of a segment's bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    view = memoryview(data)
    footer = footer_of(view)
    metadata = pq.read_metadata(pa.BufferReader(data))
    chunks = [zlib.crc32(view[start : start + size]) for group in chunk_ranges(metadata) for start, size in group]
    checks = {CHUNKS: np.array(chunks, "<u4").tobytes(), FOOTER: zlib.crc32(footer).to_bytes(4, "little")}
    sink = pa.BufferOutputStream()
    table = pa.table({**slices.keys, "": to_arrow(slices.first)}).replace_schema_metadata(checks)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def footer_of(view: memoryview) -> memoryview:
    """The footer at the end of a Parquet file, with its length and magic."""
    length = int.from_bytes(view[-8:-4], "little") + 8
    if len(view) < 12 or length > len(view) - 4:
        raise ValueError("its footer does not fit into it")
    return view[-length:]


def chunk_ranges(metadata: Any) -> list[list[tuple[int, int]]]:
    """Where every column chunk is, by row group: (offset, size)."""
    found = []
    for g in range(metadata.num_row_groups):
        group = metadata.row_group(g)
        chunks = [group.column(c) for c in range(group.num_columns)]
        found.append([(c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset, c.total_compressed_size) for c in chunks])
    return found


def write_index(files: Files, file: str, payload: bytes, fingerprint: str) -> None:
    """Put a segment's index."""
    files.put(index_name(file), codec.seal(INDEX, bytes.fromhex(fingerprint), payload))


def key_values(columns: Sequence[Any], count: int) -> list[Any]:
    """Keys as a user names them: a value for one column, a tuple for several, () for none."""
    lists = [column.to_pylist() for column in columns]
    if len(lists) == 1:
        return lists[0]  # type: ignore[no-any-return]
    return list(zip(*lists, strict=True)) if lists else [()] * count
