"""The stateful operator without a JVM: its state in a dict, micro-batch by micro-batch."""

import pandas as pd
import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Query, Rolling, Slicer, begun, lent
from sash.errors import CheckpointMismatch
from sash.spark.buckets import label
from sash.spark.operator import BucketProcessor, header_of
from sash.spark.state import META

pytestmark = pytest.mark.spark

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("key", pa.string()), ("at", UTC), ("value", pa.int64())])
KEY = (label(0),)
SECOND = 1_000_000


def query(*aggs, lookback=60, **more):
    return Query(SCHEMA, "at", ("key",), aggs or (("n", agg.count()),), rolling=Rolling((("p", lookback * SECOND),)), **more)


class State:
    """What Spark keeps for one group: a map, and timers; also the clock of the micro-batch."""

    def __init__(self):
        self.values, self.timers, self.watermark = {}, set(), 0

    def getMapState(self, name, key, value):
        return self

    def getValue(self, key):
        return self.values.get(key)

    def updateValue(self, key, value):
        self.values[key] = value

    def removeKey(self, key):
        del self.values[key]

    def iterator(self):
        return iter(self.values.items())

    def registerTimer(self, time):
        assert time not in self.timers
        self.timers.add(time)

    def deleteTimer(self, time):
        self.timers.remove(time)

    def getCurrentWatermarkInMs(self):
        return self.watermark


def rows(query, *events):
    times = pa.array([t * SECOND for t, _ in events]).cast(UTC)
    columns = {"key": pa.array(["a"] * len(events)), "at": times, "value": pa.array([v for _, v in events])}
    batch = pa.record_batch([columns[name] for name in query.schema.names], schema=query.schema)
    return [packed.blob for packed in Slicer(query, 1).pack(batch)]


def step(state, query, watermark, *events, cache=True):
    """Run a micro-batch; the results, row by row."""
    state.watermark = watermark * 1000
    processor = BucketProcessor(query, 1, cache)
    processor.init(state)
    out = processor.handleInputRows(KEY, iter([pd.DataFrame({"blob": rows(query, *events)})]), state)
    frames = [frame for frame in out if frame["__sash_slices"].isna().all()]
    return [row for frame in frames for row in frame[query.feature_names].itertuples(index=False, name=None)]


@pytest.mark.parametrize("cache", [True, False])
def test_a_worker_that_holds_the_state_of_the_old_definition_does_not_go_on_with_it(cache):
    old, new = query(("n", agg.count()), ("s", agg.sum("value"))), query(("total", agg.sum("value")))
    state = State()
    step(state, old, 0, (10, 1), cache=cache)
    assert step(state, old, 20, (30, 2), cache=cache) == [(1, 1)]
    assert step(state, new, 40, (50, 4), cache=cache) == [(3,)]
    assert step(state, new, 60, (70, 8), cache=cache) == [(7,)]  # the line of commits goes back to the old definition
    with pytest.raises(CheckpointMismatch, match=r"aggregation n is new.*history_until='1970-01-01 00:01'"):
        step(state, old, 80, (90, 1), cache=cache)


@pytest.mark.parametrize("watermark", [0, 5])
def test_the_state_of_history_is_taken_over_with_a_timer_of_its_own(watermark):
    asked = query(("s", agg.sum("value")), since=100 * SECOND)
    narrow = lent(asked)
    bucket = begun(asked, rows(narrow, (50, 1), (99, 2), (30, 64)))
    commit = bucket.commit()
    header = header_of(bucket, commit, 0, 1)
    state = State()
    state.watermark = watermark * 1000
    processor = BucketProcessor(asked, 1, True)
    processor.init(state)
    given = {**commit.put, META: header.pack() + commit.meta}
    processor.handleInitialState(KEY, pd.DataFrame({"id": list(given), "blob": list(given.values())}), state)
    assert state.timers == {watermark * 1000 + 1}
    assert step(state, asked, watermark, (100, 4), (120, 8)) == []
    assert step(state, asked, 110, (130, 0)) == [(7,)]
    assert len(state.timers) == 1
