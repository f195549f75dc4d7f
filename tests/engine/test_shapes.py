"""Shapes beyond a range and a slide: look-backs in hops, several ranges, windows that fall empty, calendars, labels.

Every one of them against brute force, in a stream whose state is stored and read again, and in one batch.
"""

import datetime as dt
import random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from sash import agg
from sash.engine import CalendarWindows, Hops, Labels, Query, Rolling, Rows, Slicer, Sweep, Windows, bucket_of
from sash.engine.query import MARK

SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
AGGS = (("n", agg.count()), ("s", agg.sum("v")), ("hi", agg.max("v")), ("all", agg.collect("v")))
CLOSED = ("right", "left", "both", "neither")


@pytest.fixture(params=["auto", "array", "tree", "column"], autouse=True)
def form(request, monkeypatch):
    """Every test with the state in each of its forms."""
    monkeypatch.setenv("SASH_ENGINE_FORM", request.param)


def results(values):
    """What the aggregations give for the values of some rows."""
    known = sorted(v for v in values if v is not None)
    return (len(values), sum(known), known[-1], tuple(known)) if known else (len(values), None, None, ())


def plain(batches):
    """All rows, lists sorted, in an order of their own."""
    rows = [tuple(tuple(sorted(v)) if isinstance(v, list) else v for v in row.values()) for b in batches for row in b.to_pylist()]
    return sorted(rows, key=repr)


def stream(query, parts, marks, rng):
    """What comes out after each micro-batch; the state is stored in between, and often read again."""
    make = bucket_of(query)
    bucket, slicer, blobs, out = make(query), Slicer(query, 1), {}, []
    bucket.advance(-(10**6))
    for part, mark in zip(parts, marks, strict=True):
        for packed in slicer.pack(part):
            bucket.add(packed.blob)
        out.append(plain(bucket.advance(mark)))
        if rng.random() < 0.7:
            commit = bucket.commit()
            blobs = {i: blob for i, blob in blobs.items() if i not in commit.remove} | commit.put
            if rng.random() < 0.7:
                bucket = make.load(query, commit.meta, blobs)
    return out


def batch_of(schema, rows):
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def arriving(rng, rows, batches=7, spread=15):
    """Rows in parts, out of order by up to the spread, and after each part a watermark that is behind by less than it."""
    rows = sorted(rows, key=lambda row: row[1] + rng.uniform(0, spread))
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(batches - 1))
    parts = [rows[i:j] for i, j in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    newest, marks = -100, []
    for part in parts:
        newest = max([newest, *(row[1] for row in part)])
        marks.append(newest - rng.choice([3, 12, 20]))
    marks = [max(marks[: i + 1]) for i in range(len(marks))]
    return [*parts, [], []], [*marks, marks[-1] + 40, marks[-1] + 1_000]


def events(rng, n=70, keys="ab", last=150):
    return [(rng.choice(keys), rng.randrange(-20, last), rng.choice([None, *range(9)])) for _ in range(n)]


def on_time(parts, marks, least=-(10**6)):
    """The rows that were not late when they came, by part."""
    seen = [least, *marks]
    return [[row for row in part if row[1] > seen[i]] for i, part in enumerate(parts)]


def sweep(query, batch):
    engine = Sweep(query)
    return plain([*engine.feed(batch), *engine.finish()])


# --- look-backs in hops


def look_back(rows, key, at, period, closed, delay=0):
    """The values of a look-back by the definition."""
    at -= delay
    right, left = closed in ("right", "both"), closed in ("left", "both")
    near = [(t, v) for k, t, v in rows if k == key and (t < at or (right and t == at))]
    if isinstance(period, Hops):
        return [v for t, v in near if t >= (at - period.period) // period.hop * period.hop]
    return [v for t, v in near if period is None or t > at - period or (left and t == at - period)]


@pytest.mark.parametrize("seed", range(20))
def test_a_look_back_in_hops_begins_at_a_hop_and_loses_nothing(seed):
    rng = random.Random(seed)
    kinds = [("30", Hops(30, 10)), ("21", Hops(21, 7)), ("8", Hops(8, 8)), ("5", 5), ("all", None), ("13", 13)]
    periods = tuple([kinds[rng.randrange(3)], *rng.sample(kinds[3:], rng.randrange(3))])
    closed, delay = rng.choice(CLOSED), rng.choice([0, 0, 6])
    query = Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling(periods, closed, delay))
    rows = events(rng)
    parts, marks = arriving(rng, rows)
    kept = [row for part in on_time(parts, marks) for row in part]
    expected = [
        (*row, *(cell for a in range(4) for _, p in periods for cell in [results(look_back(kept, row[0], row[1], p, closed, delay))[a]]))
        for row in kept
    ]
    found = stream(query, [batch_of(SCHEMA, part) for part in parts], marks, rng)
    assert sorted((row for given in found for row in given), key=repr) == sorted(expected, key=repr), (periods, closed)
    ordered = batch_of(SCHEMA, sorted(kept, key=lambda row: (row[0], row[1])))
    assert sweep(query, ordered) == sorted(expected, key=repr)


def test_rows_that_only_coarse_look_backs_reach_are_held_one_per_hop():
    query = Query(SCHEMA, "t", ("k",), AGGS[:3], rolling=Rolling((("10", 10), ("600", Hops(600, 60)))))
    bucket = bucket_of(query)(query)
    for start in range(0, 3_000, 50):
        for packed in Slicer(query, 1).pack(batch_of(SCHEMA, [("a", t, 1) for t in range(start, start + 50)])):
            bucket.add(packed.blob)
        bucket.advance(start + 49)
        bucket.commit()
    assert bucket.slices <= 600 // 60 + 2 + 10


def test_a_late_row_that_is_accepted_joins_its_hop_and_does_not_bring_an_expired_one_back():
    query = Query(SCHEMA, "t", ("k",), AGGS[:2], rolling=Rolling((("20", Hops(20, 10)),)), late="accept")
    bucket, slicer = bucket_of(query)(query), Slicer(query, 1)

    def send(*rows):
        for packed in slicer.pack(batch_of(SCHEMA, rows)):
            bucket.add(packed.blob)

    #   hops   0        10        20        30        40        50
    #          a(5)     b(12)     c(25)                         W = 31, then late: d(14) counts, e(3) is out of reach
    send(("a", 5, 1), ("a", 12, 2), ("a", 25, 4))
    assert plain(bucket.advance(31)) == [("a", 12, 2, 2, 3), ("a", 25, 4, 3, 7), ("a", 5, 1, 1, 1)]
    send(("a", 14, 8), ("a", 3, 16), ("a", 32, 32))
    assert plain(bucket.advance(40)) == [("a", 32, 32, 4, 46)]  # [10, 32]: b, d, c and itself
    send(("a", 52, 64), ("a", 2_000, 5))  # a row from the future reaches nothing of this
    assert plain(bucket.advance(60)) == [("a", 52, 64, 2, 96)]  # [30, 52]
    assert plain(bucket.advance(3_000)) == [("a", 2_000, 5, 1, 5)]


# --- several ranges, and windows that fall empty


def ends_of(t, range_, slide, offset):
    """The ends of the windows that a time is in."""
    first = (t - offset - range_) // slide * slide + slide + offset + range_
    return range(first, (t - offset) // slide * slide + offset + range_ + 1, slide)


@pytest.mark.parametrize("seed", range(20))
def test_several_ranges_give_one_row_where_the_longest_holds_something(seed):
    rng = random.Random(seed)
    slide, offset = rng.choice([3, 5, 10]), rng.randrange(5)
    ranges = tuple((f"{r}s", r) for r in rng.sample([10, 20, 25, 40, 60], rng.randrange(1, 4)))
    longest, once = max(r for _, r in ranges), rng.random() < 0.5
    query = Query(SCHEMA, "t", ("k",), AGGS, windows=Windows(longest, slide, offset, ranges, once))
    rows = events(rng, last=300)
    parts, marks = arriving(rng, rows)
    seen, taken, expected = -(10**6), [], []
    for part, mark in zip(parts, marks, strict=True):
        taken += [row for row in part if ends_of(row[1], longest, slide, offset)[-1] > seen]
        given = []
        for key in "ab":
            filled = {end for k, t, _ in taken if k == key for end in ends_of(t, longest, slide, offset)}
            asked = filled | ({end + slide for end in filled} if once else set())
            for end in asked:
                if not seen < end <= mark:
                    continue
                inside = [results([v for k, t, v in taken if k == key and end - r <= t < end]) for _, r in ranges]
                given.append((key, end, *(cell[a] for a in range(4) for cell in inside)))
        expected.append(sorted(given, key=repr))
        seen = mark
    found = stream(query, [batch_of(SCHEMA, part) for part in parts], marks, rng)
    assert found == expected, (ranges, slide, offset, once)


def test_a_key_that_falls_silent_is_told_once():
    #   range 10, slide 5       0    5    10   15   20   25   30   35   40
    #   a at 7                  windows [0, 10) and [5, 15); then [10, 20) is the first without it
    #   a at 31                 windows [25, 35) and [30, 40); then [35, 45)
    query = Query(SCHEMA, "t", ("k",), AGGS[:2], windows=Windows(10, 5, empty_once=True))
    bucket, slicer = bucket_of(query)(query), Slicer(query, 1)

    def send(*rows):
        for packed in slicer.pack(batch_of(SCHEMA, rows)):
            bucket.add(packed.blob)

    send(("a", 7, 1))
    assert plain(bucket.advance(19)) == [("a", 0, 10, 1, 1), ("a", 5, 15, 1, 1)]
    send(("a", 8, 9))  # too late for both of its windows: it does not count as a row that was there
    assert plain(bucket.advance(20)) == [("a", 10, 20, 0, None)]
    send(("a", 31, 2))
    assert plain(bucket.advance(44)) == [("a", 25, 35, 1, 2), ("a", 30, 40, 1, 2)]
    assert bucket.keys == 1
    assert plain(bucket.advance(1_000)) == [("a", 35, 45, 0, None)]
    assert (bucket.keys, bucket.slices) == (0, 0)


# --- calendars

UTC = pa.timestamp("us", "UTC")
STAMPED = pa.schema([("k", pa.string()), ("t", UTC), ("v", pa.int64())])


def local_start(kind, day):
    """The first day of the week or month that a local day is in."""
    return day if kind == "days" else day - dt.timedelta(day.weekday()) if kind == "weeks" else day.replace(day=1)


def number(kind, day):
    epoch = dt.date(1970, 1, 5) if kind == "weeks" else dt.date(1970, 1, 1)
    return (day.year - 1970) * 12 + day.month - 1 if kind == "months" else (day - epoch).days // (7 if kind == "weeks" else 1)


def first_day(kind, n):
    if kind == "months":
        return dt.date(1970 + n // 12, n % 12 + 1, 1)
    return dt.date(1970, 1, 5) + dt.timedelta(7 * n) if kind == "weeks" else dt.date(1970, 1, 1) + dt.timedelta(n)


def midnight(day, zone):
    """The first instant of a local day."""
    instant = dt.datetime.combine(day, dt.time(), zone).astimezone(dt.UTC)
    while instant.astimezone(zone).date() < day:
        instant += dt.timedelta(minutes=15)
    return instant


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu"])
@pytest.mark.parametrize("kind", ["days", "weeks", "months"])
def test_windows_of_a_calendar_start_at_local_midnights(kind, zone):
    rng, place = random.Random(f"{kind} {zone}"), ZoneInfo(zone)
    range_, slide = rng.choice([(1, 1), (3, 1), (2, 2), (4, 2)])
    query = Query(STAMPED, "t", ("k",), AGGS[:2], windows=CalendarWindows(range_, slide, kind=kind, tz=zone))
    first = dt.datetime(2018, 1, 1, tzinfo=dt.UTC)
    rows = [(rng.choice("ab"), first + dt.timedelta(hours=rng.uniform(0, 24 * 500)), rng.randrange(9)) for _ in range(60)]
    expected = []
    for key in "ab":
        mine = [(number(kind, local_start(kind, t.astimezone(place).date())), v) for k, t, v in rows if k == key]
        for end in sorted({e for n, _ in mine for e in ends_of(n, range_, slide, 0)}):
            inside = results([v for n, v in mine if end - range_ <= n < end])[:2]
            expected.append((key, *(midnight(first_day(kind, n), place) for n in (end - range_, end)), *inside))
    bucket = bucket_of(query)(query)
    for packed in Slicer(query, 1).pack(batch_of(STAMPED, rows)):
        bucket.add(packed.blob)
        assert packed.max_time == max(int(t.timestamp() * 1_000_000 + 0.5) for _, t, _ in rows)
    assert plain(bucket.flush()) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", dt.date(2024, 3, 31), 23),
        ("Europe/Berlin", dt.date(2024, 10, 27), 25),
        ("America/New_York", dt.date(2024, 3, 10), 23),
        ("America/New_York", dt.date(2024, 11, 3), 25),
        ("Australia/Lord_Howe", dt.date(2024, 10, 6), 23.5),
        ("America/Sao_Paulo", dt.date(2018, 11, 4), 23),  # its midnight does not exist
    ],
)
def test_days_at_a_change_of_clocks_have_their_length(zone, day, hours):
    query = Query(STAMPED, "t", (), AGGS[:1], windows=CalendarWindows(1, 1, kind="days", tz=zone))
    noon = dt.datetime.combine(day, dt.time(12), ZoneInfo(zone)).astimezone(dt.UTC)
    bucket = bucket_of(query)(query)
    for packed in Slicer(query, 1).pack(batch_of(STAMPED, [("a", noon, 1)])):
        bucket.add(packed.blob)
    [row] = [row for batch in bucket.flush() for row in batch.to_pylist()]
    assert row["window_end"] - row["window_start"] == dt.timedelta(hours=hours)


# --- labels

LABELLED = pa.schema([*SCHEMA, ("id", pa.int64()), (MARK, pa.bool_())])


@pytest.mark.parametrize("seed", range(20))
def test_every_label_comes_out_once_with_the_rows_before_it(seed):
    rng = random.Random(seed)
    kinds = [("5", 5), ("30", 30), ("all", None), ("20", Hops(20, 8)), ("3rows", Rows(3))]
    periods = tuple(rng.sample(kinds, rng.randrange(1, 4)))
    closed = rng.choice(["left", "left", "right", "both", "neither"])
    query = Query(
        LABELLED,
        "t",
        ("k",),
        AGGS[:3],
        rolling=Rolling(periods, closed),
        labels=Labels(("id", "k", "when"), "when"),
        late=rng.choice(["drop", "accept"]),
    )
    rows = [(k, t, v, None, False) for k, t, v in events(rng, keys="abc")]
    labels = [(rng.choice("abd"), rng.choice([*(r[1] for r in rows), rng.randrange(-20, 150)]), None, i, True) for i in range(40)]
    rows = [row for i, row in enumerate(rows) if (row[0], row[1]) not in {r[:2] for r in rows[:i]}]  # ties have no order by rows
    ordered = sorted([*rows, *labels], key=lambda row: (row[0], row[1]))

    def answer(k, t, known):
        cells = []
        for _, period in periods:
            if isinstance(period, Rows):
                back = sorted((u, v) for key, u, v in known if key == k and (u < t or (closed in ("right", "both") and u == t)))
                cells.append(results([v for _, v in back[-period.n :]]))
            else:
                cells.append(results(look_back(known, k, t, period, closed)))
        return tuple(cell[a] for a in range(3) for cell in cells)

    known = [row[:3] for row in rows]
    expected = sorted(((i, k, t, *answer(k, t, known)) for k, t, _, i, _ in labels), key=repr)
    assert sweep(query, batch_of(LABELLED, ordered)) == expected, (periods, closed)

    parts, _ = arriving(rng, [*rows, *labels])
    marks = [-50] * (len(parts) - 1) + [1_000]  # nothing is late
    found = stream(query, [batch_of(LABELLED, part) for part in parts], marks, rng)
    assert sorted((row for given in found for row in given), key=repr) == expected, (periods, closed)


def test_a_label_is_final_when_the_watermark_passes_it_and_counts_for_nobody():
    query = Query(LABELLED, "t", ("k",), AGGS[:1], rolling=Rolling((("10", 10),), "left"), labels=Labels(("id", "k", "t"), "t"))
    bucket, slicer = bucket_of(query)(query), Slicer(query, 1)

    def send(*rows):
        for packed in slicer.pack(batch_of(LABELLED, rows)):
            bucket.add(packed.blob)

    send(("a", 5, 1, None, False), ("a", 5, None, 1, True), ("a", 6, None, 2, True), ("b", 6, None, 3, True))
    assert plain(bucket.advance(5)) == [(1, "a", 5, 0)]  # the row at its own time does not count
    assert plain(bucket.advance(6)) == [(2, "a", 6, 1), (3, "b", 6, 0)]
    send(("a", 6, None, 4, True), ("a", 7, None, 5, True))
    assert bucket.late == 1
    assert plain(bucket.advance(9)) == [(5, "a", 7, 1)]  # a label that comes too late does not come out
