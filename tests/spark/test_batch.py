"""Batch: equal to Spark's own windows and frames, row by row."""

import datetime as dt
import functools
import random

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from sash import agg
from sash.engine.tiles import tile_partial
from sash.spark import explain, rolling, tiles, windows
from tests.spark.conftest import at

pytestmark = pytest.mark.spark

SECOND = 1_000_000


@pytest.fixture(scope="module")
def events(spark):
    rng = random.Random(7)

    def maybe(value):
        return None if rng.random() < 0.1 else value

    rows = [
        (
            maybe(rng.choice(["a", "b", "c"])),
            rng.randrange(2),
            maybe(at(rng.randrange(-300, 300) + rng.choice([0, 0.25]))),
            maybe(rng.randrange(-(2**60), 2**60)),
            maybe(rng.choice([1.5, -2.25, 1e9, 3.0])),
            maybe(rng.random() < 0.5),
            maybe(dt.date(2024, 1, rng.randrange(1, 31))),
        )
        for _ in range(600)
    ]
    schema = "key string, part int, at timestamp, whole long, real double, flag boolean, day date"
    return spark.createDataFrame(rows, schema).repartition(3).cache()


def same(ours, theirs, count):
    """Both DataFrames hold the same rows."""
    ours, theirs = (sorted(map(tuple, df.collect()), key=repr) for df in (ours, theirs))
    assert len(ours) == len(theirs) >= count
    assert ours == theirs


AGGS = {  # ours, and the same in Spark's SQL
    "n": (agg.count(), "count(*)"),
    "known": (agg.count("whole"), "count(whole)"),
    "high": (agg.max("whole"), "max(whole)"),
    "low": (agg.min("real"), "min(real)"),
    "total": (agg.sum("part"), "sum(part)"),
    "mean": (agg.mean("part"), "avg(part)"),
    "flagged": (agg.count(where="flag"), "count_if(flag)"),
    "of_flagged": (agg.mean("real", where="flag"), "avg(if(flag, real, null))"),
    "day": (agg.max("day"), "max(day)"),
}
OURS = {name: ours for name, (ours, _) in AGGS.items()}
PACKED = OURS | {"days": agg.distinct("day")}  # this one Spark can't put together from slices


def theirs():
    return [F.expr(sql).alias(name) for name, (_, sql) in AGGS.items()]


@pytest.mark.parametrize(("aggs", "strategy"), [(OURS, "jvm slices"), (PACKED, "packed")])
@pytest.mark.parametrize(("length", "slide", "offset"), [(60, 10, 0), (30, 30, 7), (25, 10, 3)])
def test_windows_equal_sparks(events, length, slide, offset, aggs, strategy):
    ours = windows(
        events, time="at", range=f"{length}s", slide=f"{slide}s", offset=f"{offset}s", key=["key", "part"], aggs=aggs, watermark="1s"
    )
    assert explain(ours).splitlines()[1].split("  ")[1] == strategy
    ours = ours.drop("days")
    own = F.window("at", f"{length} seconds", f"{slide} seconds", f"{offset} seconds")
    same(ours, events.groupBy("key", "part", own).agg(*theirs()).select("key", "part", "window.start", "window.end", *AGGS), 50)


def test_why_spark_does_not_slice(events):
    def said(aggs, **asked):
        return explain(windows(events, time="at", aggs=aggs, **asked))

    hour = {"range": "1h"}
    assert "sessions have no slices" in said({"n": agg.count()}, session="1m")
    assert "sum of 'whole' in a slice may not fit" in said({"a": agg.mean("whole")}, **hour)
    assert "'n' is more than one of Spark's functions" in said({"n": agg.count(where=lambda row: row["part"])}, **hour)
    assert "where='part' of 'n' is no column of truth values" in said({"n": agg.count(where="part")}, **hour)
    assert "the key 'real' is a double" in said({"n": agg.count()}, key="real", **hour)


def test_windows_without_a_key_equal_sparks(events):
    ours = windows(events, time="at", range="2 minutes", slide="1 minute", aggs=OURS)
    own = events.groupBy(F.window("at", "2 minutes", "1 minute")).agg(*theirs())
    same(ours, own.select("window.start", "window.end", *AGGS), 10)


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
def test_rolling_equals_sparks_range_frames(events, closed):
    lookbacks = {"10s": 10 * SECOND, "2m": 120 * SECOND, None: None}
    ours = rolling(events, time="at", lookbacks=lookbacks, key="key", aggs=OURS, closed=closed)
    over = Window.partitionBy("key").orderBy(F.unix_micros("at"))
    right = 0 if closed in ("right", "both") else -1
    frames = [
        over.rangeBetween(Window.unboundedPreceding if p is None else -p + (closed in ("right", "neither")), right)
        for p in lookbacks.values()
    ]
    known = events.filter("at is not null")
    same(ours, known.select("*", *(F.expr(sql).over(frame) for _, sql in AGGS.values() for frame in frames)), 500)
    assert ours.columns[-1] == "day_all"


def test_times_without_a_zone_stay_without(spark, events):
    plain = events.select("key", F.col("at").cast("timestamp_ntz").alias("at"), "whole")
    out = windows(plain, time="at", range="1h", key="key", aggs={"n": agg.count()})
    assert [f.dataType.simpleString() for f in out.schema.fields] == ["string", "timestamp_ntz", "timestamp_ntz", "bigint"]
    same(
        out.select("key", F.col("window_end").cast("timestamp"), "n"),
        events.groupBy("key", F.window("at", "1 hour")).count().filter("window is not null").select("key", "window.end", "count"),
        2,
    )


@pytest.mark.parametrize("key", [None, "key"])
def test_long_keys_are_cut_in_time(spark, key):
    # 40 stretches of 8 s, look-backs that reach just to and just beyond a cut
    rows = spark.range(3200).selectExpr("if(id % 10 = 0, 'b', 'a') as key", "timestamp_millis(id * 100 - 100000) as at", "id as value")
    ours = rolling(rows, time="at", lookbacks=["1s", "100ms"], key=key, aggs={"total": agg.sum("value")}, closed="both")
    over = (Window.partitionBy(key) if key else Window.partitionBy(F.lit(1))).orderBy(F.unix_micros("at"))
    frames = [over.rangeBetween(-SECOND, 0), over.rangeBetween(-SECOND // 10, 0)]
    same(ours, rows.select("*", *(F.sum("value").over(frame) for frame in frames)), 3200)
    assert "stretches of 8s, each with the 1s before it" in explain(ours)


def test_tiles_hold_what_can_be_merged(events):
    aggs = {"n": agg.count(), "high": agg.max("whole"), "real": agg.mean("real"), "spread": agg.std("part"), "days": agg.distinct("day")}
    out = tiles(events, time="at", grain="1 minute", key="key", aggs=aggs)
    assert out.columns == ["key", "slice_start", "slice_end", *aggs]
    merged = out.groupBy("key").agg(F.sum("n"), F.max("high"), F.sum("real.sum"), F.sum("real.count"))
    known = events.filter("at is not null").groupBy("key").agg(F.count("*"), F.max("whole"), F.sum("real"), F.count("real"))
    same(merged, known, 4)
    spreads = [tile_partial(aggs["spread"], row.spread) for row in out.filter("key = 'a'").orderBy("slice_start").collect()]
    whole = aggs["spread"].lower(functools.reduce(aggs["spread"].combine, spreads))
    assert whole == pytest.approx(events.filter("key = 'a' and at is not null").agg(F.stddev("part")).first()[0], rel=1e-9)


def test_ewma_equals_its_formula_in_spark_sql(events):
    ours = windows(events, time="at", range="60s", slide="20s", key="part", aggs={"e": agg.ewma("real", half_life="10s")}, watermark="1s")
    known = events.filter("real is not null and at is not null").withColumn("t", F.unix_micros("at"))
    placed = known.withColumn("w", F.window("at", "60 seconds", "20 seconds"))
    newest = placed.withColumn("newest", F.max("t").over(Window.partitionBy("part", "w")))
    weighed = newest.withColumn("weight", F.pow(F.lit(2.0), (F.col("t") - F.col("newest")) / 1e7))
    theirs = weighed.groupBy("part", "w").agg((F.sum(F.col("real") * F.col("weight")) / F.sum("weight")).alias("e"))
    wanted = {(row.part, row.w.start): row.e for row in theirs.collect()}
    found = {(row.part, row.window_start): row.e for row in ours.filter("e is not null").collect()}
    assert len(wanted) > 50
    assert found == {place: pytest.approx(e) for place, e in wanted.items()}
