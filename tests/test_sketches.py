"""Sketches: within the error they state, on a million items."""

from __future__ import annotations

import collections
import math
import random

import numpy as np

from sash import agg
from sash.swag import DabaLite, Fiba
from tests.oracles import fold

MILLION = 1_000_000


def tree(a, items):
    """Combine many items pair by pair, as the trees of windows do."""
    parts = [a.lift(x) for x in items]
    while len(parts) > 1:
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [a.combine(x, y) for x, y in zip(parts[::2], parts[1::2], strict=False)] + odd
    return parts[0]


def test_approx_distinct_is_within_its_error():
    a = agg.approx_distinct()
    items = np.random.default_rng(1).integers(0, 400_000, MILLION).tolist()
    truth = len(set(items))
    assert abs(a.lower(tree(a, items)) - truth) <= 3 * 1.04 / math.sqrt(2**12) * truth


def test_approx_quantile_is_within_its_error():
    a = agg.approx_quantile(0.5)
    items = np.random.default_rng(2).normal(size=MILLION)
    p, items = tree(a, items.tolist()), np.sort(items)
    for q in (0.01, 0.25, 0.5, 0.9, 0.99):
        rank = np.searchsorted(items, a.lower(p, q)) / MILLION
        assert abs(rank - q) <= 1.5 * 0.0133  # 99% for one q; several are asked here


def test_frequent_items_are_within_their_error():
    a = agg.frequent_items()
    items = np.minimum(np.random.default_rng(3).zipf(1.3, MILLION), 10**6).tolist()
    truth = collections.Counter(items)
    found = dict(a.lower(tree(a, items)))
    error = 3.5 / 2**10 * MILLION
    assert all(item in found for item, n in truth.items() if n > error)
    assert all(abs(count - truth[item]) <= error for item, count in found.items())


def test_count_min_is_within_its_error():
    a = agg.count_min()
    items = np.minimum(np.random.default_rng(4).zipf(1.3, MILLION), 10**6).tolist()
    truth = collections.Counter(items)
    p = tree(a, items)
    assert a.lower(p) == MILLION
    asked = list(truth.items())[:2000]
    over = [a.lower(p, item) - n for item, n in asked]
    assert min(over) >= 0
    assert sum(o > 0.01 * MILLION for o in over) <= 0.02 * len(asked)


def test_bloom_is_within_its_error():
    a = agg.bloom(bits=2**14)
    items = random.Random(5).sample(range(-(10**9), 10**9), 2000)
    w = Fiba(a)
    for _ in range(MILLION // len(items)):
        w.bulk_insert(items, times=np.zeros(len(items), np.int64))  # one entry
    assert all(w.query(arg=x) for x in items)
    expected = (1 - math.exp(-4 * 2000 / 2**14)) ** 4
    wrong = sum(w.query(arg=x) for x in range(2 * 10**9, 2 * 10**9 + 20_000)) / 20_000
    assert wrong <= 1.5 * expected
    assert abs(w.query() - 2000) <= 0.1 * 2000


def test_equal_numbers_are_one_item_to_sketches():
    for a in (agg.approx_distinct(), agg.distinct(), agg.bloom()):
        assert fold(a, [1, 1.0, True, 2]) == 2


def test_bloom_is_the_same_native_and_in_python():
    rng = random.Random(3)
    items = [rng.choice([rng.randrange(-50, 50), rng.uniform(-9, 9), math.nan, math.inf, 2.0**70, None]) for _ in range(300)]
    native, python = DabaLite(agg.bloom(bits=500, hashes=3)), DabaLite(agg.bloom(bits=500, hashes=3, dtype="object"))
    for w in (native, python):
        for x in items:
            w.insert(x)
        for _ in range(200):
            w.evict()
    assert native.dtype == "float64"
    assert python.dtype == "object"
    assert native.query() == python.query()
    asked = [x for x in items if x is not None] + list(range(100))
    assert [native.query(arg=x) for x in asked] == [python.query(arg=x) for x in asked]
    assert all(native.query(arg=x) for x in items[200:] if x is not None)


def test_kll_sketches_do_not_depend_on_chance_nor_on_the_order_of_two():
    a = agg.approx_quantile(0.9)
    rng = np.random.default_rng(6)
    parts = [tree(a, rng.normal(size=n).tolist()) for n in (3, 60, 900, 5000, 40_000)]
    for x in parts:
        for y in parts:
            assert a.combine(x, y) == a.combine(x, y)
            if isinstance(x, bytes) or isinstance(y, bytes):
                assert a.lower(a.combine(x, y)) == a.lower(a.combine(y, x))


def test_kll_sketches_are_those_of_datasketches():
    import datasketches

    from sash.agg.kll import Kll

    for n in (0, 1, 2, 199, 200, 201, 1_000, 30_000):
        items = np.random.default_rng(n).normal(size=n)
        ours, theirs = Kll(200), datasketches.kll_doubles_sketch(200)
        for x in items.tolist():
            ours.update(x)
            theirs.update(x)
        if n <= 200:  # nothing is dropped
            assert ours.serialize() == theirs.serialize()
        back = datasketches.kll_doubles_sketch.deserialize(ours.serialize())
        assert back.n == n
        taken = Kll.deserialize(theirs.serialize())
        taken.merge(ours)
        assert datasketches.kll_doubles_sketch.deserialize(taken.serialize()).n == 2 * n
        for q in (0.1, 0.5, 0.9) if n > 200 else ():
            assert abs((items < back.get_quantile(q)).mean() - q) < 0.02


def test_damaged_kll_bytes_are_refused():
    from sash.agg.kll import Kll

    sketch = Kll(200)
    for x in range(5_000):
        sketch.update(float(x))
    whole = sketch.serialize()
    for cut in range(0, len(whole) - 1, 97):
        with np.testing.assert_raises(ValueError):
            Kll.deserialize(whole[:cut])
