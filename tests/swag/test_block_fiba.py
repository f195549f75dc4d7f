"""BlockFiba: the machine with the smallest blocks and its own, what went wrong elsewhere."""

from __future__ import annotations

import contextlib
import copy
import random
from typing import Any

import numpy as np
import pytest

from sash import agg
from sash._core import _SmallBlockFiba
from sash.errors import BrokenWindow
from sash.swag import BlockFiba, Fiba
from tests.oracles import Brute, free_monoid
from tests.swag.machine import QUICK, OutOfOrder


class SmallBlocks(OutOfOrder):
    make = staticmethod(_SmallBlockFiba)


class OwnBlocks(OutOfOrder):
    make = staticmethod(BlockFiba)


class KeepingTies(OutOfOrder):
    ties = "keep"
    make = staticmethod(lambda a: BlockFiba(a, ties="keep"))


for machine in (SmallBlocks, OwnBlocks, KeepingTies):
    machine.TestCase.settings = QUICK
TestSmallBlocks = SmallBlocks.TestCase
TestOwnBlocks = OwnBlocks.TestCase
TestKeepingTies = KeepingTies.TestCase


# --- native partials, whose blocks are the largest: long random walks beside Fiba


@pytest.mark.parametrize("make", [agg.sum, agg.max, agg.mean, lambda: agg.struct(a=agg.first(), b=agg.last()), agg.first])
@pytest.mark.parametrize("seed", range(3))
def test_native_windows_agree_with_fiba_on_a_long_walk(make, seed):
    rng = random.Random(seed)
    ours, theirs = BlockFiba(make(), dtype="int64"), Fiba(make(), dtype="int64")
    now = place = 0
    for step in range(400):
        kind = rng.random()
        if kind < 0.3:
            times = [(now := now + rng.randint(1, 3)) for _ in range(rng.randint(1, 80))]
        elif kind < 0.5:
            times = [now - rng.randint(0, rng.choice([10, 300, 6000])) for _ in range(rng.randint(1, 40))]
        elif kind < 0.65:  # a run at one place: the gap
            place = rng.randint(now - 4000, now)
            times = [(place := place + rng.randint(0, 1)) for _ in range(rng.randint(2, 90))]
        else:
            times = []
        now = max([now, *times])
        if times and rng.random() < 0.3:
            times.sort()
            values = np.array([rng.randint(-9, 9) for _ in times])
            for w in (ours, theirs):
                w.bulk_insert(values, np.array(times))
        else:
            for t in times:
                value = rng.randint(-9, 9)
                ours.insert(value, t)
                theirs.insert(value, t)
        if kind > 0.65 and len(theirs):
            if kind < 0.8:
                for _ in range(min(len(theirs), rng.randint(1, 120))):
                    ours.evict()
                    theirs.evict()
            elif kind < 0.93:
                gone = theirs.oldest + rng.randint(0, 2 * rng.choice([30, 400]))
                ours.bulk_evict(gone)
                theirs.bulk_evict(gone)
            else:
                for _ in range(60):
                    t = rng.randint(theirs.oldest, now) if len(theirs) else 0
                    assert ours.evict(t) == theirs.evict(t)
        start = now - rng.randint(0, 5000)
        end = start + rng.randint(0, 5000)
        assert ours.query() == theirs.query()
        assert ours.query(start, end) == theirs.query(start, end)
        assert len(ours) == len(theirs)
        if step % 10 == 0:
            ours.check()
            assert ours.items() == theirs.items()


@pytest.mark.parametrize("make", [agg.sum, agg.first, agg.last, agg.max])
@pytest.mark.parametrize("delay", [0, 3, 40, 700])
def test_a_short_window_is_a_range_of_the_long_one_wherever_late_items_fall(make, delay):
    # The long window holds the newest 2,000 times, the short one the newest 900 of them. Every second item comes `delay` places late.
    rng = random.Random(delay)
    ours, theirs = BlockFiba(make(), dtype="int64"), Fiba(make(), dtype="int64")
    for now in range(0, 12_000, 2):
        value = rng.randint(-99, 99)
        for w in (ours, theirs):
            w.insert(value, now)
            w.insert(-value, now - 2 * delay + 1)
            w.bulk_evict(now - 2000)
        assert ours.query(now - 900, now) == theirs.query(now - 900, now)
        if rng.random() < 0.1:
            start = now - rng.randint(0, 2000)
            assert ours.query(start, start + 500) == theirs.query(start, start + 500)
        if now % 500 == 0:
            ours.check()
            starts = [now - k for k in (1900, 900, 30, 900)]
            assert list(ours.query_many(starts, [now] * 4)) == list(theirs.query_many(starts, [now] * 4))


def test_a_range_leaves_the_gap_open():
    w = BlockFiba(agg.sum(), dtype="int64")
    w.bulk_insert(np.ones(4000, dtype=np.int64), np.arange(0, 40_000, 10))
    for t in range(20_001, 20_009):
        w.insert(1, t)
        assert w.query(19_000, 50_000) == w.query() - 1900
        assert w.query(19_000, 30_000) == 1101 + t - 20_000
        w.check()


# --- what went wrong elsewhere


@pytest.mark.parametrize("seed", range(20))
def test_bulk_insert_repeating_times_already_in_the_window(seed):
    rng = random.Random(seed)
    for make in (_SmallBlockFiba, BlockFiba):
        w, brute = make(free_monoid()), Brute("combine")
        for round_ in range(4):
            times = sorted(rng.randint(0, 150) for _ in range(rng.randint(1, 120)))
            values = [(round_, i) for i in range(len(times))]
            w.bulk_insert(values, times)
            for v, t in zip(values, times, strict=True):
                brute.insert(v, t)
            w.check()
            assert w.items() == [(t, tuple(vs)) for t, vs in brute.entries]


def test_size_is_right_after_bulk_operations_that_drop_whole_subtrees():
    w = _SmallBlockFiba(agg.count(), dtype="int64")
    w.bulk_insert(np.ones(5000), np.arange(5000))
    for t in (3, 4, 700, 701, 3000, 4998):
        w.bulk_evict(t)
        assert len(w) == w.query() == 4999 - t
        w.check()


def test_evict_on_empty_is_an_error_and_bulk_evict_on_empty_ends():
    w = BlockFiba(agg.sum())
    with pytest.raises(IndexError):
        w.evict()
    w.bulk_evict(10)
    assert w.evict(10) is False
    assert len(w) == 0
    assert w.query() == 0
    assert w.oldest is None


def test_a_copy_goes_its_own_way():
    w = BlockFiba(agg.sum())
    w.bulk_insert(range(300), range(300))
    other = copy.copy(w)
    other.bulk_evict(250)
    other.insert(1, 10)
    w.check()
    other.check()
    assert len(w) == 300
    assert len(other) == 50
    assert w.query() == sum(range(300))


def test_times_at_the_ends_of_int64_are_times_like_any_other():
    low, high = -(2**63), 2**63 - 1
    for make in (_SmallBlockFiba, BlockFiba):
        w = make(free_monoid())
        for i, t in enumerate([high, low, 0, high, low, 1]):
            w.insert(i, t)
        for i in range(300):
            w.insert(i, i - 150)
        w.check()
        assert w.query(low, low) == (1, 4)
        assert w.query(high, high) == (0, 3)
        assert (w.oldest, w.youngest) == (low, high)
        w.bulk_evict(high - 1)
        assert w.query() == (0, 3)
        w.bulk_evict(high)
        assert len(w) == 0


def test_float_times_and_ranges_between_them():
    w = BlockFiba(agg.sum())
    for i in range(200):
        w.insert(i, i / 8 - 5.0)
    w.insert(1000, -5.0625)
    w.check()
    assert w.oldest == -5.0625
    assert w.query(-5.0625, -5.0) == 1000
    assert w.query(-4.9, 19.8) == sum(range(1, 199))


def test_equal_times_combine_in_the_order_they_came_wherever_the_entry_is():
    for make in (_SmallBlockFiba, BlockFiba):
        for place in (0, 1, 57, 123, 198, 199):  # head, beside it, middle, tail
            w = make(agg.define(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="free"))
            for i in range(200):
                w.insert(i, i)
            for again in ("a", "b", "c"):
                w.insert(again, place)
                w.check()
            assert w.query(place, place) == (place, "a", "b", "c")
            assert len(w) == 200


def test_ties_kept_apart_leave_one_by_one():
    w = BlockFiba(agg.collect(), ties="keep")
    for i in range(300):
        w.insert(i, i // 10)
    w.insert("late", 3)
    assert len(w) == 301
    assert w.query(3, 3) == [*range(30, 40), "late"]
    assert w.evict(3)
    assert w.query(3, 3) == [*range(31, 40), "late"]
    w.bulk_evict(28)
    assert w.query() == list(range(290, 300))


@pytest.mark.parametrize("after", [1, 2, 3, 5, 8, 13, 21, 34])
@pytest.mark.parametrize("seed", range(4))
def test_a_callable_that_raises_leaves_the_window_as_it_was_or_broken(after, seed):
    rng, fuse = random.Random(seed), [0]

    def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if fuse[0] > 0:
            fuse[0] -= 1
            if fuse[0] == 0:
                raise KeyError("boom")
        return a + b

    w = _SmallBlockFiba(agg.define(lift=lambda x: (x,), combine=combine, identity=(), name="fused"))
    times: set[int] = set()
    for step in range(150):
        items = w.items()
        fuse[0] = after if step > 60 and step % 3 == 0 else 0
        t = rng.choice([step * 3, step * 3 - rng.randint(0, 60), rng.randint(0, step * 3)])
        try:
            if step % 5 == 4 and len(w):
                w.evict() if rng.random() < 0.5 else w.bulk_evict(rng.choice(sorted(times)))
            else:
                w.insert(step, t)
        except KeyError:
            fuse[0] = 0
            try:
                assert w.items() == items
                w.check()
            except BrokenWindow:
                w.clear()
                assert len(w) == 0
                w.insert(0, 0)
        fuse[0] = 0
        w.check()
        times = {time for time, _ in w.items()}
        assert w.query() == sum((value for _, value in w.items()), ())


def test_in_order_insert_that_raises_changes_nothing_even_where_a_block_begins():
    fuse = [False]

    def combine(a: int, b: int) -> int:
        if fuse[0]:
            raise ValueError("no")
        return a + b

    w = BlockFiba(agg.define(lift=lambda x: x, combine=combine, identity=0, name="fused"))
    for i in range(400):
        if i > 40:  # a window of two blocks and more, with room for a child in the parent or not
            fuse[0] = True
            with contextlib.suppress(ValueError, BrokenWindow):
                w.insert(1, i)
            fuse[0] = False
            try:
                assert w.query() == i
                assert len(w) == i
            except BrokenWindow:
                w.clear()
                w.bulk_insert([1] * i, range(i))
        w.insert(1, i)
    w.check()
