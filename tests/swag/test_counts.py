"""What each algorithm promises in combines, counted; and that no operation of DABA ever costs more than a chunk."""

from __future__ import annotations

import ctypes
import math
import random

import numpy as np
import pytest

from sash import agg, swag
from tests.swag.in_order import ALL, counting, name_of

N = 512


class Meter:
    """Counts the combines of single operations."""

    def __init__(self, algorithm):
        self.calls = [0]
        self.window = algorithm(counting(self.calls, algorithm))
        self.spent = {"insert": [], "evict": [], "query": [], "bulk_evict": []}

    def __getattr__(self, name):
        def operation(*args):
            before = self.calls[0]
            result = getattr(self.window, name)(*args)
            self.spent[name].append(self.calls[0] - before)
            return result

        return operation

    def most(self, name):
        return max(self.spent[name])

    def mean(self, name):
        return sum(self.spent[name]) / len(self.spent[name])


def slide(algorithm, n=N, rounds=4 * N, values=None):
    """Fill a window, then evict, insert and query, as in the papers."""
    meter = Meter(algorithm)
    rng = random.Random(0)
    value = values or (lambda i: rng.randrange(100))
    for i in range(n):
        meter.insert(value(i))
    for i in range(rounds):
        meter.evict()
        meter.insert(value(n + i))
        meter.query()
    return meter


@pytest.mark.parametrize("algorithm", [swag.TwoStacks, swag.TwoStacksLite], ids=name_of)
def test_two_stacks_theorems_3_and_7(algorithm):
    meter = slide(algorithm)
    assert set(meter.spent["insert"]) == {1}
    assert set(meter.spent["query"]) == {1}
    assert meter.most("evict") == N - 1
    assert meter.mean("evict") <= 1


def test_daba_theorem_10():
    meter = slide(swag.Daba)
    assert meter.most("insert") == 4
    assert meter.most("evict") == 3
    assert set(meter.spent["query"]) == {1}
    fixups = sum(meter.spent["insert"]) - len(meter.spent["insert"]) + sum(meter.spent["evict"])
    operations = len(meter.spent["insert"]) + len(meter.spent["evict"])
    assert 1.45 < fixups / operations <= 1.5
    assert meter.mean("insert") == pytest.approx(2.5, rel=0.02)
    assert meter.mean("evict") == pytest.approx(1.5, rel=0.02)


def test_daba_lite_theorem_13():
    meter = slide(swag.DabaLite)
    assert meter.most("insert") == 3
    assert meter.most("evict") == 2
    assert set(meter.spent["query"]) == {1}
    assert meter.mean("insert") == pytest.approx(2, rel=0.02)
    assert meter.mean("evict") == pytest.approx(1, rel=0.02)


def test_recalc_combines_at_queries_only():
    meter = slide(swag.Recalc, n=64, rounds=64)
    assert meter.most("insert") == meter.most("evict") == 0
    assert set(meter.spent["query"]) == {63}


def test_subtract_on_evict_needs_one_combine_and_one_inverse():
    meter = slide(swag.SubtractOnEvict)
    assert set(meter.spent["insert"]) == set(meter.spent["evict"]) == {1}
    assert set(meter.spent["query"]) == {0}


def test_flat_fit_is_amortised_at_queries():
    meter = slide(swag.FlatFit)
    assert meter.most("insert") == meter.most("evict") == 0
    assert meter.most("query") == N - 1
    assert meter.mean("query") <= 3.3


def test_flat_fat_costs_the_height_of_its_tree():
    height = int(math.log2(N))
    meter = Meter(swag.FlatFat)
    for i in range(N):
        meter.insert(i)
    growth = sum(meter.spent["insert"])
    assert growth <= N * height + 2 * N
    meter.spent["insert"].clear()
    for i in range(2 * N):
        meter.evict()
        meter.insert(i)
        meter.query()
    assert meter.most("insert") <= height
    assert meter.most("evict") <= height
    assert meter.most("query") <= 2 * height


def test_b_int_inserts_in_one_and_queries_in_log_n():
    meter = slide(swag.BInt)
    assert meter.mean("insert") <= 1
    assert meter.most("insert") <= math.log2(N) + 1
    assert meter.most("evict") == 0
    assert meter.most("query") <= 2 * math.log2(N)
    for first, last in [(0, 0), (3, 300), (255, 257), (1, N - 2)]:
        before, oldest = meter.calls[0], meter.window.oldest
        meter.window.query(oldest + first, oldest + last)
        assert meter.calls[0] - before <= 2 * math.log2(last - first + 2)


def test_amta_is_amortised_and_logarithmic_at_worst():
    meter = slide(swag.Amta)
    assert meter.mean("insert") <= 2
    assert meter.mean("evict") <= 1
    assert meter.most("insert") <= math.log2(N) + 2
    assert meter.most("evict") <= 2 * math.log2(N)
    assert meter.most("query") <= 1


def test_amta_evicts_any_number_in_log_n():
    meter, rng = Meter(swag.Amta), random.Random(3)
    for i in range(5000):
        meter.insert(i)
    while len(meter.window):
        meter.bulk_evict(meter.window.oldest + rng.randrange(600))
    assert meter.most("bulk_evict") <= 2 * math.log2(5000)


@pytest.mark.parametrize("values", [None, lambda i: i, lambda i: -i, lambda i: 7], ids=["random", "rising", "falling", "equal"])
def test_monotonic_deque_chooses_twice_per_item(values):
    meter = slide(swag.MonotonicDeque, values=values)
    assert meter.mean("insert") <= 2
    assert meter.most("evict") == meter.most("query") == 0


@pytest.mark.parametrize("algorithm", ALL, ids=name_of)
def test_lift_once_per_insert_and_lower_once_per_query(algorithm):
    lifted, lowered = [], []

    def lift(x):
        lifted.append(x)
        return x

    def lower(p):
        lowered.append(p)
        return p

    window = algorithm(agg.define(lift=lift, combine=max, inverse=lambda w, o: w, lower=lower, identity=-1, selective=True))
    for i in range(100):
        window.insert(i)
        window.query()
        if i >= 10:
            window.evict()
    assert lifted == list(range(100))
    assert len(lowered) == 100


@pytest.mark.parametrize(("algorithm", "insert", "evict"), [(swag.Daba, 4, 3), (swag.DabaLite, 3, 2)])
def test_the_worst_operation_is_the_same_at_any_size(algorithm, insert, evict):
    # lift comes first in every insert, so the combines between two lifts are those of one insert. (A bulk lifts all of its items first.)
    calls, worst = [0], [0]

    def lift(x):
        calls[0] = 0
        return x

    def combine(a, b):
        calls[0] += 1
        worst[0] = max(worst[0], calls[0])
        return a + b

    window = algorithm(agg.define(lift=lift, combine=combine, identity=0))
    for n in (2**4, 2**10, 2**16, 2**20):
        worst[0] = 0
        for _ in range(n - len(window)):
            window.insert(1)
        assert worst[0] == insert, n
        worst[0] = 0
        for _ in range(min(n // 2, 50_000)):
            calls[0] = 0
            window.evict()
        assert worst[0] == evict, n


class Heap:
    """Bytes in use, as malloc counts them."""

    def __init__(self):
        class Info(ctypes.Structure):
            _fields_ = [(name, ctypes.c_size_t) for name in ("arena", *"abc", "hblkhd", *"ef", "uordblks", *"gh")]

        self.info = getattr(ctypes.CDLL(None), "mallinfo2", None)
        if self.info is None:
            pytest.skip("counts bytes through glibc's mallinfo2, which is not here")
        self.info.restype = Info
        if self.used() == 0:
            pytest.skip("another allocator stands in for glibc's (a sanitizer's), and mallinfo2 does not see it")

    def used(self):
        info = self.info()
        return info.uordblks + info.hblkhd


@pytest.mark.parametrize("algorithm", [swag.Daba, swag.DabaLite], ids=name_of)
def test_no_single_operation_allocates_more_than_a_chunk(algorithm):
    heap, window = Heap(), algorithm(agg.sum(), dtype="float64")
    for k in (4, 8, 12, 16, 20):
        window.bulk_insert(np.ones(max(0, 2**k - 300 - len(window))))
        for _ in range(600):  # across the power of two, where a doubling array would move
            before = heap.used()
            window.insert(1.0)
            assert heap.used() - before < 10_000
    for k in (19, 14, 9):
        window.bulk_evict(window.youngest - 2**k - 300)
        for _ in range(600):
            before = heap.used()
            window.evict()
            assert before - heap.used() < 10_000


@pytest.mark.parametrize("algorithm", ALL, ids=name_of)
def test_memory_is_returned_as_a_window_shrinks(algorithm):
    heap = Heap()
    aggregation = agg.max() if algorithm is swag.MonotonicDeque else agg.sum()
    window = algorithm(aggregation, dtype="int64")
    window.insert(10**6)
    n = 200_000
    values = np.arange(n, 0, -1)  # falling: the monotonic deque can drop none
    before = heap.used()
    window.bulk_insert(values)
    window.query()
    assert heap.used() - before > 8 * n
    window.bulk_evict(window.youngest - 100)
    window.query()
    assert heap.used() - before < 64 * 1024


@pytest.mark.parametrize(
    ("algorithm", "partials"),
    [(swag.TwoStacksLite, 1), (swag.DabaLite, 1), (swag.SubtractOnEvict, 1), (swag.TwoStacks, 2), (swag.Daba, 2)],
    ids=["TwoStacksLite", "DabaLite", "SubtractOnEvict", "TwoStacks", "Daba"],
)
def test_space_in_partials_is_as_published(algorithm, partials):
    # n + 1, n + 2 or 2n: a partial of struct(sum) lies in 64 bytes, of which the queue adds a few per chunk.
    heap, n = Heap(), 100_000
    window = algorithm(agg.struct(a=agg.sum()), dtype="int64")
    before = heap.used()
    for _ in range(n):
        window.insert(1)
    per_item = (heap.used() - before) / n / 64
    assert partials <= per_item < partials * 1.1
