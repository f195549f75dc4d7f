"""BlockFiba: the machine with the smallest blocks and its own, its bounds by counting, what went wrong elsewhere."""

from __future__ import annotations

import contextlib
import copy
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sash import agg
from sash._core import _SmallBlockFiba
from sash.errors import BrokenWindow
from sash.swag import BlockFiba, Fiba, Window
from tests.oracles import Brute, counting_sum, free_monoid
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


# --- the bounds, by counting combines and nodes looked at


class Counted:
    """A window whose combines, nodes looked at and restructurings are counted from mark() on."""

    def __init__(self, n: int, make: Callable[[Any], Window] = BlockFiba, spread: int = 1) -> None:
        self.calls = [0]
        self.window = make(counting_sum(self.calls))
        self.window.bulk_insert([1] * n, [i * spread for i in range(n)])
        self.next = n * spread
        self.mark()

    def mark(self) -> None:
        self.calls[0] = 0
        self.before = self.window._counts()

    @property
    def combines(self) -> int:
        return self.calls[0]

    @property
    def work(self) -> int:
        return self.calls[0] + self.window._counts()["visited"] - self.before["visited"]

    @property
    def restructured(self) -> int:
        return self.window._counts()["restructured"] - self.before["restructured"]


@pytest.mark.parametrize("make", [_SmallBlockFiba, BlockFiba])
def test_in_order_insert_and_evict_cost_the_same_for_every_window_size(make):
    per_round = []
    for n in (2**8, 2**12, 2**16, 2**18):
        c = Counted(n, make)
        for i in range(2000):
            c.window.evict()
            c.window.insert(1, n + i)
        per_round.append(c.combines / 2000)
    assert max(per_round) < (7 if make is _SmallBlockFiba else 3)
    assert max(per_round) < 1.2 * min(per_round) + 0.1


@pytest.mark.parametrize("make", [_SmallBlockFiba, BlockFiba])
def test_query_takes_at_most_two_combines_wherever_the_gap_is(make):
    c = Counted(500, make, spread=100)
    for start in (c.next, 400 * 100 + 1, 100 * 100 + 1, 7 * 100 + 1):  # behind all, and late at three distances
        for i in range(60):
            c.window.insert(1, start + i)
            c.mark()
            assert c.window.query() == len(c.window)
            assert c.combines <= 2


def late(c: Counted, n: int, d: int, rng: random.Random, from_the_left: bool) -> float:
    """Work of single inserts d places from an end, at places that are not neighbours, each taken out again."""
    total = 0
    for _ in range(60):
        place = min(n - 2, max(0, d + rng.randint(-d // 4, d // 4)))
        time = 2 * (place if from_the_left else n - 1 - place) + 1
        c.mark()
        c.window.insert(1, time)
        total += c.work
        c.window.evict(time)
    return total / 60


@pytest.mark.parametrize("from_the_left", [False, True], ids=["from the right", "from the left"])
@pytest.mark.parametrize(("make", "block"), [(_SmallBlockFiba, 4), (BlockFiba, 16)])
def test_insert_at_distance_d_grows_with_log_d_and_not_with_n(make, block, from_the_left):
    rng = random.Random(1)
    cost = {}
    for n in (2**10, 2**13, 2**16):
        c = Counted(n, make, spread=2)
        for d in (2**k for k in range(0, int(math.log2(n)) - 1, 3)):
            cost[n, d] = late(c, n, d, rng, from_the_left)
            assert cost[n, d] < 2.5 * block + 6 * (1 + math.log2(1 + d)), (n, d)
    for d in (2**3, 2**6):
        assert cost[2**16, d] < 1.3 * cost[2**10, d] + 4


def test_again_and_again_at_one_place_costs_little_at_any_distance_from_either_end():
    n, rng = 2**15, random.Random(2)
    for d in (2**4, 2**8, 2**12, 2**14, n - 2**12, n - 2**8):
        c = Counted(n, spread=10_000)
        place = (n - d) * 10_000
        for i in range(1, 1001):
            c.window.insert(1, place + i)
        followed = c.combines / 1000
        c.window.check()
        c.mark()
        for _ in range(200):  # single late inserts at the same distance, for comparison
            c.window.insert(1, place + 10_000 * rng.randint(-d // 4, 0) - rng.randint(1, 9_000))
        assert followed < min(20, 0.7 * c.combines / 200), d


def alternate_at_a_boundary(w: Window, i: int) -> None:
    if i % 4 < 2:
        w.insert(1, 501 + i % 4)
    else:
        w.evict(501 + i % 4 - 2)


def drain_and_refill_the_middle(w: Window, i: int) -> None:
    t = 2 * (100 + i % 300)
    if (i // 300) % 2 == 0:
        w.evict(t)
    else:
        w.insert(1, t)


def slide(w: Window, i: int) -> None:
    w.evict()
    w.insert(1, 10_000 + i)


def rise_and_fall_at_the_end(w: Window, i: int) -> None:
    if (i // 100) % 2 == 0:
        w.insert(1, 10_000 + i % 100)
    else:
        w.evict(10_000 + i % 100)


def prepend_and_evict(w: Window, i: int) -> None:
    if (i // 150) % 2 == 0:
        w.insert(1, -1 - i)
    else:
        w.evict()


SEQUENCES = [alternate_at_a_boundary, drain_and_refill_the_middle, slide, rise_and_fall_at_the_end, prepend_and_evict]


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("make", [_SmallBlockFiba, BlockFiba])
def test_splits_merges_and_moves_are_at_most_two_per_operation(make, sequence):
    c = Counted(1000, make, spread=2)
    for i in range(3000):
        sequence(c.window, i)
    c.window.check()
    assert c.restructured <= 2 * 3000
    if make is BlockFiba:  # far fewer: a block takes many entries before it splits
        assert c.restructured <= 3000 / 3


@pytest.mark.parametrize("make", [_SmallBlockFiba, BlockFiba])
def test_bulk_evict_grows_with_log_m(make):
    cost = {}
    for k in range(4, 16):
        m = 2**k
        c = Counted(2**16, make)
        total = 0
        for repeat in range(1, 4):
            c.mark()
            c.window.bulk_evict(c.window.oldest + m - 1)
            total += c.work
            assert len(c.window) == 2**16 - repeat * m or m == 2**15
            if len(c.window) == 0:
                break
        cost[k] = total / repeat
    assert all(cost[k] < 40 + 20 * k for k in cost), cost


def test_bulk_evict_leaves_most_of_the_work_of_freeing_to_later_operations():
    c = Counted(2**16)
    c.mark()
    c.window.bulk_evict(2**15)
    assert c.work < 200
    c.window.check()  # the dead are accounted for
    for i in range(4000):
        c.window.insert(1, 2**16 + i)
    c.window.check()


def test_bulk_insert_per_item_does_not_grow_with_distance():
    m, per_item = 512, []
    for d in (2**6, 2**9, 2**12, 2**14):
        c = Counted(2**15, spread=1000)
        place = (2**15 - d) * 1000
        c.mark()
        c.window.bulk_insert([1] * m, [place + 1 + i for i in range(m)])
        per_item.append(c.work / m)
    assert max(per_item) < 4
    assert max(per_item) < 1.5 * min(per_item) + 0.5


def test_bulk_insert_spread_over_the_window_costs_less_than_single_inserts():
    times = [i * 160 + 1 for i in range(2000)]
    bulk, single = Counted(2**15, spread=10), Counted(2**15, spread=10)
    bulk.window.bulk_insert([1] * 2000, times)
    for t in random.Random(3).sample(times, 2000):
        single.window.insert(1, t)
    assert bulk.window.items() == single.window.items()
    assert bulk.combines < 0.7 * single.combines


@pytest.mark.parametrize("make", [_SmallBlockFiba, BlockFiba])
def test_range_of_the_newest_k_grows_with_log_k(make):
    cost = {}
    for n in (2**12, 2**16):
        c = Counted(n, make)
        for k in range(12):
            c.mark()
            assert c.window.query(n - 2**k, n) == 2**k
            cost[n, k] = c.work
            assert cost[n, k] < 20 + 10 * k
    assert all(cost[2**16, k] < 1.5 * cost[2**12, k] + 10 for k in range(12))


def test_ranges_with_one_end_share_what_they_have_in_common():
    many, single = Counted(2**14), Counted(2**14)
    starts = [2**14 - 1000 - 7 * i for i in range(200)]
    ends = [2**14] * 200
    found = many.window.query_many(starts, ends)
    assert list(found) == [single.window.query(s, e) for s, e in zip(starts, ends, strict=True)]
    assert len(set(found)) == 200


@pytest.mark.parametrize("m", [2**12])
def test_sorting_a_permutation_of_disorder_d_grows_as_m_log_d(m):
    # Theorem 1 of fiba-2019: insert all, then query the first and evict it, m times.
    rng, cost = random.Random(5), {}
    for d in (0, 1, 3, 15, 63, 255, 1023):
        order = sorted(range(m), key=lambda i: i + rng.randint(0, d))
        calls = [0]

        def first(a: Any, b: Any, calls: list[int] = calls) -> Any:
            calls[0] += 1
            return b if a is None else a

        w = BlockFiba(agg.define(lift=lambda x: x, combine=first, identity=None, name="first"))
        for t in order:
            w.insert(t, t)
        found = []
        for _ in range(m):
            found.append(w.query())
            w.evict()
        assert found == list(range(m))
        cost[d] = (calls[0] + w._counts()["visited"]) / m
    assert all(cost[d] < 12 + 8 * math.log2(1 + d) for d in cost), cost


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
