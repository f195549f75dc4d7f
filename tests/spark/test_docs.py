"""The Spark examples of the README and of docs/spark.md run, and give rows."""

import datetime as dt
import pathlib
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash.wheel import TileStore

pytestmark = pytest.mark.spark

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("trips/", "out/", "checkpoint/", "tiles-checkpoint", "tiles")


def blocks(page):
    found = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    return [block for block in found if ">>>" not in block]


@pytest.mark.parametrize(("page", "count"), [("README.md", 1), ("docs/spark.md", 2)])
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
    else:
        assert space["hourly"].count() > 600
        assert space["visits"].count() == 3
        assert "windows of 1h every 1m" in capsys.readouterr().out
        assert sorted(TileStore(tmp_path / "tiles").wheels("fare").keys()) == ["a", "b", "c"]
