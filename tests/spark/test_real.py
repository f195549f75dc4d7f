"""Real streams, end to end. The files are not part of the project; trips made up in the same shape run with and without them."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from sash import agg
from sash.spark import metrics, rolling, windows
from tests.spark.arrivals import found_windows

FOLDER = next((p / "shared" / "data" for p in Path(__file__).resolve().parents if (p / "shared" / "data").is_dir()), None)
pytestmark = pytest.mark.spark

HOUR = 3_600_000_000


def read(name, order, times, columns):
    """A file in the order in which its rows arrived, its times as Spark's timestamps."""
    if FOLDER is None:
        pytest.skip("the data files are not beside the project")
    table = pq.read_table(FOLDER / name, columns=[*dict.fromkeys([order, *times, *columns])]).sort_by(order)
    for time in times:
        table = table.set_column(table.schema.names.index(time), time, table[time].cast(pa.timestamp("us", "UTC")))
    return table


def arriving(stream, table, places):
    """A stream of a table's rows, cut into micro-batches at these places."""
    source = stream(table.schema, [])
    for start, end in itertools.pairwise(places):
        source.append_table(table.slice(start, end - start))
    return source


def parts(first, last, count):
    """Places that cut into parts of one size."""
    return np.linspace(first, last, count + 1).astype(int).tolist()


def taxis():
    # 13,682 trips sit in a block at the end of each month's file; 4 have a wrong year
    return read("nyc_green_taxi_2023q1.parquet", "seq", ["pickup_ts"], ["vendor", "passenger_count", "total_amount"])


def taxis_made_up():
    """Three months of trips, each with a late block at its end; passengers are sometimes unknown."""
    random = np.random.default_rng(3)
    months = []
    for month in range(3):
        on_time = np.sort(random.integers(0, 30 * 24 * HOUR, 900)) + random.integers(-HOUR, HOUR, 900)
        months += [on_time + month * 30 * 24 * HOUR, random.integers(0, 30 * 24 * HOUR, 100) + month * 30 * 24 * HOUR]
    times = np.concatenate(months)
    people = pa.array(random.integers(1, 7, len(times)), pa.int64(), mask=random.random(len(times)) < 0.05)
    return pa.table(
        {
            "pickup_ts": pa.array(times + 1_672_531_200_000_000, pa.timestamp("us", "UTC")),
            "vendor": random.integers(1, 3, len(times)),
            "passenger_count": people,
            "total_amount": random.normal(20, 8, len(times)).round(2),
        }
    )


@pytest.mark.parametrize(("trips", "least_windows", "least_late"), [(taxis, 40_000, 10_000), (taxis_made_up, 10_000, 100)])
def test_taxis_with_a_late_block_equal_spark_in_every_micro_batch(stream, trips, least_windows, least_late):
    table = trips()
    source = arriving(stream, table, parts(0, table.num_rows, 8))
    aggs = {"n": agg.count(), "people": agg.sum("passenger_count"), "most": agg.max("total_amount")}
    asked = {"time": "pickup_ts", "range": "1 hour", "slide": "5 minutes", "key": "vendor", "watermark": "6 hours"}
    ours = source.run(lambda df: windows(df, aggs=aggs, **asked), "ours")
    late = sum(metrics(p)["late"] for p in source.progress)

    def plain(df):
        counted = df.withWatermark("pickup_ts", "6 hours").groupBy("vendor", F.window("pickup_ts", "1 hour", "5 minutes"))
        counted = counted.agg(F.count("*").alias("n"), F.sum("passenger_count").alias("people"), F.max("total_amount").alias("most"))
        return counted.select("vendor", "window.start", "window.end", "n", "people", "most")

    assert found_windows(ours) == found_windows(source.run(plain, "spark"))
    assert sum(map(len, ours)) > least_windows
    assert late > least_late


@pytest.mark.stress
def test_bikes_by_when_they_came_back_equal_batch_without_the_late_ones(stream):
    # a trip's time is its start, its arrival its end: 61.8 % come after a younger one; small batches at first, so that some are late
    table = read("citibike_jc_201806_202005.parquet", "stop_ts", ["start_ts"], ["start_station", "duration_s", "seq"])
    places = [*range(0, 6_000, 100), *parts(6_000, table.num_rows, 8)]
    source = arriving(stream, table, places)
    end = table.schema.empty_table().to_pylist() or [dict.fromkeys(table.schema.names)]
    end[0]["start_ts"] = table["start_ts"].to_pylist()[-1].replace(year=2021)  # lets the watermark pass all others
    source.append_table(pa.Table.from_pylist(end, schema=table.schema))
    asked = {"time": "start_ts", "lookbacks": ["1h", "1d", "20rows"], "key": "start_station"}
    aggs = {"n": agg.count(), "seconds": agg.sum("duration_s"), "longest": agg.max("duration_s")}
    path = str(source.folder / "out")
    query = rolling(source.read(), aggs=aggs, tie="seq", watermark="15 minutes", **asked).writeStream.trigger(availableNow=True)
    query = query.option("checkpointLocation", str(source.folder / "checkpoint")).start(path)
    query.awaitTermination()
    late = sum(metrics(p)["late"] for p in query.recentProgress)

    times = table["start_ts"].cast(pa.int64()).to_numpy()
    newest = np.maximum.accumulate([times[a:b].max() for a, b in itertools.pairwise(places)])
    marks = [np.iinfo(np.int64).min] * 2 + list(newest[:-2] // 1000 * 1000 - HOUR // 4)  # by which each batch's rows are judged
    judged_by = np.repeat(marks, np.diff(places))
    on_time = times > judged_by
    assert late == (~on_time).sum() > 50
    kept = source.folder / "kept.parquet"
    pq.write_table(table.filter(pa.array(on_time)), kept)
    expected = rolling(source.spark.read.parquet(str(kept)), aggs=aggs, tie="seq", **asked)
    got = source.spark.read.parquet(path)
    digest = F.sum(F.xxhash64(*expected.columns).cast("decimal(38,0)"))
    assert got.select(F.count("*"), digest).first() == expected.select(F.count("*"), digest).first()
