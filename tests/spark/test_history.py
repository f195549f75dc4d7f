"""History, then live, on Spark: a stream that begins with history gives what batch gives over both, from where history ends."""

import random

import pyarrow as pa
import pytest

from sash import agg
from sash.errors import DefinitionError
from sash.spark import explain, metrics, read_state, rolling, tiles, windows
from tests.spark.arrivals import EVENTS, arrival, cut, rows
from tests.spark.conftest import at, seconds
from tests.spark.test_restart import TOTALS, kill_at, run_killed

pytestmark = pytest.mark.spark

AGGS = {"n": agg.count(), "s": agg.sum("value"), "all": agg.collect("value")}
KEYED = {"time": "at", "key": "key", "aggs": AGGS}
UNTIL = 150.0


def parts(seed, spread=25, until=UNTIL, late_share=0.0):
    """Events before the cut and after it; the stream also brings some of the former again."""
    rng = random.Random(seed)
    events = arrival(rng, 300, ["a", "b", None], spread, late_share, 70)
    past, live = [e for e in events if e[1] < until], [e for e in events if e[1] >= until]
    again = rng.sample([e for e in past if e[1] >= until - 30], 10)
    mixed = sorted([*live, *again], key=lambda e: (e[1] if e in again else 0) + live.index(e) if e in live else rng.randrange(len(live)))
    return past, live, cut(rng, mixed, 3), len(again)


def plain(batches):
    cells = [tuple(tuple(sorted(v)) if isinstance(v, list) else v for v in row) for batch in batches for row in batch]
    return sorted((row for row in cells if row[0] != "end"), key=repr)


SHAPES = {
    "windows": (windows, {"range": "40s", "slide": "10s"}),
    "once": (windows, {"range": "40s", "slide": "10s", "empty": "once"}),
    "sessions": (windows, {"session": "4s"}),
    "rolling": (rolling, {"lookbacks": ["30s", "5rows", "90s/15s", None]}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_with_history_gives_what_batch_gives_over_both(stream, spark, shape):
    function, asked = SHAPES[shape]
    past, live, batches, again = parts(shape)
    source = stream(EVENTS, rows([*batches, [("end", 3_000.0, 0)]]))
    history = stream(EVENTS, rows([past, [("a", UNTIL + 1, 77), ("a", None, 5)]])).batch()  # rows from the cut on are the stream's
    everything = stream(EVENTS, rows([past, live])).batch()
    common = {**KEYED, **asked, "history": history, "history_until": at(UNTIL)}
    found = source.run(lambda df: function(df, watermark="400s", **common))
    by = 2 if function is windows else 1
    after = [row for row in plain([everything.transform(lambda df: function(df, **KEYED, **asked)).collect()]) if _since(row[by], by)]
    assert plain(found) == after
    assert plain([function(stream(EVENTS, rows([live])).batch(), **common).collect()]) == after
    assert sum(metrics(p)["seen"] for p in source.progress) == again
    assert sum(metrics(p)["late"] for p in source.progress) == 0


def _since(time, by):
    return seconds(time) > UNTIL if by == 2 else seconds(time) >= UNTIL


def test_late_rows_around_the_cut_are_judged_as_if_history_had_come_by_the_stream(stream, spark):
    #            100       150       200       watermark 5 s behind; history until 150
    # batch 1              a(152)    a(199)    W becomes 194
    # batch 2                        a(198)
    # batch 3    a(149)  a(150)                149 is seen; 150 is late: its windows end by 190 and are closed
    # batch 4                            a(300)
    late = [("a", 149.0, 4), ("a", 150.0, 8)]
    source = stream(EVENTS, rows([[("a", 152.0, 1), ("a", 199.0, 2)], [("a", 198.0, None)], late, [("a", 300.0, 16)]]))
    history = stream(EVENTS, rows([[("a", 121.0, 32), ("a", 149.0, 64)]])).batch()
    asked = {**KEYED, "aggs": {"s": agg.sum("value")}, "range": "40s", "slide": "10s"}
    out = source.run(lambda df: windows(df, watermark="5s", history=history, history_until=at(150), **asked))
    told = {seconds(end): s for batch in out for _, _, end, s in batch}
    assert told == {160.0: 97, 170.0: 65, 180.0: 65, 190.0: 1, 200.0: 2, 210.0: 2, 220.0: 2, 230.0: 2} | {
        end: 16 for end in told if end > 295
    }
    counted = [metrics(p) for p in source.progress]
    assert (sum(c["seen"] for c in counted), sum(c["late"] for c in counted)) == (1, 1)


def test_history_is_read_in_the_first_micro_batch_alone_and_a_restart_goes_on(stream, spark, cache, tmp_path):
    past, live, batches, _ = parts(3)
    history = stream(EVENTS, rows([past]))
    source = stream(EVENTS, rows(batches[:1]))

    def asked(df):
        return rolling(df, lookbacks=["60s"], watermark="40s", history=history.batch(), history_until=at(UNTIL), **KEYED)

    out = source.run(asked)
    assert "from history" in explain(asked(source.read()))
    held = read_state(spark, str(source.folder / "checkpoint")).collect()
    assert sum(row["slices"] for row in held) > 20
    history.append(rows([[("a", 140.0, 1_000_000)]])[0])  # too late: nobody asks history again
    for part in [*batches[1:], [("end", 3_000.0, 0)]]:
        source.append(rows([part])[0])
    out += source.run(asked)
    history.files = 0
    history.append(rows([past])[0])
    (history.source / "00001.parquet").unlink()
    expected = rolling(stream(EVENTS, rows([past, live])).batch(), lookbacks=["60s"], **KEYED).filter(f"at >= '{at(UNTIL)}'")
    assert plain(out) == plain([expected.collect()])


def test_a_first_micro_batch_without_rows_of_its_own_still_begins_with_history(stream, spark):
    #  batch 1 brings only rows that history has; the state must be there for batch 2
    source = stream(EVENTS, rows([[("a", 90.0, 1)], [("b", 105.0, 2)], [("end", 500.0, 0)]]))
    history = stream(EVENTS, rows([[("a", 90.0, 1), ("c", 99.0, 5)]])).batch()
    out = source.run(lambda df: windows(df, range="20s", slide="10s", watermark="0s", history=history, history_until=at(100), **KEYED))
    assert plain([[(key, seconds(end), n) for key, _, end, n, *_ in batch] for batch in out]) == [
        ("a", 110.0, 1),
        ("b", 110.0, 1),
        ("b", 120.0, 1),
        ("c", 110.0, 1),
    ]


def test_labels_of_a_stream_look_back_on_history(stream, spark):
    labels = pa.schema([("id", pa.int64()), ("key", pa.string()), ("when", pa.timestamp("us", tz="UTC"))])
    left = stream(EVENTS, rows([[("a", 101.0, 4)], [("end", 500.0, 0)]]))
    right = stream(labels, [[(1, "a", at(99)), (2, "a", at(100)), (3, "a", at(105))], []])
    history = stream(EVENTS, rows([[("a", 95.0, 1), ("a", 99.0, 2), ("a", 20.0, 9)]])).batch()
    asked = {
        "lookbacks": ["30s"],
        "at_time": "when",
        "history": history,
        "history_until": at(100),
        **KEYED,
        "aggs": {"s": agg.sum("value")},
    }
    out = left.run(lambda df: rolling(df, at=right.read(), watermark="0s", **asked))
    assert plain([[(i, s) for i, _, _, s in batch] for batch in out]) == [(2, 3), (3, 7)]
    assert plain([rolling(left.batch(), at=right.batch(), **asked).select("id", "s_30s").collect()]) == [(2, 3), (3, 7)]


def test_tiles_begin_where_a_batch_job_ended_also_within_a_slice(stream, spark):
    events = [("a", 5.0, 1), ("a", 25.0, 2), ("a", 31.0, 4), ("a", 34.0, 8), ("a", 41.0, 16)]
    asked = {"time": "at", "grain": "10s", "key": "key", "aggs": {"s": agg.sum("value")}}
    source = stream(EVENTS, rows([events, [("end", 500.0, 0)]]))
    history = stream(EVENTS, rows([events])).batch()

    def told(batches):
        return sorted((seconds(start), s) for batch in batches for key, start, _, s in batch if key == "a")

    whole = [(30.0, 12), (40.0, 16)]
    assert told(source.run(lambda df: tiles(df, watermark="0s", history_until=at(30), **asked), "one")) == whole
    within = {**asked, "history": history, "history_until": at(33)}
    assert told(source.run(lambda df: tiles(df, watermark="0s", **within), "two")) == whole
    assert told([tiles(source.batch(), **within).collect()]) == whole
    with pytest.raises(DefinitionError, match="within a slice of '10s'"):
        tiles(source.read(), watermark="0s", history_until=at(33), **asked)


def test_history_that_does_not_fit_is_refused_with_the_reason(stream, spark):
    df = stream(EVENTS, rows([[("a", 1.0, 1)]]))
    for history, until, said in (
        (df.batch(), None, "history_until= is not"),
        (None, at(1), "history= is not"),
        (df.read(), at(1), "history= is a stream"),
        (df.batch().drop("value"), at(1), "no column 'value'"),
        (df.batch().selectExpr("key", "at", "cast(value as double) value"), at(1), "'value' is bigint in df and double in history="),
        (df.batch(), "soon", "history_until='soon'"),
    ):
        with pytest.raises(DefinitionError, match=said):
            rolling(df.read(), lookbacks=["1h"], watermark="0s", history=history, history_until=until, **KEYED)


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cache", [True, False])
def test_a_stream_killed_in_its_first_micro_batch_begins_with_history_once(stream, spark, tmp_path, cache):
    past, live, batches, _ = parts("killed")
    source = stream(EVENTS, rows([*batches, [("end", 3_000.0, 0)]]))
    stream(EVENTS, rows([past])).source.rename(source.source.with_name("history"))
    folder = tmp_path / "run"
    folder.mkdir()
    for point in ("rows come to the map side", "a bucket is done", "the state of a partition is written", "the sink's log is written"):
        kill_at(source, folder, point, 0, "history", cache)
    assert run_killed(source, folder, "worker", 0, "history", cache) == 0, (folder / "log").read_text()
    out = [tuple(row) for row in spark.read.parquet(str(folder / "out")).collect()]
    asked = {"time": "at", "key": "key", "aggs": TOTALS, "lookbacks": ["60s"]}
    expected = rolling(stream(EVENTS, rows([past, live])).batch(), **asked).filter(f"at >= '{at(UNTIL)}'")
    # A batch that the sink has when it is killed does not move the watermark, which is far behind here: nothing is late.
    assert plain([out]) == plain([expected.collect()])
