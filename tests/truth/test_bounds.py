"""How far floats may be off, for each aggregation: against exact arithmetic on integers that the items are multiples of."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sash import agg, slide, swag
from sash.wheel import Wheel

BLOCK = 1_000_000


def blocks(seed, count):
    """Blocks of items of many sizes and both signs, with their exact sum and the sum of their absolute values."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        whole = rng.integers(-(2**39), 2**39, BLOCK)
        step = int(rng.integers(-20, 21))
        unit = Fraction(2) ** step
        yield np.ldexp(whole.astype(np.float64), step), int(whole.sum()) * unit, int(np.abs(whole).sum()) * unit


def sums_are_within(limit, seed, count):
    """Stream blocks through a wheel, a window that slides and a slide, and compare each sum and mean with the exact one."""
    total, size, at = Fraction(0), Fraction(0), 0
    wheel = Wheel(agg.struct(s=agg.sum(), m=agg.mean()), unit="s", grain="1s", levels=("1m", "1h", "1d"))
    window = swag.DabaLite(agg.sum())
    for items, exact, absolute in blocks(seed, count):
        total, size = total + exact, size + absolute
        wheel.insert_many(items, np.arange(at, at + BLOCK) // 1000)
        at += BLOCK
        wheel.advance_to(at // 1000)
        window.bulk_evict(at)  # all of the last block
        window.bulk_insert(items, np.arange(at, at + BLOCK))
        for found in (window.query(), slide(items, agg=agg.sum(), size=BLOCK)[-1].item()):
            assert abs(Fraction(found) - exact) <= limit * absolute
    found = wheel.landmark()
    worst = max(abs(Fraction(found["s"]) - total), abs(Fraction(found["m"]) * at - total)) / size
    assert worst <= limit
    return float(worst)


def test_sums_and_means_stay_within_their_bound():
    sums_are_within(1e-12, 1, 3)


@pytest.mark.stress
@pytest.mark.timeout(7200)
def test_sums_and_means_of_a_billion_items_stay_within_their_bound():
    print(f"\n10^9 items: an error of {sums_are_within(1e-12, 2, 1000):.1e} of the sum of absolute values")


def test_a_sum_is_off_by_no_more_than_its_bound_where_order_is_worst():
    # One large item first, so that every addition rounds: n u of the sum of absolute values is the bound, whatever the algorithm.
    items = np.array([1.0, *[2.0**-53 * 1.5] * 100_000])
    exact = sum(map(Fraction, items.tolist()))
    for make in (swag.Recalc, swag.DabaLite, swag.TwoStacksLite, swag.FlatFat, swag.Fiba, swag.BlockFiba):
        window = make(agg.sum())
        window.bulk_insert(items, range(len(items)))
        assert abs(Fraction(window.query()) - exact) <= len(items) * Fraction(2) ** -53 * exact


def moment(whole, power, mean):
    return sum((Fraction(k) - mean) ** power for k in whole) / len(whole)


@pytest.mark.parametrize("offset", [0, 10**6])
def test_moments_stay_within_a_billionth(offset):
    rng = np.random.default_rng(3)
    whole = [offset + int(k) for k in rng.integers(-1000, 3000, 3000)]
    mean = Fraction(sum(whole), len(whole))
    m2, m3, m4 = (moment(whole, power, mean) for power in (2, 3, 4))
    n = len(whole)
    var = float(m2 * n / (n - 1))
    items = np.array(whole, np.float64) / 8
    for make in (swag.Recalc, swag.DabaLite, swag.FlatFat, swag.Fiba, swag.BlockFiba):
        for name, want in (("var", var / 64), ("std", math.sqrt(var) / 8)):
            window = make(getattr(agg, name)())
            window.bulk_insert(items, range(n))
            assert window.query() == pytest.approx(want, rel=1e-9)
        window = make(agg.struct(s=agg.skew(), k=agg.kurtosis()))
        window.bulk_insert(items, range(n))
        skew = float(m3) / float(m2) ** 1.5 * math.sqrt(n * (n - 1)) / (n - 2)
        excess = float(m4 / m2**2) - 3
        kurtosis = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6)
        # Of a moment of higher order, a billionth is of the moment, not of what is left when 3 is taken away.
        assert window.query()["s"] == pytest.approx(skew, abs=1e-9 * (1 + abs(skew)))
        assert window.query()["k"] == pytest.approx(kurtosis, abs=1e-9 * (3 + abs(kurtosis)))


def test_slopes_and_geometric_means_stay_within_a_billionth():
    rng = np.random.default_rng(4)
    whole = [int(k) for k in rng.integers(1, 10**6, 5000)]
    times = np.cumsum(rng.integers(1, 50, 5000))
    ts, xs = [Fraction(int(t)) for t in times], [Fraction(k) for k in whole]
    mt, mx = sum(ts) / len(ts), sum(xs) / len(xs)
    slope = sum((t - mt) * (x - mx) for t, x in zip(ts, xs, strict=True)) / sum((t - mt) ** 2 for t in ts)
    scale = float(math.sqrt(sum((x - mx) ** 2 for x in xs) / sum((t - mt) ** 2 for t in ts)))
    geometric = math.exp(math.fsum(map(math.log, whole)) / len(whole))
    for make in (swag.Recalc, swag.DabaLite, swag.Fiba, swag.BlockFiba):
        window = make(agg.linreg())
        window.bulk_insert(np.array(whole, np.float64), times)
        assert abs(window.query().slope - float(slope)) <= 1e-9 * scale
        window = make(agg.geomean())
        window.bulk_insert(np.array(whole, np.float64), times)
        assert window.query() == pytest.approx(geometric, rel=1e-9)
