"""What explain() says, and what is counted."""

import datetime as dt

import pytest

from sash import agg
from sash.engine.definition import define_windows
from sash.errors import DefinitionError
from sash.spark import explain, metrics, windows
from sash.spark.definition import SparkColumns
from sash.spark.packing import PACKED, packer
from tests.spark import oracle
from tests.spark.arrivals import EVENTS, found_windows, rows, totals

pytestmark = pytest.mark.spark

TOTALS = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}


def test_the_plan_is_told_also_after_other_steps(spark):
    stream = spark.readStream.format("rate").load()
    out = windows(stream, time="timestamp", range="1h", slide="1m", aggs={"n": agg.count()}, watermark="10m")
    said = explain(out.filter("n > 3").select("window_end"))
    assert said.splitlines()[0] == "windows of 1h every 1m, no key, as a stream"
    assert "<- chosen" in said.splitlines()[1]
    assert "the watermark is 10m behind the newest row" in said


@pytest.mark.parametrize("key", [None, "key"])
def test_one_heavy_key_is_sliced_on_all_cores(spark, key):
    # nine rows in ten are of one key, in four partitions: what meets in one task is slices, not rows
    heavy = "if(id % 10 = 0, 'b', 'a') as key", "timestamp_seconds(id div 100) as at", "id as value"
    rows = spark.range(0, 40_000, numPartitions=4).selectExpr(*heavy)
    asked = {"time": "at", "range": "1m", "slide": "10s", "key": key, "aggs": {"total": agg.sum("value")}}
    out = windows(rows, **asked)
    assert "one heavy key on all cores" in explain(out)
    query = define_windows(SparkColumns(rows), **asked)
    packed = rows.select(*query.schema.names).mapInArrow(packer(query, 2), PACKED)
    parts = packed.selectExpr("spark_partition_id() as part", "rows", "length(blob) as size").groupBy("part").sum("rows", "size").collect()
    assert [done["sum(rows)"] for done in parts] == [10_000] * 4
    assert all(done["sum(size)"] < 2_000 for done in parts)
    assert out.selectExpr("sum(total)").first()[0] == 6 * sum(range(40_000))


def test_a_dataframe_without_results_of_ours_is_refused(spark):
    with pytest.raises(DefinitionError, match="no column that windows"):
        explain(spark.range(3))


def test_rows_from_the_future_do_not_move_the_watermark(stream, cache):
    # batch 1 holds a row that is 10 years ahead of when it arrived: refused, else everything after it would be late
    good = [[("k", 0, 1), ("k", 10, 2)], [("k", 22, 3)], [("k", 14, 4)], [("k", 40, 6)]]
    batches = [[*rows([batch])[0]] for batch in good]
    batches[1].append(("k", dt.datetime(2034, 1, 1, tzinfo=dt.UTC), 9))
    schema = EVENTS.append(EVENTS.field("at").with_name("arrived"))
    arrived = [[(*row, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)) for row in batch] for batch in batches]
    source = stream(schema, arrived)
    asked = {"range": "10s", "slide": "5s", "key": "key", "aggs": TOTALS, "watermark": "5s"}
    out = source.run(lambda df: windows(df, time="at", max_ahead=("1 hour", "arrived"), **asked))
    assert found_windows(out) == oracle.windows(good, 10, 5, 5, totals)
    assert [metrics(p)["ahead"] for p in source.progress][:3] == [0, 1, 0]


def test_the_clock_is_the_limit_without_an_arrival_column(spark):
    rows = spark.sql("select current_timestamp() + make_interval(0, 0, 0, 0, x) as at from values (-1), (0), (1), (3) as t(x)")
    plain = rows.selectExpr("cast(at as timestamp_ntz) as at")
    for df in (rows, plain):
        out = windows(df, time="at", range="1h", aggs={"n": agg.count()}, max_ahead="2h")
        assert out.selectExpr("sum(n)").first()[0] == 3
