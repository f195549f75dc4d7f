"""Every aggregation on every type of column: it runs, or it is refused when the query is defined."""

import datetime as dt
import decimal

import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Bucket, Query, Slicer, Windows
from sash.errors import DefinitionError

UTC = pa.timestamp("us", "UTC")
COLUMNS = {
    "whole": (pa.int64(), [3, 1, 2]),
    "real": (pa.float64(), [3.5, 1.0, 2.5]),
    "flag": (pa.bool_(), [True, False, True]),
    "day": (pa.date32(), [dt.date(2024, 1, 3), dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
    "moment": (UTC, [3, 1, 2]),
    "money": (pa.decimal128(3, 2), [decimal.Decimal("9.75"), decimal.Decimal("0.50"), decimal.Decimal("9.99")]),
    "text": (pa.string(), ["c", "a", "b"]),
    "bytes": (pa.binary(), [b"c", b"a", b"b"]),
    "list": (pa.list_(pa.int64()), [[3], [1], [2]]),
    "days": (pa.list_(pa.date32()), [[dt.date(2024, 1, 3)], [dt.date(2024, 1, 1)], []]),
    "struct": (pa.struct([("a", pa.int64())]), [{"a": 3}, {"a": 1}, {"a": 2}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("c", 3)], [("a", 1)], [("b", 2)]]),
    "span": (pa.duration("us"), [3, 1, 2]),
}
NUMBERS = {"whole", "real", "flag", "day", "moment"}
ARGUMENTS = {"histogram": ([0, 2],), "quantile": (0.5,), "approx_quantile": (0.5,), "ith_youngest": (1,), "ith_smallest": (1,)}
ARGUMENTS |= {"ewma": ("1h",)}
ARGUMENTS |= {name: (2,) for name in ("top_k", "bottom_k", "first_k", "last_k")}
TAKEN = {  # by which columns beside numbers
    "sum": {"money", "span"},
    "collect": {*COLUMNS},
    "first": {*COLUMNS},
    "last_k": {*COLUMNS},
    "distinct": {"money", "text", "bytes", "span"},
    "max": {*COLUMNS} - {"struct"},
    "mean": set(),
    "median": set(),
    "histogram": {"money"},
    "m4": {"money"},
    "concat": {"text"},
}


def run(a, name):
    type_, values = COLUMNS[name]
    rows = pa.record_batch([pa.array([1, 2, 3, 4]).cast(UTC), pa.array([*values, values[0]], type_)], names=["t", name])
    query = Query(rows.schema, "t", (), (("x", a),), windows=Windows(10, 10))
    query.layout  # noqa: B018  made here to fail here
    return query, rows


@pytest.mark.parametrize("name", sorted({*agg.__all__} - {"Aggregation", "define", "struct", "linreg", "naive_bayes"}))
def test_what_an_aggregation_can_not_take_is_refused_at_once_and_the_rest_runs(name):
    taken = set()
    for column in COLUMNS:
        a = getattr(agg, name)(column, *ARGUMENTS.get(name, ()))
        try:
            query, rows = run(a, column)
        except DefinitionError:
            continue
        bucket = Bucket(query)
        for packed in Slicer(query, 1).pack(rows):
            bucket.add(packed.blob)
        (row,) = [row for out in bucket.flush() for row in out.to_pylist()]
        assert row["x"] is not None
        taken.add(column)
    assert taken - NUMBERS == TAKEN.get(name, taken) - NUMBERS
    assert NUMBERS - taken == ({*NUMBERS} if name == "concat" else {"real"} if name.startswith("bit_") else set())


def test_a_sum_of_decimals_has_room_as_in_spark():
    query, _ = run(agg.sum("money"), "money")
    assert query.output_schema().field("x").type == pa.decimal128(13, 2)
