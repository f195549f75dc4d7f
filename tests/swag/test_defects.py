"""Where other libraries gave wrong answers on in-order windows; each test is named after what went wrong there."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle
import statistics

import numpy as np
import pytest

from sash import agg, swag
from tests.swag.in_order import ALL, ANY_MONOID, FREE, RANGES, name_of, seeing

every = pytest.mark.parametrize("algorithm", ALL, ids=name_of)
any_monoid = pytest.mark.parametrize("algorithm", ANY_MONOID, ids=name_of)


@every
def test_size_counts_wrong_after_bulk_operations(algorithm):
    window = algorithm(seeing(algorithm))
    window.bulk_insert(range(100), times=range(100))
    assert len(window) == 100
    window.bulk_evict(29)
    assert len(window) == 70
    window.bulk_insert([1, 2, 3], times=[99, 99, 99])
    assert len(window) == 73
    window.bulk_evict(98)
    assert len(window) == 4
    window.bulk_evict(1000)
    assert (len(window), window.oldest, window.youngest) == (0, None, None)


@every
def test_evict_on_an_empty_window_undefined(algorithm):
    window = algorithm(seeing(algorithm))
    for _ in range(2):
        with pytest.raises(IndexError, match="empty"):
            window.evict()
        assert len(window) == 0
        window.insert(1)
        window.evict()


@every
def test_bulk_evict_looping_for_ever_on_an_empty_window(algorithm):
    window = algorithm(seeing(algorithm))
    window.bulk_evict(10)
    window.insert(1, 5)
    window.bulk_evict(5)
    window.bulk_evict(2**70)
    window.bulk_evict(-(2**70))
    assert len(window) == 0


@every
def test_copying_a_window_frees_it_twice(algorithm):
    window = algorithm(seeing(algorithm))
    for i in range(50):
        window.insert(i)
    result = window.query()
    for clone in (copy.copy(window), copy.deepcopy(window), pickle.loads(pickle.dumps(window))):
        assert clone.query() == result
        clone.evict()
        clone.insert(1000)
        clone.check()
        del clone
    window.check()
    assert window.query() == result


@any_monoid
def test_ring_buffer_growth_at_wrap_around(algorithm):
    # The front is moved to every place of a ring before it grows past 8, 16, 32 and 64.
    for shift in range(20):
        window, values = algorithm(FREE), []
        for i in range(shift):
            window.insert(i)
            window.evict()
        for size in (3, 9, 17, 40, 5, 70):
            while len(values) < size:
                window.insert(len(values))
                values.append(len(values))
            while len(values) > size:
                window.evict()
                del values[0]
            window.check(values)
            assert window.query() == tuple(values)


@any_monoid
def test_a_window_that_wraps_is_combined_in_ring_order(algorithm):
    window = algorithm(FREE)
    for i in range(8):
        window.insert(i)
    for i in range(8, 30):
        window.evict()
        window.insert(i)
        assert window.query() == tuple(range(i - 7, i + 1))


@pytest.mark.parametrize("algorithm", RANGES, ids=name_of)
def test_range_query_sentinels_that_fail_for_date_times(algorithm):
    window = algorithm(FREE)
    day = dt.datetime(1969, 12, 30, tzinfo=dt.UTC)
    for i in range(6):
        window.insert(i, day + i * dt.timedelta(days=1))
    assert window.query(day + dt.timedelta(days=1), day + dt.timedelta(days=3)) == (1, 2, 3)
    assert window.query(dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, tzinfo=dt.UTC)) == tuple(range(6))
    assert window.query(day + dt.timedelta(hours=1), day + dt.timedelta(hours=2)) == ()


@every
def test_identities_that_absorb_negatives(algorithm):
    if algorithm is swag.SubtractOnEvict:
        pytest.skip("extremes have no inverse")
    for aggregation, expected in [(agg.max(), -3), (agg.min(), -7), (agg.argmax(), 1), (agg.argmin(), 0)]:
        window = algorithm(aggregation)
        assert window.query() is None
        window.bulk_insert([-7, -3, -5])
        assert window.query() == expected
        for _ in range(3):
            window.evict()
        assert window.query() is None


@any_monoid
def test_relative_variation_of_inverted_bounds(algorithm):
    window = algorithm(agg.relvar())
    assert window.query() is None
    window.bulk_insert([4.0, 8.0])
    assert window.query() == 0.5


@every
def test_a_geometric_mean_that_is_nan_for_ever_after_a_zero(algorithm):
    if algorithm is swag.MonotonicDeque:
        pytest.skip("geomean is not selective")
    window = algorithm(agg.geomean())
    assert window.query() is None
    window.bulk_insert([2.0, 0.0, 8.0])
    assert window.query() == 0
    window.evict()
    window.evict()
    assert window.query() == pytest.approx(8)


@every
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_a_nan_that_stays_after_its_item_left(algorithm, poison):
    # NaN - NaN is NaN: what subtracts must not let such items into its running sum.
    if algorithm is swag.MonotonicDeque:
        pytest.skip("sums are not selective")
    for aggregation in (agg.sum(), agg.mean(), agg.struct(s=agg.sum(), m=agg.mean())):
        window = algorithm(aggregation)
        whole = lambda w: w.query()["s"] if isinstance(w.query(), dict) else w.query()  # noqa: E731
        window.bulk_insert([1.0, poison, 2.0, math.inf, 3.0])
        assert math.isnan(whole(window)) or whole(window) == math.inf == poison
        window.evict()
        window.evict()
        assert whole(window) == math.inf
        window.check([2.0, math.inf, 3.0])
        window.evict()
        window.evict()
        assert whole(window) == 3.0


def test_a_sum_that_overflows_comes_back_under_subtract_on_evict():
    window = swag.SubtractOnEvict(agg.sum())
    window.bulk_insert([1e308, 1e308, 1e305])
    assert window.query() == math.inf
    window.evict()
    assert window.query() == 1e308 + 1e305
    window.evict()
    assert window.query() == pytest.approx(1e305)


@every
def test_a_standard_deviation_that_is_zero_for_large_values(algorithm):
    if algorithm is swag.MonotonicDeque:
        pytest.skip("std is not selective")
    window = algorithm(agg.std())
    values = [1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3]
    assert window.query() is None
    window.insert(values[0])
    assert window.query() is None
    for value in values[1:]:
        window.insert(value)
    assert window.query() == pytest.approx(statistics.stdev([0, 1, 2, 3]), rel=1e-6)


@every
def test_an_integer_mean_that_truncates(algorithm):
    if algorithm is swag.MonotonicDeque:
        pytest.skip("mean is not selective")
    window = algorithm(agg.mean())
    window.bulk_insert([1, 2])
    assert window.query() == 1.5
    assert type(window.query()) is float


@every
def test_a_collect_whose_inverse_removes_all_equal_items(algorithm):
    if algorithm is swag.MonotonicDeque:
        pytest.skip("collect is not selective")
    if algorithm is swag.SubtractOnEvict and not agg.collect().invertible:
        pytest.skip("collect has no inverse here")
    window = algorithm(agg.collect())
    window.bulk_insert([7, 7, 8, 7])
    window.evict()
    assert window.query() == [7, 8, 7]
    window.evict()
    assert window.query() == [8, 7]


@every
def test_argmax_ties_that_depend_on_the_algorithm(algorithm):
    if algorithm is swag.SubtractOnEvict:
        pytest.skip("argmax has no inverse")
    for aggregation, values in [(agg.argmax(), [3, 9, 1, 9, 9, 2, 9, 0]), (agg.argmin(), [3, 0, 1, 0, 0, 2, 0, 1])]:
        window = algorithm(aggregation)
        window.bulk_insert(values, times=range(10, 18))
        seen = []
        while len(window):
            seen.append(window.query())
            window.evict()
        assert seen == [11, 11, 13, 13, 14, 16, 16, 17]


@every
def test_integer_sums_that_overflow_on_the_way(algorithm):
    if algorithm is swag.MonotonicDeque:
        pytest.skip("sums are not selective")
    window = algorithm(agg.sum())
    window.bulk_insert(np.array([2**62] * 4 + [-(2**62)] * 4))
    assert window.query() == 0
    window.evict()
    assert window.query() == -(2**62)
    window.bulk_insert([-(2**62)] * 3)
    with pytest.raises(OverflowError, match="int64"):
        window.query()
    window.bulk_evict(window.youngest - 2)
    assert window.query() == -(2**62) * 2
