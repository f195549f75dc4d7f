"""Tables of any container: columns by name, of one length; and records of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sash.containers.columns import arrow, arrow_numpy, is_struct, library, listed, sized, without_gaps

__all__ = ["Table", "objects", "records", "table"]

Array = np.ndarray[Any, Any]


class Table(NamedTuple):
    """Columns by name, of one length."""

    rows: int
    names: tuple[Any, ...]
    get: Callable[[Any], Any]
    nulls: Array | None = None  # rows that are no record at all


def table(values: Any) -> Table | None:
    """Give the columns of a mapping, a frame, an Arrow table or a structured array, None for what is one column; lengths are compared.

    >>> t = table({"a": [1, 2], "b": ["x", "y"]})
    >>> t.rows, t.names, t.get("b")
    (2, ('a', 'b'), ['x', 'y'])
    >>> table({"a": [1, 2], "b": ["x"]})
    Traceback (most recent call last):
    ...
    ValueError: column 'a' has 2 rows, but column 'b' has 1. Pass columns of one length.
    """
    if isinstance(values, np.ndarray):
        return _of_structured(values) if values.dtype.names else None
    if isinstance(values, list | tuple):
        return None
    if isinstance(values, Mapping):
        return _of_mapping(values)
    match library(values):
        case "pandas":
            return _of_frame(values, values.columns.tolist()) if getattr(values, "ndim", 1) == 2 else None
        case "polars":
            return _polars_table(values)
        case "arrow":
            return _arrow_table(arrow(values))
    return None


def _named(get: Callable[[Any], Any], names: list[Any] | tuple[Any, ...]) -> Callable[[Any], Any]:
    def named(name: Any) -> Any:
        if (many := sum(name == other for other in names)) != 1:
            told = f"there is no column {name!r}" if not many else f"there are {many} columns {name!r}"
            raise KeyError(f"{told}. The columns are {', '.join(map(repr, names))}.")
        return get(name)

    return named


def _of_mapping(values: Mapping[Any, Any]) -> Table:
    columns = {name: sized(held, f"a column (under {name!r})") for name, held in values.items()}
    lengths = {name: len(held) for name, held in columns.items()}
    for name, length in lengths.items():
        first = next(iter(lengths))
        if length != lengths[first]:
            raise ValueError(f"column {first!r} has {lengths[first]} rows, but column {name!r} has {length}. Pass columns of one length.")
    return Table(next(iter(lengths.values()), 0), tuple(columns), _named(columns.__getitem__, tuple(columns)))


def _of_structured(values: Array) -> Table:
    names = values.dtype.names or ()
    return Table(len(values), names, _named(values.__getitem__, names))


def _of_frame(values: Any, names: list[Any]) -> Table:
    return Table(len(values), tuple(names), _named(values.__getitem__, names))


def _polars_table(values: Any) -> Table | None:
    if hasattr(values, "collect"):
        raise TypeError("this is a query that has not run yet (a LazyFrame). Pass its collect().")
    if hasattr(values, "columns"):
        return _of_frame(values, values.columns)
    if values.dtype.is_nested() and hasattr(values.dtype, "fields"):
        inner = values.struct.unnest()
        return _of_frame(inner, inner.columns)._replace(nulls=without_gaps(values.is_null().to_numpy()))
    return None


def _arrow_table(values: Any) -> Table | None:
    if hasattr(values, "column_names"):
        return Table(values.num_rows, tuple(values.column_names), _named(values.column, values.column_names))
    if not is_struct(values):
        return None
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    columns = dict(zip(names, values.flatten(), strict=True))  # with the nulls of the records themselves
    return Table(len(values), tuple(names), _named(columns.__getitem__, names), without_gaps(arrow_numpy(values.is_null())))


def objects(values: Any) -> list[Any]:
    """List the items of a column, or the records of a table, as plain Python objects; a null is None.

    >>> objects({"a": [1, 2], "b": ["x", None]})
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': None}]
    """
    values = sized(values)
    if (held := table(values)) is not None:
        return records(held, held.names)
    return listed(values)


def records(held: Table, names: Iterable[Any]) -> list[Any]:
    """List the records of a table, with these columns only."""
    names = tuple(names)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(objects(held.get(name)) for name in names), strict=True)]
    if not names:
        rows = [{} for _ in range(held.rows)]
    return rows if held.nulls is None else [None if gone else row for row, gone in zip(rows, held.nulls, strict=True)]
