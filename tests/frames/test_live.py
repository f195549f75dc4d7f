"""Live in lockstep with the bucket of a stream that is stored and read again after every batch."""

import random

import pyarrow as pa
import pytest

from sash import Live, agg
from sash.engine import Query, Slicer, bucket_of
from sash.errors import DefinitionError
from tests.engine import cases
from tests.engine.test_engine import Reloaded
from tests.frames.kinds import KINDS
from tests.frames.test_oracle import asked_by

SCHEMA = pa.schema([("at", pa.timestamp("us")), ("zone", pa.string()), ("fare", pa.int64()), ("note", pa.string())])
ASKED = {"time": "at", "key": "zone", "aggs": {"s": agg.sum("fare")}}


class Operator(Reloaded):
    """What Spark's operator does with a bucket where workers keep nothing."""

    def __init__(self, query: Query) -> None:
        super().__init__(query, bucket_of(query))

    def take(self, batch: pa.RecordBatch) -> None:
        for packed in Slicer(self.query, 1).pack(batch.select(self.query.schema.names)):
            self.bucket.add(packed.blob)


def definition(seed: int, query: Query) -> dict:
    """A random query's arguments, with one of the ways to emit that it allows; every fifth is of sessions; some of several ranges or of
    look-backs in hops, some tell windows that fall empty."""
    r = random.Random(seed)
    asked = asked_by(query)
    if query.rolling is not None:
        if seed % 3 == 0:
            asked["lookbacks"] = [*asked["lookbacks"], "17us/5us"]
        ways = ["final", "event"] if query.late == "flag" else ["final", "event", "changed"]
        return asked | {"emit": r.choice(ways)}
    if seed % 5 == 0:
        del asked["range"], asked["slide"], asked["offset"]
        return asked | {"session": f"{r.randint(1, 20)}us"}
    if seed % 4 == 1:
        return asked | {"empty": "once"}
    if seed % 4 == 2:
        asked["range"] = [asked["slide"], asked["range"]] if asked["slide"] != asked["range"] else [asked["range"]]
    return asked | {"emit": r.choice(["final", "update"])}


@pytest.mark.parametrize("seed", range(80))
def test_live_equals_the_operator_over_batches_watermarks_saves_and_loads(seed):
    case = cases.random_case(seed)
    schema, r = case.batch.schema, random.Random(seed)
    asked = definition(seed, case.query)
    live = Live(schema, **asked)
    operator = Operator(live.query)
    watermark = None
    for batch in case.batches():
        kind = r.choice(["table", "chunks", "reader", "polars", "pandas of Arrow"])
        live.feed(KINDS[kind](pa.Table.from_batches([batch])))
        operator.take(batch)
        if r.random() < 0.8:
            watermark = r.randint(-10, 200)
            assert cases.rows_of(live.advance(watermark)) == cases.rows_of(operator.bucket.advance(watermark)), (seed, live.query)
            assert (live.late, live.keys, live.entries) == (operator.bucket.late, operator.bucket.keys, operator.bucket.slices)
            operator.end_batch()
        if r.random() < 0.5:
            data = live.save()
            live.advance(10**6)  # what goes on is what was saved, whatever became of the one that saved it
            live = Live.load(data, schema, **asked)
        assert live.watermark == operator.bucket.watermark
    end = 10**6 if live.query.emit == "changed" else None  # a change is told with its time, and the end of time has none
    assert cases.rows_of(live.advance(end)) == cases.rows_of(operator.bucket.advance(end)), (seed, live.query)


def test_saved_bytes_of_another_definition_are_refused_by_what_differs():
    data = Live(SCHEMA, range="1h", **ASKED).save()
    with pytest.raises(ValueError, match="range was 1h, is 2h"):
        Live.load(data, SCHEMA, range="2h", **ASKED)
    with pytest.raises(ValueError, match="damaged"):
        Live.load(data[:-3], SCHEMA, range="1h", **ASKED)


def test_a_batch_without_a_column_changes_nothing():
    live = Live(SCHEMA, range="1h", **ASKED)
    with pytest.raises(DefinitionError, match=r"no column 'fare'\. Its columns are at, zone"):
        live.feed(pa.table({"at": pa.array([1], pa.timestamp("us")), "zone": ["a"]}))
    with pytest.raises(DefinitionError, match="the column 'fare' of type string can't be read"):
        live.feed(pa.table({"at": pa.array([1], pa.timestamp("us")), "zone": ["a"], "fare": ["much"]}))
    assert (live.entries, live.keys) == (0, 0)


def test_windows_and_look_backs_in_one_live_are_refused():
    with pytest.raises(DefinitionError, match="lookbacks= and range= do not go together"):
        Live(SCHEMA, range="1h", lookbacks=["1h"], **ASKED)
    with pytest.raises(DefinitionError, match="closed= and delay= are about look-backs"):
        Live(SCHEMA, range="1h", closed="left", **ASKED)
    with pytest.raises(DefinitionError, match="needs a range"):
        Live(SCHEMA, **ASKED)


def test_an_aggregation_without_a_name_is_refused_before_rows_come():
    unnamed = agg.define(lift=lambda x: x, combine=max, identity=0, column="fare")
    with pytest.raises(DefinitionError, match="name"):
        Live(SCHEMA, range="1h", time="at", aggs={"m": unnamed})


def test_a_watermark_does_not_go_back():
    live = Live(SCHEMA, range="1h", **ASKED)
    live.advance("1970-01-01 02:00:00")
    live.advance("1970-01-01 01:00:00")
    assert live.watermark == 7_200_000_000
