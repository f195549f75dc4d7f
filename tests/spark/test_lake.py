"""Files to a Delta table by merge, where Delta has a connector; and a clear word where it has none."""

import datetime as dt
import importlib.metadata
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash.pipeline import connectors, document

PIPELINE = """
time = "at"
key = "zone"
watermark = "10 minutes"
checkpoint = "checkpoint"
[source]
format = "parquet"
path = "in"
options = { maxFilesPerTrigger = 1 }
[[windows]]
range = "1 hour"
slide = "10 minutes"
emit = "update"
aggs = { n = "count", fare = "sum(fare)" }
sink = { format = "delta", path = "table", merge = ["zone", "window_end"], batch_path = "nightly" }
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    return tmp_path / "pipeline.toml"


def test_a_format_alone_picks_the_package_of_the_running_spark(file):
    settings = connectors.session_settings(document.read(file), "4.1")
    assert settings["spark.jars.packages"] == "io.delta:delta-spark_4.1_2.13:4.4.0"
    assert "DeltaSparkSessionExtension" in settings["spark.sql.extensions"]
    file.write_text('packages = ["io.delta:delta-spark_4.1_2.13:4.3.0"]\n' + PIPELINE)
    settings = connectors.session_settings(document.read(file), "4.1")
    assert settings["spark.jars.packages"] == "io.delta:delta-spark_4.1_2.13:4.3.0"  # as it is said


@pytest.mark.parametrize(("format_", "versions"), [("delta", "4.0 or 4.1 or 4.2"), ("iceberg", "4.0 or 4.1")])
def test_where_there_is_no_package_the_word_says_which_spark_has_one(file, format_, versions):
    file.write_text(PIPELINE.replace("delta", format_))
    with pytest.raises(document.PipelineErrors) as told:
        connectors.session_settings(document.read(file), "4.3")
    (line, said), *others = told.value.found
    assert not others
    assert line == PIPELINE.splitlines().index(next(text for text in PIPELINE.splitlines() if text.startswith("sink"))) + 1
    assert f"to Spark 4.3. Use Spark {versions}" in said


def test_what_spark_says_of_a_package_it_can_not_have_becomes_a_sentence():
    log = "x\njava.lang.RuntimeException: [unresolved dependency: com.example#nothing_2.13;9.9: not found]\nTraceback"
    assert connectors.unresolved(log).startswith("com.example:nothing_2.13:9.9 can't be downloaded")
    assert connectors.unresolved("OutOfMemoryError") is None


@pytest.mark.lake
@pytest.mark.timeout(600)
def test_files_to_delta_by_merge_and_by_night(file, tmp_path):
    version = ".".join(importlib.metadata.version("pyspark").split(".")[:2])
    if version not in ("4.0", "4.1", "4.2"):
        pytest.skip(f"Delta has no connector for Spark {version}")
    import deltalake

    base = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    rows = [{"at": base + dt.timedelta(seconds=37 * i), "zone": "ab"[i % 2], "fare": i} for i in range(400)]
    for number in range(4):
        pq.write_table(pa.Table.from_pylist(rows[100 * number : 100 * number + 100]), tmp_path / "in" / f"{number}.parquet")
    want = {}
    for row in rows:
        first = row["at"].replace(minute=row["at"].minute // 10 * 10, second=0)
        for step in range(1, 7):
            key = row["zone"], first + dt.timedelta(minutes=10 * step)
            n, fare = want.get(key, (0, 0))
            want[key] = (n + 1, fare + row["fare"])

    def run(*arguments):
        command = [sys.executable, "-m", "sash.cli", "run", str(file), "--master", "local[2]", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stdout + done.stderr

    def found(table):
        held = deltalake.DeltaTable(tmp_path / table).to_pyarrow_table().to_pylist()
        out = {(row["zone"], row["window_end"]): (row["n"], row["fare"]) for row in held}
        assert len(out) == len(held)
        return out

    run()
    assert found("table") == want
    run("--batch", "--to", "2024-03-01 02:00")
    run("--batch", "--from", "2024-03-01 02:00")
    run("--batch", "--from", "2024-03-01 02:00")
    assert found("nightly") == want
