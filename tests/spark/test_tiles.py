"""Tiles by the executors, and tile stores as tables of Spark."""

import datetime as dt
import random

import pyarrow as pa
import pytest

from sash import agg
from sash.wheel import TileStore, TileStoreError

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000
T0 = 1_704_067_200_000_000  # 2024-01-01 00:00
AGGS = {"n": agg.count(), "total": agg.sum("v"), "mean": agg.mean("v"), "worst": agg.max("v"), "top": agg.top_k("v", 2)}


def rows(seed, count=3000, keys=17, hours=48):
    rng = random.Random(seed)
    return [(f"k{rng.randrange(keys)}", T0 + rng.randrange(hours * HOUR), rng.randrange(100)) for _ in range(count)]


def frame(spark, given):
    at = pa.array([t for _, t, _ in given]).cast(pa.timestamp("us", "UTC"))
    return spark.createDataFrame(pa.table({"key": [k for k, _, _ in given], "at": at, "v": [v for _, _, v in given]}))


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    """A store that a batch job wrote, on all cores."""
    from sash.spark import tiles, write_history

    given = rows(1)
    path = tmp_path_factory.mktemp("tiles") / "s"
    made = TileStore.create(path, aggs=AGGS, grain="1 hour", key="key")
    batch = tiles(frame(spark, given).repartition(4), time="at", key="key", grain="1 hour", aggs=AGGS)
    assert write_history(made, batch, until=T0 + 48 * HOUR)
    assert not write_history(made, batch, until=T0 + 48 * HOUR)
    return path, given


def expected(given, step):
    groups = {}
    for key, at, v in given:
        groups.setdefault((key, (at - T0) // step), []).append(v)
    return {(key, T0 + i * step): (len(v), sum(v), sum(v) / len(v), max(v), sorted(v, reverse=True)[:2]) for (key, i), v in groups.items()}


def found(df):
    epoch = dt.datetime(1970, 1, 1)
    return {
        (r["key"], (r["slice_start"] - epoch) // dt.timedelta(microseconds=1)): (r["n"], r["total"], r["mean"], r["worst"], list(r["top"]))
        for r in df.collect()
    }


def test_history_by_the_executors_equals_brute_force(store):
    path, given = store
    wheels = TileStore(path).wheels("total", start=T0)
    for key in {k for k, _, _ in given}:
        for hour in (0, 7, 23):
            values = [v for k, t, v in given if k == key and t >= T0 + hour * HOUR]
            assert wheels.query(key, T0 + hour * HOUR, T0 + 48 * HOUR) == sum(values)


@pytest.mark.parametrize("by", ["1h", "6h", "1d"])
def test_a_store_is_a_table_of_values(spark, store, by):
    path, given = store
    step = {"1h": 1, "6h": 6, "1d": 24}[by] * HOUR
    df = spark.read.format("sash").option("by", by).option("partitions", 3).load(str(path))
    assert df.columns == ["key", "slice_start", "slice_end", *AGGS]
    assert found(df) == expected(given, step)


def test_filters_on_key_and_time_narrow_what_is_read(spark, store, monkeypatch):
    from pyspark.sql import functions as F

    from sash.spark.tile_source import TileSource

    path, given = store
    df = spark.read.format("sash").option("by", "6h").load(str(path))
    cut = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    some = df.filter(
        (F.col("key").isin("k1", "k2")) & (F.col("slice_start") >= F.lit(cut)) & (F.col("slice_start") < F.lit(cut + dt.timedelta(days=1)))
    )
    wanted = {k: v for k, v in expected(given, 6 * HOUR).items() if k[0] in ("k1", "k2") and 12 * HOUR <= k[1] - T0 < 36 * HOUR}
    assert found(some) == wanted
    try:
        from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan
    except ImportError:
        return  # before Spark 4.1 filters are not pushed down
    reader = TileSource({"path": str(path), "by": "6h"}).reader(None)
    filters = [EqualTo(("key",), "k1"), GreaterThanOrEqual(("slice_start",), cut), LessThan(("slice_start",), cut + dt.timedelta(days=1))]
    assert list(reader.pushFilters(filters)) == filters
    (part,) = reader.partitions()
    assert (part.start, part.end) == (T0 + 12 * HOUR, T0 + 36 * HOUR)
    (batch,) = reader.read(part)
    assert set(batch.column("key").to_pylist()) == {"k1"}
    assert batch.num_rows == 4


def test_days_of_a_time_zone_and_some_aggregations(spark, store):
    path, given = store
    df = spark.read.format("sash").option("by", "1d").option("tz", "Europe/Berlin").option("aggs", "n").load(str(path))
    assert df.columns == ["key", "slice_start", "slice_end", "n"]
    days = {}
    for _, at, _ in given:
        days[(at - T0 + HOUR) // (24 * HOUR)] = days.get((at - T0 + HOUR) // (24 * HOUR), 0) + 1
    assert sorted(r["sum(n)"] for r in df.groupBy("slice_start").sum("n").collect()) == sorted(days.values())


def test_options_that_make_no_sense_are_refused(spark, store):
    path, _ = store
    for options, says in (({"step": "1h"}, "has no option step"), ({"by": "90m"}, "not a multiple"), ({"aggs": "fare"}, "no aggregation")):
        with pytest.raises(Exception, match=says):
            spark.read.format("sash").options(**options).load(str(path)).collect()


def test_a_stream_goes_on_from_history_and_writes_a_batch_once(spark, tmp_path):
    from sash.spark import tile_sink, tiles, write_history

    given = rows(2, 2000)
    cut = T0 + 24 * HOUR
    aggs = {"n": agg.count(), "total": agg.sum("v")}
    store = TileStore.create(tmp_path / "s", aggs=aggs, grain="1 hour", key="key")
    past, live = [r for r in given if r[1] < cut], sorted((r for r in given if r[1] >= cut), key=lambda r: r[1])
    write_history(store, tiles(frame(spark, past), time="at", key="key", grain="1 hour", aggs=aggs), until=cut)
    source = tmp_path / "in"
    for i in range(2):
        part = live[i * len(live) // 2 : (i + 1) * len(live) // 2]
        frame(spark, part).coalesce(1).write.mode("append").parquet(str(source))
    stream = spark.readStream.schema("key string, at timestamp, v long").option("maxFilesPerTrigger", 1).parquet(str(source))
    out = tiles(stream, time="at", key="key", grain="1 hour", aggs=aggs, watermark="0 seconds")
    checkpoint = str(tmp_path / "cp")
    sink = tile_sink(store, checkpoint)
    calls = []

    def twice(df, batch):
        sink(df, batch)
        calls.append((batch, len(store)))
        sink(df, batch)  # Spark runs a batch again: nothing happens
        assert len(store) == calls[-1][1]

    query = out.writeStream.foreachBatch(twice).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    assert len(calls) >= 2
    upto = store.watermark // HOUR * HOUR
    wheels = TileStore(tmp_path / "s").wheels("total", start=T0)
    for key in {k for k, _, _ in given}:
        assert wheels.query(key, T0, upto) == sum(v for k, t, v in given if k == key and t < upto)
    with pytest.raises(TileStoreError, match="is written by the query"):
        store.awaits("another", 0)


def test_only_names_and_counts_reach_the_driver(spark, tmp_path):
    from sash.spark import tiles
    from sash.spark.tile_sink import put_slices

    store = TileStore.create(tmp_path / "s", aggs={"n": agg.count()}, grain="1 hour", key="key")
    slices = tiles(frame(spark, rows(3)), time="at", key="key", grain="1 hour", aggs={"n": agg.count()})
    parts = put_slices(slices, store, store.shape(), 0, T0 + 48 * HOUR)
    assert sum(part.segment.rows for part in parts) == len({(k, (t - T0) // HOUR) for k, t, _ in rows(3)})
    assert all(len(part.text()) < 2000 for part in parts)
    assert len(store) == 0
    assert store.commit(parts, query="q", batch=0, watermark=T0 + 48 * HOUR)
    parts[0].segment and (tmp_path / "s" / parts[0].segment.file).unlink(missing_ok=True)
    with pytest.raises(TileStoreError, match="Use a path that all machines share"):
        store.commit(parts, query="q", batch=1, watermark=T0 + 49 * HOUR)
