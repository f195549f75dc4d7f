"""A changed definition on a real checkpoint: taken where its state suffices, else refused when the query is started, also without rows."""

import shutil

import pytest

from sash import agg
from sash.errors import CheckpointMismatch
from sash.spark import rolling, tile_sink, tiles, windows
from sash.wheel import NotRetained, TileStore
from tests.spark.arrivals import EVENTS, rows
from tests.spark.conftest import at, seconds

pytestmark = pytest.mark.spark

AGGS = {"n": agg.count(), "s": agg.sum("value"), "both": agg.struct(hi=agg.max("value"), m=agg.mean("value"))}
FIRST = [("ab"[i % 2], float(i), i % 7) for i in range(100)]
SECOND = [("ab"[i % 2], float(i), i % 7) for i in range(100, 130)]
WINDOWS = {"time": "at", "key": "key", "range": ["20s", "40s"], "slide": "10s", "aggs": AGGS}
ROLLING = {"time": "at", "key": "key", "lookbacks": ["10s", "30s"], "aggs": AGGS}

TAKEN = {
    "an aggregation removed": (windows, {"aggs": {"s": AGGS["s"]}}),
    "an aggregation renamed": (windows, {"aggs": {"rows": AGGS["n"], "s": AGGS["s"]}}),
    "a range removed": (windows, {"range": ["40s"]}),
    "a shorter range added": (windows, {"range": ["40s", "30s"]}),
    "a look-back removed": (rolling, {"lookbacks": ["30s"]}),
    "a look-back renamed": (rolling, {"lookbacks": ["10 seconds", "30s"]}),
    "a look-back that is covered added": (rolling, {"lookbacks": ["10s", "20s", "30s"], "aggs": {"hi": agg.max("value")}}),
}
REFUSED = {
    "an aggregation added": (windows, {"aggs": {**AGGS, "lo": agg.min("value")}}, r"aggregation lo is new, agg\.min\('value'\)"),
    "a longer range": (windows, {"range": ["40s", "50s"]}, "what is older than 40s was not kept"),
    "another slide": (windows, {"slide": "5s"}, "slide was 10000000, is 5000000"),
    "another key": (windows, {"key": None}, r"key was \('key',\), is \(\)"),
    "empty windows": (windows, {"empty": "once"}, "keys that fell silent"),
    "a longer look-back": (rolling, {"lookbacks": ["31s"]}, "look-back 31s reaches further back"),
    "the whole past": (rolling, {"lookbacks": ["10s", None]}, "look-back all reaches further back"),
    "rows at once": (rolling, {"emit": "event"}, "emit was final, is event"),
}


@pytest.fixture(scope="module")
def begun(spark, tmp_path_factory):
    """A stream of each kind that has read the first rows; its checkpoints, and the rest of the rows behind them."""
    from tests.spark.conftest import Stream

    source = Stream(spark, tmp_path_factory.mktemp("changes"), EVENTS, rows([FIRST]))
    for function, asked in ((windows, WINDOWS), (rolling, ROLLING)):
        source.run(lambda df, function=function, asked=asked: function(df, watermark="5s", **asked), function.__name__)
    return source


def start(source, change, function, changed, name):
    """Start the changed definition on a copy of the checkpoint."""
    shutil.copytree(source.folder / function.__name__, source.folder / name)
    asked = {**(WINDOWS if function is windows else ROLLING), **changed}
    out = []
    query = source.start(lambda df: function(df, watermark="5s", **asked), lambda df, batch: out.extend(map(tuple, df.collect())), name)
    return query, out


@pytest.mark.parametrize("change", REFUSED)
def test_a_state_that_does_not_suffice_is_refused_at_the_start_without_new_rows(begun, change):
    function, changed, said = REFUSED[change]
    with pytest.raises(CheckpointMismatch, match=said) as raised:
        start(begun, change, function, changed, f"refused {change}")
    assert f"{function.__name__}(..., history=rows, history_until='2024-01-01 00:01:34')" in str(raised.value)


def test_a_state_that_suffices_is_taken(begun):
    begun.append(rows([[*SECOND, ("end", 1_000.0, 0)]])[0])
    everything = begun.batch()
    for change, (function, changed) in TAKEN.items():
        query, out = start(begun, change, function, changed, f"taken {change}")
        query.awaitTermination()
        batch = function(everything, **{**(WINDOWS if function is windows else ROLLING), **changed})
        by = "window_end" if function is windows else "at"
        expected = [tuple(row) for row in batch.filter("key != 'end'").collect() if seconds(row[by]) > 94]
        assert sorted(out, key=repr) == sorted(expected, key=repr), change
        assert len(out) > 10, change


def test_a_store_takes_an_aggregation_later_and_a_new_checkpoint_goes_on_where_it_stands(stream, spark, tmp_path):
    source = stream(EVENTS, rows([[("a", float(t), t) for t in range(61)]]))
    aggs = {"n": agg.count()}

    def run(aggs, checkpoint, **begin):
        store = TileStore.create(tmp_path / "tiles", aggs=aggs, grain="10s", key="key")
        folder = str(source.folder / checkpoint)
        told = tiles(source.read(), time="at", grain="10s", key="key", watermark="0s", aggs=aggs, **begin)
        writer = told.writeStream.foreachBatch(tile_sink(store, folder)).option("checkpointLocation", folder)
        writer.trigger(availableNow=True).start().awaitTermination()
        return store

    run(aggs, "first")  # its watermark is 60
    source.append(rows([[("a", float(t), t) for t in range(61, 121)]])[0])
    more = {**aggs, "hi": agg.max("value")}
    with pytest.raises(CheckpointMismatch, match="aggregation hi is new"):
        run(more, "first")
    store = run(more, "second", history_until=at(60))
    zero = int(at(0).timestamp() * 1_000_000)
    assert store.wheels("n").query("a", zero, zero + 120_000_000) == 120
    assert store.wheels("hi").query("a", zero + 60_000_000, zero + 120_000_000) == 119
    with pytest.raises(NotRetained, match="keeps hi from 2024-01-01 00:01 on: it was added then"):
        store.wheels("hi", start=zero)
