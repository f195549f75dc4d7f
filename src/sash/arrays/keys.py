"""Keys of whole columns as numbers: equal keys, equal numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.containers import Column, column, objects, sized, table
from sash.keys import is_key, write_key

__all__ = ["key_columns", "numbered", "starts_of", "together"]

Array = np.ndarray[Any, Any]


def together(codes: Array) -> Array:
    """Give the order that brings equal numbers together, each in its order of arrival.

    NumPy sorts 16-bit numbers by radix, 64-bit ones by merging: a million rows of 100 keys in 15 ms instead of 119.
    """
    least = int(codes.min())
    span = int(codes.max()) - least
    if span >= 1 << 32:
        return np.argsort(codes, kind="stable")
    small = codes - least
    order = np.argsort(small.astype(np.uint16), kind="stable")
    if span >= 1 << 16:  # the low half, then the high one
        order = order.take(np.argsort((small >> 16).astype(np.uint16).take(order), kind="stable"))
    return order


def key_columns(by: Any) -> list[Any]:
    """The columns of a key: those of a table, or of a list of columns, else the one there is."""
    if by is None:
        return []
    by = sized(by, "a column of keys")
    if (held := table(by)) is not None:
        if not held.names:
            raise ValueError("by= is a table without columns. Give it the columns of the key, or leave it out.")
        return [held.get(name) for name in held.names]
    several = isinstance(by, list | tuple) and len(by) > 0 and all(hasattr(c, "__len__") and not is_key(c) for c in by)
    return list(by) if several else [by]


def numbered(*sides: Any) -> Array:
    """Number the keys of one side after the other; equal keys get equal numbers."""
    codes: Array | None = None
    for columns in zip(*map(key_columns, sides), strict=True):
        found = _of_column(columns)
        if codes is not None:  # pairs of numbers, numbered again
            found = np.unique(found, return_inverse=True)[1]
            found = np.unique(np.unique(codes, return_inverse=True)[1] * (len(found) + 1) + found, return_inverse=True)[1]
        codes = found.astype(np.int64)
    assert codes is not None
    return codes


def _of_column(sides: tuple[Any, ...]) -> Array:
    reads = [column(keys) for keys in sides]
    kinds = {_key_kind(keys, read) for keys, read in zip(sides, reads, strict=True)}
    if kinds == {"b"} or kinds == {"i"}:
        return np.concatenate([read.values.astype(np.int64) for read in reads])
    if kinds == {"f"}:
        reals = np.concatenate([read.values for read in reads]) + 0.0  # -0.0 is 0.0; every NaN is one key
        return np.unique(reals, return_inverse=True)[1]
    seen: dict[bytes, int] = {}
    numbers = (seen.setdefault(write_key(key), len(seen)) for keys in sides for key in objects(keys))
    return np.fromiter(numbers, np.int64, sum(len(read.values) for read in reads))


def _key_kind(keys: Any, read: Column) -> str:
    """The kind of a column of numbers that is told apart by its numbers, else ""."""
    mixed = isinstance(keys, list | tuple) and len(set(map(type, keys))) > 1  # True is no 1 among keys, nor is 1.0
    return "" if mixed or read.nulls is not None or read.values.dtype.kind not in "bif" else read.values.dtype.kind


def starts_of(ordered: Array) -> Array:
    """Where each stretch of equal numbers begins, and where the last ends."""
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else np.zeros(1, np.int64)
    return np.append(begins, len(ordered))
