"""OrderStatistics in lockstep with brute force, and its limits."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle
import random

import numpy as np
import pytest

import sash
from sash import agg
from sash.swag import DabaLite, OrderStatistics
from tests.oracles import Brute, close, fold

MEDIAN_LIKE = [
    agg.median(),
    agg.quantile(0.9),
    agg.quantile(0.3, interpolation="nearest"),
    agg.quantile(0.5, interpolation="floor"),
    agg.quantile(0.7, interpolation="averaged_inverted_cdf"),
    agg.ith_smallest(3),
    agg.distinct(),
]


def name_of(a):
    return "-".join([a.name, *(str(v) for _, v in a.params)])


@pytest.mark.parametrize("a", MEDIAN_LIKE, ids=name_of)
@pytest.mark.parametrize("kind", ["ints", "floats", "few"])
@pytest.mark.parametrize("seed", [1, 2])
def test_lockstep_with_brute_force_in_any_order(a, kind, seed):
    rng = random.Random(f"{name_of(a)} {kind} {seed}")
    w, held, now = OrderStatistics(a), Brute("keep"), 0
    for step in range(400):
        now += rng.randrange(4)
        t = now - rng.choice([0, 0, 0, 1, 5, 40])
        v = {
            "ints": rng.randrange(-(2**62), 2**62),
            "floats": rng.gauss(0, 1),
            "few": rng.choice([1.0, -0.0, 0.0, math.nan, None, 7.0]),
        }[kind]
        w.insert(v, t)
        held.insert(v, t)
        dice = rng.random()
        if dice < 0.25 and len(held):
            held.evict()
            w.evict()
        elif dice < 0.3:
            gone = rng.choice(held.times() or [0])
            assert w.evict(gone) == held.evict(gone)
        elif dice < 0.33:
            held.bulk_evict(now - 60)
            w.bulk_evict(now - 60)
        assert len(w) == len(held)
        assert (w.oldest, w.youngest) == ((held.times()[0], held.times()[-1]) if len(held) else (None, None))
        if step % 5 == 0:
            assert close(w.query(), fold(a, held.values())), step
            w.check(held.values())


def test_a_large_tree_splits_borrows_and_joins():
    rng = np.random.default_rng(7)
    values = rng.integers(0, 5000, 20_000)
    w = OrderStatistics(agg.ith_smallest(1))
    w.bulk_insert(values)
    w.check(values.tolist())
    assert [w.query(arg=i) for i in (1, 777, 20_000)] == np.sort(values)[[0, 776, 19_999]].tolist()
    for left in (9000, 300, 40, 1):
        w.bulk_evict(20_000 - left - 1)
        w.check(values[-left:].tolist())
        assert w.query(arg=left) == values[-left:].max()
    w.evict()
    assert w.query() is None
    assert len(w) == 0


def test_the_same_as_every_other_window():
    values = np.random.default_rng(1).normal(size=300).round(1)
    for a in MEDIAN_LIKE:
        one, other = OrderStatistics(a), DabaLite(a)
        for i, v in enumerate(values.tolist()):
            for w in (one, other):
                w.insert(v)
                if i >= 20:
                    w.evict()
            assert close(one.query(), other.query())


def test_integers_stay_exact_until_a_float_promotes_the_window():
    w = OrderStatistics(agg.ith_smallest(1))
    w.insert(2**62 + 1)
    assert (w.dtype, w.query()) == ("int64", 2**62 + 1)
    w.insert(0.5)
    assert (w.dtype, w.query(), w.query(arg=2)) == ("float64", 0.5, float(2**62 + 1))
    w.check([2**62 + 1, 0.5])
    assert OrderStatistics(agg.median(), dtype="float64").dtype == "float64"


def test_nulls_are_entries_without_a_value():
    w = OrderStatistics(agg.median())
    w.bulk_insert([None, 4, None, 6])
    assert (len(w), w.query()) == (4, 5.0)
    w.evict()
    w.evict()
    assert (len(w), w.query()) == (2, 6.0)
    assert w.items() == [(2, None), (3, 6.0)]


def test_parameters_of_the_query():
    w = OrderStatistics(agg.median())
    w.bulk_insert([1, 2, 3, 4, 5])
    assert [w.query(arg=q) for q in (0, 0.25, 1)] == [1.0, 2.0, 5.0]
    with pytest.raises(ValueError, match="arg=7 is not a quantile"):
        w.query(arg=7)
    with pytest.raises(TypeError, match="takes no arg"):
        OrderStatistics(agg.distinct()).query(arg=1)


def test_bytes_pickles_copies_and_merges():
    a = agg.quantile(0.25)
    w = OrderStatistics(a)
    w.bulk_insert([5, 1.5, 3], times=[10, 20, 30])
    again = OrderStatistics.from_bytes(w.to_bytes(), a)
    for other in (again, pickle.loads(pickle.dumps(w)), copy.copy(w), copy.deepcopy(w)):
        assert other.query() == w.query()
        other.insert(0, 15)
        assert len(other) == 4
        other.check([5, 0, 1.5, 3])
    assert len(w) == 3
    more = OrderStatistics(a)
    more.bulk_insert([9.0, 8.0], times=[5, 25])
    more.merge(w)
    assert [t for t, _ in more.items()] == [5, 10, 20, 25, 30]
    more.check([9.0, 5, 1.5, 8.0, 3])
    with pytest.raises(ValueError, match="damaged"):
        OrderStatistics.from_bytes(w.to_bytes()[:-1], a)
    with pytest.raises(ValueError, match="another definition"):
        OrderStatistics.from_bytes(w.to_bytes(), agg.median())


def test_times_may_be_left_out_floats_or_dates():
    w = OrderStatistics(agg.median())
    w.bulk_insert([1, 2, 3])
    assert (w.oldest, w.youngest) == (0, 2)
    with pytest.raises(ValueError, match="earlier ones had none"):
        w.insert(1, 7)
    w = OrderStatistics(agg.median())
    w.insert(1, 2.5)
    w.insert(2, 1.5)
    assert (w.oldest, w.youngest) == (1.5, 2.5)
    w = OrderStatistics(agg.median())
    w.insert(1, dt.datetime(1970, 1, 1, 0, 0, 1))
    assert w.oldest == 1_000_000


def test_what_it_does_not_take_is_refused():
    for a in (agg.sum(), agg.top_k(2), agg.struct(m=agg.median())):
        with pytest.raises(TypeError, match=r"is not median-like.*use .*DabaLite"):
            OrderStatistics(a)
    with pytest.raises(TypeError, match="is not median-like"):
        OrderStatistics(agg.define(lift=lambda x: x, combine=max, identity=0, name="median"))
    w = OrderStatistics(agg.median())
    w.insert(1)
    with pytest.raises(TypeError, match="takes numbers"):
        w.insert("x")
    assert (len(w), w.query()) == (1, 1.0)
    with pytest.raises(TypeError, match="whole window only"):
        w.query(0, 1)
    w.evict()
    with pytest.raises(IndexError, match="nothing to evict"):
        w.evict()


def test_the_planner_picks_it_for_numbers():
    assert type(sash.window(agg.median())).__name__ == "OrderStatistics"
    assert type(sash.window(agg.median(), in_order=False)).__name__ == "OrderStatistics"
    assert type(sash.window(agg.median(dtype="object"))).__name__ != "OrderStatistics"


# --- slide() by rank


RANKED = [*MEDIAN_LIKE, agg.top_k(3), agg.bottom_k(2), agg.ith_smallest(1), agg.quantile(1.0, interpolation="lower")]


def brute_slide(a, values, lows, highs):
    return [fold(a, values[lo:hi]) for lo, hi in zip(lows, highs, strict=True)]


def same(found, expected):
    found = [None if isinstance(x, float) and x != x else x for x in found.tolist()]
    expected = [None if isinstance(x, float) and x != x else x for x in expected]
    return close(found, expected)


@pytest.mark.parametrize("a", RANKED, ids=name_of)
@pytest.mark.parametrize("kind", ["ints", "floats", "few"])
def test_slides_by_count_and_time_agree_with_brute_force(a, kind):
    rng = random.Random(f"{name_of(a)} {kind}")
    for n, size in ((1, 1), (40, 1), (60, 7), (60, 200)):
        values = {
            "ints": [rng.randrange(-9, 9) for _ in range(n)],
            "floats": [rng.gauss(0, 1) for _ in range(n)],
            "few": [rng.choice([1.0, math.nan, None, 2.0, -0.0, math.inf]) for _ in range(n)],
        }[kind]
        places = range(1, n + 1)
        found = sash.slide(values, agg=a, size=size)
        assert same(found, brute_slide(a, values, [max(0, i - size) for i in places], places))
        times = sorted(rng.randrange(n) for _ in range(n))
        for closed in ("right", "left", "both", "neither"):

            def inside(t, end, closed=closed, size=size):
                return (end - size < t or (t == end - size and closed in ("left", "both"))) and (
                    t < end or (t == end and closed in ("right", "both"))
                )

            expected = [fold(a, [v for v, t in zip(values, times, strict=True) if inside(t, end)]) for end in times]
            assert same(sash.slide(values, agg=a, times=times, period=size, closed=closed), expected), (n, size, closed)
            as_floats = [float(t) for t in times]
            assert same(sash.slide(values, agg=a, times=as_floats, period=float(size), closed=closed), expected)


def test_long_slides_cross_stretches_and_threads():
    rng = np.random.default_rng(3)
    n = 600_000
    values = rng.normal(size=n)
    values[: n // 3] = np.sort(values[: n // 3])  # a trend, then noise
    times = np.cumsum(rng.integers(0, 3, n))
    for a, picked in ((agg.median(), np.median), (agg.distinct(), len), (agg.top_k(2), lambda v: np.sort(v)[::-1][:2].tolist())):
        by_count, by_time = sash.slide(values, agg=a, size=1000), sash.slide(values, agg=a, times=times, period=900)
        for i in [*range(0, n, 30_011), n // 2 - 1, n // 2, n // 2 + 1, n - 1]:
            assert close(by_count[i], picked(values[max(0, i - 999) : i + 1]))
            lo, hi = np.searchsorted(times, [times[i] - 900, times[i]], side="right")
            assert close(by_time[i], picked(values[lo:hi]))


def test_slides_by_key_and_by_arrival():
    values, keys = [5, 1, 4, 2, 3, 9], ["a", "b", "a", "b", "a", "b"]
    assert sash.slide(values, agg=agg.median(), size=2, by=keys).tolist() == [5.0, 1.0, 4.5, 1.5, 3.5, 5.5]
    assert sash.slide(values, agg=agg.top_k(2), size=3, by=keys).tolist() == [[5], [1], [5, 4], [2, 1], [5, 4], [9, 2]]
    found = sash.slide([1, 9, 5], agg=agg.median(), times=[10, 20, 12], period=10, order="arrival")
    assert found.tolist() == [1.0, 9.0, 7.0]
    found = sash.slide([1, 9, 5], agg=agg.median(), times=[10, 20, 12], period=10, order="arrival", closed="left")
    assert close(found.tolist(), [math.nan, 1.0, 3.0])


def test_neighbouring_lists_share_numbers_and_nothing_else():
    nan = float("nan")
    found = sash.slide([3.0, 1.0, nan, 2.0, 2.0], agg=agg.top_k(2), size=2)
    assert repr(found.tolist()) == "[[3.0], [3.0, 1.0], [nan, 1.0], [nan, 2.0], [2.0, 2.0]]"
    found[0].append(9)
    assert found[1] == [3.0, 1.0]


def test_types_of_slides():
    ints = [3, 1, 2]
    for a, kind in [
        (agg.median(), "f"),
        (agg.distinct(), "i"),
        (agg.ith_smallest(1), "i"),
        (agg.ith_smallest(2), "f"),
        (agg.quantile(0.5, interpolation="lower"), "i"),
        (agg.top_k(1), "O"),
    ]:
        assert sash.slide(ints, agg=a, size=2).dtype.kind == kind, a
        assert sash.slide([], agg=a, size=2).dtype.kind in (kind, "O")
    assert sash.slide(ints, agg=agg.top_k(1), size=2).tolist() == [[3], [3], [2]]
    assert sash.slide(["b", "a"], agg=agg.quantile(0.5, interpolation="lower"), size=2).tolist() == ["b", "a"]
