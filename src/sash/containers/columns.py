"""One column of any container: NumPy values and a mask of nulls, or a list of Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from sash.containers.moments import moments

__all__ = ["NULLS", "Column", "arrow", "arrow_numpy", "column", "is_struct", "library", "listed", "plain", "sized", "without_gaps"]

Array = np.ndarray[Any, Any]
_NUMBERS: Final = {int, bool, float, type(None)}
NULLS: Final = {"NoneType", "NAType", "NaTType", "MaskedConstant"}  # by name: pandas is not imported to ask for its own


class Column(NamedTuple):
    """One column: values of kind b, i, u, f, M or m, or Python objects as they were given, and where it has nulls."""

    values: Array
    nulls: Array | None  # of truth values


def sized(values: Any, what: str = "a column") -> Any:
    """Pass on what has a length; list what can only be walked through once; refuse single items."""
    if isinstance(values, str | bytes | bytearray):
        raise TypeError(f"{values!r} is one item, not {what}. Pass a list of items, or use insert().")
    if hasattr(values, "__len__"):
        return values
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return arrow(values)  # now: some can be read but once
    if not isinstance(values, Iterable):
        raise TypeError(f"{values!r} is not {what}. Pass a list, an array or another iterable; insert() takes single items.")
    return list(values)


def column(values: Any) -> Column:
    """Read one column of any container.

    >>> column([1, None, 3])
    Column(values=array([1, 0, 3]), nulls=array([False,  True, False]))
    >>> import numpy as np
    >>> column(np.ma.masked_greater([1.5, 9.5], 5)).nulls
    array([False,  True])
    """
    if isinstance(values, np.ndarray):
        return _of_numpy(values)
    values = sized(values)
    match library(values):
        case "pandas":
            return _of_pandas(values)
        case "polars":
            return _of_polars(values)
        case "arrow":
            return _of_arrow(arrow(values))
    if isinstance(values, list | tuple):
        return _of_list(values)
    if hasattr(values, "__array__") or _has_buffer(values):
        return _of_numpy(np.asarray(values))
    if isinstance(values, Mapping):
        raise TypeError("these are columns by name, where one column is wanted. Name it, e.g. agg.sum('fare').")
    return _of_list(list(values))


def library(values: Any) -> str:
    for kind in type(values).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in ("pandas", "polars"):
            return name
        if name == "pyarrow":
            return "arrow"
    return "arrow" if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__") else ""


def _has_buffer(values: Any) -> bool:
    try:
        return memoryview(values).ndim == 1
    except (TypeError, ValueError):
        return False


def _flat(values: Array) -> Array:
    if values.ndim != 1:
        raise ValueError(f"a column has one dimension, this one has {values.ndim}. Pass one column at a time.")
    return values


def without_gaps(nulls: Any) -> Array | None:
    """A mask of nulls, None where there are none."""
    mask = np.asarray(nulls, bool)
    return mask if mask.any() else None


def _objects_array(values: Any) -> Array:
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # assigned at once, tuples of one length would be a second dimension
        out[i] = value
    return out


def _of_objects(values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else _objects_array(values)
    return Column(array, without_gaps([_is_null(value) for value in array]))


def _is_null(value: Any) -> bool:
    """Whether an item stands for nothing; NumPy's NaT is of the type of a time."""
    return type(value).__name__ in NULLS or (isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value)))


def _of_list(values: list[Any] | tuple[Any, ...]) -> Column:
    kinds = set(map(type, values))
    if not kinds <= _NUMBERS:
        return _of_objects(values)
    nulls = None
    if type(None) in kinds:
        nulls = np.fromiter((value is None for value in values), bool, len(values))
        values = [0 if value is None else value for value in values]
    try:
        return Column(np.array(values, np.float64 if float in kinds else np.int64), nulls)
    except OverflowError:  # an integer that 64 bits do not hold
        array = _objects_array(values)
        if nulls is not None:
            array[nulls] = None
        return Column(array, nulls)


def _of_numpy(values: Array) -> Column:
    _flat(values)
    nulls: Array | None = None
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        nulls, values = without_gaps(mask if mask.dtype.kind == "b" else [all(row) for row in mask.tolist()]), values.data
        if nulls is not None and values.dtype.kind == "O":
            values = values.copy()
            values[nulls] = None
    match values.dtype.kind:
        case "b" | "i" | "u" | "f":
            return Column(values, nulls)
        case "M" | "m":
            empty = np.isnat(values)
            return Column(values, without_gaps(empty if nulls is None else empty | nulls))
        case "O":
            return _of_objects(values)
    return _of_objects(
        [None if gone else x for x, gone in zip(values.tolist(), nulls, strict=True)] if nulls is not None else values.tolist()
    )


def _of_pandas(values: Any) -> Column:
    if getattr(values, "ndim", 1) != 1:
        raise TypeError("this is a table, where one column is wanted. Name it, e.g. agg.sum('fare').")
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return _of_numpy(_none_for_missing_text(values) if dtype.kind == "O" else values.to_numpy())
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(getattr(values, "array", values).__arrow_array__())
    if getattr(dtype, "kind", "") == "M":  # with a time zone: the instants, in UTC
        return _of_numpy(np.asarray(values, dtype=f"M8[{dtype.unit}]"))
    inside = getattr(dtype, "numpy_dtype", None)
    if inside is not None:  # numbers with a mask
        nulls = np.asarray(values.isna())
        return Column(values.to_numpy(dtype=inside, na_value=inside.type(0)), without_gaps(nulls))
    if getattr(dtype, "name", "") == "category" and isinstance(dtype.categories.dtype, np.dtype) and dtype.categories.dtype.kind in "biuf":
        nulls = np.asarray(values.isna())
        codes = np.asarray(values.codes if hasattr(values, "codes") else values.cat.codes)
        known = dtype.categories.to_numpy()
        return Column(known[np.where(nulls, 0, codes)] if len(known) else np.zeros(len(nulls)), without_gaps(nulls))
    return _of_objects(_pandas_objects(values))


def _none_for_missing_text(values: Any) -> Array:
    """An object column of pandas, where NaN among text means null."""
    array: Array = values.to_numpy()
    if any(isinstance(value, str) for value in array):
        array = array.copy()
        array[np.asarray(values.isna())] = None
    return array


def _of_polars(values: Any) -> Column:
    if not hasattr(values, "to_list"):
        raise TypeError("this is a table, where one column is wanted. Name it, e.g. agg.sum('fare').")
    import polars as pl

    dtype = values.dtype
    plain_type = dtype.is_integer() or dtype.is_float() or dtype == pl.Boolean
    if plain_type and not _wide(dtype):
        nulls = without_gaps(values.is_null().to_numpy()) if values.null_count() else None
        return Column(values.fill_null(False if dtype == pl.Boolean else 0).to_numpy() if nulls is not None else values.to_numpy(), nulls)
    if dtype.is_temporal() and dtype != pl.Time:
        return _of_numpy(values.to_numpy())
    if dtype == pl.Null:
        return Column(np.zeros(len(values), np.int64), np.ones(len(values), bool) if len(values) else None)
    return _of_objects(values.to_list())


def _wide(dtype: Any) -> bool:
    return "128" in str(dtype)


def arrow(values: Any) -> Any:
    """An Arrow array, or a table, of whatever can be had as one."""
    try:
        import pyarrow as pa
    except ImportError:
        raise TypeError(f"{type(values).__name__} gives its data as Arrow. Install pyarrow, or pass NumPy arrays.") from None
    if isinstance(values, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        return values
    if hasattr(values, "read_all"):  # a stream of batches
        return values.read_all()
    if hasattr(values, "__arrow_c_array__"):
        return pa.array(values)
    read = pa.chunked_array(values)
    return (
        pa.Table.from_batches([pa.RecordBatch.from_struct_array(chunk) for chunk in read.chunks], _schema(read.type))
        if is_struct(read)
        else read
    )


def _schema(struct: Any) -> Any:
    import pyarrow as pa

    return pa.schema([struct.field(i) for i in range(struct.num_fields)])


def is_struct(values: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_struct(values.type))


def _of_arrow(values: Any) -> Column:
    import pyarrow as pa

    if not hasattr(values, "type"):
        raise TypeError("this is a table, where one column is wanted. Name it, e.g. agg.sum('fare').")
    t = pa.types
    if t.is_dictionary(values.type):
        values = _decoded(values)
    kind = values.type
    if t.is_null(kind):
        return Column(np.zeros(len(values), np.int64), np.ones(len(values), bool) if len(values) else None)
    if t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind):
        nulls = None
        if values.null_count:
            nulls = arrow_numpy(values.is_null()).astype(bool)
            values = values.fill_null(pa.scalar(False) if t.is_boolean(kind) else pa.scalar(0).cast(kind))
        return Column(arrow_numpy(values), nulls)
    if t.is_timestamp(kind) or t.is_date(kind) or t.is_duration(kind):
        return _of_numpy(arrow_numpy(values))
    return _of_objects(values.to_pylist())


def _decoded(values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([chunk.dictionary_decode() for chunk in values.chunks], values.type.value_type)
    return values.dictionary_decode()


def arrow_numpy(values: Any) -> Array:
    """An Arrow column as NumPy. An array may have to be copied; a chunked one always is."""
    array: Array = values.to_numpy() if hasattr(values, "chunks") else values.to_numpy(zero_copy_only=False)
    return array


# --- Python objects


def plain(x: Any) -> Any:
    """Give an item as plain Python data: NumPy's scalars unwrapped, None for NA and NaT.

    >>> import numpy as np
    >>> plain(np.float32(0.5)), plain(np.datetime64("NaT")), plain("text")
    (0.5, None, 'text')
    """
    kind = type(x)
    if kind in _NUMBERS or kind is str:
        return x
    if kind.__name__ in NULLS:
        return None
    if isinstance(x, np.generic):
        if isinstance(x, np.datetime64 | np.timedelta64):
            return moments(np.array([x]))[0]
        if isinstance(x, np.void) and x.dtype.names:
            return {name: plain(x[name]) for name in x.dtype.names}
        return float(x) if isinstance(x, np.longdouble) else x.item()
    return x


def listed(values: Any) -> list[Any]:
    """List the items of one column as plain Python objects; a null is None."""
    match "numpy" if isinstance(values, np.ndarray) else library(values):
        case "numpy":
            return _numpy_objects(values)
        case "pandas":
            return _pandas_objects(values)
        case "polars":
            return list(values.to_list())
        case "arrow":
            return _arrow_objects(arrow(values))
    if not isinstance(values, list | tuple) and (hasattr(values, "__array__") or _has_buffer(values)):
        return _numpy_objects(np.asarray(values))
    if set(map(type, values)) <= _NUMBERS | {str, dict}:
        return list(values)
    return [plain(value) for value in values]


def _numpy_objects(values: Array) -> list[Any]:
    read = _of_numpy(values)
    if read.values.dtype.kind in "Mm":
        items = moments(read.values)
    elif read.values.dtype.kind == "O":
        items = [plain(value) for value in read.values]
    else:
        items = (read.values.astype(np.float64) if read.values.dtype.char == "g" else read.values).tolist()
    return items if read.nulls is None else [None if gone else x for x, gone in zip(items, read.nulls, strict=True)]


def _pandas_objects(values: Any) -> list[Any]:
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return _numpy_objects(_none_for_missing_text(values) if dtype.kind == "O" else values.to_numpy())
    if hasattr(dtype, "pyarrow_dtype"):
        return _arrow_objects(getattr(values, "array", values).__arrow_array__())
    items = values.tolist()
    gone = np.asarray(values.isna())
    return [
        None if g else x.to_pydatetime(warn=False) if hasattr(x, "to_pydatetime") else plain(x) for x, g in zip(items, gone, strict=True)
    ]


def _arrow_objects(values: Any) -> list[Any]:
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(values.type):
        values = _decoded(values)
    if t.is_timestamp(values.type) and values.type.unit == "ns":
        values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
    elif t.is_duration(values.type) and values.type.unit == "ns":
        values = values.cast(pa.duration("us"), safe=False)
    elif t.is_time64(values.type) and values.type.unit == "ns":
        values = values.cast(pa.time64("us"), safe=False)
    return list(values.to_pylist())
