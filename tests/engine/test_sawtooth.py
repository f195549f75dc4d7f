"""Look-backs in hops ("sawtooth"): what others got wrong, each a test of its own. Hops of 10, looks back by 20 or 40."""

import random

import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Hops, Query, Rolling, Slicer, bucket_of
from tests.engine.test_shapes import SCHEMA, batch_of, plain

AGGS = (("n", agg.count()), ("s", agg.sum("v")))


def query(*periods, **options):
    return Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling(tuple((str(i), p) for i, p in enumerate(periods))), **options)


class Live:
    """A bucket whose state is stored and read again after every step."""

    def __init__(self, query):
        self.query, self.blobs = query, {}
        self.bucket = bucket_of(query)(query)
        self.bucket.advance(-100)

    def step(self, rows, watermark):
        for packed in Slicer(self.query, 1).pack(batch_of(SCHEMA, rows)) if rows else []:
            self.bucket.add(packed.blob)
        out = plain(self.bucket.advance(watermark))
        commit = self.bucket.commit()
        self.blobs = {i: blob for i, blob in self.blobs.items() if i not in commit.remove} | commit.put
        self.bucket = bucket_of(self.query).load(self.query, commit.meta, self.blobs)
        return out


def test_a_row_counts_once_in_look_backs_that_share_its_hop():
    #  hops    0         10        20        30        the tail [10, 20) is in both look-backs; it must not be added to twice
    live = Live(query(Hops(20, 10), Hops(40, 10), late="accept"))
    live.step([("a", 12, 1)], 15)
    live.step([("a", 14, 2)], 25)  # late, into the same tail
    live.step([("a", 16, 4)], 26)
    assert live.step([("a", 31, 8)], 31) == [("a", 31, 8, 4, 4, 15, 15)]  # [10, 31] and [-10, 31]
    assert live.step([("a", 45, 16)], 45) == [("a", 45, 16, 2, 5, 24, 31)]  # [20, 45] and [0, 45]


def test_a_look_back_keeps_its_left_hop_until_the_next_one_begins():
    #  one row a unit of time; the look-back is [floor((t - 20) / 10) * 10, t], so it holds 21 to 30 rows, a sawtooth
    live = Live(query(Hops(20, 10)))
    for t in range(100):
        first = max(0, (t - 20) // 10 * 10)
        assert live.step([("a", t, t)], t) == [("a", t, t, t - first + 1, sum(range(first, t + 1)))]
        assert live.bucket.slices <= 4  # hops, not rows


def test_a_watermark_that_jumps_leaves_nothing_stale():
    #  as where a timer fires much too late: everything of before is out of reach at once
    live = Live(query(Hops(20, 10)))
    live.step([(key, t, 1) for key in "abc" for t in range(30)], 29)
    assert live.bucket.keys == 3
    live.step([], 10_000)
    assert (live.bucket.keys, live.bucket.slices) == (0, 0)
    assert not live.blobs
    assert live.step([("a", 10_005, 7)], 10_005) == [("a", 10_005, 7, 1, 7)]


@pytest.mark.parametrize("late", ["drop", "accept"])
def test_a_late_row_does_not_bring_an_expired_hop_back(late):
    live = Live(query(Hops(20, 10), late=late))
    live.step([("a", 5, 1), ("a", 15, 2)], 50)
    assert live.step([("a", 6, 64)], 50) == []  # [30, ...] is the first in reach
    assert live.bucket.keys == 0
    assert live.step([("a", 51, 4)], 51) == [("a", 51, 4, 1, 4)]


def test_a_row_from_the_future_waits_and_takes_nothing_with_it():
    live = Live(query(Hops(20, 10)))
    assert live.step([("a", 5, 1), ("a", 9_999, 64)], 9) == [("a", 5, 1, 1, 1)]
    assert live.step([("a", 12, 2)], 12) == [("a", 12, 2, 2, 3)]  # the row of 5 is still there
    assert live.step([], 9_999) == [("a", 9_999, 64, 1, 64)]


@pytest.mark.parametrize("seed", range(10))
def test_a_stream_of_hops_of_any_aggregation_equals_the_definition(seed):
    rng = random.Random(seed)
    period, hop = rng.choice([(20, 10), (25, 10), (8, 8), (40, 3)])
    asked = Query(SCHEMA, "t", ("k",), (("c", agg.collect("v")), ("hi", agg.max("v"))), rolling=Rolling((("p", Hops(period, hop)),)))
    rows = sorted((rng.randrange(120), i, rng.choice("ab")) for i in range(90))
    live, out, known = Live(asked), [], []
    for begin in range(0, 120, 13):
        part = [(k, t, i) for t, i, k in rows if begin <= t < begin + 13]
        known += part
        out += live.step(rng.sample(part, len(part)), begin + 12)
    expected = []
    for k, t, v in known:
        inside = [w for key, u, w in known if key == k and (t - period) // hop * hop <= u <= t]
        expected.append((k, t, v, tuple(sorted(inside)), max(inside)))
    assert sorted(out, key=repr) == sorted(expected, key=repr)


def test_a_year_by_days_of_many_rows_a_day_is_held_as_days():
    day = 86_400_000_000
    stamped = pa.schema([("k", pa.string()), ("t", pa.timestamp("us")), ("v", pa.int64())])
    asked = Query(stamped, "t", ("k",), AGGS, rolling=Rolling((("365d", Hops(365 * day, day)),)))
    bucket, slicer = bucket_of(asked)(asked), Slicer(asked, 1)
    for d in range(400):
        times = pa.array([d * day + i * (day // 200) for i in range(200)]).cast(pa.timestamp("us"))
        rows = pa.record_batch([pa.array(["a"] * 200), times, pa.array([1] * 200)], schema=stamped)
        for packed in slicer.pack(rows):
            bucket.add(packed.blob)
        out = bucket.advance((d + 1) * day - 1)
    assert bucket.slices <= 367
    assert out[0].column("n_365d")[-1].as_py() == 365 * 200 + 200
