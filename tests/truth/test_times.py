"""Time is one type: whatever it comes as, it goes in by one reader, is compared exactly, and comes out as what it was."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sash import agg, slide, swag, window
from sash.errors import OutOfOrderError
from sash.time import duration, timestamp
from sash.wheel import KeyedWheels, Misaligned, Wheel

LOW, HIGH = -(2**63), 2**63 - 1
TREES = [swag.Fiba, swag.BlockFiba, swag.BTree]
RANGES = [*TREES, swag.FlatFat, swag.BInt, swag.Recalc]
IN_ORDER = [
    swag.Recalc,
    swag.TwoStacks,
    swag.TwoStacksLite,
    swag.Daba,
    swag.DabaLite,
    swag.FlatFit,
    swag.FlatFat,
    swag.BInt,
    swag.Amta,
]
ALL = [*IN_ORDER, *TREES]
DAY = 86_400_000_000

# --- aggregations that carry time


@pytest.mark.parametrize("algorithm", [*ALL, swag.MonotonicDeque])
@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("items", [[1, 9, 3], [1.0, 9.0, 3.0]])
def test_argmax_gives_float_times_back(algorithm, bulk, items):
    w = algorithm(agg.argmax())
    if bulk:
        w.bulk_insert(items, times=[-1.5, 0.5, 2.5])
    else:
        for item, t in zip(items, [-1.5, 0.5, 2.5], strict=True):
            w.insert(item, t)
    assert (w.query(), w.oldest, w.youngest) == (0.5, -1.5, 2.5)
    if algorithm in RANGES:
        assert (w.query(1.0, 2.5), w.query(5.5, 6.5)) == (2.5, None)
        assert w.query_many([-2.0, 1.0], [0.0, 9.0]).tolist() == [-1.5, 2.5]
    if algorithm in TREES:
        assert w.items() == [(-1.5, -1.5), (0.5, 0.5), (2.5, 2.5)]
    assert type(w).from_bytes(w.to_bytes(), agg.argmax()).query() == 0.5


def test_a_struct_gives_float_times_back():
    w = swag.Fiba(agg.struct(low=agg.argmin(), n=agg.count(), high=agg.argmax()))
    w.bulk_insert([2, 1, 3], times=[0.5, 1.5, 2.5])
    assert w.query() == {"low": 1.5, "n": 3, "high": 2.5}
    assert w.query(9.0, 10.0) == {"low": None, "n": 0, "high": None}


def test_m4_gives_float_times_back_and_its_window_checks():
    w = swag.Fiba(agg.m4())
    w.bulk_insert([2, 1, 3], times=[0.5, 1.5, 2.5])
    assert [corner[0] if isinstance(corner[0], float) else corner[1] for corner in w.query()] == [0.5, 1.5, 2.5, 2.5]
    w.check([2, 1, 3])


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("algorithm", ["auto", "fiba"])
def test_slide_gives_float_times_back(order, algorithm):
    out = slide([1, 9, 3], agg=agg.argmax(), times=[0.5, 1.5, 2.5], period=1.5, order=order, algorithm=algorithm)
    assert out.tolist() == [0.5, 1.5, 1.5]


def test_an_unsorted_first_bulk_of_float_times_names_the_floats():
    with pytest.raises(ValueError, match=r"time 0\.5 follows 2\.5"):
        swag.Fiba(agg.sum()).bulk_insert([1, 2], times=[2.5, 0.5])


# --- durations


UNITS = {"W": 7 * DAY, "D": DAY, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}


@pytest.mark.parametrize("unit", UNITS)
def test_a_timedelta64_of_every_unit_is_a_duration(unit):
    length = np.timedelta64(2, unit)
    assert duration(length) == 2 * UNITS[unit]
    times = np.array([0, UNITS[unit], 2 * UNITS[unit]])
    assert slide([1, 1, 1], agg=agg.sum(), times=times, period=length).tolist() == [1, 2, 2]
    w = Wheel(agg.sum(), unit="us", grain=np.timedelta64(1, unit), levels=())
    w.insert_many([1, 1, 1], times)
    w.window(length, name="w")
    w.advance_to(4 * UNITS[unit])
    assert w.query(0, 2 * UNITS[unit]) == 2
    coarse = swag.Coarse(swag.Fiba(agg.sum()), grain=length)
    coarse.bulk_insert([1, 1, 1], times)
    assert (len(coarse), coarse.youngest) == (2, 2 * UNITS[unit])
    assert swag.Reordered(agg.sum(), max_delay=length)._options == {"max_delay": 2 * UNITS[unit]}


@pytest.mark.parametrize("unit", ["ns", "ps", "fs", "as"])
def test_a_timedelta64_finer_than_a_microsecond_is_exact_or_refused(unit):
    many = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}[unit]
    assert duration(np.timedelta64(3 * many, unit)) == 3
    with pytest.raises(ValueError, match="not a whole number of microseconds"):
        duration(np.timedelta64(3 * many + 1, unit))


@pytest.mark.parametrize("length", [np.timedelta64(1, "M"), np.timedelta64(1, "Y"), "1M", "1 M", "2 months", "1y"])
def test_months_and_years_are_refused_with_the_reason(length):
    for use in (
        lambda: duration(length),
        lambda: slide([1], agg=agg.sum(), times=[0], period=length),
        lambda: Wheel(agg.sum(), grain=length),
        lambda: swag.Coarse(swag.Fiba(agg.sum()), grain=length),
        lambda: swag.Reordered(agg.sum(), max_delay=length),
    ):
        with pytest.raises(ValueError, match="months and years have no fixed length"):
            use()


@pytest.mark.parametrize("length", [np.timedelta64("NaT"), pd.NaT, np.timedelta64(1), pd.Timedelta(1, "ns"), True, 2**63, -(2**70), "1e3s"])
def test_what_is_no_duration_is_refused_in_words(length):
    with pytest.raises((ValueError, TypeError, OverflowError), match=r"\. (Use|Give)"):
        duration(length)


def test_every_decimal_of_a_millisecond_and_of_a_second_is_exact():
    for n in range(10_000):
        assert duration(f"{n // 1000}.{n % 1000:03d}ms") == n
        assert duration(f"{n // 1000}.{n % 1000:03d}s") == n * 1000
    with pytest.raises(ValueError, match="whole number of microseconds"):
        duration("1.0001ms")


@pytest.mark.parametrize("length", [2**63, 2**70, dt.timedelta.max])
def test_a_length_beyond_64_bits_is_refused_in_words(length):
    for use in (
        lambda: slide([1], agg=agg.sum(), times=[0], period=length),
        lambda: swag.Reordered(agg.sum(), max_delay=length),
        lambda: window(agg.sum(), max_delay=length),
        lambda: swag.Coarse(swag.Fiba(agg.sum()), grain=length),
    ):
        with pytest.raises(OverflowError, match="does not fit int64"):
            use()


# --- what is no time


@pytest.mark.parametrize("gone", [pd.NaT, np.datetime64("NaT"), float("nan"), np.float32("nan"), pd.NA])
def test_what_is_no_time_is_refused_in_words(gone):
    w = swag.Fiba(agg.sum())
    for use in (
        lambda: w.insert(1, gone),
        lambda: w.bulk_insert([1], times=[gone]),
        lambda: w.bulk_evict(gone),
        lambda: w.query(gone, gone),
    ):
        with pytest.raises(ValueError, match=r"(?i)na[nt]?>? is not a time|not a time"):
            use()
    wheel = Wheel(agg.sum(), unit="s")
    for use in (lambda: wheel.insert(1, gone), lambda: wheel.insert_many([1], [gone]), lambda: wheel.advance_to(gone)):
        with pytest.raises((ValueError, TypeError), match=r"not a time|floats"):
            use()
    assert len(w) == 0


@pytest.mark.parametrize(
    "times",
    [
        pd.Series([pd.Timestamp("2020-01-01", tz="UTC"), pd.NaT]),
        pd.Series([1, None], dtype="Int64"),
        pl.Series([1, None]),
        pa.array([1, None]),
        np.ma.masked_equal([1, 2], 2),
        np.array(["2020-01-01", "NaT"], "M8[s]"),
        [1, None],
    ],
    ids=lambda t: f"{type(t).__module__.split('.')[0]} {getattr(t, 'dtype', '')}",
)
def test_a_column_of_times_with_a_gap_is_refused(times):
    for use in (
        lambda: swag.Fiba(agg.sum()).bulk_insert([1, 2], times=times),
        lambda: slide([1, 2], agg=agg.sum(), times=times, period=5),
        lambda: Wheel(agg.sum(), unit="s").insert_many([1, 2], times),
        lambda: KeyedWheels(agg.sum(), unit="s").insert_many(["a", "b"], [1, 2], times),
        lambda: swag.Keyed(lambda: swag.DabaLite(agg.sum())).insert_many(["a", "b"], [1, 2], times),
    ):
        with pytest.raises((ValueError, TypeError), match=r"no time|not a time"):
            use()


# --- the ends of the range


@pytest.mark.parametrize(
    "times",
    [[2**63], [-(2**63) - 1], np.array([2**63], np.uint64), [-1, 2**63], pl.Series([2**63], dtype=pl.UInt64), [np.datetime64(2**60, "s")]],
    ids=repr,
)
def test_times_beyond_64_bits_are_refused_by_their_value(times):
    values = [1] * len(times)
    for use in (
        lambda: swag.Fiba(agg.sum()).bulk_insert(values, times=times),
        lambda: swag.Fiba(agg.sum()).insert(1, times[-1]),
        lambda: slide(values, agg=agg.sum(), times=times, period=5),
        lambda: Wheel(agg.sum(), unit="s").insert_many(values, times),
    ):
        with pytest.raises(OverflowError, match=r"-?\d{10,}.*(does not fit int64|2\^61)"):
            use()


@pytest.mark.parametrize("algorithm", ALL)
def test_both_ends_of_the_range_are_times(algorithm):
    w = algorithm(agg.collect())
    w.bulk_insert(["low", "high"], times=[LOW, HIGH])
    assert (w.oldest, w.youngest) == (LOW, HIGH)
    w.bulk_evict(-(2**70))  # before all that can be in
    assert len(w) == 2
    if algorithm in RANGES:
        assert w.query(2**64, 2**65) == []
        assert w.query(-(2**65), -(2**64)) == []
        assert w.query(-(2**65), 2**65) == ["low", "high"]
        assert w.query(float(2**63), 1e30) == []
        assert w.query(-1e30, float(-(2**63))) == ["low"]
    w.bulk_evict(LOW)
    assert w.query() == ["high"]
    w.bulk_evict(2**70)
    assert len(w) == 0


@pytest.mark.parametrize("algorithm", RANGES)
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (10, 5),
        (10, 5.0),
        (10.0, 5),
        (np.int64(10), np.int64(5)),
        (np.float32(10), 5),
        (2**65, 2**64),
        (5.5, 5.25),
        (np.datetime64(10, "us"), 5),
    ],
)
@pytest.mark.parametrize("times", [[], [1, 7, 20], [1.0, 7.0, 20.0]])
def test_a_range_that_starts_after_its_end_is_refused_whatever_its_types(algorithm, start, end, times):
    w = algorithm(agg.sum())
    for t in times:
        w.insert(1, t)
    with pytest.raises(ValueError, match=r"start .* is after end"):
        w.query(start, end)
    with pytest.raises(ValueError, match=r"start .* is after end"):
        swag.Coarse(w, grain=100).query(start, end)


@pytest.mark.parametrize("algorithm", RANGES)
def test_bounds_between_the_times_are_compared_exactly(algorithm):
    w = algorithm(agg.count())
    for t in (2.0**53, 2.0**53 + 2):  # floats; 2**53 + 1 lies between them
        w.insert(1, t)
    assert (w.query(2**53 + 1, 2**60), w.query(0, 2**53 + 1), w.query(-(10**400), 10**400)) == (1, 1, 2)
    whole = algorithm(agg.count())
    for t in (1, 2, 3):
        whole.insert(1, t)
    assert (whole.query(1.5, 2.5), whole.query(2.25, 2.75), whole.query(-1e300, 1e300)) == (1, 0, 3)


def test_an_integer_among_float_times_is_exact_or_refused():
    w = swag.Fiba(agg.sum())
    w.insert(1, 0.5)
    w.insert(1, 2**53)
    for use in (lambda: w.insert(1, 2**53 + 1), lambda: w.bulk_insert([1], times=np.array([2**53 + 1])), lambda: w.insert(1, HIGH)):
        with pytest.raises(ValueError, match="no float is equal to it"):
            use()
    assert len(w) == 2


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("aggregation", [agg.sum(), agg.max(), agg.var(), agg.median(), agg.collect(), agg.mean()], ids=lambda a: a.name)
def test_slides_at_both_ends_of_the_range_count_what_lies_in_the_period(closed, order, aggregation):
    low, high = (closed in ("left", "both")), (closed in ("right", "both"))
    for times in ([LOW, LOW + 5, LOW + 10, LOW + 20], [HIGH - 20, HIGH - 10, HIGH - 5, HIGH], [LOW, 0, HIGH]):
        values = [3, 1, 4, 1][: len(times)]
        out = slide(values, agg=aggregation, times=times, period=10, order=order, closed=closed)
        for i, t in enumerate(times):
            inside = [
                v for v, s in zip(values, times, strict=True) if (s > t - 10 or (low and s == t - 10)) and (s < t or (high and s == t))
            ]
            w = swag.Recalc(aggregation)
            w.bulk_insert(inside)
            want, got = w.query(), out[i]
            near = want is None and (got is None or np.isnan(got))
            assert near or got == want or abs(got - want) < 1e-12, (times, i)


# --- slides


@pytest.mark.parametrize("algorithm", ["auto", "fiba", "block_fiba", "b_tree", "daba_lite", "recalc", "flat_fat", "two_stacks_lite"])
def test_slides_by_count_take_tied_times_one_by_one(algorithm):
    assert slide([1, 2, 3], agg=agg.sum(), size=2, times=[0, 0, 0], algorithm=algorithm).tolist() == [1, 3, 5]
    assert slide([1, 2, 3, 4], agg=agg.sum(), size=2, by=["a", "b", "a", "a"], algorithm=algorithm).tolist() == [1, 2, 4, 7]
    got = slide([1, 2, 3, 4], agg=agg.collect(), times=[0, 0, 5, 5], period=5, algorithm=algorithm, closed="both").tolist()
    assert got == [[1, 2], [1, 2], [1, 2, 3, 4], [1, 2, 3, 4]]


@pytest.mark.parametrize("closed", ["left", "neither"])
@pytest.mark.parametrize("floats", [False, True])
def test_slides_by_arrival_without_their_end_cost_the_same_for_any_length(closed, floats):
    calls = [0]

    def combine(a, b):
        calls[0] += 1
        return a + b

    counted = agg.define(lift=lambda x: x, combine=combine, identity=0, name="counted")
    per_item = []
    for n in (500, 4000):
        calls[0] = 0
        times = np.arange(n) * (0.5 if floats else 1)
        out = slide([1] * n, agg=counted, times=times, period=n, order="arrival", closed=closed)
        assert out.tolist() == list(range(n))
        per_item.append(calls[0] / n)
    assert per_item[1] < 1.5 * per_item[0] + 2
    begin = time.process_time()
    slide([1] * 8000, agg=counted, times=np.arange(8000) / 2, period=8000, order="arrival", closed=closed)
    assert time.process_time() - begin < 2.5  # it took from 5 to 23 s


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("closed", ["left", "neither", "right", "both"])
@pytest.mark.parametrize("algorithm", ["auto", "fiba", "b_tree"])
def test_slides_by_arrival_follow_the_largest_time(floats, closed, algorithm):
    rng = np.random.default_rng(5)
    times = (np.arange(60) + rng.integers(-6, 6, 60)) * (0.5 if floats else 1)
    period = 4.0 if floats else 8
    low, high = (closed in ("left", "both")), (closed in ("right", "both"))
    got = slide(list(range(60)), agg=agg.collect(), times=times, period=period, order="arrival", closed=closed, algorithm=algorithm)
    held = []
    for i, t in enumerate(times.tolist()):
        held.append((t, i))
        newest = max(held)[0]
        held = [(s, k) for s, k in held if s > newest - period or (low and s == newest - period)]
        assert got[i] == [k for s, k in sorted(held) if s < newest or high]


# --- a reorder buffer


def test_a_reorder_buffer_takes_its_delay_from_float_times():
    w = swag.Reordered(agg.collect(), max_delay=1.0)
    for item, t in ((1, 10.0), (2, 9.5), (3, 10.75), (4, 10.5)):
        w.insert(item, t)
    assert (w.query(), w.oldest, w.youngest) == ([2, 1, 4, 3], 9.5, 10.75)
    with pytest.raises(OutOfOrderError, match=r"time 9\.25 is older than .*9\.5"):
        w.insert(5, 9.25)
    whole = swag.Reordered(agg.collect(), max_delay=10)
    for item, t in ((1, 100.0), (2, 91.0), (3, 95.5)):
        whole.insert(item, t)
    assert whole.query() == [2, 3, 1]
    for again in (pickle.loads(pickle.dumps(w)), copy.copy(w), swag.Reordered.from_bytes(w.to_bytes(), agg.collect())):
        again.insert(6, 11.0)
        again.insert(7, 10.25)
        assert again.query() == [2, 1, 7, 4, 3, 6]


@pytest.mark.parametrize("make", [agg.sum, agg.collect])
def test_a_late_item_in_a_bulk_is_out_of_order_and_changes_nothing(make):
    w = swag.Reordered(make(), max_delay=2)
    w.bulk_insert([1, 2], times=[10, 20])
    before = w.query()
    with pytest.raises(OutOfOrderError, match=r"time 5 is older than .*10.*max_delay"):
        w.bulk_insert(np.array([7, 8]), times=[5, 30])
    assert (w.query(), len(w)) == (before, 2)


@pytest.mark.parametrize("times", [[1, 2], [1.5, 2.5]])
def test_a_buffer_without_delay_can_be_stored(times):
    w = swag.Reordered(agg.sum(), max_delay=0)
    w.bulk_insert([1, 2], times=times)
    for again in (pickle.loads(pickle.dumps(w)), copy.deepcopy(w), swag.Reordered.from_bytes(w.to_bytes(), agg.sum())):
        assert (again.query(), again.youngest) == (3, times[-1])
        with pytest.raises(OutOfOrderError):
            again.insert(1, times[0])


def test_an_item_whose_combine_raises_does_not_stay_in_the_buffer():
    fuse = [-1]

    def combine(a, b):
        fuse[0] -= 1
        if fuse[0] == 0:
            raise RuntimeError("fuse")
        return a + b

    free = agg.define(lift=lambda x: (x,), combine=combine, identity=(), name="free")
    for burns in range(1, 12):
        w = swag.Reordered(free, max_delay=3)
        items = []
        for i in range(8):
            w.insert(i, i)
            items.append(i)
        fuse[0] = burns
        try:
            w.insert(99, 30)
        except RuntimeError:
            fuse[0] = -1
            assert (list(w.query()), len(w), w.youngest) == (items, 8, 7)
            w.check()
            w.insert(99, 30)
        fuse[0] = -1
        assert list(w.query()) == [*items, 99]


# --- wheels


def test_bounds_of_a_wheel_are_refused_where_its_unit_does_not_hold_them():
    w = Wheel(agg.sum(), unit="s")
    w.insert_many([1, 2], [dt.datetime(1970, 1, 1, 0, 0, 1), 2])
    w.advance_to(60)
    half = dt.datetime(1970, 1, 1, 0, 0, 1, 500_000)
    assert w.query_many([dt.datetime(1970, 1, 1), 2], [2, 3]).tolist() == [1, 2]
    for use in (lambda: w.query(0, half), lambda: w.query_many([0], [half]), lambda: w.group_by(half, 60, "1s")):
        with pytest.raises(Misaligned, match="whole number"):
            use()


def test_times_of_every_kind_are_the_same_time():
    moment = dt.datetime(2020, 5, 17, 1, 2, 3)
    micros = timestamp(moment)
    aware = moment.replace(tzinfo=dt.UTC)
    for same in (
        aware.astimezone(dt.timezone(dt.timedelta(hours=5))),
        pd.Timestamp(moment),
        pd.Timestamp(aware),
        *(np.datetime64(moment, unit) for unit in ("s", "ms", "us", "ns")),
        moment.isoformat(),
        micros,
        np.int64(micros),
        pa.scalar(moment),
    ):
        assert timestamp(same) == micros
    for column in (
        [moment],
        pd.Series([aware]).dt.tz_convert("Asia/Tokyo"),
        pd.DatetimeIndex([moment]),
        pl.Series([moment], dtype=pl.Datetime("ns")),
        pl.Series([aware], dtype=pl.Datetime("ms", "Europe/Oslo")),
        pa.array([aware], pa.timestamp("s", "UTC")),
        pd.Series([moment], dtype="timestamp[ms][pyarrow]"),
    ):
        w = swag.Fiba(agg.count())
        w.bulk_insert([1], times=column)
        assert w.oldest == micros
    for unit in ("Y", "M", "W", "D", "h", "m"):
        at = np.datetime64("2020-05-17T01:02", unit)
        assert timestamp(at) == timestamp(at.astype("M8[us]").item())
