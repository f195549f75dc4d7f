"""Buckets that tell more than final results, against brute force batch by batch; the state is stored and read in between."""

import random

import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Query, Rolling, Rows, Sessions, Slicer, Windows, bucket_of, store
from sash.errors import DefinitionError

SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
AGGS = (("n", agg.count()), ("s", agg.sum("v")), ("hi", agg.max("v")))
OBJECTS = (*AGGS[:2], ("all", agg.collect("v")))
NOTHING = (0, None, None)
FORMS = ["objects", "objects in columns", "objects in trees", "auto", "column", "array", "tree"]
OF_OBJECTS = {"objects": "auto", "objects in columns": "column", "objects in trees": "tree"}


@pytest.fixture(params=FORMS, autouse=True)
def form(request, monkeypatch):
    monkeypatch.setenv("SASH_ENGINE_FORM", OF_OBJECTS.get(request.param, request.param))
    if "tree" in request.param or request.param == "column":  # small states in deltas too, that are merged early
        monkeypatch.setattr(store, "SMALL", 0)
        monkeypatch.setattr(store, "FAN", 2)
        monkeypatch.setattr(store, "RECENT", 1)
    return request.param


def aggs_of(form):
    return OBJECTS if form in OF_OBJECTS else AGGS


def results(values):
    return (len(values), sum(values), max(values)) if values else NOTHING


def plain(row):
    """Lists told by their largest value: what is kept of them is tested with the aggregations."""
    return tuple((max(v) if v else None) if isinstance(v, list) else v for v in row.values())


def rows_of(batch):
    return [plain(row) for row in batch.to_pylist()]


def run(query, batches, marks, rng):
    """The rows that come out after each batch."""
    make = bucket_of(query)
    bucket, slicer, blobs, out = make(query), Slicer(query, 1), {}, []
    bucket.advance(0)
    for batch, mark in zip(batches, marks, strict=True):
        columns = list(zip(*batch, strict=True)) or [(), (), ()]
        table = pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
        for packed in slicer.pack(table):
            bucket.add(packed.blob)
        out.append(sorted((row for given in bucket.advance(mark) for row in rows_of(given)), key=repr))
        if rng.random() < 0.6:
            commit = bucket.commit()
            blobs = {i: blob for i, blob in blobs.items() if i not in commit.remove} | commit.put
            if rng.random() < 0.7:
                bucket = make.load(query, commit.meta, blobs)
    return out


def stream(rng, count=60, keys="ab", last=100, batches=8, spread=15):
    """Batches of (key, time, value), some late, and the watermark during each: 10 behind the newest of the batches before."""
    events = [(rng.choice(keys), rng.randrange(1, last), rng.randrange(100)) for _ in range(count)]
    events.sort(key=lambda event: event[1] + rng.uniform(0, spread))
    cuts = sorted(rng.randrange(count + 1) for _ in range(batches - 1))
    parts = [events[i:j] for i, j in zip([0, *cuts], [*cuts, count], strict=True)]
    marks = [max(0, *(t - 10 for part in parts[:i] for _, t, _ in part), 0) for i in range(len(parts) + 3)]
    marks[-2:] = [marks[-1] + 25, marks[-1] + 200]
    return [*parts, [], [], []], marks


def look_back(events, key, at, period, closed="right", delay=0):
    at -= delay
    right, left = closed in ("right", "both"), closed in ("left", "both")
    return [v for k, t, v in events if k == key and (t < at or (right and t == at)) and (period is None or t > at - period - left)]


@pytest.mark.parametrize("seed", range(10))
def test_updates_tell_every_open_window_that_rows_came_for(seed, form):
    rng = random.Random(seed)
    length, slide = rng.choice([(10, 5), (12, 4), (7, 7), (9, 6)])
    offset = rng.randrange(slide)
    batches, marks = stream(rng)
    query = Query(SCHEMA, "t", ("k",), aggs_of(form), windows=Windows(length, slide, offset), emit="update")
    held, expected = {}, []
    for batch, before in zip(batches, [0, *marks], strict=False):
        touched = set()
        for k, t, v in batch:
            for start in range((t - offset) // slide * slide + offset, t - length, -slide):
                if start + length > before:
                    held.setdefault((k, start), []).append(v)
                    touched.add((k, start))
        expected.append(sorted(((k, s, s + length, *results(held[k, s])) for k, s in touched), key=repr))
    assert run(query, batches, marks, rng) == expected


@pytest.mark.parametrize("seed", range(10))
def test_events_come_at_once_from_what_has_arrived(seed, form):
    rng = random.Random(seed)
    closed, delay = rng.choice(["right", "left", "both", "neither"]), rng.choice([0, 4])
    batches, marks = stream(rng, spread=8)
    lookbacks = (("a", 7), ("b", 20), ("c", None))
    query = Query(SCHEMA, "t", ("k",), aggs_of(form), rolling=Rolling(lookbacks, closed, delay), emit="event", late="flag")
    arrived, expected = [], []
    for batch, before in zip(batches, [0, *marks], strict=False):
        arrived += batch
        rows = []
        for k, t, v in batch:
            values = [results(look_back(arrived, k, t, period, closed, delay)) for _, period in lookbacks]
            rows.append((k, t, v, *(value[i] for i in range(3) for value in values), t <= before))
        expected.append(sorted(rows, key=repr))
    assert run(query, batches, marks, rng) == expected


@pytest.mark.parametrize("late", ["drop", "accept"])
@pytest.mark.parametrize("seed", range(10))
def test_changes_are_told_when_rows_came_and_when_they_left(seed, late, form):
    rng = random.Random(seed)
    batches, marks = stream(rng, keys="abcd", count=40, spread=25)
    delay = rng.choice([0, 3])
    lookbacks = (("a", 7), ("b", 30))
    query = Query(SCHEMA, "t", ("k",), aggs_of(form), rolling=Rolling(lookbacks, delay=delay), emit="changed", late=late)
    told, arrived, expected, before = {}, [], [], 0
    for batch, mark in zip(batches, marks, strict=True):
        arrived += [event for event in batch if late == "accept" or event[1] > before]
        rows = []
        for key in sorted({k for k, _, _ in arrived}):
            values = tuple(results(look_back([e for e in arrived if e[1] <= mark], key, mark, p, delay=delay)) for _, p in lookbacks)
            if values != told.get(key, (NOTHING, NOTHING)):
                told[key] = values
                rows.append((key, mark, *(value[i] for i in range(3) for value in values)))
        expected.append(sorted(rows, key=repr))
        before = mark
    assert run(query, batches, marks, rng) == expected
    assert all(values == (NOTHING, NOTHING) for values in told.values())


def test_changes_of_the_last_rows_and_the_whole_past_stay():
    query = Query(SCHEMA, "t", ("k",), AGGS[:2], rolling=Rolling((("r", Rows(2)), ("all", None))), emit="changed")
    batches = [[("a", 1, 5), ("a", 2, 6), ("a", 3, 7)], [], [("a", 90, 1)], [], []]
    out = run(query, batches, [0, 3, 50, 90, 200], random.Random(1))
    assert out == [[], [("a", 3, 2, 3, 13, 18)], [], [("a", 90, 2, 4, 8, 19)], []]


@pytest.mark.parametrize("seed", range(10))
def test_sessions_are_told_once_when_their_gap_has_passed(seed, form):
    rng = random.Random(seed)
    gap = rng.choice([3, 6, 12])
    batches, marks = stream(rng, keys="abc", spread=20)
    query = Query(SCHEMA, "t", ("k",), aggs_of(form), windows=Sessions(gap))
    held, expected, before = [], [], 0
    for batch, mark in zip(batches, marks, strict=True):
        held += [event for event in batch if event[1] + gap > before]
        rows = []
        for key in "abc":
            session = []
            for event in [*sorted(e for e in held if e[0] == key), None]:
                if session and (event is None or event[1] - session[-1][1] > gap):
                    if session[-1][1] + gap <= mark:
                        rows.append((key, session[0][1], session[-1][1] + gap, *results([v for _, _, v in session])))
                        held = [e for e in held if e not in session]
                    session = []
                session.append(event)
        expected.append(sorted(rows, key=repr))
        before = mark
    assert run(query, batches, marks, rng) == expected


def test_what_does_not_go_together_is_refused():
    rolling, windows = Rolling((("a", 5),)), Windows(10, 5)
    for asked, message in [
        ({"windows": windows, "emit": "event"}, "emit='event' is for look-backs"),
        ({"rolling": rolling, "emit": "update"}, "emit='update' is for windows"),
        ({"windows": Sessions(5), "emit": "update"}, "only emit='final'"),
        ({"windows": windows, "emit": "soon"}, "emit='soon' is not one of"),
    ]:
        with pytest.raises(DefinitionError, match=message):
            Query(SCHEMA, "t", ("k",), AGGS, **asked)
    with pytest.raises(DefinitionError, match="one of them counts rows"):
        Rolling((("a", Rows(3)),), delay=5)
    with pytest.raises(DefinitionError, match="gap above 0"):
        Sessions(0)
