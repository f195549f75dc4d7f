"""A delta that is merged twice counts once, also after bytes and copies."""

from __future__ import annotations

import copy
import pickle
import random

import pytest

from sash import agg
from sash.wheel import KeyedWheels, Wheel


def plain(items=(), until=600):
    w = Wheel(agg.sum(), unit="s", dtype="int64")
    for _, value, time in items:
        w.insert(value, time)
    w.advance_to(until)
    return w


def keyed(items=(), until=600):
    w = KeyedWheels(agg.sum(), unit="s", dtype="int64")
    for key, value, time in items:
        w.insert(key, value, time)
    w.advance_to(until)
    return w


def total(w):
    return w.landmark() if isinstance(w, Wheel) else w.landmark_all()


@pytest.mark.parametrize("make", [plain, keyed])
@pytest.mark.parametrize("seed", range(3))
def test_deltas_that_come_twice_or_again_after_a_restart_count_once(make, seed):
    rng = random.Random(seed)
    deltas = [
        (source, number, [(rng.choice("xyz"), rng.randint(1, 9), rng.randint(0, 599)) for _ in range(5)])
        for source in ("a", "b", "c")
        for number in range(4)
    ]
    whole = make()
    for k, (source, number, items) in enumerate(deltas):
        assert whole.merge(make(items), source=source, sequence=number)
        if k % 3 == 1:
            whole = type(whole).from_bytes(whole.to_bytes(), agg.sum())
        elif k % 3 == 2:
            whole = rng.choice([copy.copy, lambda w: pickle.loads(pickle.dumps(w))])(whole)
        for back in range(min(k, 3) + 1):  # this one again, and some before it
            again, at, rows = deltas[k - back]
            assert not whole.merge(make(rows), source=again, sequence=at)
        assert total(whole) == sum(v for *_, rows in deltas[: k + 1] for _, v, _ in rows)


@pytest.mark.parametrize("make", [plain, keyed])
def test_a_merge_without_a_source_counts_every_time(make):
    whole, delta = make(), make([("x", 5, 10)])
    assert whole.merge(delta)
    assert whole.merge(delta)
    assert total(whole) == 10


@pytest.mark.parametrize("make", [plain, keyed])
def test_what_was_merged_into_a_delta_counts_as_merged(make):
    first, through, whole = make([("x", 5, 10)]), make(), make()
    through.merge(first, source="a", sequence=7)
    whole.merge(through, source="relay", sequence=1)
    assert not whole.merge(first, source="a", sequence=7)
    assert total(whole) == 5


@pytest.mark.parametrize("make", [plain, keyed])
@pytest.mark.parametrize(
    ("named", "words"),
    [({"source": "a"}, "is not a number"), ({"sequence": 3}, "does not name a source"), ({"source": 4, "sequence": 1}, "does not name")],
)
def test_a_source_needs_a_name_and_its_deltas_numbers(make, named, words):
    whole = make()
    with pytest.raises(TypeError, match=words):
        whole.merge(make([("x", 5, 10)]), **named)
    assert total(whole) in (0, None)


@pytest.mark.parametrize("make", [plain, keyed])
def test_a_merge_that_is_refused_is_not_remembered(make):
    whole = make()
    with pytest.raises(ValueError, match="grain"):
        whole.merge(type(whole)(agg.sum(), unit="s", grain="1m", dtype="int64"), source="a", sequence=1)
    assert whole.merge(make([("x", 5, 10)]), source="a", sequence=1)
