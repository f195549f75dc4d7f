"""A sorted run: the slices of many keys in order of key and time, a column of partials per leaf of the layout.

State, deltas, what a map task sends: all are runs. The loops are in the core (``runs.hpp``), where the picture is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core, codec

if TYPE_CHECKING:
    import pyarrow as pa

    from sash.engine.layout import Each, Layout, RowView

__all__ = ["BEFORE_ALL", "Run", "key_columns"]

Array = np.ndarray[Any, Any]
BEFORE_ALL = -(2**63)  # the time of a key's folded past
MOST = 2**28  # slices that a blob may say to hold in fewer bytes


@dataclass
class Run:
    """Keys, where each key's slices start, the slices' times (or numbers of panes), and their partials."""

    layout: Layout
    keys: Any
    starts: Array
    times: Array
    columns: list[Any]

    @classmethod
    def empty(cls, layout: Layout) -> Run:
        """A run without keys."""
        none = np.zeros(0, np.int64)
        return cls(layout, _core.KeyTable(), np.zeros(1, np.int64), none, [leaf.column for leaf in layout.leaves])

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of_rows(
        cls, layout: Layout, rows: RowView, keys: Any, ids: Array, ties: list[Array], each: Each | None = None
    ) -> tuple[Run, Array]:
        """Every row an entry of its own, by key, time and ties; also the place of every row."""
        starts, times, places = _core.order_rows(ids, rows.times, ties, len(keys))
        return cls(layout, keys, starts, times, layout.lift(rows, places, len(times), each)), places

    def merge(self, other: Run, combine: bool, oldest: int = BEFORE_ALL) -> tuple[Run, Array]:
        """Merge both, without slices before ``oldest``; where ``oldest`` is None, also give the places of the other's slices."""
        if not len(other) and (not len(self) or oldest == BEFORE_ALL):
            return self, np.zeros(0, np.int32)
        if not len(self):
            return other.keep(oldest) if oldest > BEFORE_ALL else other, np.arange(len(other), dtype=np.int32)
        keys, starts, times, left, right = _core.merge_runs(
            self.keys, self.starts, self.times, other.keys, other.starts, other.times, combine, oldest
        )
        columns = [
            leaf.column.gather([mine, theirs], [left, right], len(times))
            for leaf, mine, theirs in zip(self.layout.leaves, self.columns, other.columns, strict=True)
        ]
        return Run(self.layout, keys, starts, times, columns), right

    def keep(self, oldest: int, rows: int = 0, fold: bool = False, only: int = -1) -> Run:
        """Keep the entries from ``oldest`` on and the last ``rows`` of each key; fold or drop all others."""
        if not len(self) or (only < 0 and not (self.times < oldest).any()):
            return self
        keys, starts, times, places = _core.keep_entries(self.keys, self.starts, self.times, oldest, rows, fold, only)
        columns = [
            leaf.column.gather([column], [places], len(times)) for leaf, column in zip(self.layout.leaves, self.columns, strict=True)
        ]
        return Run(self.layout, keys, starts, times, columns)

    def coarsen(self, before: int, rows: int, hop: int) -> Run:
        """One entry per hop of those before a time, but for the last ``rows`` of each key."""
        if not len(self):
            return self
        starts, times, places = _core.coarsen(self.starts, self.times, before, rows, hop)
        if len(times) == len(self):
            return self
        columns = [
            leaf.column.gather([column], [places], len(times)) for leaf, column in zip(self.layout.leaves, self.columns, strict=True)
        ]
        return Run(self.layout, self.keys, starts, times, columns)

    @cached_property
    def key_columns(self) -> list[pa.Array]:
        """The columns of all keys, in order."""
        return key_columns(self.layout, self.keys)

    def groups(self) -> Array | None:
        """A number per entry, equal where key and time are."""
        if not self.layout.needs_groups:
            return None
        new = np.ones(len(self.times), bool)
        new[1:] = self.times[1:] != self.times[:-1]
        new[self.starts[:-1]] = True
        return np.cumsum(new)

    def pack(self, first: int = 0, last: int | None = None, rows: Array | None = None) -> bytes:
        """Write the keys from first to last; ``rows`` travels along, one number per slice."""
        last = len(self.keys) if last is None else last
        a, b = int(self.starts[first]), int(self.starts[last])
        counts = np.diff(self.starts[first : last + 1])
        parts = [self.keys.pack(first, last), _core.pack_words(counts), _core.pack_words(self.times[a:b])]
        parts.append(b"" if rows is None else _core.pack_words(rows[a:b]))
        parts += [column.pack(a, b) for column in self.columns]
        return codec.encode((last - first, b - a, parts))

    @classmethod
    def unpack(cls, layout: Layout, data: bytes) -> tuple[Run, Array | None]:
        """Read what ``pack`` wrote."""
        with codec.refusing():
            keys, slices, parts = codec.decode(data)
            if len(parts) != 4 + len(layout.leaves):
                raise IndexError("they hold another number of columns")
            # A key has at least a byte, unless there are no key columns; words that are all alike take none, however many there are.
            if not 0 <= keys <= max(len(parts[0]), 1) or not 0 <= slices <= max(8 * len(data), MOST):
                raise IndexError("they count more than they hold")
            counts = _core.unpack_words(parts[1], keys)
            starts = np.zeros(keys + 1, np.int64)
            np.cumsum(counts, out=starts[1:])
            if starts[-1] != slices or (counts < 0).any():
                raise IndexError("the slices of all keys are not as many as there are")
            times = _core.unpack_words(parts[2], slices)
            falls = np.flatnonzero(times[1:] < times[:-1]) + 1
            if len(falls) and not np.isin(falls, starts).all():
                raise IndexError("the slices of a key are out of order")
            rows = _core.unpack_words(parts[3], slices) if parts[3] else None
            columns = [leaf.column.unpack(part, slices) for leaf, part in zip(layout.leaves, parts[4:], strict=True)]
            return cls(layout, _core.KeyTable.unpack(parts[0], keys), starts, times, columns), rows


def key_columns(layout: Layout, keys: Any) -> list[pa.Array]:
    """The columns of all keys of a table, in its order."""
    import pyarrow as pa

    columns = []
    for name, (valid, offsets, data) in zip(layout.query.keys, keys.decode(layout.widths), strict=True):
        type_ = layout.query.schema.field(name).type
        bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        if offsets is not None:
            binary = pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
            base = pa.large_binary() if binary else pa.large_string()
            column = pa.Array.from_buffers(base, len(valid), [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)]).cast(type_)
        elif pa.types.is_boolean(type_):
            bits = np.packbits(np.frombuffer(data, np.uint8), bitorder="little")
            column = pa.Array.from_buffers(type_, len(valid), [bitmap, pa.py_buffer(bits)])
        else:
            column = pa.Array.from_buffers(type_, len(valid), [bitmap, pa.py_buffer(data)])
        columns.append(column)
    return columns
