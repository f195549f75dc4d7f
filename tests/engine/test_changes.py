"""A stored state under a changed definition: every kind of change, taken with the results of a new start, or refused with the reason."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from sash import agg, codec
from sash.engine import CalendarWindows, Hops, Labels, Query, Rolling, Rows, Sessions, Slicer, Windows, bucket_of
from sash.engine.query import MARK
from tests.engine.test_shapes import batch_of, events, plain

SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("w", pa.int64()), ("note", pa.string())])
AGGS = (
    ("n", agg.count()),
    ("s", agg.sum("v")),
    ("both", agg.struct(hi=agg.max("v"), all=agg.collect("w"))),
    ("m", agg.mean("w")),
)
WINDOWS = Query(SCHEMA, "t", ("k",), AGGS, windows=Windows(40, 5, 0, (("10", 10), ("40", 40))))
PLAIN = Query(SCHEMA, "t", ("k",), AGGS, windows=Windows(40, 5))
ONCE = Query(SCHEMA, "t", ("k",), AGGS, windows=Windows(40, 5, 0, (), True))
ROLLING = Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("12", 12), ("30", 30))))
MIXED = Query(
    SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("5", 5), ("40", Hops(40, 10)), ("3rows", Rows(3)), ("all", None))), late="accept"
)
SESSIONS = Query(SCHEMA, "t", ("k",), AGGS, windows=Sessions(6))
CHANGED = Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("12", 12), ("30", 30))), emit="changed")


def with_(query, **changed):
    return replace(query, **changed)


def lookbacks(query, *periods, **others):
    return replace(query, rolling=replace(query.rolling, lookbacks=tuple(periods), **others))


def without(query, *names):
    """The query on rows without some columns."""
    kept = pa.schema([field for field in query.schema if field.name not in names])
    return replace(query, schema=kept)


TAKEN = {
    "an aggregation is removed": (PLAIN, with_(PLAIN, aggs=AGGS[1:])),
    "a struct is removed, and its columns": (PLAIN, without(with_(PLAIN, aggs=AGGS[:2]), "w", "note")),
    "an aggregation is renamed": (WINDOWS, with_(WINDOWS, aggs=(("rows", agg.count()), *AGGS[1:]))),
    "aggregations change places": (ROLLING, with_(ROLLING, aggs=AGGS[::-1])),
    "a part of a struct stands alone": (ROLLING, with_(ROLLING, aggs=(("hi", agg.max("v")), ("n", agg.count())))),
    "a range is removed": (WINDOWS, with_(WINDOWS, windows=Windows(40, 5, 0, (("40", 40),)))),
    "a range is renamed": (WINDOWS, with_(WINDOWS, windows=Windows(40, 5, 0, (("ten", 10), ("forty", 40))))),
    "a shorter range is added": (WINDOWS, with_(WINDOWS, windows=Windows(40, 5, 0, (("10", 10), ("15", 15), ("40", 40))))),
    "one range instead of several": (WINDOWS, with_(WINDOWS, windows=Windows(40, 5))),
    "the range is shorter": (PLAIN, with_(PLAIN, windows=Windows(20, 5))),
    "empty windows are told no more": (ONCE, PLAIN),
    "a look-back is removed": (ROLLING, lookbacks(ROLLING, ("30", 30))),
    "the longest look-back is removed": (ROLLING, lookbacks(ROLLING, ("12", 12))),
    "a look-back is renamed": (ROLLING, lookbacks(ROLLING, ("a dozen", 12), ("30", 30))),
    "a look-back that is covered is added": (ROLLING, lookbacks(ROLLING, ("12", 12), ("20", 20), ("30", 30))),
    "a look-back in hops that is covered is added": (ROLLING, lookbacks(ROLLING, ("30", 30), ("20", Hops(20, 5)))),
    "look-backs of changes": (CHANGED, lookbacks(CHANGED, ("20", 20))),
    "rows and the whole past are removed": (MIXED, lookbacks(MIXED, ("40", Hops(40, 10)), ("5", 5))),
    "fewer rows": (MIXED, lookbacks(MIXED, ("2rows", Rows(2)), ("all", None))),
    "a shorter period in whole hops": (MIXED, lookbacks(MIXED, ("20", Hops(20, 10)), ("3rows", Rows(3)))),
    "late rows are dropped from now on": (MIXED, with_(MIXED, late="drop")),
    "a column of rows is removed": (ROLLING, without(ROLLING, "note")),
    "a session's aggregation is removed": (SESSIONS, with_(SESSIONS, aggs=AGGS[:3])),
}

REFUSED = {
    "an aggregation is new": (
        PLAIN,
        with_(PLAIN, aggs=(*AGGS, ("hi", agg.max("w")))),
        "aggregation hi is new, agg.max('w'), and was not kept",
    ),
    "an aggregation is another": (PLAIN, with_(PLAIN, aggs=(("n", agg.min("v")), *AGGS[1:])), "n was agg.count(), is agg.min('v')"),
    "the range is longer": (PLAIN, with_(PLAIN, windows=Windows(60, 5)), "what is older than 40us was not kept"),
    "slices have another length": (PLAIN, with_(PLAIN, windows=Windows(39, 5)), "slices were of 5us, would be of 1us"),
    "the slide is another": (PLAIN, with_(PLAIN, windows=Windows(40, 10)), "slide was 5, is 10"),
    "the offset is another": (PLAIN, with_(PLAIN, windows=Windows(40, 5, 1)), "offset was 0, is 1"),
    "empty windows are asked for": (PLAIN, ONCE, "keys that fell silent were not kept"),
    "a longer look-back": (ROLLING, lookbacks(ROLLING, ("31", 31)), "look-back 31 reaches further back"),
    "the far end is closed": (ROLLING, lookbacks(ROLLING, ("30", 30), closed="both"), "look-back 30 reaches further back"),
    "rows of which none were kept": (ROLLING, lookbacks(ROLLING, ("2rows", Rows(2))), "look-back 2rows reaches further back"),
    "the whole past": (ROLLING, lookbacks(ROLLING, ("all", None)), "look-back all reaches further back"),
    "exact where there are hops": (MIXED, lookbacks(MIXED, ("40", 40)), "look-back 40 reaches further back"),
    "finer hops": (MIXED, lookbacks(MIXED, ("40", Hops(40, 4))), "look-back 40 reaches further back"),
    "a key more": (PLAIN, with_(PLAIN, keys=("k", "note")), "key was ('k',), is ('k', 'note')"),
    "another type of a column": (PLAIN, with_(PLAIN, schema=SCHEMA.set(2, pa.field("v", pa.float64()))), "column v was int64, is double"),
    "a column of rows is new": (without(ROLLING, "note"), ROLLING, "column note is new, and rows that wait were stored without it"),
    "the gap is another": (SESSIONS, with_(SESSIONS, windows=Sessions(7)), "session was 6, is 7"),
    "rows at once": (ROLLING, with_(ROLLING, emit="event"), "emit was final, is event"),
    "ties by another column": (ROLLING, with_(ROLLING, tie="w"), "tie was absent, is w"),
    "sessions of windows": (PLAIN, SESSIONS, "session was absent, is 6"),
    "look-backs of windows": (PLAIN, ROLLING, "its windows are of another kind"),
    "a calendar": (PLAIN, with_(PLAIN, windows=CalendarWindows(8, 1, kind="days", tz="UTC")), "calendar was absent, is days"),
    "history after the fact": (PLAIN, with_(PLAIN, since=5_000_000), "history_until was absent, is 1970-01-01 00:00:05"),
}


def stored_at(query, rows, mark):
    """A state at a watermark, as bytes."""
    bucket = bucket_of(query)(query)
    bucket.advance(-50)
    for packed in Slicer(query, 1).pack(cut(query, rows)):
        bucket.add(packed.blob)
    bucket.advance(mark)
    commit = bucket.commit()
    return commit.meta, commit.put


def cut(query, rows):
    return batch_of(SCHEMA, rows).select(query.schema.names)


def rows_of(rng):
    return [(k, t, v, rng.randrange(9), f"note {i}") for i, (k, t, v) in enumerate(events(rng, 80))]


def go_on(query, bucket, rows, marks):
    out = []
    for part, mark in zip(rows, marks, strict=True):
        for packed in Slicer(query, 1).pack(cut(query, part)):
            bucket.add(packed.blob)
        out.append(plain(bucket.advance(mark)))
    return out


@pytest.mark.parametrize("form", ["auto", "tree", "column"])
@pytest.mark.parametrize("change", TAKEN)
def test_what_the_state_suffices_for_goes_on_as_if_it_had_always_been_so(change, form, monkeypatch):
    monkeypatch.setenv("SASH_ENGINE_FORM", form)
    was, now = TAKEN[change]
    rng = random.Random(change)
    rows = sorted(rows_of(rng), key=lambda row: row[1] + rng.uniform(0, 15))
    first, second, third = rows[:50], rows[50:65], rows[65:]
    mark = max(row[1] for row in first) - 15
    meta, blobs = stored_at(was, first, mark)
    taken = bucket_of(now).load(now, meta, blobs)
    fresh = bucket_of(now).load(now, *stored_at(now, first, mark))
    if change != "empty windows are told no more":
        assert (taken.keys, taken.watermark) == (fresh.keys, fresh.watermark)
    marks = [mark + 20]
    expected, found = go_on(now, fresh, [second], marks), go_on(now, taken, [second], marks)
    commit = taken.commit()  # under the new definition: the old blobs are gone
    assert set(commit.remove) == set(blobs)
    again = bucket_of(now).load(now, commit.meta, commit.put)
    assert found + go_on(now, again, [third, []], [mark + 40, 10_000]) == expected + go_on(now, fresh, [third, []], [mark + 40, 10_000])
    assert sum(map(len, expected)) > 0


@pytest.mark.parametrize("change", REFUSED)
def test_what_the_state_lacks_is_named_with_the_way_out(change):
    was, now, said = REFUSED[change]
    meta, blobs = stored_at(was, rows_of(random.Random(1)), 5_000_000)
    with pytest.raises(ValueError) as raised:
        bucket_of(now).load(now, meta, blobs)
    assert said in str(raised.value)
    how = "windows" if now.rolling is None else "rolling"
    assert f"start a new checkpoint with the rows so far behind it: {how}(..., history=rows, history_until='1970-01-01 00:00:05')" in str(
        raised.value
    )


def test_columns_of_labels_may_go():
    labelled = pa.schema([*SCHEMA, ("id", pa.int64()), ("why", pa.string()), (MARK, pa.bool_())])
    was = Query(labelled, "t", ("k",), AGGS[:2], rolling=Rolling((("10", 10),), "left"), labels=Labels(("id", "k", "at", "why"), "at"))
    now = replace(was, schema=labelled.remove(labelled.get_field_index("why")), labels=Labels(("id", "k", "at"), "at"))
    bucket = bucket_of(was)(was)
    bucket.advance(0)
    waiting = [("a", 5, 1, 1, "", None, None, False), ("a", 7, None, None, None, 1, "because", True)]
    for packed in Slicer(was, 1).pack(batch_of(labelled, waiting)):
        bucket.add(packed.blob)
    bucket.advance(1)
    commit = bucket.commit()
    assert plain(bucket_of(now).load(now, commit.meta, commit.put).advance(20)) == [(1, "a", 7, 1, 1)]


def test_a_state_of_an_earlier_version_is_taken_where_every_aggregation_is_one_column():
    was = with_(ROLLING, aggs=AGGS[:2])
    meta, blobs = stored_at(was, rows_of(random.Random(3)), 60)
    stored = codec.decode(codec.unseal("bucket", None, meta))
    del stored["leaves"], stored["schema"]
    early = codec.seal("bucket", was.fingerprint(), codec.encode(stored))
    now = with_(was, aggs=AGGS[1:2])
    expected = bucket_of(now).load(now, meta, blobs)
    assert plain(bucket_of(now).load(now, early, blobs).advance(10_000)) == plain(expected.advance(10_000))
    fewer = without(now, "note")
    with pytest.raises(ValueError, match="its rows had other columns"):
        bucket_of(fewer).load(fewer, early, blobs)
