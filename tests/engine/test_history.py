"""History, then live: a stream that begins with history gives what it would give had all rows come by it, and what batch gives."""

import random

import pyarrow as pa
import pytest

from sash import agg
from sash.engine import CalendarWindows, Hops, Labels, Query, Rolling, Rows, Sessions, Slicer, Windows, begun, bucket_of, lent, reach
from sash.engine.query import MARK
from tests.engine.test_shapes import AGGS, SCHEMA, batch_of, events, plain

WIDE = pa.schema([*SCHEMA, ("seq", pa.int64()), ("note", pa.string())])
SHAPES = {
    "windows": {"windows": Windows(20, 5, 3)},
    "tumbling": {"windows": Windows(10, 10)},
    "ranges": {"windows": Windows(40, 5, 0, (("10", 10), ("40", 40)))},
    "empty once": {"windows": Windows(20, 5, 0, (), True)},
    "update": {"windows": Windows(20, 5), "emit": "update"},
    "flag": {"windows": Windows(20, 5), "late": "flag"},
    "sessions": {"windows": Sessions(6)},
    "calendar": {"windows": CalendarWindows(2, 1, kind="days", tz="Europe/Berlin")},
    "rolling": {"rolling": Rolling((("7", 7), ("30", 30)))},
    "both ends": {"rolling": Rolling((("7", 7), ("30", 30)), "both", 4)},
    "rows": {"rolling": Rolling((("3rows", Rows(3)), ("7", 7)))},
    "whole past": {"rolling": Rolling((("all", None), ("7", 7)), "left")},
    "hops": {"rolling": Rolling((("30", Hops(30, 10)), ("5", 5)))},
    "accept": {"rolling": Rolling((("30", 30),)), "late": "accept"},
    "event": {"rolling": Rolling((("30", 30),)), "emit": "event"},
    "changed": {"rolling": Rolling((("12", 12), ("30", Hops(30, 10)))), "emit": "changed"},
}
DAY = 86_400_000_000


def packed(query, rows, schema):
    return [p.blob for p in Slicer(query, 1).pack(batch_of(schema, rows))] if rows else []


def in_parts(rng, rows, most=4):
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(most - 1))
    return [rows[i:j] for i, j in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def run(query, bucket, parts, marks, rng, schema):
    """What comes out after each micro-batch; the state is stored in between, and often read again."""
    out, blobs, make = [], {}, bucket_of(query)
    for part, mark in zip(parts, marks, strict=True):
        if rng.random() < 0.7:
            commit = bucket.commit()
            blobs = {i: blob for i, blob in blobs.items() if i not in commit.remove} | commit.put
            bucket = make.load(query, commit.meta, blobs)
        for blob in packed(query, part, schema):
            bucket.add(blob)
        out.append(plain(bucket.advance(mark)))
    return out, bucket


@pytest.fixture(params=["auto", "tree", "column"])
def form(request, monkeypatch):
    monkeypatch.setenv("SASH_ENGINE_FORM", request.param)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_a_stream_with_history_gives_what_one_gives_that_saw_it_all(shape, seed):
    rng = random.Random(f"{shape} {seed}")
    unit = DAY // 3 if shape == "calendar" else 1
    rows = [(k, t * unit, v, i, f"note {i}") for i, (k, t, v) in enumerate(events(rng, 90, keys="abc"))]
    until = rng.choice([rng.randrange(20, 120), rng.choice(rows)[1] // unit + rng.randrange(2), rng.randrange(4, 24) * 5]) * unit
    query = Query(WIDE, "t", ("k",), AGGS, tie="seq", since=until, **SHAPES[shape])
    oldest, narrow = reach(query), lent(query)
    past = [row for row in rows if row[1] < until]
    stream = sorted((row for row in rows if row[1] >= until), key=lambda row: row[1] + rng.uniform(0, 40) * unit)  # many are late
    parts, marks, newest = in_parts(rng, stream), [], until - 50 * unit
    for part in parts:
        newest = max([newest, *(row[1] for row in part)])
        marks.append(newest - rng.choice([3, 12]) * unit)
    parts, marks = [*parts, []], [*marks, 10**4 * unit]

    told = bucket_of(query)(query)
    for blob in packed(query, past, WIDE):
        told.add(blob)
    told.advance(query.begins)
    kept = [row for row in past if oldest is None or row[1] >= oldest]
    columns = [WIDE.names.index(name) for name in narrow.schema.names]
    blobs = [
        blob
        for part in in_parts(rng, rng.sample(kept, len(kept)))
        for blob in packed(narrow, [tuple(row[c] for c in columns) for row in part], narrow.schema)
    ]
    live = begun(query, blobs)
    assert live.watermark == query.begins
    assert live.keys == told.keys
    assert live.form != told.form or live.slices == told.slices  # in columns, rows of one time are counted one by one
    expected, told = run(query, told, parts, marks, random.Random(1), WIDE)
    found, live = run(query, live, parts, marks, random.Random(2), WIDE)
    assert found == expected
    assert live.late == told.late


@pytest.mark.parametrize("shape", [name for name, asked in SHAPES.items() if asked.get("emit", "final") == "final"])
@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_is_late_it_gives_what_batch_gives_after_the_cut(shape, seed):
    rng = random.Random(f"{shape} {seed}")
    unit = DAY // 3 if shape == "calendar" else 1
    rows = [(k, t * unit, v, i, "") for i, (k, t, v) in enumerate(events(rng, 90, keys="abc"))]
    until = rng.randrange(10, 130) * unit
    query = Query(WIDE, "t", ("k",), AGGS, tie="seq", since=until, **SHAPES[shape])
    narrow = lent(query)
    columns = [WIDE.names.index(name) for name in narrow.schema.names]
    past = [tuple(row[c] for c in columns) for row in rows if row[1] < until]
    live = begun(query, packed(narrow, past, narrow.schema))
    stream = [row for row in rows if row[1] >= until]
    found, _ = run(query, live, in_parts(rng, rng.sample(stream, len(stream))), [-(10**6)] * 3 + [10**5 * unit], rng, WIDE)
    whole = bucket_of(query)(query)
    for blob in packed(query, rows, WIDE):
        whole.add(blob)
    by = WIDE.names.index("t") if query.windows is None else 1 if shape == "ranges" else 2
    after = [row for row in plain(whole.flush()) if stamp(row[by]) >= until + (query.windows is not None)]
    assert [row for given in found for row in given if stamp(row[by]) >= until + (query.windows is not None)] == after
    assert len(after) > 5


def stamp(value):
    return value if isinstance(value, int) else value.value


def test_labels_of_a_stream_look_back_on_history():
    labelled = pa.schema([*SCHEMA, ("id", pa.int64()), (MARK, pa.bool_())])
    query = Query(labelled, "t", ("k",), AGGS[:2], rolling=Rolling((("10", 10),), "left"), labels=Labels(("id", "k", "at"), "at"), since=20)
    narrow = lent(query)
    assert narrow.schema.names == ["k", "t", "v"]
    live = begun(query, packed(narrow, [("a", 12, 1), ("a", 19, 2), ("b", 3, 9)], narrow.schema))
    rows = [("a", 20, None, 1, True), ("a", 20, 4, None, False), ("a", 24, None, 2, True), ("b", 21, None, 3, True)]
    for blob in packed(query, rows, labelled):
        live.add(blob)
    assert plain(live.advance(30)) == [(1, "a", 20, 2, 3), (2, "a", 24, 2, 6), (3, "b", 21, 0, None)]


def test_history_travels_without_columns_that_no_result_needs():
    rolling = Rolling((("7", 7),))
    assert lent(Query(WIDE, "t", ("k",), AGGS[:2], rolling=rolling, since=5)).schema.names == ["k", "t", "v"]
    by_rows = Query(WIDE, "t", ("k",), AGGS[:2], rolling=Rolling((("2rows", Rows(2)),)), since=5)
    assert lent(by_rows).schema.names == WIDE.names  # rows of equal time are ordered by all that is in them
    whole = agg.define(lift=lambda row: row["seq"], combine=max, identity=0, name="newest")
    assert lent(Query(WIDE, "t", ("k",), (("m", whole),), rolling=rolling, since=5)).schema.names == WIDE.names


def test_only_what_look_backs_still_reach_is_asked_of_history():
    assert reach(Query(SCHEMA, "t", ("k",), AGGS, windows=Windows(20, 5), since=100)) == 85  # [85, 105) is the first to come
    assert reach(Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("7", 7),)), since=100)) == 93  # (93, 100], and one for changes
    assert reach(Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("30", Hops(30, 10)),)), since=100)) == 60
    assert reach(Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("2rows", Rows(2)),)), since=100)) is None
    assert reach(Query(SCHEMA, "t", ("k",), AGGS, windows=Sessions(5), since=100)) is None
