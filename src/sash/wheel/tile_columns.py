"""Columns of tiles into wheels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sash.agg import Aggregation
from sash.engine.tiles import tile_partial
from sash.wheel.tile_segments import Slices, to_arrow, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

    from sash.wheel.keyed_wheels import KeyedWheels

__all__ = ["insert", "item_type", "partials_of"]


def item_type(column: str | None) -> str | None:
    """The item type that the Arrow type of a column of partials tells; None where it does not.

    >>> item_type("int64"), item_type("struct<sum: double, count: int64>"), item_type("timestamp[us, tz=UTC]"), item_type("binary")
    ('int64', 'float64', 'int64', None)
    """
    inner = (column or "").removeprefix("struct<").removeprefix("sum: ").removeprefix("min: ").partition(",")[0]
    if inner.startswith(("int", "timestamp", "date32", "bool")):
        return "int64"
    return "float64" if inner.startswith(("double", "float")) else None


def insert(wheels: KeyedWheels, aggs: Mapping[str, Aggregation], name: str | None, slices: Slices) -> None:
    """Put the slices of one aggregation (of all, as a struct, without a name) into wheels."""
    if not len(slices.times):
        return
    if name is None:
        partials: Any = {part: partials_of(a, slices.columns[part]) for part, a in aggs.items()}
    else:
        partials = partials_of(aggs[name], slices.columns[name])
    wheels.insert_slices(_keys(slices), slices.times, partials)


def _keys(slices: Slices) -> Any:
    """The key of every slice: a column, a tuple of columns, or () for each where there is no key."""
    if not slices.keys:
        return [()] * len(slices.times)
    codes = to_arrow(slices.codes)
    columns = tuple(_as_key(column).take(codes) for column in slices.keys)
    return columns[0] if len(columns) == 1 else columns


def _as_key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a type that ``sash.keys`` knows; others, such as times of day, go in as text."""
    import pyarrow as pa
    import pyarrow.types as t

    kind = column.type
    known = (t.is_integer, t.is_floating, t.is_boolean, t.is_string, t.is_large_string, t.is_binary, t.is_large_binary)
    return column if any(is_(kind) for is_ in (*known, t.is_date, t.is_timestamp, t.is_decimal)) else column.cast(pa.string())


def partials_of(aggregation: Aggregation, column: pa.ChunkedArray) -> Any:
    """A column of partials as wheels take it: numbers as they are, a mapping of columns for a struct, else Python's partials."""
    import pyarrow as pa
    import pyarrow.types as t

    from sash.engine.types import as_integers, is_integer, is_real

    column = column.combine_chunks()
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    kind = column.type

    def number(values: pa.Array) -> Any:
        values = as_integers(values) if is_integer(values.type) else values.cast(pa.float64())
        return values if values.null_count else to_numpy(values)

    if not aggregation.parts and not aggregation.callables:
        if is_integer(kind) or is_real(kind):
            return number(column)
        if t.is_struct(kind) and all(is_integer(field.type) or is_real(field.type) for field in kind):
            return {field.name: number(values) for field, values in zip(kind, column.flatten(), strict=True)}
    return [tile_partial(aggregation, value) for value in column.to_pylist()]
