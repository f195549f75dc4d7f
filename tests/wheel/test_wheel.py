"""Windows, times, types, bytes, readers and errors of a wheel."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import random
import threading

import numpy as np
import pytest

from sash import agg
from sash.errors import BrokenWindow
from sash.wheel import BeyondWatermark, Misaligned, NotRetained, Wheel, WindowResult
from tests.oracles import close
from tests.wheel.oracle import BruteWheel

# --- times and units


def test_an_int_is_in_the_unit_and_datetimes_are_utc():
    wheel = Wheel(agg.sum(), dt.datetime(2013, 7, 1), unit="ms", grain="1s")
    assert wheel.start == 1_372_636_800_000
    wheel.insert(1, dt.datetime(2013, 7, 1, 0, 0, 5, 500_000))
    wheel.insert(2, np.datetime64("2013-07-01T00:00:06"))
    wheel.insert(4, 1_372_636_807_000)
    wheel.advance_to("2013-07-01 00:01:00")
    assert wheel.query("2013-07-01 00:00:05", dt.datetime(2013, 7, 1, 0, 0, 7)) == 3
    assert wheel.query(1_372_636_807_000, 1_372_636_808_000) == 4
    assert wheel.interval("1m") == wheel.interval(dt.timedelta(minutes=1)) == wheel.interval(60_000) == 7


def test_columns_of_datetimes_and_arrow_and_pandas():
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    times = np.array(["2013-07-01T00:00:01", "2013-07-01T00:00:03"], dtype="datetime64[ns]")
    for values, stamps in (
        ([1, None], times),
        (pa.array([1, None]), pa.array(times)),
        (pd.Series([1, None], dtype="Int64"), pd.Series(times)),
        (np.array([1, 0]), [dt.datetime(2013, 7, 1, 0, 0, 1), dt.datetime(2013, 7, 1, 0, 0, 3)]),
    ):
        wheel = Wheel(agg.sum(), "2013-07-01")
        assert wheel.insert_many(values, stamps) == 0
        wheel.advance_to("2013-07-01 00:00:10")
        assert wheel.landmark() == 1


def test_a_watermark_inside_a_grain_keeps_that_grain_open():
    wheel = Wheel(agg.collect(), grain=10)
    wheel.insert("a", 3)
    wheel.advance_to(15)
    assert (wheel.watermark, wheel.landmark(), wheel.interval(10)) == (15, ["a"], ["a"])
    assert not wheel.insert("late", 14)
    assert wheel.insert("b", 15)
    with pytest.raises(BeyondWatermark):
        wheel.query(0, 20)
    wheel.advance_to(20)
    assert wheel.query(0, 20) == ["a", "b"]


def test_a_wheel_that_starts_at_the_epoch_and_is_fed_today_takes_no_space_for_the_years_between():
    wheel = Wheel(agg.sum(), grain="1ms", levels=("1s", "1m", "1h", "1d"))
    begin = 1_700_000_000_000_000
    wheel.insert(5, begin)
    wheel.advance_to(begin + 10_000_000)
    assert wheel.nbytes < 2**20
    assert wheel.query(0, begin + 10_000_000) == wheel.landmark() == 5
    assert wheel.query(begin + 1_000, begin + 2_000_000) == 0


def test_items_of_one_grain_combine_as_they_arrive_and_grains_by_time():
    wheel = Wheel(agg.collect(), grain=10, write_ahead=2)
    for value, time in (("c", 25), ("a", 3), ("d", 21), ("far", 1_000), ("b", 1), ("too", 1_003)):
        wheel.insert(value, time)
    wheel.advance_to(500)
    wheel.insert("three", 1_001)
    wheel.advance_to(2_000)
    assert wheel.landmark() == ["a", "b", "c", "d", "far", "too", "three"]


# --- windows


def test_windows_with_offset_on_an_unaligned_start_and_every_aggregation():
    for aggregation in (agg.sum(), agg.min(), agg.collect(), agg.mean(), agg.std(), agg.first(), agg.argmax()):
        rng = random.Random(aggregation.name)
        wheel, brute = Wheel(aggregation, 7, unit="s"), BruteWheel(aggregation, 7)
        for range_, slide, offset in ((10, 10, 0), (10, 4, 3), (7, 3, -2), (60, 7, 0)):
            name = wheel.window(range_, slide, offset)
            brute.install(name, range_, slide, offset)
        found, expected, now = [], [], 7
        for _ in range(60):
            for _ in range(rng.randrange(8)):
                value, time = rng.randrange(-50, 50), now + rng.randrange(-3, 30)
                assert wheel.insert(value, time) == brute.insert(value, time)
            now += rng.choice([0, 1, 1, 3, 25])
            found += wheel.advance_to(now)
            expected += brute.advance_to(now)
        assert [r[:3] for r in found] == [r[:3] for r in expected]
        assert all(close(f[3], e[3]) for f, e in zip(found, expected, strict=True))


def test_the_first_result_is_the_first_window_that_starts_at_or_after_the_watermark():
    wheel = Wheel(agg.count(), grain=10)
    wheel.advance_to(25)
    wheel.window(20, 10, name="w")
    wheel.insert(1, 29)  # in the open grain, which begins before the watermark
    wheel.insert(1, 31)
    assert wheel.advance_to(60) == [WindowResult("w", 30, 50, 1), WindowResult("w", 40, 60, 0)]


def test_empty_windows_come_too_unless_told():
    wheel = Wheel(agg.sum(), unit="s")
    wheel.window(10, 5, name="w")
    wheel.insert_many([3, 5, -5], [12, 1_000_003, 1_000_003])
    found = wheel.advance_to(1_000_100, empty=False)
    # a window of 5 and -5 sums to 0 and is not empty
    assert [(r.start, r.value) for r in found] == [(5, 3), (10, 3), (999_995, 0), (1_000_000, 0)]
    assert len(wheel.advance_to(1_000_200)) == 20


def test_a_session_ends_when_the_watermark_is_past_its_gap():
    #       10  12      17            30                gap 5: an item exactly 5 after the last still joins, as in Spark
    #       a---b--------c             d
    wheel = Wheel(agg.collect(), unit="s")
    wheel.window(session="5s", name="s")
    wheel.insert_many(["b", "a", "d", "c"], [12, 10, 30, 17])
    assert wheel.advance_to(22) == []
    assert wheel.advance_to(23) == [WindowResult("s", 10, 22, ["a", "b", "c"])]
    assert wheel.advance_to(100) == [WindowResult("s", 30, 35, ["d"])]


def test_a_value_of_zero_keeps_a_session_alive_and_nothing_does_not():
    wheel = Wheel(agg.sum(), unit="s")
    wheel.window(session=3, name="s")
    wheel.insert_many([1, 0, None, 1], [0, 3, 6, 20])
    assert wheel.advance_to(50) == [WindowResult("s", 0, 9, 1), WindowResult("s", 20, 23, 1)]


def test_what_is_collected_in_an_open_grain_is_kept_in_order_through_copies_and_merges():
    wheel = Wheel(agg.collect(), unit="s")
    for i in range(300):
        wheel.insert(i if i % 7 else None, i % 3)
        if i == 150:
            wheel, other = pickle.loads(pickle.dumps(wheel)), copy.copy(wheel)
    other.insert("b", 1)
    wheel.merge(other)
    wheel.advance_to(3)
    for t in range(3):
        mine = [i for i in range(300) if i % 3 == t and i % 7]
        theirs = [i for i in range(151) if i % 3 == t and i % 7] + ["b"] * (t == 1)
        assert wheel.query(t, t + 1) == mine + theirs


# --- item types


def test_a_float_among_integers_promotes_the_wheel_once_history_and_windows_too():
    wheel = Wheel(agg.sum(), unit="s", retention={"1s": 100})
    wheel.window(20, 10, name="w")
    wheel.insert_many([1, 2, 3], [0, 61, 119])
    wheel.advance_to(115)
    assert wheel.dtype == "int64"
    reader = wheel.reader()
    wheel.insert(0.5, 118)
    assert wheel.dtype == "float64"
    assert wheel.advance_to(130)[0] == WindowResult("w", 100, 120, 3.5)
    assert (wheel.query(0, 120), wheel.landmark(), reader.landmark()) == (6.5, 6.5, 3)
    with pytest.raises(TypeError, match="no number"):
        wheel.insert("text", 140)


def test_integer_sums_are_exact_and_overflow_is_raised_where_it_shows():
    wheel = Wheel(agg.sum(), unit="s", layout="prefix")
    wheel.insert_many([2**63 - 1, 2**63 - 1, -(2**63) + 1], [0, 1, 2])
    wheel.advance_to(10)
    assert wheel.query(1, 3) == 0
    with pytest.raises(OverflowError, match="int64"):
        wheel.query(0, 2)
    assert wheel.landmark() == 2**63 - 1


def test_strings_and_records_and_structs():
    wheel = Wheel(agg.min(), unit="s")
    wheel.insert_many(["b", "a"], [0, 5])
    wheel.advance_to(10)
    assert wheel.landmark() == "a"
    rides = Wheel(agg.struct(n=agg.count(), fare=agg.sum("fare"), far=agg.max("km", where="ok")), unit="s")
    rides.insert({"fare": 3, "km": 9.5, "ok": False}, 1)
    rides.insert_many({"fare": [4, 5], "km": [1.0, 2.0], "ok": [True, True]}, [2, 3])
    rides.advance_to(10)
    assert rides.landmark() == {"n": 3, "fare": 12, "far": 2.0}


# --- bytes


def wheels() -> list[Wheel]:
    out = []
    for aggregation in (agg.sum(), agg.max(), agg.collect(), agg.std(), agg.struct(a=agg.sum(), b=agg.last())):
        wheel = Wheel(aggregation, 35, unit="s", retention={"1s": 90}, write_ahead=5)
        wheel.window(20, 7, name="w")
        wheel.window(session=9)
        rng = random.Random(2)
        for t in range(35, 400, 3):
            wheel.insert(rng.randrange(-99, 99), t + rng.randrange(200))
            wheel.advance_to(t)
        out.append(wheel)
    return out


@pytest.mark.parametrize(
    "again", [lambda w: Wheel.from_bytes(w.to_bytes(), w.aggregation), lambda w: pickle.loads(pickle.dumps(w)), copy.copy, copy.deepcopy]
)
def test_bytes_pickles_and_copies_go_on_where_the_wheel_was(again):
    for wheel in wheels():
        other = again(wheel)
        other.check()
        assert repr(other) == repr(wheel)
        wheel.insert(1000, 450)
        other.insert(1000, 450)
        assert other.advance_to(900) == wheel.advance_to(900)
        assert close(other.landmark(), wheel.landmark())
        assert close(other.query(840, 900), wheel.query(840, 900))
        assert other.late == wheel.late


def test_damaged_bytes_and_another_definitions_are_refused():
    wheel = wheels()[0]
    data = wheel.to_bytes()
    with pytest.raises(ValueError, match="another definition"):
        Wheel.from_bytes(data, agg.max())
    for cut in (0, 3, 30, len(data) // 2, len(data) - 1):
        with pytest.raises(ValueError):
            Wheel.from_bytes(data[:cut], agg.sum())
    broken = bytearray(data)
    broken[len(data) // 2] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        Wheel.from_bytes(bytes(broken), agg.sum())


# --- merges


def test_merged_wheels_stand_at_the_smaller_watermark_with_windows_of_both():
    a, b = (Wheel(agg.sum(), unit="s") for _ in range(2))
    a.window(10, name="w")
    a.insert_many([1, 2, 4], [3, 14, 27])
    b.insert_many([10, 20, 40], [5, 14, 22])
    assert [r.value for r in a.advance_to(25)] == [1, 2]
    b.advance_to(12)
    a.merge(b)
    assert a.watermark == 12
    assert a.query(0, 12) == 11
    assert a.insert(100, 13)
    assert [(r.start, r.value) for r in a.advance_to(40)] == [(10, 122), (20, 44), (30, 0)]


def test_a_merge_that_needs_what_was_dropped_changes_nothing():
    a, b = (Wheel(agg.sum(), unit="s", retention=5, levels=(10,)) for _ in range(2))
    a.insert_many(np.arange(60), np.arange(60))
    a.advance_to(50)
    b.advance_to(20)
    with pytest.raises(NotRetained, match="one watermark first"):
        a.merge(b)
    assert (a.watermark, a.landmark()) == (50, sum(range(50)))
    b.advance_to(50)
    a.merge(b)
    assert a.landmark() == sum(range(50))


def test_merge_refuses_what_does_not_fit():
    wheel = Wheel(agg.sum(), unit="s")
    with pytest.raises(ValueError, match="itself"):
        wheel.merge(wheel)
    with pytest.raises(TypeError, match="not a wheel"):
        wheel.merge(3)
    with pytest.raises(ValueError, match="one aggregation"):
        wheel.merge(Wheel(agg.max(), unit="s"))


# --- readers


def test_readers_in_other_threads_answer_for_the_watermark_they_name():
    n, failures, answers = 40_000, [], [0]
    values = np.random.default_rng(1).integers(-9, 9, n)
    prefix = np.concatenate([[0], np.cumsum(values)])
    wheel = Wheel(agg.sum(), unit="s", retention={"1s": 500}, write_ahead=10)
    done = threading.Event()

    def read(seed: int) -> None:
        rng = random.Random(seed)
        while not done.is_set():
            reader = wheel.reader()
            now = reader.watermark
            if reader.landmark() != prefix[now]:
                failures.append(("landmark", now))
            for _ in range(20):
                a = rng.randrange(max(0, now - 400), now + 1)
                b = rng.randrange(a, now + 1)
                if reader.query(a, b) != prefix[b] - prefix[a]:
                    failures.append((a, b, now))
                answers[0] += 1

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for at in range(0, n, 50):
        wheel.insert_many(values[at : at + 50], np.arange(at, min(at + 50, n)))
        wheel.advance_to(min(at + 50, n))
    done.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert answers[0] > 0
    assert wheel.landmark() == prefix[n]


def test_a_reader_outlives_its_wheel():
    wheel = Wheel(agg.collect(), unit="s", retention=3, levels=())
    wheel.insert_many(list("abcdef"), range(6))
    wheel.advance_to(6)
    reader = wheel.reader()
    wheel.advance_to(600)
    del wheel
    assert reader.query(3, 6) == ["d", "e", "f"]
    assert reader.explain(3, 6).combines == 2


# --- errors


def test_bad_arguments_are_named_with_rule_and_fix():
    for make, error, words in (
        (lambda: Wheel(3), TypeError, "not an aggregation"),
        (lambda: Wheel(agg.sum(), 5), Misaligned, "multiple of the grain"),
        (lambda: Wheel(agg.sum(), unit="s", grain="500ms"), Misaligned, "finer unit"),
        (lambda: Wheel(agg.sum(), unit="y"), ValueError, "Use one of us ms s"),
        (lambda: Wheel(agg.sum(), grain="1 month"), ValueError, "no fixed length"),
        (lambda: Wheel(agg.sum(), grain=0), ValueError, "not a length"),
        (lambda: Wheel(agg.sum(), levels=("1m", "90s")), ValueError, "90s is not a multiple of 1m"),
        (lambda: Wheel(agg.sum(), levels=("1m", "1m")), ValueError, "at least two"),
        (lambda: Wheel(agg.sum(), levels=[2**i * 10**6 for i in range(1, 13)]), ValueError, "at most 11"),
        (lambda: Wheel(agg.sum(), retention="some"), ValueError, "'keep', 'drop'"),
        (lambda: Wheel(agg.sum(), retention=0), ValueError, "1 or more"),
        (lambda: Wheel(agg.sum(), retention={"2m": 5}), ValueError, "Its levels are 1s, 1m"),
        (lambda: Wheel(agg.sum(), layout="round"), ValueError, "'plain' or 'prefix'"),
        (lambda: Wheel(agg.max(), layout="prefix"), TypeError, "no inverse"),
        (lambda: Wheel(agg.sum(), write_ahead=0), ValueError, "1 to 2"),
        (lambda: Wheel(agg.sum(), hints="fast"), ValueError, "'auto'"),
        (lambda: Wheel(agg.sum(), simd_threshold=-1), ValueError, "number of combines"),
    ):
        with pytest.raises(error, match=words):
            make()


def test_bad_calls_are_named_with_rule_and_fix_and_change_nothing():
    wheel = Wheel(agg.sum(), grain=10, levels=(60,))
    wheel.insert_many([1, 2], [0, 10])
    wheel.window(20, name="w")
    wheel.advance_to(20)
    for call, error, words in (
        (lambda: wheel.query(0, 15), Misaligned, "Use 10 or 20"),
        (lambda: wheel.query(3, 20), Misaligned, "Use 0 or 10"),
        (lambda: wheel.query(20, 10), ValueError, "start first"),
        (lambda: wheel.query(-10, 10), NotRetained, "begins before the wheel does, at 0"),
        (lambda: wheel.query(0, 30), BeyondWatermark, "Advance the wheel first"),
        (lambda: wheel.query(0, "soon"), ValueError, "ISO 8601"),
        (lambda: wheel.query(0, 1.5), TypeError, "not a time"),
        (lambda: wheel.query(0, 2**62), OverflowError, "2\\^61"),
        (lambda: wheel.interval(5), Misaligned, "grain"),
        (lambda: wheel.interval(-10), ValueError, "negative"),
        (lambda: wheel.interval(1_000), NotRetained, "before the wheel"),
        (lambda: wheel.group_by(0, 20, 0), ValueError, "every=0"),
        (lambda: wheel.group_by(0, 20, 7), Misaligned, "grain"),
        (lambda: wheel.group_by(20, 0, 10), ValueError, "start first"),
        (lambda: wheel.query_many([0, 0], [10]), ValueError, "one end per start"),
        (lambda: wheel.query_many([0, 0], [10, 90]), BeyondWatermark, r"\[0, 90\)"),
        (lambda: wheel.insert(1, 2.5), TypeError, "not a time"),
        (lambda: wheel.insert(1, 2**63), OverflowError, "coarser unit"),
        (lambda: wheel.insert_many([1], [0.5]), TypeError, "floats"),
        (lambda: wheel.insert_many([1, 2], [30]), ValueError, "2 values but 1 times"),
        (lambda: wheel.insert_many("text", [30]), TypeError, "not a column"),
        (lambda: wheel.insert_many([1, 2], [30, 2**62]), OverflowError, "coarser unit"),
        (lambda: wheel.window(15), Misaligned, "grain"),
        (lambda: wheel.window(10, 20), ValueError, "longer than range"),
        (lambda: wheel.window(0), ValueError, "at least one grain"),
        (lambda: wheel.window(), TypeError, "has a range"),
        (lambda: wheel.window(session=0), ValueError, "at least one grain"),
        (lambda: wheel.window(10, session=10), ValueError, "neither range nor slide"),
        (lambda: wheel.window(20, name="w"), ValueError, "installed already"),
        (lambda: wheel.advance_to(None), TypeError, "not a time"),
        (lambda: wheel.advance_to(2**60), ValueError, "empty=False"),
    ):
        with pytest.raises(error, match=words):
            call()
    assert (wheel.watermark, wheel.landmark(), wheel.late) == (20, 3, 0)
    assert wheel.advance_to(40) == [WindowResult("w", 20, 40, 0)]


def test_a_time_before_the_watermark_moves_nothing_back():
    wheel = Wheel(agg.sum(), unit="s")
    wheel.advance_to(100)
    assert wheel.advance_to(50) == []
    assert wheel.watermark == 100


def test_a_callable_that_raises_in_an_insert_changes_nothing_and_in_an_advance_breaks_the_wheel():
    raising = [False]

    def combine(a: int, b: int) -> int:
        if raising[0]:
            raise RuntimeError("no more")
        return a + b

    wheel = Wheel(agg.define(lift=lambda x: x, combine=combine, identity=0, name="picky"), unit="s")
    wheel.insert_many([1, 2, 3], [0, 1, 61])
    raising[0] = True
    with pytest.raises(RuntimeError, match="no more"):
        wheel.insert(5, 1)
    raising[0] = False
    wheel.advance_to(2)
    assert wheel.landmark() == 3
    raising[0] = True
    with pytest.raises(RuntimeError, match="no more"):
        wheel.query(0, 2)
    with pytest.raises(RuntimeError, match="no more"):
        wheel.advance_to(200)
    raising[0] = False
    with pytest.raises(BrokenWindow, match="no more"):
        wheel.landmark()


def test_a_callable_may_not_call_its_own_wheel():
    holder: list[Wheel] = []
    caught: list[str] = []

    def combine(a: int, b: int) -> int:
        for call in (lambda: holder[0].landmark(), lambda: holder[0].reader()):
            try:
                call()
            except RuntimeError as error:
                caught.append(str(error))
        return a + b

    wheel = Wheel(agg.define(lift=lambda x: x, combine=combine, identity=0, name="nosy"), unit="s", levels=())
    holder.append(wheel)
    wheel.insert_many([1, 2, 4], [0, 1, 2])
    wheel.advance_to(3)
    assert wheel.landmark() == 7
    assert all("at work already" in message for message in caught)
    assert len(caught) >= 4
