"""Sketches are Apache DataSketches on both sides: tiles of ours are sketches of Spark's functions, and back."""

import pytest
from pyspark.sql import functions as F

from sash import agg
from sash.engine.tiles import tile_partial
from sash.spark import tiles

datasketches = pytest.importorskip("datasketches", reason="sketches need the extra sash[sketches]")
pytestmark = pytest.mark.spark


def partial_of(aggregation, items):
    partial = aggregation.identity()
    for x in items:
        partial = aggregation.combine(partial, aggregation.lift(x))
    return partial


@pytest.mark.parametrize("n", [3, 40, 100, 5000])
@pytest.mark.parametrize("column", ["id", "cast(id as string)"])
def test_hll_sketches_are_equal_byte_by_byte(spark, n, column):
    (theirs,) = spark.range(n).coalesce(1).selectExpr(f"hll_sketch_agg({column})").first()
    a = agg.approx_distinct()
    ours = a.blob.write(partial_of(a, (str(i) if "string" in column else i for i in range(n))))
    assert ours == bytes(theirs)


def test_kll_sketches_are_equal_until_one_drops_items_by_chance_and_readable_after(spark):
    a = agg.approx_quantile(0.5)
    for n in (3, 150, 5000):
        (theirs,) = spark.range(n).coalesce(1).selectExpr("kll_sketch_agg_double(cast(id as double))").first()
        ours = a.blob.write(partial_of(a, range(n)))
        if n <= 200:  # k items are kept as they are; then every other one goes, by a rule of ours and by a coin of theirs
            assert ours == bytes(theirs)
        assert a.lower(bytes(theirs)) == pytest.approx(n / 2, abs=0.03 * n + 1)
        asked = spark.createDataFrame([(bytearray(ours),)], "s binary").selectExpr("kll_sketch_get_quantile_double(s, 0.5D)").first()[0]
        assert asked == pytest.approx(n / 2, abs=0.03 * n + 1)


def test_tiles_hold_sketches_that_spark_merges_and_that_come_back(spark):
    rows = spark.range(6000).selectExpr("timestamp_seconds(id) at", "id % 2 k", "id % 1000 v")
    aggs = {"users": agg.approx_distinct("v"), "fare": agg.approx_quantile("v", 0.5)}
    made = tiles(rows, time="at", grain="10 minutes", key="k", aggs=aggs).cache()
    assert made.count() == 20
    users = made.groupBy("k").agg(F.hll_sketch_estimate(F.hll_union_agg("users")).alias("n")).collect()
    assert sorted(row.k for row in users) == [0, 1]
    for row in users:
        assert row.n == pytest.approx(500, rel=0.05)
    for name, expected in (("users", 1000), ("fare", 500)):
        a = aggs[name]
        partial = a.identity()
        for row in made.select(name).collect():
            partial = a.combine(partial, tile_partial(a, row[0]))
        assert a.lower(partial) == pytest.approx(expected, rel=0.05)
