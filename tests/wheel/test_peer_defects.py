"""Where peers' wheels give wrong answers: one test each, named after what went wrong."""

from __future__ import annotations

import random

import pytest

from sash import agg
from sash.wheel import BeyondWatermark, NotRetained, Wheel, WindowResult
from tests.wheel.oracle import BruteWheel

DAY = 86_400


def fed(aggregation: agg.Aggregation, n: int, start: int = 0, seed: int = 1, every: int = 10, **options) -> tuple[Wheel, BruteWheel]:
    """Feed a wheel of seconds and the brute force with n distinct values, negatives among them, and advance both over all."""
    rng = random.Random(seed)
    wheel, brute = Wheel(aggregation, start, unit="s", **options), BruteWheel(aggregation, start)
    for i in range(n):
        if i % every:  # with gaps
            value = rng.randrange(-(10**6), 10**6)
            assert wheel.insert(value, start + i) == brute.insert(value, start + i)
        if i % 50 == 49:
            wheel.advance_to(start + i - 9)
            brute.advance_to(start + i - 9)
    wheel.advance_to(start + n)
    brute.advance_to(start + n)
    return wheel, brute


def test_01_a_range_that_straddles_the_watermark_is_refused():
    wheel, brute = fed(agg.sum(), 100)
    with pytest.raises(BeyondWatermark, match=r"ends after the watermark, 100\b.*clamp=True"):
        wheel.query(50, 150)
    assert wheel.query(50, 150, clamp=True) == brute.value(50, 100)
    assert wheel.query(120, 150, clamp=True) == 0


@pytest.mark.parametrize("start", [17, 3_599, 86_399, -12_345])
def test_02_a_start_that_is_not_aligned_to_coarse_levels(start):
    wheel, brute = fed(agg.sum(), 8_000, start)
    rng = random.Random(start)
    prefix = [0]
    for t in range(start, start + 8_000):
        prefix.append(prefix[-1] + sum(v for v, _ in brute.items.get(t, ())))
    for _ in range(2_000):
        a, b = sorted(rng.randrange(8_001) for _ in range(2))
        assert wheel.query(start + a, start + b) == prefix[b] - prefix[a]


def test_03_windows_whose_slices_are_longer_than_a_retained_level():
    wheel, brute = Wheel(agg.max(), unit="s", retention=2, levels=("10s",)), BruteWheel(agg.max())
    wheel.window(90, 45, name="w")
    brute.install("w", 90, 45, 0)
    rng, found, expected = random.Random(3), [], []
    for t in range(2_000):
        value = rng.randrange(-1000, -1)
        assert wheel.insert(value, t) == brute.insert(value, t)
        found += wheel.advance_to(t)
        expected += brute.advance_to(t)
    assert len(found) > 40
    assert found == expected


def test_04_a_sum_whose_inverse_does_not_clamp_at_zero():
    wheel = Wheel(agg.sum(), unit="s", layout="prefix")
    wheel.insert_many([-5, 3, -7], [0, 1, 2])
    wheel.advance_to(3)
    assert [wheel.query(a, 3) for a in range(3)] == [-9, -4, -7]


def test_05_a_session_minimum_does_not_start_from_zero():
    wheel = Wheel(agg.min(), unit="s")
    wheel.window(session="5s", name="s")
    wheel.insert_many([7, 4, 9], [10, 12, 30])
    assert wheel.advance_to(60) == [WindowResult("s", 10, 17, 4), WindowResult("s", 30, 35, 9)]


@pytest.mark.parametrize("write_ahead", [1, 3, 5, 63, 100, 1000])
def test_06_a_write_ahead_size_that_is_not_a_power_of_two(write_ahead):
    wheel, brute = fed(agg.collect(), 700, write_ahead=write_ahead)
    for a in range(0, 700, 37):
        assert wheel.query(a, min(a + 91, 700)) == brute.value(a, min(a + 91, 700))


def test_07_the_last_full_turn_is_retained_to_the_last_slot():
    wheel, brute = fed(agg.sum(), 500, retention="drop")
    assert wheel.query(440, 500) == brute.value(440, 500)
    with pytest.raises(NotRetained, match="no longer held"):
        wheel.query(439, 500)
    wheel.advance_to(501)
    assert wheel.query(441, 501) == brute.value(441, 501)


def test_08_a_merge_reads_all_of_a_ring_that_has_wrapped():
    a, brute = fed(agg.sum(), 230, seed=1, retention=70, levels=(), write_ahead=7)
    b, other = fed(agg.sum(), 230, seed=2, retention=70, levels=(), write_ahead=7)
    for t in range(230, 245):  # open ticks on both sides, in rings that have turned many times
        for wheel, raw, value in ((a, brute, t), (b, other, -3 * t)):
            assert wheel.insert(value, t) == raw.insert(value, t)
    a.merge(b)
    brute.merge(other)
    a.advance_to(260)
    brute.advance_to(260)
    for start in range(190, 260):
        assert a.query(start, 260) == brute.value(start, 260)


def test_09_a_merge_with_another_number_of_levels_is_refused():
    a, brute = fed(agg.sum(), 100, levels=("10s",))
    b, _ = fed(agg.sum(), 100, levels=("10s", "1m"))
    with pytest.raises(ValueError, match="equal unit, grain and levels"):
        a.merge(b)
    assert a.landmark() == brute.value(0, 100)


def test_10_the_last_bucket_of_group_by_ends_at_the_end():
    wheel, brute = fed(agg.sum(), 100)
    assert wheel.group_by(5, 50, 20) == [(5, brute.value(5, 25)), (25, brute.value(25, 45)), (45, brute.value(45, 50))]
    assert wheel.group_by(50, 50, 20) == []


def test_11_a_mean_over_an_empty_bucket_is_none():
    wheel = Wheel(agg.mean(), unit="s")
    wheel.insert_many([4, 5], [0, 70])
    wheel.advance_to(90)
    assert wheel.group_by(0, 90, 30) == [(0, 4.0), (30, None), (60, 5.0)]


@pytest.mark.parametrize("layout", ["plain", "prefix"])
def test_12_a_layout_is_right_before_its_ring_has_turned_and_after(layout):
    wheel, brute = Wheel(agg.sum(), unit="s", layout=layout, retention=50, levels=("10s",)), BruteWheel(agg.sum())
    for t in range(300):
        assert wheel.insert(t * t - 999, t) == brute.insert(t * t - 999, t)
        wheel.advance_to(t + 1)
        brute.advance_to(t + 1)
        a = max(0, t - 40)
        assert wheel.query(a, t + 1) == brute.value(a, t + 1)


def test_13_an_empty_range_at_the_watermark_is_empty():
    for aggregation, empty in ((agg.sum(), 0), (agg.min(), None), (agg.collect(), [])):
        wheel, _ = fed(aggregation, 100)
        assert wheel.query(100, 100) == empty
        assert wheel.query(0, 0) == empty
        assert wheel.interval(0) == empty
        with pytest.raises(BeyondWatermark):
            wheel.query(101, 101)


@pytest.mark.parametrize("retention", ["keep", "drop", 3])
def test_14_an_advance_longer_than_the_whole_wheel(retention):
    wheel, brute = fed(agg.sum(), 100, retention=retention)
    far = 100 + 10 * 7 * DAY + 12_345
    assert wheel.insert(41, far - 5)
    assert brute.insert(41, far - 5)
    wheel.advance_to(far)
    brute.advance_to(far)
    assert wheel.landmark() == brute.value(0, far)
    assert wheel.query(far - 3, far) == 0
    if retention != 3:
        assert wheel.query(far - 20, far) == 41
    assert wheel.slots < 1_000_000 or retention == "keep"


def test_late_items_are_refused_and_counted():
    wheel = Wheel(agg.sum(), unit="s")
    wheel.advance_to(100)
    assert wheel.insert(1, 100)  # at the watermark is in time
    assert not wheel.insert(1, 99)
    assert wheel.insert_many([1, 1, 1], [0, 100, 99]) == 2
    assert wheel.late == 3
    wheel.advance_to(101)
    assert wheel.landmark() == 2


def test_several_windows_on_one_wheel_come_by_end_and_then_by_installation():
    wheel = Wheel(agg.count(), unit="s")
    for name, length, slide in (("b", 20, 10), ("a", 10, 10), ("c", 30, 30)):
        wheel.window(length, slide, name=name)
    wheel.insert_many([1] * 3, [0, 12, 29])
    assert [(r.name, r.end, r.value) for r in wheel.advance_to(30)] == [
        ("a", 10, 1),
        ("b", 20, 2),
        ("a", 20, 1),
        ("b", 30, 2),
        ("a", 30, 1),
        ("c", 30, 3),
    ]


def test_windows_are_aligned_to_the_epoch_not_to_their_installation():
    wheel = Wheel(agg.count(), 7, unit="s")
    wheel.advance_to(13)
    wheel.window(10, name="w")
    wheel.window(10, 10, 3, name="shifted")
    assert [(r.name, r.start) for r in wheel.advance_to(40)] == [("shifted", 13), ("w", 20), ("shifted", 23), ("w", 30)]


def test_a_minimum_over_nothing_is_none():
    wheel = Wheel(agg.min(), unit="s")
    wheel.advance_to(60)
    assert wheel.query(0, 60) is None
    assert wheel.landmark() is None


def test_two_pairs_go_where_range_is_no_multiple_of_slide():
    # range 10, slide 4: slices of 2 and 2; both must leave with a slide
    wheel, brute = Wheel(agg.collect(), unit="s"), BruteWheel(agg.collect())
    wheel.window(10, 4, name="w")
    brute.install("w", 10, 4, 0)
    for t in range(200):
        assert wheel.insert(t, t) == brute.insert(t, t)
    assert wheel.advance_to(200) == brute.advance_to(200)


def test_a_slot_handed_on_does_not_count_again_one_rotation_later():
    wheel = Wheel(agg.sum(), unit="s", write_ahead=4)
    wheel.insert(5, 2)
    wheel.advance_to(3)
    wheel.advance_to(20)
    assert wheel.query(3, 20) == 0
    assert wheel.landmark() == 5


def test_an_item_leaving_the_overflow_wheel_lands_in_its_own_slot():
    for ahead in (4, 5, 6, 63, 64, 65, 4095, 4096, 300_000):
        wheel = Wheel(agg.collect(), unit="s", write_ahead=4)
        wheel.insert("far", ahead)
        wheel.insert("farther", ahead + 1)
        for t in (*range(1, 12), ahead - 1, ahead, ahead + 1, ahead + 2):
            wheel.advance_to(t)
        assert wheel.query(ahead, ahead + 1) == ["far"]
        assert wheel.query(ahead + 1, ahead + 2) == ["farther"]


def test_the_landmark_plan_is_for_the_range_that_equals_the_landmarks():
    wheel, brute = fed(agg.max(), 400)
    assert wheel.explain(0, 400).strategy == "landmark"
    for a, b in ((1, 400), (0, 399), (100, 300)):
        assert wheel.explain(a, b).strategy != "landmark"
        assert wheel.query(a, b) == brute.value(a, b)


def test_every_fold_is_oldest_first():
    for aggregation in (agg.first(), agg.last(), agg.collect()):
        wheel, brute = fed(aggregation, 4_000)
        assert wheel.landmark() == brute.value(0, 4_000)
        for a, b in ((1, 3_999), (61, 3_700), (59, 121), (3_599, 3_661)):
            assert wheel.query(a, b) == brute.value(a, b)


def test_the_inverse_landmark_needs_an_aggregation_that_commutes():
    calls = []

    def inverse(whole: tuple, oldest: tuple) -> tuple:
        calls.append(1)
        return whole[len(oldest) :]

    ordered = agg.define(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), inverse=inverse, name="ordered")
    wheel, brute = fed(ordered, 500, hints="inverse")
    for a, b in ((1, 499), (3, 500), (0, 498)):
        assert wheel.query(a, b) == brute.value(a, b)
        assert wheel.explain(a, b).strategy == "combined"
    assert not calls
