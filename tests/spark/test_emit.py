"""What comes out before it is final, and sessions, on Spark; the engine's own tests hold them against brute force in depth."""

import random

import pytest
from pyspark.sql import functions as F

from sash import agg
from sash.spark import rolling, windows
from tests.spark import oracle
from tests.spark.arrivals import EVENTS, arrival, cut, found_rows, found_windows, rows, totals, trimmed
from tests.spark.conftest import seconds

pytestmark = pytest.mark.spark

TOTALS = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}
SQL = ["count(*) as n", "sum(value) as total", "max(value) as high"]


@pytest.fixture
def late_events():
    rng = random.Random(21)
    return cut(rng, arrival(rng, 400, ["a", "b", "c", None], spread=20, late_share=0.1, late_by=90), 5)


def test_updates_equal_sparks_update_mode(stream, cache, late_events):
    source = stream(EVENTS, rows(late_events))
    asked = {"time": "at", "range": "60s", "slide": "20s", "key": "key", "aggs": TOTALS, "watermark": "20s"}
    ours = source.run(lambda df: windows(df, emit="update", **asked), "ours", "update")

    def plain(df):
        counted = df.withWatermark("at", "20 seconds").groupBy("key", F.window("at", "60 seconds", "20 seconds"))
        return counted.agg(*map(F.expr, SQL)).select("key", "window.start", "window.end", "n", "total", "high")

    assert found_windows(ours) == found_windows(source.run(plain, "spark", "update"))


def test_sessions_equal_sparks(stream, cache, late_events):
    source = stream(EVENTS, rows(late_events))
    ours = source.run(lambda df: windows(df, time="at", session="4s", key="key", aggs=TOTALS, watermark="20s"), "ours")

    def plain(df):
        counted = df.groupBy("key", F.session_window("at", "4 seconds")).agg(*map(F.expr, SQL))
        return counted.select("key", "session_window.start", "session_window.end", "n", "total", "high")

    assert found_windows(ours) == found_windows(source.run(lambda df: plain(df.withWatermark("at", "20 seconds")), "spark"))
    batch = windows(source.batch(), time="at", session="4s", key="key", aggs=TOTALS)
    assert sorted(batch.collect(), key=repr) == sorted(plain(source.batch()).collect(), key=repr)


def test_events_come_at_once_with_late_ones_marked(stream, cache, late_events):
    source = stream(EVENTS, rows(late_events))
    out = source.run(
        lambda df: rolling(df, time="at", lookbacks=["30s"], key="key", aggs=TOTALS, watermark="200s", emit="event", late="flag")
    )
    arrived, expected = [], []
    for batch in late_events:
        arrived += batch
        expected.append(sorted(((*e, *totals(oracle.frame(arrived, e, 30, "right")), False) for e in batch), key=repr))
    assert found_rows(out) == trimmed(expected)


def test_only_changes_come_out_when_rows_came_and_when_they_left(stream, cache):
    # three kinds of events, look-backs of 1 h, 12 h and 24 h; batches 6 hours apart, the watermark without delay
    hour = 3600
    kinds = [("login", "a", 1), ("order", "a", 20), ("login", "b", 24), ("refund", "b", 25), ("login", "c", 60), ("login", "c", 90)]
    batches = [[(user, at * hour, kind)] for kind, user, at in kinds]
    schema = EVENTS.set(2, EVENTS.field("key").with_name("kind"))
    source = stream(schema, rows(batches))
    aggs = {kind: agg.count(where=f"is_{kind}") for kind in ("login", "order", "refund")}

    def define(df):
        flagged = df.selectExpr("*", *(f"kind = '{kind}' as is_{kind}" for kind in aggs))
        return rolling(flagged, time="at", lookbacks=["1h", "12h", "24h"], key="key", aggs=aggs, watermark="0s", emit="changed")

    out = source.run(define, mode="update")
    told, expected = {}, []
    for i in range(len(batches) + 1):
        now = max([0, *(at for batch in batches[:i] for _, at, _ in batch)])
        seen = [event for batch in batches[: i + 1] for event in batch if event[1] <= now]
        changed = []
        for user in "abc":
            values = tuple(
                sum(k == user and e == kind and now - h * hour < t <= now for k, t, e in seen) for kind in aggs for h in (1, 12, 24)
            )
            if values != told.get(user, (0,) * 9):
                told[user] = values
                changed.append((user, float(now), *values))
        expected.append(sorted(changed, key=repr))
    assert [sorted(((k, seconds(t), *values) for k, t, *values in batch), key=repr) for batch in out] == expected
    assert sum(map(len, out)) < 3 * len(expected)
