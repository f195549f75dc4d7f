"""NaN, infinities and sums that overflow count in their own ranges only, also where others are answered by subtracting."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from sash import agg
from sash.wheel import NotRetained, Wheel

ODD = [math.nan, math.inf, -math.inf, 1.7e308, 1.6e308, -1.7e308]


def wheels(aggregation: agg.Aggregation) -> dict[str, Wheel]:
    return {
        "prefix": Wheel(aggregation, unit="s", levels=(5, 20), layout="prefix", _chunk=2),
        "prefix of coarse levels": Wheel(aggregation, unit="s", levels=(5, 20), layout={20: "prefix", 5: "prefix"}),
        "inverse": Wheel(aggregation, unit="s", levels=(5, 20), hints=("inverse", "none")),
    }


def same(found: Any, expected: Any) -> bool:
    if found is None or expected is None:
        return found is expected
    return (math.isnan(found) and math.isnan(expected)) or found == expected or math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "geomean", "product"])
@pytest.mark.parametrize("kind", ["prefix", "prefix of coarse levels", "inverse"])
def test_an_odd_value_counts_in_its_own_ranges_only(name, kind):
    aggregation = getattr(agg, name)()
    rng = np.random.default_rng(3)
    values = rng.integers(1, 9, 200).astype(float)
    odd = {17: math.nan, 18: math.inf, 60: -math.inf, 61: math.inf, 130: math.nan}
    if name in ("geomean", "product"):
        odd = {17: 0.0, 60: 0.0, 61: math.inf, 130: math.nan}
        values = rng.choice([1.0, 2.0, 0.5], 200)
    for i, value in odd.items():
        values[i] = value
    w, plain = wheels(aggregation)[kind], Wheel(aggregation, unit="s", levels=(5, 20), hints="none")
    for wheel in (w, plain):
        wheel.insert_many(values, np.arange(200))
        wheel.advance_to(200)
        wheel.check()
    w = pickle.loads(pickle.dumps(w))
    for _ in range(400):
        a, b = sorted(rng.integers(0, 201, 2).tolist())
        if a == b:
            continue
        found, expected = w.query(a, b), plain.query(a, b)
        if name == "var" and expected is not None and not math.isfinite(expected):
            assert not math.isfinite(found)  # of an infinity, NaN or infinity by the order of combines
            continue
        assert same(found, expected), (a, b, found, expected, str(w.explain(a, b)))


@pytest.mark.parametrize("kind", ["prefix", "inverse"])
def test_a_sum_that_overflowed_is_left_behind(kind):
    #   0     1        2        3   4
    #   1.0   1.7e308  1.6e308  2.0
    w = wheels(agg.sum())[kind]
    w.insert_many([1.0, 1.7e308, 1.6e308, 2.0], [0, 1, 2, 3])
    w.advance_to(40)
    assert (w.query(0, 1), w.query(3, 4), w.query(3, 40)) == (1.0, 2.0, 2.0)
    assert w.query(2, 3) == 1.6e308
    assert w.query(1, 3) == math.inf


def test_odd_values_leave_with_the_slots_that_retention_drops():
    w = Wheel(agg.sum(), unit="s", levels=(5,), layout="prefix", retention={1: 7})
    for t in range(60):
        w.insert(ODD[t % 3] if t % 4 == 0 else float(t), t)
        w.advance_to(t + 1)
        w.check()
        for a in range(max(0, t - 6), t + 1):
            odd = [ODD[i % 3] for i in range(a, t + 1) if i % 4 == 0]
            expected = sum(odd, 0.0) + sum(float(i) for i in range(a, t + 1) if i % 4)
            assert same(w.query(a, t + 1), expected)


def test_merged_prefixes_keep_odd_values_apart():
    a, b = (Wheel(agg.sum(), unit="s", levels=(5,), layout="prefix") for _ in range(2))
    a.insert_many([1.0, math.nan, 2.0], [0, 3, 9])
    b.insert_many([4.0, math.inf], [1, 12])
    a.advance_to(20)
    b.advance_to(20)
    a.merge(b)
    a.check()
    assert (a.query(0, 3), a.query(4, 12), a.query(10, 15), a.query(13, 20)) == (5.0, 2.0, math.inf, 0.0)
    assert math.isnan(a.query(0, 20))


def test_where_nothing_can_be_taken_out_and_the_range_is_not_held_it_is_refused():
    w = Wheel(agg.sum(), unit="s", levels=(5,), retention={1: 3}, hints=("inverse", "none"))
    w.insert_many([math.nan, 1.0, 2.0], [0, 14, 15])
    w.advance_to(16)
    assert w.query(14, 16) == 3.0
    with pytest.raises(NotRetained):
        w.query(1, 15)
