"""One window per key, and the reorder buffer."""

import functools
import random

import numpy as np
import pytest

from sash import agg, swag
from sash.swag import BlockFiba, Coarse, DabaLite, Fiba, Keyed, Reordered
from sash.swag.algorithms import ALGORITHMS
from tests.oracles import free_monoid


@pytest.mark.parametrize("make", [DabaLite, Fiba])
def test_every_key_has_a_window_of_its_own(make):
    rng = random.Random(5)
    keyed, alone = Keyed(lambda: make(free_monoid())), {}
    times = sorted(rng.sample(range(1000), 300))
    for t in times:
        key = rng.choice("abc")
        keyed.insert(key, t, t)
        alone.setdefault(key, make(free_monoid())).insert(t, t)
    assert {key: keyed.query(key) for key in keyed} == {key: w.query() for key, w in alone.items()}
    keyed.bulk_evict(500)
    for w in alone.values():
        w.bulk_evict(500)
    assert {key: keyed.query(key) for key in keyed} == {key: w.query() for key, w in alone.items()}


def test_insert_many_equals_one_at_a_time():
    keys, values, times = np.array([1, 2, 1, 1]), np.array([1.5, 2.5, 3.5, 4.5]), np.array([10, 11, 12, 13])
    many, single = Keyed(lambda: DabaLite(agg.sum())), Keyed(lambda: DabaLite(agg.sum()))
    many.insert_many(keys, values, times)
    for k, v, t in zip(keys.tolist(), values.tolist(), times.tolist(), strict=True):
        single.insert(k, v, t)
    assert [many.query(k) for k in (1, 2)] == [single.query(k) for k in (1, 2)] == [9.5, 2.5]


def test_insert_many_sorts_for_windows_of_any_order():
    keyed = Keyed(lambda: Fiba(free_monoid()))
    keyed.insert_many(["a", "a", "a"], [1, 2, 3], [30, 10, 20])
    assert keyed.query("a") == (2, 3, 1)


def test_keys_without_entries_go_and_answer_empty():
    keyed = Keyed(lambda: DabaLite(agg.max()))
    keyed.insert("a", 4, 1)
    assert ("a" in keyed, len(keyed), keyed.query("b")) == (True, 1, None)
    keyed.evict("a")
    assert ("a" in keyed, len(keyed), keyed.query("a")) == (False, 0, None)
    with pytest.raises(IndexError, match="'a' has no entries"):
        keyed.evict("a")


def test_bad_input_changes_nothing():
    keyed = Keyed(lambda: DabaLite(agg.sum()))
    for arguments, words in (((["a"], [1, 2]), "2 values but 1 keys"), ((["a"], [1], [1, 2]), "1 values but 2 times")):
        with pytest.raises(ValueError, match=words):
            keyed.insert_many(*arguments)
    with pytest.raises(TypeError):
        keyed.insert("a", "text", object())
    with pytest.raises(TypeError, match="makes no windows"):
        Keyed(DabaLite(agg.sum()))
    assert len(keyed) == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_reorder_buffer_counts_the_waiting_items(seed):
    rng = random.Random(seed)
    w, entries, now = Reordered(free_monoid(), max_delay=5), [], 0
    for i in range(200):
        choice = rng.random()
        if choice < 0.6:
            now += rng.randint(0, 3)
            t = now - rng.randint(0, 4)
            if entries and len(w) and t < w.oldest:
                continue
            w.insert((t, i), t)
            entries = sorted([*entries, (t, i)])
        elif choice < 0.8 and entries:
            w.evict()
            entries.pop(0)
        elif choice < 0.9:
            bound = now - rng.randint(0, 8)
            w.bulk_evict(bound)
            entries = [e for e in entries if e[0] > bound]
        elif choice < 0.95:
            w = Reordered.from_bytes(w.to_bytes(), w.aggregation)
        assert w.query() == tuple(entries), seed
        w.check(entries)


def test_windows_around_windows_answer_by_key_too():
    k = Keyed(lambda: Coarse(BlockFiba(agg.sum()), grain=10))
    k.insert_many(["a", "b", "a"], [1, 2, 4], [19, 3, 2])
    assert (k.query("a"), k.query("b"), k.query("a", 0, 9), k.query("nobody")) == (5, 2, 4, 0)


def test_unsorted_columns_go_to_every_algorithm_that_takes_any_order():
    for entry in ALGORITHMS.values():
        if not entry.in_order:
            options = {"max_delay": 9} if entry.needs_delay else {}
            k = Keyed(functools.partial(getattr(swag, entry.name), agg.median(), **options))
            k.insert_many(["a", "a", "b", "a"], [5.0, 1.0, 7.0, 3.0], [3, 1, 2, 2])
            assert (k.query("a"), k.query("b")) == (3.0, 7.0), entry.name
