"""slide(): every form against brute force, on boundaries, ties and nulls."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash import agg, slide
from sash.errors import OutOfOrderError
from tests.oracles import close, disordered_times, fold, free_monoid

AGGS = [
    agg.count(),
    agg.sum(),
    agg.mean(),
    agg.min(),
    agg.max(),
    agg.first(),
    agg.last(),
    agg.std(),
    agg.argmax(),
    agg.ewma(half_life=7),
    agg.relvar(),
    agg.geomean(),
    agg.minmax(),
    agg.any(),
    agg.collect(),
    free_monoid(),
]
CLOSED = ["right", "left", "both", "neither"]
values_ = st.lists(st.one_of(st.integers(-3, 9), st.none()), max_size=40)


def name_of(a):
    return getattr(a, "name", None)


def inside(t, end, period, closed):
    start = end - period
    after = t >= start if closed in ("left", "both") else t > start
    before = t <= end if closed in ("right", "both") else t < end
    return after and before


def plain(x):
    """None as NaN, where an array of floats has it."""
    return None if isinstance(x, float) and math.isnan(x) else x


def agree(found, expected):
    assert len(found) == len(expected)
    for i, (x, y) in enumerate(zip(found.tolist() if found.dtype != object else list(found), expected, strict=True)):
        y = list(y) if isinstance(y, tuple) and not isinstance(x, tuple) else y
        assert close(plain(x), plain(y), 1e-6), (i, x, y)


@pytest.mark.parametrize("a", AGGS, ids=name_of)
@given(values=values_, size=st.integers(1, 45))
@settings(max_examples=30, deadline=None)
def test_by_count_equals_brute_force(a, values, size):
    expected = [fold(a, values[max(0, i - size + 1) : i + 1], list(range(max(0, i - size + 1), i + 1))) for i in range(len(values))]
    agree(slide(values, agg=a, size=size), expected)


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("a", AGGS, ids=name_of)
@given(steps=st.lists(st.tuples(st.integers(0, 4), st.one_of(st.integers(-3, 9), st.none())), max_size=40), period=st.integers(1, 9))
@settings(max_examples=20, deadline=None)
def test_by_time_counts_every_item_of_the_interval_later_equal_times_too(a, closed, steps, period):
    times = np.cumsum([s for s, _ in steps]).tolist() if steps else []
    values = [v for _, v in steps]
    expected = []
    for end in times:
        chosen = [i for i, t in enumerate(times) if inside(t, end, period, closed)]
        expected.append(fold(a, [values[i] for i in chosen], [times[i] for i in chosen]))
    agree(slide(values, agg=a, times=times, period=period, closed=closed), expected)


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("a", [agg.sum(), agg.max(), agg.first(), free_monoid()], ids=name_of)
@given(times=disordered_times(40), period=st.integers(1, 40), data=st.data())
@settings(max_examples=30, deadline=None)
def test_by_arrival_follows_the_largest_time_so_far(a, closed, times, period, data):
    values = data.draw(st.lists(st.integers(-3, 9), min_size=len(times), max_size=len(times)))
    expected = []
    for i in range(len(times)):
        end = max(times[: i + 1])
        # An item counts from its arrival on, unless it was outside already when it came.
        kept = [
            j
            for j in range(i + 1)
            if inside(times[j], max(times[: j + 1]), period, {"left": "both", "neither": "right"}.get(closed, closed))
        ]
        chosen = sorted((j for j in kept if inside(times[j], end, period, closed)), key=lambda j: (times[j], j))
        expected.append(fold(a, [values[j] for j in chosen], [times[j] for j in chosen]))
    agree(slide(values, agg=a, times=times, period=period, order="arrival", closed=closed), expected)


@pytest.mark.parametrize("a", [agg.sum(), agg.mean(), agg.last(), free_monoid()], ids=name_of)
@pytest.mark.parametrize("kind", ["int", "str", "float"])
def test_every_key_has_windows_of_its_own(a, kind):
    rng = random.Random(7)
    keys = [rng.choice([1, 2, 30]) for _ in range(200)]
    keys = [str(k) if kind == "str" else k + 0.5 if kind == "float" else k for k in keys]
    values = [rng.randint(-5, 5) for _ in keys]
    times = sorted(rng.randint(0, 60) for _ in keys)
    found = slide(values, agg=a, times=times, period=10, by=keys)
    for key in set(keys):
        rows = [i for i, k in enumerate(keys) if k == key]
        alone = slide([values[i] for i in rows], agg=a, times=[times[i] for i in rows], period=10)
        assert found[rows].tolist() == alone.tolist()


@pytest.mark.parametrize("algorithm", ["recalc", "daba_lite", "fiba"])
@pytest.mark.parametrize("closed", CLOSED)
def test_a_named_algorithm_gives_the_same_results(algorithm, closed):
    rng = random.Random(3)
    times = sorted(rng.randint(0, 40) for _ in range(80))
    values = [rng.randint(-9, 9) for _ in times]
    for a in (agg.sum(), agg.max(), agg.first()):
        auto = slide(values, agg=a, times=times, period=7, closed=closed)
        assert close(slide(values, agg=a, times=times, period=7, closed=closed, algorithm=algorithm).tolist(), auto.tolist())


def test_floats_do_not_drift():
    x = np.array([1e16, 1.0, -1e16, 1.0] * 1000)
    found = slide(x, agg=agg.sum(), size=2)
    assert np.array_equal(found[1:], x[1:] + x[:-1])


def test_result_types_follow_from_aggregation_input_and_closed_alone():
    ints, times = [1, 2, 3], [0, 1, 2]
    assert slide(ints, agg=agg.max(), size=2).dtype == np.int64
    assert slide(ints, agg=agg.max(), times=times, period=2).dtype == np.int64
    assert slide(ints, agg=agg.max(), times=times, period=2, closed="left").dtype == np.float64
    assert slide(ints, agg=agg.sum(), times=times, period=2, closed="left").dtype == np.int64
    assert slide(ints, agg=agg.mean(), size=2).dtype == np.float64
    assert slide(["a"], agg=agg.collect(), size=2).dtype == object
    assert slide([], agg=agg.sum(), size=2).dtype == np.int64


def test_arrow_columns_nulls_included():
    column = pa.array([1, None, 3], pa.int64())
    assert slide(column, agg=agg.sum(), size=2).tolist() == [1, 1, 3]
    assert slide(pa.chunked_array([[1.5], [2.5]]), agg=agg.mean(), size=2).to_pylist() == [1.5, 2.0]
    stamps = pa.array([0, 1_000_000], pa.timestamp("us"))
    assert slide(pa.array([1, 2]), agg=agg.sum(), times=stamps, period="1s").tolist() == [1, 2]


def test_a_sum_that_does_not_fit_says_so():
    with pytest.raises(OverflowError, match="does not fit int64"):
        slide([2**63 - 1, 1], agg=agg.sum(), size=2)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"agg": agg.sum()}, ValueError, "size="),
        ({"agg": agg.sum(), "size": 2, "period": 3}, ValueError, "by count or by time"),
        ({"agg": agg.sum(), "period": 3}, ValueError, "times="),
        ({"agg": agg.sum(), "size": 0}, ValueError, "size=0"),
        ({"agg": agg.sum(), "size": -3}, ValueError, "size=-3"),
        ({"agg": agg.sum(), "size": 2.5}, TypeError, "size=2.5"),
        ({"agg": agg.sum(), "times": [0, 1], "period": 3}, ValueError, "3 values but 2 times"),
        ({"agg": agg.sum(), "times": [0, 2, 1], "period": 3}, OutOfOrderError, "time 1 follows 2"),
        ({"agg": agg.sum(), "times": [0, 1, 2], "period": 0}, ValueError, "period=0"),
        ({"agg": agg.sum(), "times": [0, 1, 2], "period": "1 month"}, ValueError, "no fixed length"),
        ({"agg": agg.sum(), "size": 2, "closed": "left"}, ValueError, "closed='left'"),
        ({"agg": agg.sum(), "times": [0, 1, 2], "period": 3, "closed": "up"}, ValueError, "closed='up'"),
        ({"agg": agg.sum(), "size": 2, "by": [1]}, ValueError, "3 values but 1 by"),
        ({"agg": agg.sum(), "size": 2, "algorithm": "quick"}, ValueError, "algorithm='quick'"),
        ({"agg": sum, "size": 2}, TypeError, "not an aggregation"),
    ],
)
def test_bad_arguments_name_the_value_the_rule_and_the_fix(arguments, error, words):
    with pytest.raises(error, match=words):
        slide([1, 2, 3], **arguments)


@pytest.mark.parametrize("spread", [1, 300, 70_000, 5_000_000_000, 2**62])
def test_by_key_brings_keys_of_any_width_together_in_order_of_arrival(spread):
    random_ = np.random.default_rng(spread % 1000)
    keys = random_.integers(-spread, spread + 1, 40)[random_.integers(0, 40, 500)]
    values = random_.integers(0, 100, 500)
    found = slide(values, agg=agg.collect(), size=3, by=keys)
    for i, key in enumerate(keys):
        assert list(found[i]) == [v for v, k in zip(values[: i + 1], keys[: i + 1], strict=True) if k == key][-3:]


@pytest.mark.parametrize("kind", ["far from zero", "a step", "spikes", "a slope", "NaN and infinity"])
@pytest.mark.parametrize("by", ["count", "time"])
def test_std_is_right_wherever_the_values_lie(kind, by):
    # A pivot that is not in the window, or a sum that something was taken out of, shows in each of these.
    random_ = np.random.default_rng(5)
    n, w = 900, 37
    x = random_.normal(size=n)
    x += {"far from zero": 1e9, "a step": np.where(np.arange(n) < 400, 0, 1e9), "a slope": np.arange(n) * 1e6}.get(kind, 0.0)
    if kind == "spikes":
        x[::111] = 1e12
    if kind == "NaN and infinity":
        x[300], x[600] = np.nan, np.inf
    times = np.cumsum(random_.integers(0, 3, n))
    given = {"size": w} if by == "count" else {"times": times, "period": w}
    for aggregation, power in ((agg.std(), 0.5), (agg.var(), 1.0)):
        found = slide(x, agg=aggregation, **given)
        for i in range(n):
            chosen = x[max(0, i - w + 1) : i + 1] if by == "count" else x[(times > times[i] - w) & (times <= times[i])]
            if len(chosen) < 2 or not np.isfinite(chosen).all():
                assert np.isnan(found[i])
                continue
            right = np.var(chosen - chosen[0], ddof=1) ** power
            assert abs(found[i] - right) <= 1e-11 * right, (i, found[i], right)


@pytest.mark.parametrize("size", [1, 2, 10, 11, 15, 16, 17, 63, 64, 65, 255, 256, 257, 300, 513, 1000, 4000])
@pytest.mark.parametrize("kind", ["sum", "mean", "var", "std"])
def test_windows_of_any_length_over_doubles_are_as_exact_as_numpy(kind, size):
    rng = np.random.default_rng(size)
    x = rng.normal(size=2500) + 3
    x[rng.integers(0, 2500, 20)] *= 1e6  # spikes: nothing of them may stay once they have left
    found = slide(x, agg=getattr(agg, kind)(), size=size)
    wide = x.astype(np.longdouble)
    for i in [*range(min(size + 3, 40)), *rng.integers(0, 2500, 150), 2499]:
        window = wide[max(0, i + 1 - size) : i + 1]
        if kind in ("sum", "mean"):
            assert abs(found[i] - getattr(window, kind)()) <= 1e-14 * np.abs(window).sum()
        elif len(window) < 2:
            assert math.isnan(found[i])
        else:
            assert abs(found[i] - getattr(window, kind)(ddof=1)) <= 1e-12 * max(getattr(window, kind)(ddof=1), 1e-3)


@pytest.mark.parametrize("make", [agg.sum, agg.mean, agg.std, agg.max, agg.geomean])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_results_do_not_depend_on_the_number_of_processors(make, dtype, monkeypatch):
    x = np.random.default_rng(1).integers(1, 1000, 200_000).astype(dtype) / (1 if dtype == "int64" else 7)
    x = x.astype(dtype)
    for size in (5, 40, 1000, 70_000):
        monkeypatch.setattr("sash.arrays.slides._threads", lambda: 1)
        alone = slide(x, agg=make(), size=size)
        monkeypatch.setattr("sash.arrays.slides._threads", lambda: 3)
        assert np.array_equal(slide(x, agg=make(), size=size), alone, equal_nan=True)
