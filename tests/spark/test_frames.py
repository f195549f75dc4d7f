"""Frames of every kind give what Spark's batch gives, row by row, for random definitions of columns of all types."""

import datetime as dt
import decimal
import random

import pyarrow as pa
import pyarrow.compute as pc
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


HOURS = 3_600_000_000  # of cases whose windows follow a calendar
SHAPES = ("windows", "rolling", "several ranges", "hops", "labels", "delay", "sessions", "silence", "calendar", "tiles")


def asked_of(shape, seed):
    """A random case of a shape: the function, its arguments, the rows, and the labels where it has some."""
    rolls = shape in ("rolling", "hops", "labels", "delay")
    case = cases.random_case(seed, rows=60, windows=not rolls, late="drop")
    table, asked, r = pa.Table.from_batches([case.batch]), asked_by(case.query), random.Random(seed)
    labels = None
    if shape == "several ranges":
        slide = case.query.windows.slide
        asked["range"] = [f"{slide}us", f"{slide + r.randint(1, 30)}us"]
    elif shape == "silence":
        asked["empty"] = "once"
    elif shape == "hops":
        asked["lookbacks"] = [f"{r.randint(9, 40)}us/{r.randint(1, 9)}us", None]
    elif shape == "delay":
        asked |= {"delay": f"{r.randint(1, 9)}us", "lookbacks": ["3us", "20us"]}
    elif shape == "labels":
        named = {"t": "when"} | ({"v": "label"} if "v" not in asked["key"] else {})
        labels = pa.table({named.get(name, name): table.column(name) for name in ("t", "v", *asked["key"])}).slice(0, 30)
        labels = labels.set_column(0, "when", pc.add(labels.column(0), pa.scalar(r.randint(-2, 9), pa.duration("us"))))
        asked |= {"at_time": "when", "lookbacks": ["3us", "20us", "17us/5us"], "closed": r.choice([None, "right", "left"])}
    elif shape == "sessions":
        asked = {name: asked[name] for name in ("time", "key", "aggs", "tie")} | {"session": f"{r.randint(1, 9)}us"}
    elif shape == "calendar":
        at = pc.multiply(table.column("t").cast(pa.int64()), 7 * HOURS).cast(pa.timestamp("us", "UTC"))
        table = table.set_column(table.column_names.index("t"), "t", at)
        asked = {name: asked[name] for name in ("time", "key", "aggs", "tie")}
        asked |= {"range": r.choice(["1 day", "2 weeks", "1 month"]), "tz": r.choice(["Europe/Berlin", "America/St_Johns", "UTC"])}
    elif shape == "tiles":
        known = {name: a for name, a in asked["aggs"].items() if not a.callables}
        asked = {name: asked[name] for name in ("time", "key", "tie")} | {"grain": "5us", "aggs": known or {"n": agg.count()}}
    return getattr(sash, {"tiles": "tiles"}.get(shape, "rolling" if rolls else "windows")), asked, table, labels


def compare(spark, shape, seed):
    function, asked, table, labels = asked_of(shape, seed)
    at = {} if labels is None else {"at": spark.createDataFrame(labels)}
    there = function(spark.createDataFrame(table), **at, **asked)
    assert type(there).__module__.startswith("pyspark")
    expected = sorted_rows(there.toArrow())
    for kind in SAME:
        at = {} if labels is None else {"at": KINDS[kind](labels)}
        out = to_arrow(kind, function(KINDS[kind](table), **at, **asked))
        assert out.column_names == there.columns
        assert sorted_rows(out) == expected, (shape, seed, kind, asked)
    return len(expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_frames_equal_sparks_batch_for_random_definitions(spark, shape):
    assert compare(spark, shape, 500 + SHAPES.index(shape))


@pytest.mark.stress
@pytest.mark.timeout(3600)
def test_frames_equal_sparks_batch_for_many_random_definitions(spark):
    assert sum(compare(spark, shape, seed) for seed in range(20) for shape in SHAPES) > 1000


def test_values_of_every_type_are_aggregated_as_in_spark(spark):
    r = random.Random(3)
    made = {
        "price": (pa.decimal128(12, 2), lambda: decimal.Decimal(r.randint(-500, 500)) / 4),
        "small": (pa.int8(), lambda: r.randint(-9, 9)),
        "real": (pa.float32(), lambda: r.randint(-9, 9) / 4),
        "flag": (pa.bool_(), lambda: r.random() < 0.5),
        "day": (pa.date32(), lambda: dt.date(2024, 1, r.randint(1, 28))),
        "moment": (pa.timestamp("us", "UTC"), lambda: dt.datetime(2024, 1, r.randint(1, 28), tzinfo=dt.UTC)),
        "blob": (pa.binary(), lambda: r.randbytes(3)),
        "text": (pa.string(), lambda: r.choice("abc")),
    }
    columns = {name: pa.array([make() if r.random() < 0.8 else None for _ in range(50)], type_) for name, (type_, make) in made.items()}
    at = pa.array([r.randint(0, 60) * 10**6 for _ in range(50)], pa.int64()).cast(pa.timestamp("us", "Europe/Berlin"))
    table = pa.table({"at": at, "key": [r.choice("xy") for _ in range(50)], "seq": range(50), **columns})
    aggs = {f"{a}_{name}": getattr(agg, a)(name) for name in made for a in ("count", "min", "max", "first", "distinct")}
    aggs |= {f"sum_{name}": agg.sum(name) for name in ("price", "small", "real")} | {"mean": agg.mean("small"), "any": agg.any("flag")}
    asked = {"time": "at", "key": "key", "tie": "seq", "aggs": aggs}
    for function, shape in ((sash.windows, {"range": "20s", "slide": "10s"}), (sash.rolling, {"lookbacks": ["20s"]})):
        expected = sorted_rows(function(spark.createDataFrame(table), **asked, **shape).toArrow())
        for kind in SAME:
            assert sorted_rows(to_arrow(kind, function(KINDS[kind](table), **asked, **shape))) == expected, kind


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
