"""The items of one call, in and out of windows: the one reader for every entry point.

Whatever container the items come in, each part of an aggregation gets its own column of it: numbers with a mask of nulls where the
core can run them, else Python objects, or records of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from sash import containers
from sash.agg.base import Aggregation
from sash.containers import Column
from sash.time import timestamps

__all__ = ["EXACT", "Items", "Numbers", "numbers", "objects", "read", "read_ranges", "results"]

Array = np.ndarray[Any, Any]
Numbers = tuple[Array, Array | None]
EXACT: Final = 2**53  # up to here float64 holds every integer

objects = containers.objects


def numbers(values: Any) -> Numbers | None:
    """Read a column as numbers and a mask of nulls; None if it holds anything else.

    >>> numbers([1, None, 2.5])
    (array([1. , 0. , 2.5]), array([0, 1, 0], dtype=uint8))
    >>> numbers([2**63])
    Traceback (most recent call last):
    ...
    OverflowError: item 9223372036854775808 does not fit int64. Use floats, or dtype='object' for Python's integers.
    """
    return _numbers(containers.column(values))


def _numbers(read: Column) -> Numbers | None:
    array, nulls = read
    if array.dtype.kind == "O":
        items = [containers.plain(item) for item in array]
        if any(item is not None and not isinstance(item, int | float) for item in items):
            return None
        read = containers.column([int(item) if isinstance(item, int) else None if item is None else float(item) for item in items])
        array, nulls = read
    match array.dtype.kind:
        case "O":  # nothing but numbers, and too large
            _refuse_large(max((item for item in array if item is not None), key=abs))
        case "u" if len(array) and array.max() >= 2**63:
            _refuse_large(array.max())
        case "b" | "i" | "u":
            array = np.ascontiguousarray(array, np.int64)
        case "f":
            array = np.ascontiguousarray(array, np.float64)
        case _:
            return None
    return array, None if nulls is None else nulls.astype(np.uint8)


def _refuse_large(item: Any) -> None:
    raise OverflowError(f"item {item} does not fit int64. Use floats, or dtype='object' for Python's integers.")


class Items:
    """What an entry point was given as values: one column of items, a table of columns, or a list of records.

    >>> from sash import agg
    >>> items = Items({"v": [1, 2], "ok": [True, False]})
    >>> items.numbers(agg.sum("v", where="ok"))
    (array([1, 2]), array([0, 1], dtype=uint8))
    """

    def __init__(self, values: Any) -> None:
        self.values = containers.sized(values)
        self._table = containers.table(self.values)
        self._column = containers.column(self.values) if isinstance(self.values, list | tuple) else None
        foreign = self._column.values if self._column is not None and self._column.values.dtype.kind == "O" else ()
        self._records = any(map(_is_record_type, set(map(type, foreign))))
        self.count = self._table.rows if self._table is not None else len(self.values)

    def name(self, aggregation: Aggregation) -> Any:
        """Name what the aggregation looks at: a column of a table, or the one column there is; None if it has no name."""
        return aggregation.column if self._table is not None else getattr(self.values, "name", None)

    def column(self, name: Any) -> Column:
        """Read the column that an aggregation names; items that are no records stand for themselves."""
        if self._table is not None:
            return containers.column(self._table.get(name))
        if self._records and name is not None:
            return containers.column([_field(record, name) for record in self.values])
        if self._column is None:
            self._column = containers.column(self.values)
        return self._column

    def numbers(self, part: Aggregation) -> Numbers | None:
        """Read what one part of an aggregation looks at as numbers, null where ``where`` refuses; None if it takes Python."""
        self._check(part)
        if callable(part.where) or part.dtype == "object":
            return None
        whole = self._table is not None and part.column is None
        if not part.looks_at_items:
            nulls = self._table.nulls if self._table is not None and whole else self.column(part.column).nulls
            found: Numbers | None = (np.zeros(self.count, np.int64), None if nulls is None else nulls.astype(np.uint8))
        else:
            found = None if whole else _numbers(self.column(part.column))
        if found is None or part.where is None:
            return found
        keep = _numbers(self.column(part.where))
        if keep is None:
            return None
        array, mask = found
        refused = (keep[0] == 0).astype(np.uint8)
        for nulls in (mask, keep[1]):
            if nulls is not None:
                refused |= nulls
        return array, refused

    def counted(self, part: Aggregation) -> Array | None:
        """The values of the column that a count looks at, None where it counts the rows of a table."""
        return None if self._table is not None and part.column is None else self.column(part.column).values

    def all_numbers(self, aggregation: Aggregation) -> list[Numbers] | None:
        """Read a column for every part, None if one of them takes Python."""
        out = []
        for part in _parts(aggregation):
            found = self.numbers(part)
            if found is None:
                return None
            out.append(found)
        return out

    def foreign(self, aggregation: Aggregation) -> list[bool]:
        """Tell for every part whether its column is of something that is no number; of callables only a run could tell."""
        return [not callable(part.where) and part.looks_at_items and self._is_foreign(part.column) for part in _parts(aggregation)]

    def _is_foreign(self, name: Any) -> bool:
        if self._table is not None and name is None:
            return self.count > 0
        read = self.column(name)
        return _numbers(read) is None and (read.nulls is None or not read.nulls.all()) and not _text_among_numbers(read)

    def objects(self, aggregation: Aggregation) -> list[Any]:
        """List the items as Python objects: records with the columns that the aggregation looks at, or the items themselves."""
        parts = _parts(aggregation)
        for part in parts:
            self._check(part)
        if self._table is None:
            return objects(self.values)
        if any(callable(part.where) or part.column is None for part in parts):
            return containers.records(self._table, self._table.names)
        return containers.records(self._table, dict.fromkeys(n for part in parts for n in (part.column, part.where) if n is not None))

    def _check(self, part: Aggregation) -> None:
        if isinstance(part.where, str) and self._table is None and not self._records and self.count:
            raise TypeError(f"where={part.where!r} names a column, but the items are no records. Pass a table, or records (dicts).")


def _text_among_numbers(read: Column) -> bool:
    """Whether a column begins with a number, and has text: a number decides, as one by one, and the text is refused."""
    items = [item for item in read.values if type(item).__name__ not in containers.NULLS] if read.values.dtype.kind == "O" else []
    return bool(items) and isinstance(items[0], int | float | np.number) and any(isinstance(item, str | bytes) for item in items)


def _parts(aggregation: Aggregation) -> list[Aggregation]:
    return [part for _, part in aggregation.parts] or [aggregation]


def _is_record_type(kind: type) -> bool:
    return issubclass(kind, Mapping | np.void)


def _field(record: Any, name: Any) -> Any:
    if not _is_record_type(type(record)):
        return record
    try:
        return record[name]
    except (KeyError, ValueError):
        raise KeyError(
            f"the record {record!r} has no column {name!r}. Give every record its columns, None where there is nothing."
        ) from None


def read(
    aggregation: Aggregation, values: Any, times: Any, sort: bool, rows: bool = False
) -> tuple[list[Numbers] | None, list[Any] | None, Array | None, int, list[bool] | None]:
    """Read what a bulk insert was given: (columns or None, rows or None, times or None, number of rows, foreign columns or None).

    ``rows`` asks for Python objects, where the structure runs in Python. Where it does not, and some column is no column of numbers,
    the last part of the answer tells which.
    """
    items = Items(values)
    keys = None
    if times is not None:
        keys = timestamps(times)
        if len(keys) != items.count:
            raise ValueError(f"there are {items.count} values but {len(keys)} times. Pass one time per value.")
    columns = None if rows else items.all_numbers(aggregation)
    listed = items.objects(aggregation) if columns is None else None
    foreign = items.foreign(aggregation) if columns is None and not rows else None
    if sort and keys is not None:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if columns is not None:
            columns = [(array[order], None if mask is None else mask[order]) for array, mask in columns]
        if listed is not None:
            listed = [listed[i] for i in order]
    return columns, listed, None if keys is None else np.ascontiguousarray(keys), items.count, foreign


def read_ranges(starts: Any, ends: Any) -> tuple[Array, Array, int]:
    """Read the two columns of query_many."""
    first, last = timestamps(starts), timestamps(ends)
    if len(first) != len(last):
        raise ValueError(f"there are {len(first)} starts but {len(last)} ends. Pass one end per start.")
    return first, last, len(first)


def results(values: list[Any]) -> Array:
    """Make an array of results: int64 where all are ints, float64 with NaN for None, else objects.

    Integers that float64 does not hold stay Python's integers, beside None.

    >>> results([1, None]), results([2**53 + 1, None])
    (array([ 1., nan]), array([9007199254740993, None], dtype=object))
    """
    kinds = set(map(type, values))
    if kinds <= {int} and all(-(2**63) <= value < 2**63 for value in values):
        return np.array(values, np.int64)
    exact = all(type(value) is not int or -EXACT <= value <= EXACT for value in values)
    if exact and kinds <= {int, float, type(None)} and kinds != {type(None)}:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return np.fromiter(values, dtype=object, count=len(values))  # assigned, lists of one length would be a second dimension
