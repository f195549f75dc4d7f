"""Fiba and BTree: the machine at every arity, what went wrong elsewhere, many ranges, memory."""

from __future__ import annotations

import copy
import datetime
import pickle
import random

import numpy as np
import pytest

from sash import agg
from sash.swag import BTree, Fiba
from tests.oracles import Brute, free_monoid
from tests.swag.machine import QUICK, OutOfOrder
from tests.swag.trees import filled, reached, walk

ARITIES = [2, 4, 8, 16]


class Arity2(OutOfOrder):
    make = staticmethod(lambda a: Fiba(a, min_arity=2))


class Arity4(OutOfOrder):
    make = staticmethod(lambda a: Fiba(a, min_arity=4))


class Arity8(OutOfOrder):
    make = staticmethod(lambda a: Fiba(a, min_arity=8))


class Arity16(OutOfOrder):
    make = staticmethod(lambda a: Fiba(a, min_arity=16))


class KeepingTies(OutOfOrder):
    ties = "keep"
    make = staticmethod(lambda a: Fiba(a, min_arity=2, ties="keep"))


class PlainAggregates(OutOfOrder):
    make = staticmethod(lambda a: BTree(a, min_arity=2))


for machine in (Arity2, Arity4, Arity8, Arity16, KeepingTies, PlainAggregates):
    machine.TestCase.settings = QUICK
TestArity2 = Arity2.TestCase
TestArity4 = Arity4.TestCase
TestArity8 = Arity8.TestCase
TestArity16 = Arity16.TestCase
TestKeepingTies = KeepingTies.TestCase
TestPlainAggregates = PlainAggregates.TestCase


# --- a long walk, for trees too high for a machine of few steps


@pytest.mark.parametrize("arity", ARITIES)
@pytest.mark.parametrize("kind", [Fiba, BTree])
def test_a_long_walk_stays_in_lockstep(kind, arity):
    for seed in range(2):
        walk(kind(free_monoid(), min_arity=arity), seed, steps=120, most=40 * arity)


@pytest.mark.stress
@pytest.mark.parametrize("arity", ARITIES)
@pytest.mark.parametrize("seed", range(20))
def test_very_long_walks_stay_in_lockstep(arity, seed):
    walk(Fiba(free_monoid(), min_arity=arity), seed, steps=1500, most=150 * arity)


@pytest.mark.parametrize("make", [agg.first, agg.last, agg.collect, agg.sum, agg.max, lambda: agg.struct(a=agg.sum(), b=agg.first())])
def test_aggregations_of_the_catalogue_agree_with_a_fold(make):
    rng = random.Random(11)
    window, brute = Fiba(make(), min_arity=2), Brute("combine")
    for value in range(300):
        time = value - rng.choice([0, 0, 3, 100])
        window.insert(value, time)
        brute.insert(value, time)
        if rng.random() < 0.4:
            window.evict()
            brute.evict()
    a = make()
    partial = a.identity()
    for value in brute.values():
        partial = a.combine(partial, a.lift(value))
    assert window.query() == a.lower(partial)
    window.check()


# --- what went wrong elsewhere


@pytest.mark.parametrize("arity", ARITIES)
@pytest.mark.parametrize("kind", [Fiba, BTree])
def test_bulk_insert_repeating_times_already_in_the_window(kind, arity):
    for seed in range(20):
        rng = random.Random(seed)
        window, brute = kind(free_monoid(), min_arity=arity), Brute("combine")
        n = rng.randint(1, 40 * arity)
        for t in range(n):
            window.insert(t, 2 * t)
            brute.insert(t, 2 * t)
        times = sorted(rng.choice([2 * rng.randrange(n), rng.randrange(2 * n)]) for _ in range(rng.randint(1, 60)))
        values = [1000 + i for i in range(len(times))]
        window.bulk_insert(values, times)
        for value, time in zip(values, times, strict=True):
            brute.insert(value, time)
        window.check()
        assert window.query() == tuple(brute.values())
        assert len(window) == len(brute)
        for _ in range(5):
            a, b = sorted((rng.randrange(2 * n), rng.randrange(2 * n)))
            assert window.query(a, b) == tuple(brute.values(a, b))


def test_bulk_insert_hitting_an_inner_node_and_both_leaves_beside_it():
    #           [ 20  40 ]            the inner entry 20 is hit, and what is below it on both sides changes:
    #          /    |     \           one node must be handled once
    #   [ 0 10 ] [ 30 ] [ 50 .. ]
    window = Fiba(free_monoid(), min_arity=2)
    for t in (0, 10, 20, 30, 35, 40, 50):
        window.insert((t, "old"), t)
    window.bulk_insert([(t, "new") for t in (10, 15, 20, 25, 35, 40)], [10, 15, 20, 25, 35, 40])
    window.check()
    assert reached(window)["bulk insert: hit in an inner node"] >= 1
    assert [x[0] for x in window.query()] == [0, 10, 10, 15, 20, 20, 25, 30, 35, 35, 40, 40, 50]
    assert [x for x in window.query() if x[0] == 20] == [(20, "old"), (20, "new")]


def test_bulk_insert_repeating_times_inside_the_batch_keeps_their_order():
    window = Fiba(free_monoid(), min_arity=2)
    window.bulk_insert([3, 1, 2], [5, 5, 5])
    window.bulk_insert([7, 8], [5, 9])
    assert window.items() == [(5, (3, 1, 2, 7)), (9, (8,))]
    window.check()


@pytest.mark.parametrize("kind", [Fiba, BTree])
def test_size_is_right_after_bulk_operations(kind):
    rng = random.Random(3)
    window, times = kind(agg.sum(), min_arity=2), set()
    for _ in range(60):
        batch = sorted(rng.randrange(4000) for _ in range(rng.randint(1, 200)))
        window.bulk_insert([1] * len(batch), batch)
        times |= set(batch)
        cut = rng.randrange(4000) if rng.random() < 0.2 else min(times, default=0) + rng.randrange(300)
        window.bulk_evict(cut)
        times = {t for t in times if t > cut}
        assert len(window) == len(times)
        assert (window.oldest, window.youngest) == (min(times, default=None), max(times, default=None))


@pytest.mark.parametrize("kind", [Fiba, BTree])
def test_evict_and_bulk_evict_on_an_empty_window(kind):
    window = kind(free_monoid(), min_arity=2)
    with pytest.raises(IndexError):
        window.evict()
    window.bulk_evict(10)  # must end, and change nothing
    assert not window.evict(3)
    assert len(window) == 0
    assert window.query() == ()
    assert window.query(0, 9) == ()
    window.insert(1, 1)
    window.evict()
    window.bulk_evict(10)
    with pytest.raises(IndexError):
        window.evict()
    window.check()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_a_copy_lives_on_its_own(how):
    window = Fiba(agg.sum(), min_arity=2)
    window.bulk_insert(range(100), range(100))
    other = how(window)
    del window
    other.evict()
    other.insert(5, 200)
    other.check()
    assert other.query() == sum(range(100)) + 5
    assert len(other) == 100


def test_ranges_of_date_times_need_no_sentinels():
    start = datetime.datetime(2024, 1, 1)
    hour = datetime.timedelta(hours=1)
    window = Fiba(agg.sum(), min_arity=2)
    for i in range(100):
        window.insert(i, start + i * hour)
    assert window.query(start, start + 99 * hour) == sum(range(100))
    assert window.query(start + 10 * hour, start + 12 * hour) == 33
    assert window.query(start - 5 * hour, start) == 0
    assert window.query(start + 99 * hour, start + 200 * hour) == 99


def test_the_least_and_the_greatest_times_are_ordinary_keys():
    ends = [-(2**63), -(2**63) + 1, -1, 0, 2**63 - 2, 2**63 - 1]
    window = Fiba(free_monoid(), min_arity=2)
    for t in ends:
        window.insert(t, t)
    assert window.query(-(2**63), 2**63 - 1) == tuple(ends)
    assert window.query(2**63 - 1, 2**63 - 1) == (2**63 - 1,)
    window.bulk_evict(-(2**63))
    assert window.query() == tuple(ends[1:])
    window.bulk_evict(2**63 - 1)
    assert len(window) == 0
    window.check()


@pytest.mark.parametrize("arity", [2, 4])
def test_borrowing_from_a_left_spine_sibling_repairs_the_left_spine(arity):
    # FiBA 2019, figure 7, line 61 takes over hit_right alone. Here a node beside the left spine runs low, and takes from it or is merged
    # with it: at every place of the first children of the root.
    for n in range(4 * arity, 40 * arity, arity):
        for first in range(1, 6 * arity, arity):
            window = filled(n, arity)
            window.insert(-1, -1)  # so that the leaf on the spine has entries to spare
            gone = [t for t in range(first, first + 3 * arity) if t < n]
            for t in gone:
                window.evict(t)
                window.check()
            assert window.query() == tuple(t for t in range(-1, n) if t not in gone)


def test_the_root_is_on_no_spine():
    window = Fiba(free_monoid(), min_arity=2)
    for t in range(40):
        window.insert(t, t)
        assert [place for level, place, *_ in window._nodes()].count("top") == 1
        assert window._nodes()[0][1] == "top"
    window.check()


# --- errata of the papers


@pytest.mark.parametrize("arity", ARITIES)
def test_no_child_is_skipped_by_a_range_whatever_the_arity(arity):
    # FiBA 2019, figure 10, line 20 stops one child short.
    n = 30 * arity
    window = filled(n, arity)
    for a in range(0, n, arity):
        for b in range(a, n, 2 * arity - 1):
            assert window.query(a, b) == tuple(range(a, b + 1))


def test_a_range_is_from_the_first_entry_at_or_after_to_the_last_at_or_before():
    # FiBA 2019, section 2 and theorems 6 and 7 have "largest" and "smallest" swapped.
    window = Fiba(free_monoid(), min_arity=2)
    for t in range(0, 100, 10):
        window.insert(t, t)
    assert window.query(15, 45) == (20, 30, 40)
    assert window.query(20, 40) == (20, 30, 40)
    assert window.query(21, 29) == ()
    assert window.query(-5, 5) == (0,)
    assert window.query(85, 500) == (90,)
    with pytest.raises(ValueError, match="after"):
        window.query(5, 4)


# --- many ranges at once


@pytest.mark.parametrize("kind", [Fiba, BTree])
def test_query_many_equals_one_by_one(kind):
    rng = random.Random(5)
    window = kind(free_monoid(), min_arity=4)
    for i in range(800):
        window.insert(i, rng.randrange(3000))
    starts = [rng.randrange(-50, 3050) for _ in range(150)]
    ends = [s + rng.choice([0, 3, 40, 3000]) for s in starts]
    assert list(window.query_many(starts, ends)) == [window.query(s, e) for s, e in zip(starts, ends, strict=True)]
    assert list(kind(free_monoid()).query_many(starts, ends)) == [()] * 150
    assert list(window.query_many([], [])) == []


def test_query_many_of_native_and_float_times():
    rng = random.Random(6)
    window = Fiba(agg.sum(), min_arity=4)
    times = np.sort(np.array([rng.random() for _ in range(500)]))
    window.bulk_insert(np.arange(500), times)
    starts = np.array([rng.random() for _ in range(40)])
    ends = starts + 0.2
    assert list(window.query_many(starts, ends)) == [window.query(float(s), float(e)) for s, e in zip(starts, ends, strict=True)]
    with pytest.raises(ValueError, match="after"):
        window.query_many([0.5], [0.4])


# --- memory: what waits to be taken apart


def test_a_bulk_evict_takes_no_node_apart_beyond_a_few():
    # Objects of evicted entries live on until their nodes are taken apart: at most a few nodes at every operation.
    class Item:
        alive = 0

        def __init__(self) -> None:
            Item.alive += 1

        def __del__(self) -> None:
            Item.alive -= 1

    items = agg.define(lift=lambda x: x, combine=lambda a, b: None, identity=None, name="items")
    window = Fiba(items, min_arity=2)
    n = 2000
    window.bulk_insert([Item() for _ in range(n)], range(n))
    window.bulk_evict(n - 11)
    assert Item.alive > n - 40  # few are gone at once
    kept, operations = Item.alive, 0
    while Item.alive > 40:
        window.insert(Item(), n + operations)
        window.evict()
        operations += 1
        window.check()
        assert Item.alive >= kept - 60 * operations
        assert operations < n  # but they are given back in time
    window.clear()
    assert Item.alive <= 1  # the last item that was read


def test_memory_waits_for_reuse_only_as_long_as_the_window_is_as_large():
    window = Fiba(free_monoid(), min_arity=2)
    window.bulk_insert(range(500), range(500))
    window.bulk_evict(99)  # 100 entries wait, 400 are there: kept for the next inserts
    window.bulk_insert(range(500, 600), range(500, 600))
    window.check()
    window.bulk_evict(590)
    for t in range(600, 900):
        window.insert(t, t)
        window.evict()
        window.check()  # which counts what waits
