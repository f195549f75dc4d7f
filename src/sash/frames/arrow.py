"""Arrow columns as the engine takes them: one array each, of the types it knows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as t

from sash.engine.types import as_integers
from sash.errors import DefinitionError

__all__ = ["check_times", "check_values", "engine_column", "engine_type", "text_bytes"]

_MOST_TEXT = 2**31 - 1  # bytes that a column of 32-bit offsets holds
_FURTHEST = 2**62  # microseconds: 146,000 years


def text_bytes(column: pa.Array | pa.ChunkedArray) -> int:
    """The bytes of a column of text or binary, which decide on its offsets; 0 of others, some of which do not know theirs."""
    return column.nbytes if t.is_string(column.type) or t.is_binary(column.type) else 0


def engine_type(type_: pa.DataType, nbytes: int = 0) -> pa.DataType:
    """The type that stands for another in the engine: the same values, without encodings of their own."""
    if isinstance(type_, pa.BaseExtensionType):
        return engine_type(type_.storage_type, nbytes)
    if t.is_dictionary(type_) or t.is_run_end_encoded(type_):
        return engine_type(type_.value_type, nbytes)
    if _is(type_, "string_view") or (t.is_string(type_) and nbytes > _MOST_TEXT):
        return pa.large_string()
    if _is(type_, "binary_view") or (t.is_binary(type_) and nbytes > _MOST_TEXT):
        return pa.large_binary()
    if t.is_null(type_):  # every aggregation but that of text takes numbers, and there are none
        return pa.float64()
    if t.is_float16(type_):
        return pa.float32()
    if t.is_date64(type_):
        return pa.date32()
    if t.is_duration(type_):
        return pa.duration("us")
    if t.is_decimal(type_) and not t.is_decimal128(type_) and type_.precision <= 38:
        return pa.decimal128(type_.precision, type_.scale)
    if t.is_large_list(type_) or t.is_fixed_size_list(type_) or _is(type_, "list_view") or _is(type_, "large_list_view"):
        return pa.list_(engine_type(type_.value_type))
    if t.is_list(type_):
        return pa.list_(engine_type(type_.value_type))
    if t.is_struct(type_):
        return pa.struct([field.with_type(engine_type(field.type)) for field in type_])
    return type_


def _is(type_: pa.DataType, kind: str) -> bool:
    """Whether a type is of a kind that old versions of PyArrow do not know."""
    return bool(getattr(t, f"is_{kind}", lambda type_: False)(type_))


def engine_column(column: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    """A column as one array of an engine's type. Without a copy where it is one already."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = _storage(column)
    if t.is_run_end_encoded(column.type):
        import pyarrow.compute as pc

        column = pc.run_end_decode(column)
    if column.type != type_:
        column = column.cast(type_)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # text that does not fit one array
        raise ValueError(f"it holds more than {_MOST_TEXT:,} bytes of text. Cast it to pa.large_string() first.")
    if t.is_timestamp(column.type) and column.type.unit in ("s", "ms"):
        column.cast(pa.timestamp("us", column.type.tz))  # refuses what microseconds do not hold
    return column


def check_values(name: str, column: pa.Array) -> None:
    """Refuse integers that the engine adds up in 64 bits and that do not fit; as keys they do."""
    import pyarrow.compute as pc

    most = pc.max(column).as_py() if t.is_uint64(column.type) else None
    if most is not None and most >= 2**63:
        raise DefinitionError(f"the column {name!r} holds {most}, which does not fit int64. Cast it to float64, or use it as a key alone.")


def check_times(name: str, column: pa.Array) -> None:
    """Refuse times so far away that a range around them leaves 64 bits."""
    import pyarrow.compute as pc

    found = pc.min_max(as_integers(column)).as_py()
    for extreme in (found["min"], found["max"]):
        if extreme is not None and not -_FURTHEST <= extreme <= _FURTHEST:
            raise DefinitionError(
                f"time={name!r} holds {extreme} microseconds since 1970, which no calendar reaches. Correct the row, or leave it out."
            )


def _storage(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return column.storage
