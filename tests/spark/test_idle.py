"""When no rows come, time goes on by the clock: timelines with a clock that the test moves."""

import pyarrow as pa
import pytest

from sash import agg
from sash.errors import DefinitionError
from sash.spark import explain, metrics, rolling, windows
from tests.spark.arrivals import EVENTS, rows
from tests.spark.conftest import at, seconds

pytestmark = pytest.mark.spark

CLOCK = pa.schema([("timestamp", pa.timestamp("us", tz="UTC"))])
KEYED = {"time": "at", "key": "key", "aggs": {"n": agg.count()}}


@pytest.fixture
def clock(stream, monkeypatch):
    """Let the clock show a time in each micro-batch."""

    def show(*times):
        source = stream(CLOCK, [[(at(t),)] for t in times])
        monkeypatch.setattr("sash.spark.idle.clock", lambda spark: source.read())

    return show


def test_the_last_windows_close_by_the_clock_the_delay_and_idle_behind_it(stream, spark, clock):
    #  watermark 2 s behind, idle 5 s       0         10        20        30       windows of 10 s
    #  batch 1   a(3)      clock 4          W = max(3, 4 - 5) - 2 = 1
    #  batch 2   -         clock 12         W = 12 - 5 - 2 = 5
    #  batch 3   -         clock 17         W = 17 - 5 - 2 = 10
    #  batch 4   b(11)     clock 18         [0, 10) closes
    #  batch 5   a(9)      clock 28         late: 9 <= 10; W becomes 21, and batch 6 closes [10, 20)
    clock(4, 12, 17, 18, 28)
    source = stream(EVENTS, rows([[("a", 3.0, 1)], [], [], [("b", 11.0, 1)], [("a", 9.0, 1)]]))
    out = source.run(lambda df: windows(df, range="10s", watermark="2s", idle="5s", **KEYED))
    told = [[(key, seconds(end), n) for key, _, end, n in batch] for batch in out]
    assert told == [[], [], [], [("a", 10.0, 1)], [], [("b", 20.0, 1)]]
    assert sum(metrics(p)["late"] for p in source.progress) == 1
    assert "5s more behind the clock" in explain(windows(source.read(), range="10s", watermark="2s", idle="5s", **KEYED))


def test_rows_ahead_of_the_clock_move_the_watermark_as_without_it(stream, spark, clock):
    clock(1, 2, 3)
    source = stream(EVENTS, rows([[("a", 3.0, 1)], [("a", 30.0, 1)], [("b", 31.0, 1)]]))
    out = source.run(lambda df: rolling(df, lookbacks=["10s"], watermark="0s", idle="1s", **KEYED))
    assert [[(key, seconds(t), n) for key, t, _, n in batch] for batch in out] == [[], [("a", 3.0, 1)], [("a", 30.0, 1)], [("b", 31.0, 1)]]


def test_spark_gives_the_clock_by_itself(stream, spark, tmp_path):
    # Rows of long ago; nothing else comes, and their windows close.
    source = stream(EVENTS, rows([[("a", 3.0, 1)]]))
    told = windows(source.read(), range="10s", watermark="0s", idle="1s", **KEYED)
    out = []
    query = told.writeStream.foreachBatch(lambda df, batch: out.extend(map(tuple, df.collect())))
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        for _ in range(60):
            query.awaitTermination(1)
            if out:
                break
    finally:
        query.stop()
    assert [(key, seconds(end), n) for key, _, end, n in out] == [("a", 10.0, 1)]


def test_idle_needs_a_watermark_of_ours_and_says_nothing_in_batch(stream, spark):
    source = stream(EVENTS, rows([[("a", 3.0, 1)]]))
    with pytest.raises(DefinitionError, match=r"Use watermark= instead of withWatermark"):
        windows(source.read().withWatermark("at", "1 second"), range="10s", idle="5s", **KEYED)
    with pytest.raises(DefinitionError, match="idle='0s' must be longer than 0"):
        windows(source.read(), range="10s", watermark="1s", idle="0s", **KEYED)
    assert windows(source.batch(), range="10s", idle="5s", **KEYED).count() == 1
