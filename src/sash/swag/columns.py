"""Whole columns in and out of windows: the one place that understands NumPy, Arrow, pandas and plain iterables.

A column of numbers becomes an int64 or float64 array and, where there are nulls, a mask of bytes. What holds anything
else stays a list of Python objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sash.agg.base import Aggregation
from sash.time import timestamps

__all__ = ["column", "length", "numbers", "objects", "read", "read_ranges", "results", "rows"]

Array = np.ndarray[Any, Any]
Numbers = tuple[Array, Array | None]


def numbers(values: Any) -> Numbers | None:
    """Read a column as numbers and a mask of nulls; None if it holds anything else.

    >>> numbers([1, None, 2.5])
    (array([1. , 0. , 2.5]), array([0, 1, 0], dtype=uint8))
    """
    mask: Array | None = None
    if hasattr(values, "null_count") and hasattr(values, "fill_null"):  # Arrow
        if values.null_count:
            mask = np.asarray(values.is_null().to_numpy(zero_copy_only=False)).astype(np.uint8)
            if str(values.type) == "null":
                return np.zeros(len(values), np.int64), mask
            try:
                values = values.fill_null(False if str(values.type) == "bool" else 0)
            except Exception:
                return None
        values = values.to_numpy() if hasattr(values, "chunks") else values.to_numpy(zero_copy_only=False)
    elif hasattr(values, "isna") and hasattr(values, "to_numpy"):  # pandas
        if getattr(values.dtype, "na_value", None) is not None and getattr(values.dtype, "numpy_dtype", None) is not None:
            if values.isna().any():
                mask = values.isna().to_numpy().astype(np.uint8)
                values = values.fillna(False if values.dtype.numpy_dtype.kind == "b" else 0)
            values = values.to_numpy(dtype=values.dtype.numpy_dtype)
        else:
            values = values.to_numpy()
    elif hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values.to_numpy()
    if not isinstance(values, np.ndarray):
        values = values if isinstance(values, list | tuple) else list(values)
        kinds = set(map(type, values))
        if kinds <= {int, bool, float, type(None)}:
            if type(None) in kinds:
                mask = np.fromiter((value is None for value in values), np.uint8, len(values))
                values = [0 if value is None else value for value in values]
            try:
                values = np.array(values, np.float64 if float in kinds else np.int64)
            except OverflowError:
                return None
        else:
            array = np.array(values, dtype=object) if not kinds or kinds & {str, bytes, dict} else _as_array(values)
            values = array
    if values.ndim != 1:
        raise ValueError(f"a column has one dimension, this one has {values.ndim}. Pass one column at a time.")
    kind = values.dtype.kind
    if kind in "bi" or (kind == "u" and (values.size == 0 or values.max() < 2**63)):
        return np.ascontiguousarray(values, np.int64), mask
    if kind == "f":
        return np.ascontiguousarray(values, np.float64), mask
    if kind == "O" and all(value is None or type(value) in (int, bool, float) for value in values):
        return numbers(values.tolist())
    return None


def _as_array(values: Any) -> Array:
    array = np.asarray(values)
    if array.ndim == 1 and array.dtype.kind in "biuf":
        return array
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def column(values: Any, name: str | None) -> Any:
    """Pick a column out of an array of records, a data frame, a table or a mapping; without a name, all of it."""
    if name is None:
        return values
    if isinstance(values, Mapping) or hasattr(values, "columns") or hasattr(values, "column_names"):
        return values[name]
    if isinstance(values, np.ndarray):
        return values[name] if values.dtype.names else values
    return [value[name] if isinstance(value, Mapping) else value for value in values]


def length(values: Any) -> int:
    """Count the rows of a column, or of a mapping of columns."""
    if isinstance(values, Mapping):
        return len(next(iter(values.values()), ()))
    return len(values)


def objects(values: Any) -> list[Any]:
    """List the items of a column, or the records of several, as Python objects."""
    if isinstance(values, Mapping):
        return [dict(zip(values, row, strict=True)) for row in zip(*map(objects, values.values()), strict=True)]
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    if hasattr(values, "to_dict") and hasattr(values, "columns"):
        return list(values.to_dict("records"))
    if isinstance(values, np.ndarray) and values.dtype.names:
        return [dict(zip(values.dtype.names, row, strict=True)) for row in values.tolist()]
    if hasattr(values, "tolist"):
        return list(values.tolist())
    return list(values)


def read(aggregation: Aggregation, values: Any, times: Any, sort: bool) -> tuple[list[Numbers] | None, list[Any] | None, Array | None, int]:
    """Read what bulk_insert was given: (columns or None, rows or None, times or None, number of rows)."""
    if not hasattr(values, "__len__"):
        if not isinstance(values, Iterable):
            raise TypeError(f"{values!r} is not a column. Pass a list, an array or another iterable; insert() takes single items.")
        values = list(values)
    if isinstance(values, str | bytes):
        raise TypeError(f"{values!r} is one item, not a column. Pass a list of items, or use insert().")
    count = length(values)
    keys = None
    if times is not None:
        keys = timestamps(times if hasattr(times, "__len__") else list(times))
        if len(keys) != count:
            raise ValueError(f"there are {count} values but {len(keys)} times. Pass one time per value.")
    parts = [part for _, part in aggregation.parts] or [aggregation]
    columns: list[Numbers] | None = None
    if not any(callable(part.where) or part.dtype == "object" for part in parts):
        read_in = [_filtered(part, values) for part in parts]
        if all(entry is not None for entry in read_in):
            columns = [entry for entry in read_in if entry is not None]
    items = objects(values) if columns is None else None
    if sort and keys is not None:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if columns is not None:
            columns = [(array[order], None if mask is None else mask[order]) for array, mask in columns]
        if items is not None:
            items = [items[i] for i in order]
    return columns, items, None if keys is None else np.ascontiguousarray(keys), count


def _filtered(part: Aggregation, values: Any) -> Numbers | None:
    read_in = numbers(column(values, part.column))
    if read_in is None or part.where is None:
        return read_in
    assert isinstance(part.where, str)
    keep = numbers(column(values, part.where))
    if keep is None:
        return None
    array, mask = read_in
    refused = (keep[0] == 0).astype(np.uint8)
    for nulls in (mask, keep[1]):
        if nulls is not None:
            refused |= nulls
    return array, refused


def rows(columns: list[Numbers]) -> list[Any]:
    """Give the items of a column of numbers one by one, as Python objects."""
    array, mask = columns[0]
    items = array.tolist()
    return items if mask is None else [None if null else item for item, null in zip(items, mask.tolist(), strict=True)]


def read_ranges(starts: Any, ends: Any) -> tuple[Array, Array, int]:
    """Read the two columns of query_many."""
    first, last = timestamps(starts), timestamps(ends)
    if len(first) != len(last):
        raise ValueError(f"there are {len(first)} starts but {len(last)} ends. Pass one end per start.")
    return np.ascontiguousarray(first), np.ascontiguousarray(last), len(first)


def results(values: list[Any]) -> Array:
    """Make an array of results: int64 where all are ints, float64 with NaN for None, else objects.

    >>> results([1, None])
    array([ 1., nan])
    """
    kinds = set(map(type, values))
    if kinds <= {int}:
        return np.array(values, np.int64)
    if kinds <= {int, float, type(None)} and kinds != {type(None)}:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return np.fromiter(values, dtype=object, count=len(values))  # assigned, lists of one length would be a second dimension
