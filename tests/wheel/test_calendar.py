"""Days, weeks and months of a time zone, against the standard library's zoneinfo asked instant by instant."""

import datetime as dt
import random
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from sash import agg
from sash.wheel import KeyedWheels, Misaligned, Wheel
from sash.wheel.calendar import Step, calendar_step, midnights

HOUR = 3_600_000_000
HALF = HOUR // 2


def instant(*when):
    return int(dt.datetime(*when, tzinfo=dt.UTC).timestamp()) * 1_000_000


def label(time, step, tz):
    """Which day, week or month it is there."""
    day = (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=time)).astimezone(ZoneInfo(tz)).date()
    if step.unit == "months":
        return (day.year * 12 + day.month - 1 - 1970 * 12) // step.size
    if step.unit == "weeks":
        return (day - dt.date(1970, 1, 5)).days // 7 // step.size
    return (day - dt.date(1970, 1, 1)).days // step.size


ZONES = [  # where and when the clock was changed: by an hour, by half an hour, over midnight, over a whole day
    ("Europe/Berlin", (2024, 3, 29), (2024, 4, 2), [24, 24, 23, 24]),
    ("Europe/Berlin", (2024, 10, 26), (2024, 10, 29), [24, 25, 24]),
    ("America/New_York", (2024, 3, 9, 12), (2024, 3, 11, 12), None),
    ("America/New_York", (2024, 11, 2, 12), (2024, 11, 4, 12), None),
    ("Australia/Lord_Howe", (2024, 4, 5), (2024, 4, 9), None),
    ("America/Sao_Paulo", (2018, 11, 2), (2018, 11, 6), None),
    ("America/Havana", (2024, 11, 2), (2024, 11, 5), None),
    ("Pacific/Apia", (2011, 12, 28), (2012, 1, 2), None),
    ("UTC", (2024, 2, 27), (2024, 3, 2), [24] * 4),
]


@pytest.mark.parametrize(("tz", "start", "end", "hours"), ZONES)
@pytest.mark.parametrize("every", ["1d", "2 days", "1w", "1 month"])
def test_steps_begin_where_the_local_date_changes(tz, start, end, hours, every):
    step = calendar_step(every)
    wide = (instant(*start) - 70 * 24 * HOUR, instant(*end) + 70 * 24 * HOUR)
    changes = [t for t in range(wide[0] + HALF, wide[1], HALF) if label(t, step, tz) != label(t - HALF, step, tz)]
    found = midnights(*wide, step, tz)
    assert found[1:-1] == [t for t in changes if t < wide[1]][: len(found) - 2]
    assert found[0] <= wide[0] < found[1]
    assert found[-1] >= wide[1]
    for time in random.Random(every).choices(range(wide[0], wide[1], HALF), k=50):
        first, second, *_ = midnights(time, time + 1, step, tz)
        assert first <= time < second
        assert label(first, step, tz) == label(time, step, tz) != label(second, step, tz)


def test_days_of_23_and_25_hours():
    for tz, start, end, hours in ZONES:
        if hours:
            days = midnights(instant(*start), instant(*end), Step(1, "days"), tz)
            inner = [(b - a) // HOUR for a, b in pairwise(days)]
            assert set(inner) == set(hours)


@pytest.mark.parametrize("kind", ["wheel", "keyed"])
@pytest.mark.parametrize("tz", ["Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def test_group_by_in_a_time_zone_equals_brute_force(kind, tz):
    start, end = instant(2024, 10, 20, 5), instant(2024, 11, 20, 5)
    rng = random.Random(tz)
    items = [(rng.randrange(start, end), rng.randrange(100)) for _ in range(500)]
    times, values = [t for t, _ in items], [v for _, v in items]
    if kind == "wheel":
        w = Wheel(agg.sum(), start=start, grain="30m", levels=("1h", "1d"), write_ahead=4096)
        ask = w.group_by
        w.insert_many(values, times)
    else:
        w = KeyedWheels(agg.sum(), start=start, grain="30m", levels=("1h", "1d"))
        w.insert_many(["a"] * len(items), values, times)
        ask = lambda *given, **named: w.group_by("a", *given, **named)  # noqa: E731
    w.advance_to(end)
    for every in ("1d", "1w", "1 month"):
        step = calendar_step(every)
        expected = {}
        for t in range(start, end, HALF):
            expected.setdefault(label(t, step, tz), [t, 0])
        for t, v in items:
            expected[label(t, step, tz)][1] += v
        assert ask(start, end, every, tz=tz) == [tuple(bucket) for bucket in expected.values()]
    if kind == "keyed":
        assert w.group_by_all(start, end, "1w", tz=tz) == ask(start, end, "1w", tz=tz)


def test_what_has_no_midnight_there_is_refused():
    w = Wheel(agg.sum(), start=0, unit="us", grain="1h")
    w.advance_to(instant(1970, 3, 1))
    with pytest.raises(Misaligned):
        w.group_by(0, instant(1970, 1, 5), "1d", tz="Asia/Kolkata")
    with pytest.raises(ValueError, match="is not a known time zone"):
        w.group_by(0, instant(1970, 1, 5), "1d", tz="Europe/Nowhere")
    for every in ("1h", "36h", "0d", 86_400_000_000, "1.5d"):
        with pytest.raises(ValueError, match="no length of a calendar"):
            w.group_by(0, instant(1970, 1, 5), every, tz="UTC")
    with pytest.raises(ValueError, match="months and years have no fixed length"):
        w.group_by(0, instant(1970, 2, 1), "1 month")
    with pytest.raises(ValueError, match="is after end"):
        w.group_by(HOUR, 0, "1d", tz="UTC")
