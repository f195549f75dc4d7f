"""The optimiser: costs as the paper works them out, and combines as they are counted."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sash import agg
from sash.wheel import Wheel

HOUR, DAY = 3_600, 86_400


def clock(text: str) -> int:
    h, m, s = (int(part) for part in text.split(":"))
    return h * HOUR + m * 60 + s


def a_day(**options) -> Wheel:
    wheel = Wheel(agg.max(), unit="s", **options)
    wheel.advance_to(DAY + 1)
    return wheel


def test_the_papers_range_of_153_slots_costs_152_combines():
    plan = a_day().explain(clock("10:15:23"), clock("13:20:50"))
    assert (plan.strategy, plan.slots, plan.combines) == ("combined", 153, 152)
    assert [(s.level, s.slots) for s in plan.segments] == [("1s", 37), ("1m", 44), ("1h", 2), ("1m", 20), ("1s", 50)]
    assert ("single", 11_126, "1s x 11,127") in plan.rejected


def test_the_papers_range_from_noon_costs_35_combines():
    plan = a_day().explain(clock("12:00:00"), clock("18:30:00"))
    assert (plan.slots, plan.combines) == (36, 35)
    assert ("single", 389, "1m x 390") in plan.rejected


def test_ten_years_at_one_second_grain_are_213_slots():
    wheel = Wheel(agg.sum(), unit="s", levels=("1m", "1h", "1d", "1w", "52w"), retention="drop")
    wheel.advance_to(10 * 52 * 7 * DAY)
    assert wheel.slots == 60 + 60 + 24 + 7 + 52 + 10 == 213


def test_seven_days_of_seconds_of_a_float_sum_take_5_mib():
    wheel = Wheel(agg.sum(), unit="s")
    times = np.arange(7 * DAY)
    wheel.insert_many(np.ones(7 * DAY), times)
    wheel.advance_to(7 * DAY)
    assert wheel.landmark() == 7.0 * DAY
    assert wheel.nbytes <= 5.0 * 2**20


def counted(calls: list[int], **traits) -> agg.Aggregation:
    def combine(a: int, b: int) -> int:
        calls[0] += 1
        return a + b

    def inverse(whole: int, oldest: int) -> int:
        calls[0] += 1
        return whole - oldest

    return agg.define(lift=lambda x: x, combine=combine, identity=0, inverse=inverse, name="counted", **traits)


@pytest.mark.parametrize("layout", ["plain", "prefix", {60: "prefix"}])
@pytest.mark.parametrize("hints", ["none", "simd", "inverse"])
def test_combines_counted_are_what_explain_says(layout, hints):
    calls = [0]
    wheel = Wheel(counted(calls, commutative=True), 35, unit="s", levels=(60, 600, 3600), layout=layout, hints=hints, simd_threshold=40)
    rng = random.Random(5)
    for t in range(35, 9_000):
        if rng.random() < 0.7:
            wheel.insert(rng.randrange(-9, 9), t)
    wheel.advance_to(9_000)
    strategies = set()
    edges = [35, 9_000, 60, 600, 3_600, 7_200, 8_999]
    for _ in range(300):
        a, b = sorted(rng.choice([rng.randrange(35, 9_001), rng.choice(edges)]) for _ in range(2))
        plan = wheel.explain(a, b)
        calls[0] = 0
        wheel.query(a, b)
        assert calls[0] == plan.combines, plan
        strategies.add(plan.strategy)
    calls[0] = 0
    wheel.landmark()
    assert calls[0] == wheel.explain(35, 9_000).combines or layout == "prefix"
    expected = {"prefix": {"prefix"}, "plain": {"single", "combined"}}.get(
        layout if isinstance(layout, str) else "", {"prefix", "combined"}
    )
    assert expected <= strategies
    if hints == "inverse" and layout == "plain":
        assert "inverse" in strategies


def test_an_inverse_is_used_unasked_on_integers_only():
    for values, used in ((np.arange(5_000), True), (np.arange(5_000.0), False)):
        wheel = Wheel(agg.sum(), unit="s", levels=())
        wheel.insert_many(values, np.arange(5_000))
        wheel.advance_to(5_000)
        assert (wheel.explain(3, 4_998).strategy == "inverse") == used
        assert wheel.query(3, 4_998) == values[3:4_998].sum()
    asked = Wheel(agg.sum(), unit="s", levels=(), hints=("auto", "inverse"))
    asked.insert_many(np.arange(5_000.0), np.arange(5_000))
    asked.advance_to(5_000)
    assert asked.explain(3, 4_998).strategy == "inverse"


def test_a_scan_is_preferred_up_to_the_threshold():
    wheel = a_day(hints="simd", simd_threshold=389)
    assert wheel.explain(clock("12:00:00"), clock("18:30:00")).strategy == "single"
    wheel = a_day(hints="simd", simd_threshold=388)
    assert wheel.explain(clock("12:00:00"), clock("18:30:00")).strategy == "combined"
    wheel = a_day(hints="none", simd_threshold=1000)
    assert wheel.explain(clock("12:00:00"), clock("18:30:00")).strategy == "combined"


def test_explain_shows_the_plan_its_cost_and_what_was_rejected():
    text = str(a_day().explain(clock("10:15:23"), clock("13:20:50")))
    assert text.splitlines()[0] == "max over [36923, 48050)    152 combines for 11,127 grains of 1s"
    assert "1h x 2, 1m x 64, 1s x 87" in text
    assert "<- chosen" in text
    assert "the range is not the whole wheel" in text


@pytest.mark.parametrize("layout", ["plain", "prefix"])
def test_20000_random_ranges_on_an_unaligned_start(layout):
    rng = np.random.default_rng(11)
    start, n = 1_372_636_789, 3 * DAY
    values = rng.integers(-1_000, 1_000, n)
    values[rng.random(n) < 0.3] = 0
    wheel = Wheel(agg.sum(), start, unit="s", layout=layout)
    order = np.argsort(np.arange(n) + rng.integers(0, 50, n), kind="stable")  # disordered by up to 50 s
    for part in np.array_split(order, 40):
        assert wheel.insert_many(values[part], start + part) == 0
        wheel.advance_to(start + int(part.min()) - 60)
    wheel.advance_to(start + n)
    prefix = np.concatenate([[0], np.cumsum(values)])
    ends = np.sort(rng.integers(0, n + 1, (20_000, 2)), axis=1)
    found = wheel.query_many(start + ends[:, 0], start + ends[:, 1])
    assert (found == prefix[ends[:, 1]] - prefix[ends[:, 0]]).all()
    for a, b in ends[:500].tolist():
        assert wheel.query(start + a, start + b) == prefix[b] - prefix[a]
