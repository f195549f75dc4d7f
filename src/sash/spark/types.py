"""Spark's column types as Arrow's, and back: what crosses between the JVM and the core."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from sash.errors import DefinitionError

UTC = pa.timestamp("us", tz="UTC")

# (Spark, Arrow) pairs that stand for each other.
_SIMPLE: list[tuple[Any, Any]] = [
    (T.BooleanType(), pa.bool_()),
    (T.ByteType(), pa.int8()),
    (T.ShortType(), pa.int16()),
    (T.IntegerType(), pa.int32()),
    (T.LongType(), pa.int64()),
    (T.FloatType(), pa.float32()),
    (T.DoubleType(), pa.float64()),
    (T.StringType(), pa.string()),
    (T.BinaryType(), pa.binary()),
    (T.DateType(), pa.date32()),
    (T.TimestampType(), UTC),
    (T.TimestampNTZType(), pa.timestamp("us")),
    (T.NullType(), pa.null()),
]


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Translate a DataFrame's schema; every field may hold nulls."""
    return pa.schema([(field.name, arrow_type(field.dataType, field.name)) for field in schema.fields])


def arrow_type(kind: T.DataType, column: str) -> pa.DataType:
    """Translate one type; `column` is named in the error."""
    for spark, arrow in _SIMPLE:
        if kind == spark:
            return arrow
    match kind:
        case T.VarcharType() | T.CharType() | T.StringType():
            return pa.string()
        case T.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case T.DayTimeIntervalType():
            return pa.duration("us")
        case T.ArrayType():
            return pa.list_(arrow_type(kind.elementType, column))
        case T.MapType():
            return pa.map_(arrow_type(kind.keyType, column), arrow_type(kind.valueType, column))
        case T.StructType():
            return pa.struct([(f.name, arrow_type(f.dataType, f"{column}.{f.name}")) for f in kind.fields])
    raise DefinitionError(f"column {column!r} is of type {kind.simpleString()}, which Sash does not carry. Drop it, or cast it first.")


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Translate an Arrow schema to Spark's, all fields nullable."""
    return T.StructType([T.StructField(field.name, spark_type(field.type), True) for field in schema])


def spark_type(kind: pa.DataType) -> T.DataType:
    """Translate one Arrow type."""
    for spark, arrow in _SIMPLE:
        if kind == arrow:
            return spark
    if pa.types.is_timestamp(kind):
        return T.TimestampType() if kind.tz else T.TimestampNTZType()
    if pa.types.is_decimal(kind):
        return T.DecimalType(kind.precision, kind.scale)
    if pa.types.is_duration(kind):
        return T.DayTimeIntervalType()
    if pa.types.is_large_string(kind):
        return T.StringType()
    if pa.types.is_large_binary(kind):
        return T.BinaryType()
    if pa.types.is_map(kind):
        return T.MapType(spark_type(kind.key_type), spark_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return T.ArrayType(spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        return T.StructType([T.StructField(f.name, spark_type(f.type), True) for f in kind])
    raise DefinitionError(f"a result of Arrow type {kind} has no type in Spark.")


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch from Spark the schema it was defined with.

    Spark marks times with the session's time zone and may send large strings; the values are the same.
    """
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
