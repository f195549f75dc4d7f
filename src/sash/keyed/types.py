"""Arrow types: which item type a column becomes, and of which type an aggregation's result is."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from sash.agg import Aggregation

__all__ = ["is_integer", "is_real", "item_of", "result_type", "value_of"]

_COUNTS = ("count", "distinct", "approx_distinct", "mincount", "maxcount")
_VALUES = ("min", "max", "first", "last", "ith_youngest", "ith_smallest")
_LISTS = ("collect", "first_k", "last_k", "top_k", "bottom_k")


def is_integer(type_: "pa.DataType") -> bool:
    """Whether values of this type are aggregated as int64."""
    import pyarrow.types as t

    return bool(t.is_integer(type_) or t.is_boolean(type_) or t.is_timestamp(type_) or t.is_date(type_))


def is_real(type_: "pa.DataType") -> bool:
    """Whether values of this type are aggregated as float64."""
    import pyarrow.types as t

    return bool(t.is_floating(type_))


def value_type(type_: "pa.DataType") -> "pa.DataType":
    """The type of a single value that comes out again: int64, float64, dates and times as they were, others as they are."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(type_) or t.is_date(type_):
        return type_
    return pa.int64() if is_integer(type_) else pa.float64() if is_real(type_) else type_


def result_type(aggregation: "Aggregation", column: "pa.DataType | None") -> "pa.DataType":
    """The Arrow type of an aggregation's results on a column of this type (None: no column)."""
    import pyarrow as pa

    name = aggregation.name
    if name in _COUNTS:
        return pa.int64()
    if name in ("any", "all"):
        return pa.bool_()
    if column is not None:
        if name == "sum":
            return pa.int64() if is_integer(column) else pa.float64() if is_real(column) else column
        if name in _VALUES:
            return value_type(column)
        if name in _LISTS:
            return pa.list_(value_type(column))
        if name in ("bit_and", "bit_or"):
            return pa.int64()
        if name == "concat":
            return pa.string()
    dtype = getattr(aggregation, "dtype", None)
    if dtype is not None:
        return _named(dtype)
    return pa.float64()


def _named(dtype: Any) -> "pa.DataType":
    import pyarrow as pa

    if isinstance(dtype, pa.DataType):
        return dtype
    plain = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_(), bytes: pa.binary()}
    return plain[dtype] if dtype in plain else pa.from_numpy_dtype(dtype)


def item_of(type_: "pa.DataType", column: "pa.Array") -> list[Any]:
    """The items of a column as an aggregation takes them: ints, floats or objects, None for null."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(type_):
        return column.cast(pa.timestamp("us", type_.tz)).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if t.is_date32(type_):
        return column.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    if t.is_boolean(type_):
        return [None if v is None else int(v) for v in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def value_of(type_: "pa.DataType", values: list[Any]) -> "pa.Array":
    """An Arrow column of lowered results, the inverse of ``item_of``."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", type_.tz)).cast(type_)
    if t.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if t.is_list(type_) and (t.is_timestamp(type_.value_type) or t.is_date32(type_.value_type)):
        return pa.array(values, pa.list_(pa.int64())).cast(type_)
    return pa.array(values, type_)
