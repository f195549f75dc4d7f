"""Times rounded to slices, in any window."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash import agg
from sash.swag import BlockFiba, BTree, Coarse, DabaLite, Fiba, Recalc
from tests.oracles import free_monoid

GRAIN = 10


@pytest.mark.parametrize("algorithm", [Fiba, BlockFiba, BTree])
@given(times=st.lists(st.integers(-50, 200), min_size=1, max_size=40), cut=st.integers(-60, 210), as_float=st.booleans())
def test_a_slice_is_one_entry_and_leaves_when_it_is_over(algorithm, times, cut, as_float):
    times = [float(t) for t in times] if as_float else times
    w = Coarse(algorithm(free_monoid()), grain=GRAIN)
    for i, t in enumerate(times):
        w.insert(i, t)
    slices: dict[float, tuple[int, ...]] = {}
    for i, t in enumerate(times):
        slices[t // GRAIN * GRAIN] = (*slices.get(t // GRAIN * GRAIN, ()), i)
    assert len(w) == len(slices)
    assert [(t, tuple(v)) for t, v in w.items()] == sorted(slices.items())
    w.bulk_evict(float(cut) if as_float else cut)
    last = 0 if as_float else 1  # a slice of integers ends one before the next
    stay = {s: items for s, items in slices.items() if s + GRAIN > cut + last}
    assert w.query() == sum((stay[s] for s in sorted(stay)), ())


@given(times=st.lists(st.integers(0, 100), min_size=1, max_size=30), a=st.integers(0, 100), b=st.integers(0, 100))
def test_a_range_is_answered_in_whole_slices(times, a, b):
    a, b = min(a, b), max(a, b)
    w = Coarse(BlockFiba(agg.sum()), grain=GRAIN)
    w.bulk_insert(np.ones(len(times), np.int64), np.array(sorted(times)))
    expected = sum(1 for t in times if a // GRAIN <= t // GRAIN <= b // GRAIN)
    assert w.query(a, b) == expected
    assert list(w.query_many([a], [b])) == [expected]


def test_in_order_windows_keep_the_items_of_a_slice_apart_but_drop_them_together():
    for algorithm in (DabaLite, Recalc):
        w = Coarse(algorithm(agg.sum()), grain="1s")
        for t in (0, 400_000, 999_999, 1_000_000):
            w.insert(1, t)
        assert (len(w), w.youngest) == (4, 1_000_000)
        w.bulk_evict(999_998)
        assert len(w) == 4
        w.bulk_evict(999_999)
        assert (len(w), w.query()) == (1, 1)


def test_a_copy_and_an_eviction_by_time():
    w = Coarse(Fiba(agg.sum()), grain=GRAIN)
    w.insert(5, 13)
    copy = pickle.loads(pickle.dumps(w))
    assert copy.query() == 5
    assert copy.evict(19) is True
    assert copy.evict(19) is False
    assert (copy.query(), w.query()) == (0, 5)


def test_bad_input():
    with pytest.raises(TypeError, match="is not a window"):
        Coarse(agg.sum(), grain=1)
    with pytest.raises(ValueError, match="makes no slices"):
        Coarse(Fiba(agg.sum()), grain=0)
