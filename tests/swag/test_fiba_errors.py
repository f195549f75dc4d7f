"""Fiba and BTree: callables that raise, and arguments that are refused."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from sash import agg
from sash.errors import BrokenWindow
from sash.swag import Fiba
from tests.oracles import Brute

ARITIES = [2, 4, 8, 16]

# --- callables that raise


def test_a_callable_that_raises_leaves_the_window_as_it_was_or_broken_until_clear():
    armed = [False, 0]

    def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if armed[0]:
            armed[1] -= 1
            if armed[1] < 0:
                raise KeyError("armed")
        return a + b

    fragile = agg.define(lift=lambda x: (x,), combine=combine, identity=(), name="fragile")
    rng = random.Random(9)
    window, brute = Fiba(fragile, min_arity=4), Brute("combine")
    kept = broken = 0
    for step in range(1500):
        before = copy.deepcopy(brute.entries)
        armed[:] = [rng.random() < 0.3, rng.randrange(12)]
        now = max(brute.times(), default=0)
        try:
            kind = rng.random()
            if kind < 0.6:
                time = now + 1 if rng.random() < 0.6 else now - rng.randrange(40)
                brute.insert(step, time)
                window.insert(step, time)
            elif kind < 0.7 and len(brute):
                brute.evict()
                window.evict()
            elif kind < 0.8:
                time = now - rng.randrange(40)
                brute.evict(time)
                window.evict(time)
            elif kind < 0.9:
                time = now - rng.randrange(20, 80)
                brute.bulk_evict(time)
                window.bulk_evict(time)
            else:
                times = sorted(now - rng.randrange(-5, 40) for _ in range(10))
                for time in times:
                    brute.insert(step, time)
                window.bulk_insert([step] * 10, times)
        except KeyError:
            armed[0] = False
            try:
                window.query()
                brute.entries = before
                kept += 1
            except BrokenWindow:
                with pytest.raises(BrokenWindow, match="armed"):
                    window.insert(1, 1)
                window.clear()
                brute = Brute("combine")
                broken += 1
        armed[0] = False
        window.check()
        assert window.query() == tuple(brute.values())
    assert kept > 20
    assert broken > 20


def test_an_insert_in_order_and_an_evict_of_the_oldest_undo_themselves():
    fails = [False]

    def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if fails[0]:
            raise ZeroDivisionError
        return a + b

    window = Fiba(agg.define(lift=lambda x: (x,), combine=combine, identity=(), name="failing"), min_arity=4)
    for t in range(50):
        window.insert(t, t)
    for operation in (lambda: window.insert(50, 50), lambda: window.insert(9, 49), lambda: window.evict(), lambda: window.evict(0)):
        fails[0] = True
        with pytest.raises(ZeroDivisionError):
            operation()
        fails[0] = False
        window.check()
        assert window.query() == tuple(range(50))


# --- arguments


@pytest.mark.parametrize("arity", [1, 3, -3, 5000])
def test_min_arity_out_of_bounds_is_a_value_error(arity):
    with pytest.raises(ValueError, match="min_arity"):
        Fiba(agg.sum(), min_arity=arity)


def test_unsorted_batches_are_refused_or_sorted():
    window = Fiba(agg.collect(), min_arity=2)
    with pytest.raises(ValueError, match="sort"):
        window.bulk_insert([1, 2, 3], [5, 4, 6])
    assert len(window) == 0
    window.bulk_insert([1, 2, 3, 4], [5, 4, 6, 5], sort=True)
    assert window.items() == [(4, [2]), (5, [1, 4]), (6, [3])]


def test_damaged_entries_are_refused():
    window = Fiba(agg.sum())
    window.bulk_insert([1, 2, 3], [1, 2, 3])
    data = bytearray(window.to_bytes())
    for i in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[i] ^= 0x41
        with pytest.raises(ValueError, match=r"damaged|other|definition|bytes|window"):
            Fiba.from_bytes(bytes(damaged), agg.sum())
