"""The bounds of BlockFiba, by counting combines and nodes looked at."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from sash import agg
from sash._core import _SmallBlockFiba
from sash.swag import BlockFiba, Window
from tests.swag.counted import Counted


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
