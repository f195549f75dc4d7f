"""ewma against its formula: weights 2 ** (-age / half_life), the age counted from the newest item."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash import agg, slide, window
from sash.arrays import explain_slide
from sash.swag import BlockFiba, BTree, DabaLite, Fiba, FlatFat, Recalc, TwoStacksLite
from sash.wheel import KeyedWheels, Wheel
from tests.oracles import close, disordered_times

HOUR = 3_600_000_000


def decayed_mean(items, half_life):
    """The formula, of (time, value) in any order."""
    there = [(t, x) for t, x in items if x is not None]
    if not there:
        return None
    newest = max(t for t, _ in there)
    weights = [2.0 ** (-(newest - t) / half_life) for t, _ in there]
    return sum(w * x for w, (_, x) in zip(weights, there, strict=True)) / sum(weights)


values = st.lists(st.one_of(st.integers(-9, 9), st.floats(-1e6, 1e6), st.none()), min_size=1, max_size=30)


@given(times=disordered_times(20), half_life=st.integers(1, 100), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_partial_does_not_depend_on_the_order_in_which_items_are_combined(times, half_life, data):
    a = agg.ewma(half_life=half_life)
    items = [(t, data.draw(st.integers(-9, 9))) for t in times]
    shuffled = data.draw(st.permutations(items))
    partials = [a.lift(x, t) for t, x in shuffled]
    while len(partials) > 1:  # in any grouping, too
        at = data.draw(st.integers(0, len(partials) - 2))
        partials[at : at + 2] = [a.combine(partials[at], partials[at + 1])]
    found = a.lower(partials[0]) if partials else a.empty
    assert close(found, decayed_mean(items, half_life))


@pytest.mark.parametrize("make", [Recalc, TwoStacksLite, DabaLite, FlatFat, Fiba, BlockFiba, BTree])
@pytest.mark.parametrize("dtype", [None, "float64", "object"])
@given(values=values, half_life=st.integers(1, 50))
@settings(max_examples=25, deadline=None)
def test_a_window_that_slides_gives_the_formula(make, dtype, values, half_life):
    w = make(agg.ewma(half_life=half_life), dtype=dtype)
    for t, x in enumerate(values):
        w.insert(x, t)
        w.bulk_evict(t - 7)
        assert close(w.query(), decayed_mean(list(enumerate(values))[max(0, t - 6) : t + 1], half_life), 1e-6)


@pytest.mark.parametrize("make", [Fiba, BlockFiba, BTree])
@given(times=disordered_times(40))
@settings(max_examples=25, deadline=None)
def test_late_items_count_by_their_own_age(make, times):
    w = make(agg.ewma(half_life=5), ties="keep") if make is not BTree else make(agg.ewma(half_life=5))
    for i, t in enumerate(times):
        w.insert(i, t)
    items = [(t, i) for i, t in enumerate(times)]
    assert close(w.query(), decayed_mean(items, 5), 1e-6)
    if times:
        low, high = sorted((times[0], times[-1]))
        assert close(w.query(low, high), decayed_mean([(t, i) for t, i in items if low <= t <= high], 5), 1e-6)


@pytest.mark.parametrize("make", [DabaLite, BlockFiba])
def test_float_times_are_measured_as_they_are(make):
    w = make(agg.ewma(half_life=2))
    w.insert(8.0, 0.5)
    w.insert(2.0, 2.5)
    assert close(w.query(), (4 + 2) / 1.5)
    w = make(agg.ewma(half_life=2))
    w.bulk_insert(np.array([8.0, 2.0]), times=np.array([0.5, 2.5]))
    assert close(w.query(), (4 + 2) / 1.5)
    found = slide([8.0, 2.0], agg=agg.ewma(half_life=2), times=[0.5, 2.5], period=10.0)
    assert np.allclose(found, [8.0, 4.0])


@given(values=values, data=st.data())
@settings(max_examples=50, deadline=None)
def test_slide_gives_the_formula_in_every_form(values, data):
    a = agg.ewma(half_life=4)
    keys = [data.draw(st.integers(0, 2)) for _ in values]
    times = np.cumsum([data.draw(st.integers(0, 3)) for _ in values]).tolist()
    items = list(zip(times, values, strict=True))

    def agree(found, expected):
        assert close([None if x != x else x for x in found.tolist()], expected, 1e-6)

    plain = list(enumerate(values))
    agree(slide(values, agg=a, size=5), [decayed_mean(plain[max(0, i - 4) : i + 1], 4) for i in range(len(plain))])
    agree(slide(values, agg=a, times=times, period=6), [decayed_mean([(s, x) for s, x in items if t - 6 < s <= t], 4) for t in times])
    expected = [decayed_mean([(s, x) for (s, x), k in zip(items, keys, strict=True) if k == key and t - 6 < s <= t], 4)
                for t, key in zip(times, keys, strict=True)]  # fmt: skip
    agree(slide(values, agg=a, times=times, period=6, by=keys), expected)


def test_slide_runs_the_kernel():
    assert explain_slide(agg.ewma(half_life=3), size=3).splitlines()[1].endswith("<- chosen")
    assert "array" in explain_slide(agg.ewma(half_life=3), size=3).splitlines()[1]


@pytest.mark.parametrize("half_life", ["1m", dt.timedelta(minutes=1), "60 seconds", 60])
def test_a_wheel_reads_the_half_life_in_its_own_unit(half_life):
    #           0        60        120   half-life 60 s
    # items     9         3
    w = Wheel(agg.ewma(half_life=half_life), unit="s", grain="1s", levels=("1m", "1h"))
    w.insert_many([9.0, 3.0], [0, 60])
    w.advance_to(120)
    assert close(w.query(0, 120), (4.5 + 3) / 1.5)
    assert close(Wheel.from_bytes(w.to_bytes(), agg.ewma(half_life=half_life)).query(0, 120), (4.5 + 3) / 1.5)
    assert close(pickle.loads(pickle.dumps(w)).query(0, 120), (4.5 + 3) / 1.5)
    both = Wheel(agg.struct(e=agg.ewma("v", half_life=half_life), n=agg.count()), unit="s")
    both.insert_many([{"v": 9.0}, {"v": 3.0}], [0, 60])
    both.advance_to(120)
    assert close(both.landmark(), {"e": (4.5 + 3) / 1.5, "n": 2})
    k = KeyedWheels(agg.ewma(half_life=half_life), unit="s")
    k.insert_many(["a", "a", "b"], [9.0, 3.0, 1.0], [0, 60, 0])
    k.advance_to(120)
    assert close(k.query("a", 0, 120), (4.5 + 3) / 1.5)


def test_a_wheel_gives_the_formula_over_any_range():
    w = Wheel(agg.ewma(half_life="90s"), unit="s")
    items = [(t * 7 % 4000, t % 13) for t in range(500)]
    w.insert_many([x for _, x in items], [t for t, _ in items])
    w.advance_to(4000)
    for start, end in [(0, 4000), (17, 23), (59, 3601), (100, 100)]:
        assert close(w.query(start, end), decayed_mean([(t, x) for t, x in items if start <= t < end], 90), 1e-6)


def test_equal_half_lives_are_one_definition():
    hour = agg.ewma("v", half_life="1h")
    assert hour == agg.ewma("v", "60 minutes") == agg.ewma("v", half_life=dt.timedelta(hours=1)) == pickle.loads(pickle.dumps(hour))
    assert hour != agg.ewma("v", half_life="2h")
    assert hour != agg.ewma("v", half_life=HOUR)  # an int is in the unit of the times
    assert repr(hour) == "agg.ewma('v', half_life='1h')"
    assert hour.fingerprint() == agg.ewma("v", "60 minutes").fingerprint() == hour.with_unit(1_000_000).fingerprint()


def test_datetimes_and_text_go_together():
    w = window(agg.ewma(half_life="1h"), in_order=False)
    day = dt.datetime(2024, 5, 1)
    w.insert(8.0, day)
    w.insert(2.0, day + dt.timedelta(hours=1))
    assert close(w.query(), (4 + 2) / 1.5)
    assert close(type(w).from_bytes(w.to_bytes(), agg.ewma(half_life="1h")).query(), 4.0)
    assert close(copy.copy(w).query(), 4.0)


def test_what_has_no_weight_left_is_dropped_and_nan_leaves_with_its_item():
    w = DabaLite(agg.ewma(half_life=1))
    w.insert(math.inf, 0)
    w.insert(1.0, 10_000)
    assert w.query() == 1.0
    w.insert(math.nan, 10_001)
    assert math.isnan(w.query())
    w.bulk_evict(10_001)
    assert w.query() is None
    w = BlockFiba(agg.ewma(half_life=1))
    w.bulk_insert([5.0, 1.0], times=[-(2**63), 2**63 - 1])  # as far apart as times can be
    assert w.query() == 1.0


@pytest.mark.parametrize("wrong", [0, -5, "0s", "-1h"])
def test_a_half_life_is_above_zero(wrong):
    with pytest.raises(ValueError, match="half_life"):
        agg.ewma(half_life=wrong)


def test_without_half_life_or_time_there_is_no_weight():
    with pytest.raises(TypeError, match="needs half_life"):
        agg.ewma("v")
    with pytest.raises(ValueError, match="has no time"):
        agg.ewma(half_life=1).lift(3.0)
