"""Results in the kind of container that was given: Series with their index and name, Arrow arrays, else NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sash.containers.columns import library

__all__ = ["given_back"]

Array = np.ndarray[Any, Any]


def given_back(results: Array, given: Any, name: Any, gone: Callable[[], Array], integral: bool) -> Any:
    """Give results as a column of the kind that was given, a row for each of its rows.

    Kinds that have nulls get them where ``gone`` tells that there is no result; a column that is ``integral`` is then one of integers.
    What is no pandas, Polars or Arrow is NumPy.
    """

    def filled() -> tuple[Array, Array]:
        values, missing = _filled(results, gone)
        return values.astype(np.int64) if integral and values.dtype.kind == "f" else values, missing

    match "" if isinstance(given, np.ndarray) else library(given):
        case "pandas":
            return _pandas(results, given, name, filled)
        case "polars":
            import polars as pl

            values, missing = filled()
            objects = values.dtype.kind == "O"
            column = pl.Series("" if name is None else str(name), [*map(_plain, values)] if objects else values, strict=False)
            return column if objects else column.set(pl.Series(missing), None)
        case "arrow":
            import pyarrow as pa

            made = _arrow(*filled())
            return pa.chunked_array([made]) if isinstance(given, pa.ChunkedArray | pa.Table) else made
    return results


def _pandas(results: Array, given: Any, name: Any, filled: Callable[[], tuple[Array, Array]]) -> Any:
    import pandas as pd

    index = given if isinstance(given, pd.Index) else given.index
    dtype = getattr(given, "dtype", None)  # a frame has none
    if dtype is None or isinstance(dtype, np.dtype):
        moments = dtype is not None and dtype.kind in "mM" and results.dtype.kind == "O"
        return pd.Series(results.tolist() if moments else results, index=index, name=name)
    if hasattr(dtype, "pyarrow_dtype"):
        return pd.Series(pd.arrays.ArrowExtensionArray(_arrow(*filled())), index=index, name=name)
    if results.dtype.kind == "O" and set(map(type, results)) == {int, type(None)}:  # left to pandas, they would become floats
        return pd.Series(pd.array(results.tolist(), dtype="Int64"), index=index, name=name)
    if results.dtype.kind == "O" or not hasattr(dtype, "numpy_dtype"):
        return pd.Series(results.tolist() if results.dtype.kind == "O" else results, index=index, name=name)
    values, missing = filled()
    made = pd.arrays.IntegerArray if values.dtype.kind == "i" else pd.arrays.FloatingArray
    return pd.Series(made(values, missing), index=index, name=name)


def _filled(results: Array, gone: Callable[[], Array]) -> tuple[Array, Array]:
    """Results with something in every place, and where that means nothing."""
    if results.dtype.kind == "i":
        return results, np.zeros(len(results), bool)
    if results.dtype.kind == "O":
        return results, np.fromiter((x is None for x in results), bool, len(results))
    missing = gone() if np.isnan(results).any() else np.zeros(len(results), bool)
    return np.where(missing, 0.0, results), missing


def _arrow(values: Array, missing: Array) -> Any:
    import pyarrow as pa

    return pa.array([*map(_plain, values)]) if values.dtype.kind == "O" else pa.array(values, mask=missing)


def _plain(item: Any) -> Any:
    """Named tuples as records, which columns of records are made of."""
    if hasattr(item, "_asdict"):
        return {name: _plain(x) for name, x in item._asdict().items()}
    if isinstance(item, dict):
        return {name: _plain(x) for name, x in item.items()}
    return [*map(_plain, item)] if isinstance(item, list | tuple) else item
