"""Arrow types: which item type a column becomes, which columns can be keys, and of which type a result is."""

from typing import TYPE_CHECKING, Any

from sash.errors import DefinitionError

if TYPE_CHECKING:
    import pyarrow as pa

    from sash.agg import Aggregation
    from sash.agg.base import ItemType
    from sash.agg.forms import Result

__all__ = ["check_items", "item_type", "items_of", "key_width", "order_key", "result_type", "value_of", "value_type"]


def is_integer(type_: "pa.DataType") -> bool:
    """Whether values of this type are aggregated as int64."""
    import pyarrow.types as t

    return bool(t.is_integer(type_) or t.is_boolean(type_) or t.is_timestamp(type_) or t.is_date32(type_))


def is_real(type_: "pa.DataType") -> bool:
    """Whether values of this type are aggregated as float64."""
    import pyarrow.types as t

    return bool(t.is_floating(type_))


def item_type(aggregation: "Aggregation", column: "pa.DataType | None") -> "ItemType":
    """int64, float64 or object: what the aggregation says, else what the column is."""
    if column is None:
        return "object"
    natural: ItemType = "int64" if is_integer(column) else "float64" if is_real(column) else "object"
    asked = aggregation.dtype
    if asked is None or asked == natural or asked == "object" or (asked == "float64" and natural == "int64"):
        return asked or natural
    raise DefinitionError(
        f"{aggregation!r} wants {asked} items, and {aggregation.column!r} is {column}. Cast the column, or leave dtype out."
    )


def value_type(type_: "pa.DataType") -> "pa.DataType":
    """The type of a single value that comes out again: int64, float64, dates and times as they were, others as they are."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(type_) or t.is_date32(type_):
        return type_
    return pa.int64() if is_integer(type_) else pa.float64() if is_real(type_) else type_


def result_type(aggregation: "Aggregation", schema: "pa.Schema", time: str) -> "pa.DataType":
    """The Arrow type of an aggregation's results over rows of this schema."""
    import pyarrow as pa

    column = None if aggregation.column is None else schema.field(aggregation.column).type
    if aggregation.parts:
        return pa.struct([pa.field(part, result_type(a, schema, time)) for part, a in aggregation.parts])
    found = None if aggregation.result is None else _type_of(aggregation.result, aggregation, column, schema, time)
    return _probed(aggregation, schema, column) if found is None else found


def _type_of(
    result: "Result", aggregation: "Aggregation", column: "pa.DataType | None", schema: "pa.Schema", time: str
) -> "pa.DataType | None":
    """Turn what an aggregation says of its result into an Arrow type; None where that is of the items, and they have no column."""
    import pyarrow as pa

    match result.kind:
        case "integer":
            return pa.int64()
        case "real":
            return pa.float64()
        case "truth":
            return pa.bool_()
        case "text":
            return pa.string()
        case "time":
            return schema.field(time).type
    if result.column is not None:
        return value_type(schema.field(result.column).type)
    if column is None:
        return None
    if result.kind == "sum":
        return _sum_type(aggregation, column)
    if result.kind == "fields":
        return pa.struct([(name, _type_of(part, aggregation, column, schema, time)) for name, part in result.fields])
    value = pa.float64() if aggregation.dtype == "float64" else value_type(column)
    return pa.list_(value) if result.kind == "values" else value


def _sum_type(aggregation: "Aggregation", column: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa

    if pa.types.is_decimal(column):  # ten digits more than its items, as in Spark
        return pa.decimal128(min(column.precision + 10, 38), column.scale)
    if item_type(aggregation, column) == "int64":
        return pa.int64()
    return pa.float64() if is_integer(column) or is_real(column) else column


_SAMPLES: dict[str, Any] = {"int64": 1, "float64": 1.5}


def _sample(type_: "pa.DataType") -> Any:
    import datetime as dt
    import decimal

    import pyarrow.types as t

    if is_integer(type_):
        return 1
    if is_real(type_):
        return 1.5
    if t.is_decimal(type_):
        return decimal.Decimal((0, (1,) * type_.precision, -type_.scale))  # as many digits as there may be
    if t.is_binary(type_) or t.is_large_binary(type_):
        return b"a"
    if t.is_list(type_):
        return [_sample(type_.value_type)]
    if t.is_struct(type_):
        return {field.name: _sample(field.type) for field in type_}
    if t.is_map(type_):
        return [(_sample(type_.key_type), _sample(type_.item_type))]
    if t.is_duration(type_):
        return dt.timedelta(1)
    return dt.time() if t.is_time(type_) else "a"


def _probed(aggregation: "Aggregation", schema: "pa.Schema", column: "pa.DataType | None") -> "pa.DataType":
    """The result for a made-up item: a user's aggregation does not say its type otherwise."""
    import pyarrow as pa

    item = {field.name: _sample(field.type) for field in schema} if column is None else _sample(column)
    try:
        # At two times: a line through items of one time has no slope.
        parts = aggregation.lift_function(item, 1), aggregation.lift_function(item, 2)
        found = aggregation.lower_function(aggregation.combine_function(*parts))
        return pa.array([found]).type
    except Exception as error:
        raise DefinitionError(
            f"the type of {aggregation!r}'s result can't be found: on the made-up item {item!r} it gave {type(error).__name__}: {error}. "
            "Make lift, combine and lower accept it."
        ) from error


def check_items(aggregation: "Aggregation", column: "pa.DataType", result: "pa.DataType") -> None:
    """Refuse an aggregation that can't take a column's values, such as a sum of text, by trying it on made-up ones."""
    import pyarrow as pa

    item = _sample(column)
    try:
        once = first = aggregation.lift_function(item, 1)
        if not pa.types.is_duration(column):  # 0 is no duration, and is not met where there are some
            first = aggregation.combine(aggregation.identity(), once)
        value_of(result, [aggregation.lower(aggregation.combine(first, once))])
    except Exception as error:
        raise DefinitionError(
            f"{aggregation!r} can't be computed of a column of type {column}: on the made-up value {item!r} it gave "
            f"{type(error).__name__}: {error}. Cast the column, or use another aggregation."
        ) from error


def key_width(field: "pa.Field") -> int:
    """The bytes per value that a key column of this type takes, 0 for text and binary."""
    import pyarrow.types as t

    type_ = field.type
    if t.is_string(type_) or t.is_binary(type_) or t.is_large_string(type_) or t.is_large_binary(type_) or t.is_dictionary(type_):
        return 0
    if t.is_boolean(type_):
        return 1
    if t.is_primitive(type_) or t.is_decimal(type_) or t.is_fixed_size_binary(type_):
        return int(type_.bit_width) // 8
    raise DefinitionError(f"the column {field.name!r} of type {type_} can't be a key. Use numbers, text, binary, dates or times.")


def as_integers(column: "pa.Array") -> "pa.Array":
    """Integers, booleans, times and dates as an int64 column."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(column.type):
        coarse = column.type.unit in ("s", "ms")  # of which some are beyond what microseconds hold; finer ones are rounded down
        return column.cast(pa.timestamp("us", column.type.tz), safe=coarse).view(pa.int64())
    if t.is_date32(column.type):
        return column.view(pa.int32()).cast(pa.int64())
    return column if column.type == pa.int64() else column.cast(pa.int64())


def from_integers(column: "pa.Array", type_: "pa.DataType") -> "pa.Array":
    """The inverse of ``as_integers``."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(type_):
        return column.view(pa.timestamp("us", type_.tz)).cast(type_)
    if t.is_date32(type_):
        return column.cast(pa.int32()).view(type_)
    return column if column.type == type_ else column.cast(type_)


def items_of(column: "pa.Array") -> list[Any]:
    """The values of a column as aggregations take them: ints, floats or objects, None for null."""
    if is_integer(column.type):
        column = as_integers(column)
    return column.to_pylist()  # type: ignore[no-any-return]


def value_of(type_: "pa.DataType", values: list[Any]) -> "pa.Array":
    """An Arrow column of results, the inverse of ``items_of``."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(type_) or t.is_date32(type_):
        return from_integers(pa.array(values, pa.int64()), type_)
    inner = next((item for v in values if v for item in v if item is not None), None) if t.is_list(type_) else None
    if isinstance(inner, int) and (t.is_timestamp(type_.value_type) or t.is_date32(type_.value_type)):
        lists = pa.array(values, pa.list_(pa.int64()))
        return pa.ListArray.from_arrays(lists.offsets, from_integers(lists.values, type_.value_type), mask=lists.is_null())
    if t.is_struct(type_):
        parts = [value_of(field.type, [None if v is None else _part(v, i, field.name) for v in values]) for i, field in enumerate(type_)]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=pa.array([v is None for v in values], pa.bool_()))
    return pa.array(values, type_)


def _part(value: Any, i: int, name: str) -> Any:
    return value[name] if isinstance(value, dict) else value[i]


def order_key(value: Any) -> tuple[Any, ...]:
    """Orders any values of one column: null first, NaN last, nested ones by how they print."""
    if value is None:
        return (0,)
    if value != value:
        return (2,)
    return (1, repr(value)) if isinstance(value, dict | list) else (1, value)
