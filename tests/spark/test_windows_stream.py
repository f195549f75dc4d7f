"""windows() on streams: what comes out, and in which micro-batch."""

import random

import pytest
from pyspark.sql import functions as F

from sash import agg
from sash.spark import metrics, read_state, windows
from tests.spark import oracle
from tests.spark.arrivals import EVENTS, arrival, cut, found_windows, rows, totals, trimmed
from tests.spark.conftest import seconds

pytestmark = pytest.mark.spark

TOTALS = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}


def test_late_event_counts_in_open_windows_only(stream, cache):
    #            0         10        20        30    range 10, slide 5, watermark delay 5
    # batch 1    a---------b
    # batch 2                          c(22)         during it W = 10 - 5 = 5
    # batch 3                  d(14)                 late rows are judged by W of batch 2, which is 5: d is on time
    # batch 4                  e(11) .. f(40)        judged by W = 17: [5, 15) is closed, [10, 20) is open and takes e
    batches = [[("k", 0, 1), ("k", 10, 2)], [("k", 22, 3)], [("k", 14, 4)], [("k", 11, 5), ("k", 40, 6)]]
    source = stream(EVENTS, rows(batches))
    out = source.run(lambda df: windows(df, time="at", range="10s", slide="5s", key="key", aggs=TOTALS, watermark="5s"))
    assert found_windows(out) == oracle.windows(batches, 10, 5, 5, totals)
    assert found_windows(out)[4][("k", 20)] == (3, 11, 5)
    assert sum(metrics(p)["late"] for p in source.progress) == 1


@pytest.mark.parametrize("emit", ["final", "update"])
def test_closed_windows_that_missed_a_late_row_are_flagged(stream, cache, emit):
    #            0         10        20        30    range 10, slide 5, watermark delay 5
    # batch 0    a---------b      c(22)              then W = 17
    # batch 1    nothing but d(30)                   judged by W = 0
    # batch 2    e(11), e(12), f(3)                  judged by W = 17: e misses [5, 15), f misses [0, 10) and [-5, 5); then W = 25
    batches = [[("k", 0, 1), ("k", 10, 2), ("k", 22, 3)], [("k", 30, 4)], [("k", 11, 5), ("k", 12, 5), ("j", 3, 6)]]
    source = stream(EVENTS, rows(batches))
    asked = {"range": "10s", "slide": "5s", "key": "key", "aggs": TOTALS, "watermark": "5s", "emit": emit}
    out = source.run(lambda df: windows(df, time="at", late="flag", **asked), mode="append" if emit == "final" else "update")
    flagged = [(i, key, seconds(end), *rest) for i, batch in enumerate(out) for key, _, end, *rest in batch if rest[-1]]
    gone = (None, None, None, True)
    assert sorted(flagged) == [(2, "j", 5, *gone), (2, "j", 10, *gone), (2, "k", 15, *gone)]
    kept = source.run(lambda df: windows(df, time="at", late="accept", **asked), "accept", "append" if emit == "final" else "update")
    assert found_windows([[row[:-1] for row in batch if not row[-1]] for batch in out]) == found_windows(kept)
    if emit == "final":
        assert found_windows(kept) == trimmed(oracle.windows(batches, 10, 5, 5, totals))


def test_every_micro_batch_gives_what_spark_gives(stream, cache):
    rng = random.Random(1)
    batches = cut(rng, arrival(rng, 800, ["a", "b", "c", None], spread=20, late_share=0.1, late_by=90), 6)
    source = stream(EVENTS, rows(batches))
    ours = source.run(lambda df: windows(df, time="at", range="60s", slide="10s", key="key", aggs=TOTALS, watermark="20s"), "ours")

    def plain(df):
        counted = df.withWatermark("at", "20 seconds").groupBy("key", F.window("at", "60 seconds", "10 seconds"))
        counted = counted.agg(F.count("*").alias("n"), F.sum("value").alias("total"), F.max("value").alias("high"))
        return counted.select("key", "window.start", "window.end", "n", "total", "high")

    assert found_windows(ours) == found_windows(source.run(plain, "spark"))
    assert found_windows(ours) == trimmed(oracle.windows(batches, 60, 10, 20, totals))


def test_a_watermark_on_the_dataframe_is_used_and_no_key_is_one_key(stream, cache):
    rng = random.Random(3)
    batches = cut(rng, arrival(rng, 200, [None], spread=10, late_share=0.1, late_by=60), 4)
    source = stream(EVENTS, rows(batches))
    out = source.run(lambda df: windows(df.withWatermark("at", "10 seconds"), time="at", range="20s", slide="5s", offset="2s", aggs=TOTALS))
    assert found_windows([[(None, *row) for row in batch] for batch in out]) == trimmed(
        oracle.windows(batches, 20, 5, 10, totals, offset=2)
    )


def test_idle_keys_leave_when_their_last_windows_are_out(stream, cache):
    # a's windows end by 30, and W is 40 in batch 2
    batches = [[("a", 1, 1), ("b", 2, 2)], [("b", 50, 3)], [("b", 90, 4)]]
    source = stream(EVENTS, rows(batches))
    out = source.run(lambda df: windows(df, time="at", range="30s", slide="10s", key="key", aggs=TOTALS, watermark="10s"))
    assert found_windows(out) == oracle.windows(batches, 30, 10, 10, totals)
    assert found_windows(out)[2][("a", 30)] == (1, 1, 1)
    assert [metrics(p)["keys"] for p in source.progress] == [2, 2, 1, 1]
    assert sum(row.keys for row in read_state(source.spark, str(source.folder / "checkpoint")).collect()) == 1


def test_stream_goes_on_from_its_checkpoint(stream, cache):
    rng = random.Random(4)
    batches = cut(rng, arrival(rng, 300, ["a", "b", None], spread=10), 4)
    source = stream(EVENTS, rows(batches[:2]))

    def define(df):
        return windows(df, time="at", range="30s", slide="10s", key="key", aggs=TOTALS, watermark="10s")

    first = source.run(define)
    source.spark.catalog.clearCache()  # of other tests
    held = read_state(source.spark, str(source.folder / "checkpoint")).collect()
    mark = oracle.watermarks(batches[:2], 10)[-1]
    assert [row.bucket for row in held] == [0, 1]
    assert {seconds(row.watermark) for row in held} == {mark}
    assert sum(row.slices for row in held) == metrics(source.progress[-1])["slices"] > 0
    assert held[0].definition["slide"] == "10s"
    assert source.spark._jsparkSession.sharedState().cacheManager().isEmpty()  # what was read is not kept
    for batch in rows(batches[2:]):
        source.append(batch)
    both = first + source.run(define)
    merged = {window: values for batch in found_windows(both) for window, values in batch.items()}
    expected = {window: values for batch in oracle.windows(batches, 30, 10, 10, totals) for window, values in batch.items()}
    assert merged == expected
    assert sum(map(len, both)) == len(merged)


def test_a_changed_definition_on_an_old_checkpoint_says_what_changed(stream, cache):
    source = stream(EVENTS, rows([[("a", 1, 1)], [("a", 50, 1)]]))
    source.run(lambda df: windows(df, time="at", range="30s", slide="10s", key="key", aggs=TOTALS, watermark="10s"))
    source.append(rows([[("a", 90, 1)]])[0])
    with pytest.raises(Exception, match="slide was 10000000, is 15000000"):
        source.run(lambda df: windows(df, time="at", range="30s", slide="15s", key="key", aggs=TOTALS, watermark="10s"))


def test_another_number_of_buckets_on_an_old_checkpoint_is_refused(spark, stream):
    source = stream(EVENTS, rows([[("a", 1, 1)], [("a", 50, 1)]]))

    def define(df):
        return windows(df, time="at", range="30s", key="key", aggs=TOTALS, watermark="10s")

    source.run(define)
    source.append(rows([[("a", 90, 1)]])[0])
    spark.conf.set("spark.sash.buckets", "7")
    try:
        with pytest.raises(Exception, match="started with 2 buckets and the query now has 7"):
            source.run(define)
    finally:
        spark.conf.unset("spark.sash.buckets")
