"""The Spark examples of the README, of docs/, of examples/ and of the docstrings of sash.spark run, and give rows."""

import datetime as dt
import doctest
import inspect
import pathlib
import re
import runpy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sash.spark
from sash import agg
from sash.wheel import TileStore

pytestmark = pytest.mark.spark

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("trips/", "out/", "checkpoint/", "tiles-checkpoint", "tiles")


def blocks(page):
    found = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    return [block for block in found if ">>>" not in block]


@pytest.mark.parametrize(("page", "count"), [("README.md", 1), ("docs/spark.md", 2), ("docs/tutorial.md", 1)])
def test_examples_run(spark, tmp_path, monkeypatch, capsys, page, count):
    (tmp_path / "trips").mkdir()
    pickups = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=i) for i in range(300)]
    trips = pa.table({"pickup": pickups, "zone": ["a", "b", "c"] * 100, "fare": [float(i % 7) for i in range(300)], "km": [1.5] * 300})
    pq.write_table(trips, tmp_path / "trips" / "0.parquet")
    monkeypatch.setattr("sash.spark.session", lambda *names, **conf: spark)
    space = {"schema": spark.read.parquet(str(tmp_path / "trips")).schema}
    examples = blocks(page)
    assert len(examples) == count
    for block in examples:
        placed = re.sub(f'"({"|".join(FOLDERS)})"', lambda match: f'"{tmp_path / match[1]}"', block)
        exec(compile(placed, page, "exec"), space)
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
    if page == "README.md":
        assert spark.read.parquet(str(tmp_path / "out")).count() > 100
        assert set(space["features"].columns) >= {"s_1h", "n_24h"}
    elif page == "docs/tutorial.md":
        assert spark.read.parquet(str(tmp_path / "out")).count() == 290  # the last ten minutes wait for the watermark
    else:
        assert space["hourly"].count() > 600
        assert space["visits"].count() == 3
        assert "windows of 1h every 1m" in capsys.readouterr().out
        assert sorted(TileStore(tmp_path / "tiles").wheels("fare").keys()) == ["a", "b", "c"]


def test_the_example_of_a_live_pipeline_runs(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sash.spark.session", lambda *names, **conf: spark)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    runpy.run_path(str(ROOT / "examples" / "live_pipeline.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "final windows: " in said
    assert re.search(r"mean fare of the north from .*: \d+\.\d\d", said)


def test_the_examples_in_docstrings_run(spark, tmp_path):
    # They are marked to be skipped where no session is at hand: here is one.
    at = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=i) for i in range(30)]
    (tmp_path / "rows").mkdir()
    rows = pa.table({"at": at, "zone": ["a", "b", "c"] * 10, "fare": [float(i) for i in range(30)]})
    pq.write_table(rows, tmp_path / "rows" / "0.parquet")
    df = spark.read.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(df.schema).parquet(str(tmp_path / "rows"))
    aggs = {"fare": agg.mean("fare")}
    windows = sash.spark.windows(stream, time="at", key="zone", range="1h", slide="10m", watermark="5m", aggs=aggs)
    written = windows.writeStream.format("parquet").option("path", str(tmp_path / "hourly"))
    written.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    filled = TileStore.create(tmp_path / "tiles", aggs=aggs, grain="1m", key="zone")
    sash.spark.write_history(filled, sash.spark.tiles(df, time="at", key="zone", grain="1m", aggs=aggs), until="2024-01-02")
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    parser = doctest.DocTestParser()
    ran = 0
    for name in sash.spark.__all__:
        if name == "session":  # there can be only one
            continue
        store = TileStore.create(tmp_path / f"store_{name}", aggs=aggs, grain="1m", key="zone")
        space = vars(sash.spark) | {"spark": spark, "df": df, "stream": stream, "agg": agg, "aggs": aggs, "store": store}
        text = re.sub(r" *# doctest: \+SKIP", "", inspect.getdoc(getattr(sash.spark, name)))
        text = re.sub(r'"(checkpoint|tiles|cp)"', lambda match: f'"{tmp_path / match[1]}"', text)
        ran += runner.run(parser.get_doctest(text, space, name, None, None)).attempted
    assert runner.failures == 0
    assert ran > 15
