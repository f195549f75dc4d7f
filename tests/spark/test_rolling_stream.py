"""rolling() on streams: every row once, when it is final, with what batch gives it."""

import random

import pytest

from sash import agg
from sash.spark import metrics, rolling
from tests.spark import oracle
from tests.spark.arrivals import EVENTS, arrival, cut, found_rows, rows, totals, trimmed

pytestmark = pytest.mark.spark

TOTALS = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}


def expected(batches, periods, delay, **how):
    """The oracle's rows, with its results by period turned into columns by aggregation."""
    out = oracle.rolling(batches, periods, delay, totals, **how)
    return trimmed([sorted(((*row[:3], *(frame[i] for i in range(3) for frame in row[3:])) for row in batch), key=repr) for batch in out])


def test_every_row_comes_once_with_what_its_look_backs_hold(stream, cache):
    rng = random.Random(1)
    closed = rng.choice(["left", "right", "both", "neither"])
    batches = cut(rng, arrival(rng, 400, ["a", "b", "c", None], spread=20), 4)
    source = stream(EVENTS, rows(batches))
    out = source.run(
        lambda df: rolling(df, time="at", lookbacks=["5s", "1m"], key="key", aggs=TOTALS, watermark="20s", closed=closed), "final"
    )
    assert found_rows(out) == expected(batches, [5, 60], 20, closed=closed)


@pytest.mark.parametrize("late", ["flag", "accept"])
def test_late_rows_have_no_effect_or_count_for_rows_not_yet_final(stream, cache, late):
    rng = random.Random(5)
    batches = cut(rng, arrival(rng, 300, ["a", "b"], spread=10, late_share=0.15, late_by=40), 4)
    source = stream(EVENTS, rows(batches))
    out = source.run(lambda df: rolling(df, time="at", lookbacks=["90s"], key="key", aggs=TOTALS, watermark="10s", late=late))
    dropped = sum(metrics(p)["late"] for p in source.progress)
    assert dropped > 5
    if late == "flag":
        assert [row[3:] for batch in out for row in batch if row[-1]] == [(None, None, None, True)] * dropped
        out = [[row[:-1] for row in batch if not row[-1]] for batch in out]
    assert found_rows(out) == expected(batches, [90], 10, late=late)


def test_rows_that_are_late_or_have_no_time_are_dropped_and_counted_and_idle_keys_leave(stream, cache):
    # the last batch is judged by W = 30 - 5: a row of that very time is late; b's only row left with the look-back of 10
    batches = [[("a", 1, 1), ("b", 2, 2), ("a", None, 2)], [("b", None, 3), ("a", 30, 4)], []]
    batches.append([("a", 20, 5), ("a", 25, 6), ("a", 25.001, 7), ("c", 40, 8)])
    source = stream(EVENTS, rows(batches))
    out = source.run(lambda df: rolling(df, time="at", lookbacks=["10s"], key="key", aggs=TOTALS, watermark="5s"))
    assert found_rows(out) == expected(batches, [10], 5)
    counted = [metrics(p) for p in source.progress]
    assert [sum(c[name] for c in counted) for name in ("null_times", "late")] == [2, 2]
    assert [c["keys"] for c in counted] == [2, 2, 1, 2, 2]
