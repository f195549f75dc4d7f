"""How a query runs: its aggregations taken apart into columns of partials, native where there is a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core
from sash.engine.objects import ObjectColumn
from sash.engine.types import (
    as_integers,
    check_items,
    from_integers,
    is_integer,
    is_real,
    item_type,
    items_of,
    key_width,
    result_type,
    value_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from sash.agg import Aggregation
    from sash.engine.query import Query

__all__ = ["Layout", "Leaf", "RowView"]

Array = np.ndarray[Any, Any]
Each = Callable[..., Iterator[Any]]  # map, or that of a pool of threads


def numbers(column: pa.Array, dtype: Any) -> Array:
    """The values of an int64 or float64 column as an array, without a copy; nulls hold anything."""
    buffer = column.buffers()[1]
    if buffer is None or len(column) == 0:
        return np.zeros(len(column), dtype)
    return np.frombuffer(buffer, dtype, len(column), column.offset * 8)


def present(column: pa.Array) -> Array | None:
    """Which values are not null, None if all are."""
    return column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8) if column.null_count else None


def sortable(column: pa.Array) -> Array:
    """Numbers in the order of the column's values, nulls first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_integer(column.type) and not column.null_count:
        return numbers(as_integers(column), np.int64)
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not (is_integer(column.type) or is_real(column.type) or text or pa.types.is_decimal(column.type)):
        column = pa.array([None if v is None else repr(v) for v in column.to_pylist()], pa.string())
    encoded = column.dictionary_encode()
    rank = np.empty(len(encoded.dictionary) + 1, np.int64)
    rank[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    rank[-1] = -1
    ranked: Array = rank[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()]
    return ranked


class RowView:
    """A batch of rows as aggregations look at it: every conversion is made once."""

    def __init__(self, query: Query, batch: pa.RecordBatch) -> None:
        self.query, self.batch = query, batch
        self._numbers: dict[tuple[str, str], tuple[Array, Array | None]] = {}
        self._accepted: dict[Any, Array] = {}

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @cached_property
    def _time_column(self) -> pa.Array:
        return as_integers(self.batch.column(self.query.time))

    @cached_property
    def times(self) -> Array:
        """int64 microseconds; anything where the time is null."""
        return numbers(self._time_column, np.int64)

    @cached_property
    def timed(self) -> Array | None:
        """Which rows have a time, None if all have."""
        return present(self._time_column)

    def keys(self) -> tuple[Any, Array]:
        """The distinct keys, and the number of every row's key."""
        import pyarrow as pa

        columns = []
        for name in self.query.keys:
            column = self.batch.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            columns.append(column)
        return _core.encode_keys(columns, len(self))  # type: ignore[no-any-return]

    def numbers(self, name: str, type_: str) -> tuple[Array, Array | None]:
        """A column as int64 or float64, and which values are there."""
        import pyarrow as pa

        if (name, type_) not in self._numbers:
            column = self.batch.column(name)
            if is_integer(column.type):
                column = as_integers(column)
            if type_ == "float64":
                column = column.cast(pa.float64(), safe=False)
            self._numbers[name, type_] = numbers(column, np.dtype(type_)), present(column)
        return self._numbers[name, type_]

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Every row as a dict, its values as aggregations take them."""
        columns = [items_of(self.batch.column(name)) for name in self.batch.schema.names]
        return [dict(zip(self.batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def accepted(self, where: Any) -> Array | None:
        """Which rows a ``where`` accepts: a column that is true, or what a callable says of the row."""
        import pyarrow as pa

        if where is None:
            return None
        if where not in self._accepted:
            if isinstance(where, str) and pa.types.is_boolean(self.batch.schema.field(where).type):
                flags = self.batch.column(where).fill_null(False).to_numpy(zero_copy_only=False)
            elif isinstance(where, str):
                flags = np.fromiter((bool(v) for v in self.batch.column(where).to_pylist()), bool, len(self))
            else:
                flags = np.fromiter((bool(where(row)) for row in self.records), bool, len(self))
            self._accepted[where] = flags.view(np.uint8)
        return self._accepted[where]

    @cached_property
    def ties(self) -> tuple[Array, Array | None] | tuple[None, None]:
        """The tie column as numbers in its order, where it has a numeric type."""
        name = self.query.tie
        if name is None:
            return None, None
        if is_integer(self.batch.schema.field(name).type):
            return self.numbers(name, "int64")
        values, there = self.numbers(name, "float64")
        bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits), there


@dataclass
class Leaf:
    """One column of partials, and how to lower it."""

    aggregation: Aggregation
    type: pa.DataType
    items: str  # int64, float64, object
    column: Any  # a SliceColumn or an ObjectColumn without slices: what others are made from
    how: list[str] = field(default_factory=list)
    subtract: bool = False
    twin: Any = None  # leaves of one twin hold the same partials, and differ in how these are lowered

    @property
    def is_native(self) -> bool:
        return not isinstance(self.column, ObjectColumn)

    def lift(self, rows: RowView, places: Array, slices: int) -> Any:
        """The rows of a batch as partials in their slices."""
        a = self.aggregation
        accepted = rows.accepted(a.where)
        if self.is_native:
            if a.column is None or not a.looks_at_items:
                values, there = None, None if a.column is None else present(rows.batch.column(a.column))
            else:
                values, there = rows.numbers(a.column, self.items)
            if accepted is not None:
                there = accepted if there is None else accepted & there
            ties, tied = rows.ties if a.ties else (None, None)
            return self.column.lift(places, slices, values, there, rows.times, ties, tied)
        items = rows.records if a.column is None else items_of(rows.batch.column(a.column))
        beside = items_of(rows.batch.column(rows.query.tie)) if rows.query.tie and self.column.ordered else None
        return self.column.lift(places.tolist(), slices, items, accepted, rows.times.tolist(), beside)

    def slide(self, column: Any, stretches: tuple[Array, Array], groups: Array | None, by_rows: bool, to: Array | None) -> pa.Array:
        """The results of all stretches of Python objects; that of stretch j comes to place ``to[j]``."""
        results = column.slide(stretches[0].tolist(), stretches[1].tolist(), groups, by_rows)
        if to is not None:
            results = [results[j] for j in np.argsort(to).tolist()]
        return value_of(self.type, results)

    def arrow(self, fields: list[tuple[Array, Array, bool]]) -> pa.Array:
        """The lowered fields of a native column as one Arrow column."""
        import pyarrow as pa

        if len(fields) == 1:
            return _arrow(*fields[0], self.type)
        parts = [_arrow(*f, part.type) for f, part in zip(fields, self.type, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(self.type), mask=pa.array(fields[0][1] == 0))


class Sheet:
    """The results of many stretches for all native leaves: a place for each, written part by part, by any thread."""

    def __init__(self, layout: Layout, n: int) -> None:
        self._layout = layout
        self._arrays = {
            i: [(np.zeros(n, np.int64), np.zeros(n, np.uint8)) for _ in leaf.how] for i, leaf in enumerate(layout.leaves) if leaf.is_native
        }
        self._real: dict[int, list[bool]] = {i: [False] * len(pairs) for i, pairs in self._arrays.items()}

    def write(self, columns: list[Any], stretches: tuple[Array, Array], to: Array | None) -> None:
        """Write the results of some stretches, that of stretch j to place ``to[j]``; leaves of the same partials fold them once."""
        for twins in self._layout.twins:
            leaf = self._layout.leaves[twins[0]]
            how = [way for i in twins for way in self._layout.leaves[i].how]
            out = [pair for i in twins for pair in self._arrays[i]]
            places = [(i, k) for i in twins for k in range(len(self._arrays[i]))]
            for (i, k), real in zip(places, columns[twins[0]].slide(*stretches, how, leaf.subtract, to, out), strict=True):
                if real:  # never taken back: a part without results knows nothing
                    self._real[i][k] = True

    def column(self, i: int) -> pa.Array:
        """What a leaf's column has become."""
        pairs = zip(self._arrays[i], self._real[i], strict=True)
        return self._layout.leaves[i].arrow([(*pair, real) for pair, real in pairs])


def _arrow(bits: Array, valid: Array, real: bool, type_: pa.DataType) -> pa.Array:
    import pyarrow as pa

    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    column = pa.Array.from_buffers(pa.float64() if real else pa.int64(), len(bits), [bitmap, pa.py_buffer(bits)])
    return column if column.type == type_ else column.cast(type_) if real else from_integers(column, type_)


class Layout:
    """The leaves of all aggregations of a query, and how to put their results together again."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.leaves: list[Leaf] = []
        self.widths = [key_width(query.schema.field(name)) for name in query.keys]
        self._trees = [self._grow(a) for _, a in query.aggs]

    def _grow(self, aggregation: Aggregation) -> Any:
        if aggregation.parts:
            return [self._grow(part) for _, part in aggregation.parts]
        self.leaves.append(self._leaf(aggregation))
        return len(self.leaves) - 1

    def _leaf(self, a: Aggregation) -> Leaf:
        query = self.query
        column = None if a.column is None else query.schema.field(a.column).type
        items = item_type(a, column)
        type_ = result_type(a, query.schema, query.time)
        tie = None if query.tie is None else query.schema.field(query.tie).type
        if not a.ties or tie is None or is_integer(tie) or is_real(tie):
            native = a.slice_kernel(items)
            prototype = None if native is None else _core.slice_column(native.kernel, items, list(native.params))
            if native is not None and prototype is not None:
                subtract = a.inverts_exactly(items)
                # Callables can't be told apart by their value, so those of one object are the same.
                same = (native.kernel, native.params, items, a.column, a.looks_at_items, a.ties, subtract, a.where)
                return Leaf(a, type_, items, prototype, list(native.lowers), subtract, same)
        if column is not None and not a.callables:
            check_items(a, column, type_)
        return Leaf(a, type_, "object", ObjectColumn(a))

    def lift(self, rows: RowView, places: Array, slices: int, each: Each | None = None) -> list[Any]:
        """Every leaf's column for these rows; columns are not changed, so leaves of the same partials share one."""
        lead = {i: twins[0] for twins in self.twins for i in twins}
        own = [i for i in range(len(self.leaves)) if lead.get(i, i) == i]
        made = dict(zip(own, (each or map)(lambda i: self.leaves[i].lift(rows, places, slices), own), strict=True))
        return [made[lead.get(i, i)] for i in range(len(self.leaves))]

    def results(
        self,
        columns: list[Any],
        stretches: tuple[Array, Array],
        groups: Array | None = None,
        by_rows: bool = False,
        to: Array | None = None,
        sheet: Sheet | None = None,
    ) -> list[pa.Array]:
        """One Arrow column of results per aggregation of the query; the native ones are taken from a sheet where there is one."""
        if sheet is None:
            sheet = Sheet(self, len(stretches[0]))
            sheet.write(columns, stretches, to)
        return self.assemble(
            [
                sheet.column(i) if leaf.is_native else leaf.slide(columns[i], stretches, groups, by_rows, to)
                for i, leaf in enumerate(self.leaves)
            ]
        )

    @cached_property
    def twins(self) -> list[list[int]]:
        """The native leaves by their partials: sum and mean of a column are two ways to lower one."""
        out: dict[Any, list[int]] = {}
        for i, leaf in enumerate(self.leaves):
            if leaf.is_native:
                out.setdefault(leaf.twin, []).append(i)
        return list(out.values())

    def assemble(self, parts: list[pa.Array]) -> list[pa.Array]:
        """The columns of all leaves as one per aggregation."""
        return [_assemble(tree, a, parts) for tree, (_, a) in zip(self._trees, self.query.aggs, strict=True)]

    @cached_property
    def all_native(self) -> bool:
        """Whether no leaf holds Python objects."""
        return all(leaf.is_native for leaf in self.leaves)

    @cached_property
    def needs_groups(self) -> bool:
        """Whether some leaf looks at which entries have equal times."""
        return any(not leaf.is_native and leaf.column.ordered for leaf in self.leaves)


def _assemble(tree: Any, aggregation: Aggregation, parts: list[pa.Array]) -> pa.Array:
    import pyarrow as pa

    if isinstance(tree, int):
        return parts[tree]
    inner = [_assemble(branch, part, parts) for branch, (_, part) in zip(tree, aggregation.parts, strict=True)]
    return pa.StructArray.from_arrays(inner, names=[name for name, _ in aggregation.parts])
