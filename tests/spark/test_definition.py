"""Mistakes are errors when a query is defined; each names the value, the rule and the fix."""

import datetime as dt

import pytest

from sash import agg
from sash.errors import DefinitionError
from sash.spark import rolling, windows

pytestmark = pytest.mark.spark

COUNT = {"n": agg.count()}


@pytest.fixture(scope="module")
def events(spark):
    return spark.createDataFrame([], "key string, at timestamp, value long, day date, tags map<string,string>, window_end long")


@pytest.fixture(scope="module")
def unbounded(spark):
    rate = spark.readStream.format("rate").load()
    return rate.selectExpr("cast(value % 10 as string) as key", "timestamp as at", "value", "timestamp as other")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"time": "when"}, "time='when' is not a column. The columns are key, at"),
        ({"time": None}, "time=None is not the name of a column"),
        ({"time": "value"}, "time='value' is of type bigint, not a timestamp. Cast it first"),
        ({"time": "day"}, "time='day' is of type date, not a timestamp"),
        ({"key": ["key", "zone"]}, "key='zone' is not a column"),
        ({"key": "tags"}, "key='tags' is a map, and maps can't be keys"),
        ({"key": "window_end"}, "two columns named window_end"),
        ({"tie": "seq"}, "tie='seq' is not a column"),
        ({"aggs": {}}, "at least one entry"),
        ({"aggs": {"n": "count"}}, "aggs\\['n'\\] is 'count', not an aggregation"),
        ({"aggs": {"s": agg.sum()}}, "aggs\\['s'\\] has no column. Name it: agg.sum\\('column'\\)"),
        ({"aggs": {"s": agg.sum("fare")}}, "aggs\\['s'\\] column='fare' is not a column"),
        ({"aggs": {"s": agg.sum("value", where="paid")}}, "aggs\\['s'\\] where='paid' is not a column"),
        ({"aggs": {"s": agg.sum("key")}}, "agg.sum\\('key'\\) can't be computed of a column of type string.*Cast the column"),
        ({"range": None}, "needs a range"),
        ({"range": 60}, "range=60 has no unit. Write it as text with one, e.g. range='60s'"),
        ({"range": "1 month"}, "months and years have no fixed length"),
        ({"range": "0s"}, "range='0s' must be longer than 0"),
        ({"slide": "-1s"}, "slide='-1s' must be longer than 0"),
        ({"slide": "2m"}, "slide='2m' is larger than range='1m'"),
        ({"emit": "now"}, "emit='now' is not known. Use one of 'final'"),
        ({"late": "keep"}, "late='keep' is not known. Use one of 'drop', 'accept', 'flag'"),
        ({"late": "flag", "session": "5m", "range": None}, "a session that never was has no bounds"),
        ({"session": "5m"}, "session='5m' and range='1m' do not go together"),
        ({"session": "5m", "range": None, "emit": "update"}, "emit='update' is not for sessions"),
        ({"session": "0s", "range": None}, "session='0s' must be longer than 0"),
        ({"aggs": {"s": agg.struct(a=agg.sum("value"), b=agg.max())}}, "aggs\\['s.b'\\] has no column"),
        ({"aggs": {"s": agg.argmax("value", of="fare")}}, "aggs\\['s'\\] of='fare' is not a column"),
        ({"watermark": "-1s"}, "watermark='-1s' is negative"),
        ({"watermark": "10us"}, "not a whole number of milliseconds"),
        ({"max_ahead": ("1h", "came")}, "max_ahead='came' is not a column"),
    ],
)
def test_windows_refuses(events, changed, message):
    with pytest.raises(DefinitionError, match=message):
        windows(events, **({"time": "at", "range": "1m", "aggs": COUNT} | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lookbacks": []}, "at least one look-back"),
        ({"lookbacks": "1h"}, "lookbacks='1h' is not a list. Write lookbacks=\\['1h'\\]"),
        ({"lookbacks": ["soon"]}, "'soon' is not a duration"),
        ({"lookbacks": ["0 rows"]}, "at least one row"),
        ({"closed": "middle"}, "closed='middle' is not known. Use one of 'right', 'left', 'both', 'neither'"),
        ({"late": "keep"}, "late='keep' is not known. Use one of 'drop', 'accept', 'flag'"),
        ({"emit": "update"}, "emit='update' is not known. Use one of 'final', 'event', 'changed'"),
        ({"emit": "changed"}, "needs a stream"),
        ({"emit": "changed", "late": "flag"}, "not rows"),
        ({"delay": "-1m"}, "delay='-1m' is negative"),
        ({"delay": "1m", "lookbacks": [5]}, "one of them counts rows"),
    ],
)
def test_rolling_refuses(events, changed, message):
    with pytest.raises(DefinitionError, match=message):
        rolling(events, **({"time": "at", "lookbacks": ["1h"], "aggs": COUNT} | changed))


def test_a_stream_needs_exactly_one_watermark_on_its_time(unbounded):
    with pytest.raises(DefinitionError, match="a stream needs a watermark"):
        windows(unbounded, time="at", range="1m", aggs=COUNT)
    with pytest.raises(DefinitionError, match="already has a watermark on 'at'"):
        windows(unbounded.withWatermark("at", "1 minute"), time="at", range="1m", aggs=COUNT, watermark="1m")
    with pytest.raises(DefinitionError, match="the watermark is on 'other', not on time='at'"):
        rolling(unbounded.withWatermark("other", "1 minute"), time="at", lookbacks=["1m"], aggs=COUNT)


def test_a_stream_needs_names_for_what_it_stores(unbounded):
    nameless = agg.define(lift=lambda x: x, combine=max, identity=0, column="value")
    with pytest.raises(DefinitionError, match="needs a name to be stored"):
        windows(unbounded, time="at", range="1m", aggs={"m": nameless}, watermark="1m")


def test_max_ahead_needs_a_watermark_that_comes_after_it(unbounded):
    with pytest.raises(DefinitionError, match="Use watermark= instead of withWatermark"):
        windows(unbounded.withWatermark("at", "1 minute"), time="at", range="1m", aggs=COUNT, max_ahead="1h")


def test_look_backs_name_their_columns_as_written(events):
    out = rolling(events.drop("tags"), time="at", lookbacks=["1h", "90 s", 100, "5 rows", None, dt.timedelta(minutes=5)], aggs=COUNT)
    assert out.columns[-6:] == ["n_1h", "n_90 s", "n_100rows", "n_5rows", "n_all", "n_5m"]
