"""Frames of every kind give what Spark's batch gives, row by row, for random definitions of columns of all types."""

import pyarrow as pa
import pytest

import sash
from sash import agg
from tests.engine import cases
from tests.frames.kinds import KINDS, to_arrow
from tests.frames.test_oracle import asked_by, rows_of

pytestmark = pytest.mark.spark

SAME = ("pandas of Arrow", "polars", "polars lazy", "table", "duckdb")  # in the other one of pandas NaN is a missing value


def sorted_rows(table):
    return sorted(map(repr, rows_of(table)))


@pytest.mark.parametrize("seed", range(6))
def test_frames_equal_sparks_batch_for_random_definitions(spark, seed):
    case = cases.random_case(500 + seed, rows=60, windows=seed % 2 == 0, late="drop")
    table = pa.Table.from_batches([case.batch])
    function = sash.windows if seed % 2 == 0 else sash.rolling
    asked = asked_by(case.query)
    there = function(spark.createDataFrame(table), **asked)
    assert type(there).__module__.startswith("pyspark")
    expected = sorted_rows(there.toArrow())
    assert expected
    for kind in SAME:
        out = to_arrow(kind, function(KINDS[kind](table), **asked))
        assert out.column_names == there.columns
        assert sorted_rows(out) == expected, (seed, kind, case.query)


def test_nan_and_nulls_of_pandas_are_what_spark_makes_of_them(spark):
    case = cases.random_case(7, rows=60, windows=True)
    df = KINDS["pandas"](pa.Table.from_batches([case.batch]))[["t", "v", "x", "w"]]
    asked = {"time": "t", "range": "20us", "aggs": {"n": agg.count("x"), "s": agg.sum("x"), "v": agg.max("v"), "w": agg.max("w")}}
    there = sash.windows(spark.createDataFrame(df), **asked).toArrow()
    assert sorted_rows(to_arrow("pandas", sash.windows(df, **asked))) == sorted_rows(there)


def test_tiles_and_sessions_of_a_frame_are_sparks(spark):
    case = cases.random_case(11, rows=60)
    table = pa.Table.from_batches([case.batch])
    there = spark.createDataFrame(table)
    for function, asked in (
        (sash.tiles, {"grain": "5us", "aggs": {"v": agg.mean("v"), "high": agg.max("w"), "d": agg.std("v")}}),
        (sash.windows, {"session": "3us", "aggs": {"c": agg.collect("v"), "n": agg.count()}}),
    ):
        expected = sorted_rows(function(there, time="t", key="w", **asked).toArrow())
        assert sorted_rows(function(table, time="t", key="w", **asked)) == expected
