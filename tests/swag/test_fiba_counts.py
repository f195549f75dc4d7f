"""Fiba's bounds, by counting combines and nodes looked at: what grows, with what, and what does not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from sash.swag import BTree, Fiba, Window
from tests.swag import counted as of

ARITY = 4
SPACE = 2**20  # between neighbouring times, so that late ones find room


class Counted(of.Counted):
    """A Fiba of n entries, SPACE apart."""

    def __init__(self, n: int, kind: type[Window] = Fiba, arity: int = ARITY) -> None:
        super().__init__(n, lambda aggregation: kind(aggregation, min_arity=arity), SPACE)


def grows_like(costs: dict[int, float], log: Callable[[int], float], most: float) -> bool:
    """Whether the cost stays within `most` times a logarithm, of which the smallest case is 1."""
    return all(cost <= most * (1 + log(size)) for size, cost in costs.items())


def test_a_query_takes_at_most_two_combines():
    for n in (0, 1, 5, 300, 5000):
        counted = Counted(n)
        counted.window.query()
        assert counted.combines <= 2


@pytest.mark.parametrize("arity", [2, 4, 8])
def test_in_order_rounds_cost_the_same_in_a_window_of_256_and_of_a_million(arity):
    costs = {}
    for n in (2**8, 2**12, 2**20 if arity == 4 else 2**16):
        counted = Counted(n, arity=arity)
        rounds = 1500
        for _ in range(rounds):
            counted.window.evict()
            counted.append()
            counted.window.query()
        costs[n] = counted.work / rounds
    assert max(costs.values()) < 6 * arity + 10
    assert max(costs.values()) < 1.25 * min(costs.values())


def insert_at(counted: Counted, distance: int, times: int, rng: random.Random, from_left: bool = False) -> float:
    """The mean work of an insert so many entries from the end; each leaves again, uncounted."""
    total = 0
    for _ in range(times):
        place = distance if from_left else len(counted.window) - distance
        time = (place - 1) * SPACE + rng.randrange(1, SPACE)
        counted.mark()
        counted.window.insert(1, time)
        total += counted.work
        assert counted.window.evict(time)
    return total / times


@pytest.mark.parametrize("from_left", [False, True])
def test_an_insert_costs_as_the_logarithm_of_its_distance_not_of_the_window(from_left):
    rng = random.Random(1)
    small, large = Counted(2**13), Counted(2**17)
    distances = [1, 4, 16, 64, 256, 1024]
    in_small = {d: insert_at(small, d, 60, rng, from_left) for d in distances}
    in_large = {d: insert_at(large, d, 60, rng, from_left) for d in distances}
    assert grows_like(in_large, math.log2, 25)
    for d in distances:
        assert in_large[d] < 1.3 * in_small[d] + 5
    # and it does grow with the logarithm, no slower: from 16 to 1,024 as much as from 1,024 to 2^16
    far = insert_at(large, 2**16, 60, rng, from_left)
    assert far - in_large[1024] < 1.8 * (in_large[1024] - in_large[16])


def test_a_plain_b_tree_pays_for_the_whole_height_at_any_distance():
    rng = random.Random(1)
    near = insert_at(Counted(2**15, BTree), 1, 50, rng)
    assert near > 2 * insert_at(Counted(2**15), 1, 50, rng)
    assert near > 0.7 * insert_at(Counted(2**15, BTree), 2**14, 50, rng)


def test_an_evict_anywhere_costs_as_the_logarithm_of_its_distance():
    rng = random.Random(2)
    counted = Counted(2**16)
    costs = {}
    for d in (1, 16, 256, 4096):
        total = 0
        for _ in range(60):
            time = (2**16 - d) * SPACE + rng.randrange(1, SPACE)
            counted.window.insert(1, time)
            counted.mark()
            assert counted.window.evict(time)
            total += counted.work
        costs[d] = total / 60
    assert grows_like(costs, math.log2, 25)


SEQUENCES = ["fifo", "anywhere", "one place", "there and back", "up and down"]


@pytest.mark.parametrize("arity", [2, 4, 8])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_at_most_two_splits_merges_and_moves_per_operation(sequence, arity):
    # Lemma 9, from an empty tree.
    rng = random.Random(4)
    counted = Counted(0, arity=arity)
    window, held, operations = counted.window, [], 0
    for i in range(6000):
        if sequence == "fifo":
            time, evict = i, i > 500
        elif sequence == "anywhere":
            time, evict = rng.randrange(10**9), rng.random() < 0.45
        elif sequence == "one place":
            time, evict = 10**6 - i % 1000 * (1 if i % 2 else -1), rng.random() < 0.4
        elif sequence == "there and back":  # at the edge of an overflow, again and again
            time, evict = 10**6 + i % 7, i % 3 == 0
        else:
            time, evict = i, (i // 1000) % 2 == 1
        if evict and held:
            gone = held.pop(0 if sequence == "fifo" else rng.randrange(len(held)))
            window.evict(gone)
        else:
            window.insert(1, time)
            if sequence == "fifo" or time not in held:
                held.append(time)
        operations += 1
    assert counted.restructured <= 2 * operations


def bulk_evict_cost(n: int, m: int, times: int) -> float:
    counted = Counted(n)
    total = 0
    for i in range(times):
        cut = counted.window.oldest + (m - 1) * SPACE + i % 2
        counted.mark()
        counted.window.bulk_evict(cut)
        total += counted.work
        for _ in range(m if m < 64 else 3):
            counted.append()
    return total / times


def test_a_bulk_evict_costs_as_the_logarithm_of_what_it_evicts_not_of_the_window():
    costs = {m: bulk_evict_cost(2**17, m, 12) for m in (1, 4, 16, 64, 256, 1024, 4096)}
    assert grows_like(costs, math.log2, 20)
    for m in (1, 16, 256):
        assert bulk_evict_cost(2**13, m, 12) * 1.5 + 10 > costs[m]
    assert costs[4096] < 4096 / 8


@pytest.mark.parametrize("stays", [1, 5, 100, 2000])
def test_a_bulk_evict_of_nearly_everything_costs_no_more_than_the_height(stays):
    counted = Counted(2**15)
    counted.window.bulk_evict(counted.window.youngest - stays * SPACE)
    assert len(counted.window) == stays
    assert counted.work < 25 * math.log2(2**15)


def test_a_bulk_insert_costs_the_same_per_item_at_any_distance():
    m = 512
    costs = {}
    counted = Counted(2**16)
    for d in (1, 64, 1024, 2**15):
        place = (len(counted.window) - d) * SPACE
        counted.mark()
        counted.window.bulk_insert([1] * m, [place - SPACE + 1 + i for i in range(m)])
        costs[d] = counted.work / m
        counted.window.bulk_evict(counted.window.oldest + (m - 1) * SPACE)
        counted.window.check()
    assert max(costs.values()) < 6
    assert max(costs.values()) < 1.3 * min(costs.values()) + 0.5


def test_a_bulk_insert_spread_over_d_entries_shares_its_paths():
    # m (1 + log(d / m)): per item, cheaper the denser.
    d = 2**14
    looped, costs = {}, {}
    for m in (16, 128, 1024, 8192):
        times = sorted({(2**15 - d) * SPACE + i * (d * SPACE // m) + 1 for i in range(m)})
        bulk, loop = Counted(2**15), Counted(2**15)
        bulk.window.bulk_insert([1] * len(times), times)
        costs[m] = bulk.work / m
        for t in times:
            loop.window.insert(1, t)
        looped[m] = loop.work / m
    for m in (16, 128, 1024, 8192):
        assert costs[m] <= 12 * (1 + math.log2(d / m)) + 12
    assert costs[16] > costs[128] > costs[1024] > costs[8192]
    assert costs[8192] < looped[8192] / 3


def test_a_range_of_the_newest_k_costs_as_the_logarithm_of_k():
    large, small = Counted(2**17), Counted(2**12)
    costs = {}
    for k in (1, 8, 64, 512, 4000):
        for counted in (large, small):
            counted.mark()
            n = len(counted.window)
            assert counted.window.query((n - k) * SPACE, n * SPACE) == min(k, n)
        costs[k] = large.work
        assert large.work < 1.5 * small.work + 10
    assert grows_like(costs, math.log2, 12)


def test_a_range_near_an_end_costs_as_the_logarithm_of_its_distance_and_size():
    counted = Counted(2**17)
    for d in (4, 64, 1024):
        for size in (1, 10, 500):
            for start in (d, 2**17 - d - size):
                counted.mark()
                assert counted.window.query(start * SPACE, (start + size - 1) * SPACE) == size
                assert counted.work < 15 * (2 + math.log2(d) + math.log2(size))


def test_many_ranges_share_what_they_have_in_common():
    n = 2**14
    rng = random.Random(8)
    starts = [rng.randrange(n) * SPACE for _ in range(2000)]
    ends = [s + rng.randrange(n // 2) * SPACE for s in starts]
    together, apart = Counted(n), Counted(n)
    found = together.window.query_many(starts, ends)
    assert list(found) == [apart.window.query(s, e) for s, e in zip(starts, ends, strict=True)]
    assert together.work < 0.6 * apart.work
    few, one_by_one = Counted(n), Counted(n)
    few.window.query_many(starts[:3], ends[:3])
    for s, e in zip(starts[:3], ends[:3], strict=True):
        one_by_one.window.query(s, e)
    assert few.work < 1.3 * one_by_one.work + 20


def disordered(m: int, d: int, rng: random.Random) -> list[int]:
    """A permutation none of whose elements comes after more than d greater ones, made as in lemma 8."""
    order: list[int] = []
    for x in range(m - 1, -1, -1):
        order.insert(rng.randint(0, min(len(order), d)), x)
    return order


def test_sorting_by_a_window_costs_m_log_d():
    # Theorem 1: insert all, then query and evict the first, again and again.
    m = 2000
    costs = {}
    for d in (0, 3, 15, 63, 255, 1023):
        rng = random.Random(d)
        counted = Counted(0)
        for x in disordered(m, d, rng):
            counted.window.insert(x, x)
        for x in range(m):
            assert counted.window.oldest == x
            counted.window.query()
            counted.window.evict()
        costs[d + 1] = counted.work / m
    assert grows_like(costs, math.log2, 35)
    assert costs[1024] < 6 * costs[4]


@pytest.mark.stress
def test_in_order_rounds_of_every_size():
    costs = {}
    for exponent in range(8, 21, 2):
        counted = Counted(2**exponent)
        for _ in range(20000):
            counted.window.evict()
            counted.append()
        costs[2**exponent] = counted.work / 20000
    assert max(costs.values()) < 1.1 * min(costs.values())
