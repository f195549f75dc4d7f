"""The live form of a bucket: it costs what changed, is chosen by what came against what is held, and catches up with another."""

import random

import numpy as np
import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Bucket, Hops, Query, Rolling, Rows, Sessions, Slicer, Windows, bucket_of, store
from sash.engine.live import Live

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])
AGGS = (("n", agg.count()), ("s", agg.sum("v")), ("hi", agg.max("v")))
MINUTE = 60


def rows(keys, times, values=None):
    values = np.arange(len(times)) % 100 if values is None else values
    return pa.record_batch([pa.array(np.asarray(keys, np.int64)), pa.array(np.asarray(times, np.int64)), pa.array(values)], schema=SCHEMA)


def query(aggs=AGGS, **how):
    return Query(SCHEMA, "t", ("k",), aggs, **how)


def feed(bucket, batch, watermark):
    for packed in Slicer(bucket.query, 1).pack(batch):
        bucket.add(packed.blob)
    return bucket.advance(watermark)


def live(bucket) -> Live:
    assert bucket._live is not None
    return bucket._live


def spent(bucket):
    return np.array([live(bucket).core.visited, live(bucket).core.combines])


KEYS, PER_MINUTE, LATE = 20, 5, 10
TURN = 128  # micro-batches: a leaf is turned every 64 slices, for all keys at once


def minute(number, rng, keys=KEYS, count=1):
    """The rows of a minute, or of some; a tenth is late by up to ten minutes."""
    n = keys * PER_MINUTE * count
    times = np.sort(rng.integers(number * MINUTE, (number + count) * MINUTE, n))
    late = rng.random(n) < 0.1
    times[late] -= rng.integers(0, LATE * MINUTE, late.sum())
    return rows(np.arange(n) % keys, times)


def filled(how, minutes, keys=KEYS, emit="final", aggs=AGGS):
    """A bucket after so many minutes in live form, the number of the next minute, and a source of more."""
    rng = np.random.default_rng(3)
    made = query(aggs, **how, emit=emit)
    bucket = bucket_of(made)(made)
    number = 0
    while number < minutes:  # in large steps, but for the last ones
        count = max(1, min(50, (minutes - number) // 4))
        feed(bucket, minute(number, rng, keys, count), (number + count - LATE) * MINUTE)
        number += count
    return bucket, minutes, rng


@pytest.mark.parametrize("emit", ["final", "update"])
def test_a_micro_batch_of_windows_costs_the_same_whatever_is_held(emit):
    # The same rows come and as many windows go out, with 30, 300 and 3,000 slices of a key held.
    costs = []
    for ratio in (30, 300, 3_000):
        # Updates tell every open window of a slice: there the range has ten slides, and a remainder that makes slices of a minute.
        windows = Windows(ratio * MINUTE, MINUTE) if emit == "final" else Windows((ratio + 1) * MINUTE, ratio * MINUTE // 10)
        how = {"windows": windows}
        bucket, number, rng = filled(how, ratio + LATE + 5, emit=emit)
        before, out = spent(bucket), 0
        for i in range(number, number + TURN):
            out += sum(b.num_rows for b in feed(bucket, minute(i, rng), (i + 1 - LATE) * MINUTE))
        costs.append((spent(bucket) - before) / out)
        assert emit == "update" or out == TURN * KEYS
        assert len(live(bucket)) >= 0.8 * ratio * KEYS
    # Ten times as much held. Final windows begin where the tree does; updates may begin anywhere in it, which costs a logarithm. The
    # shortest of the three is an array.
    assert (costs[2] <= 1.25 * costs[1] + (1 if emit == "final" else 6)).all(), costs
    assert costs[2][1] < 60, costs


@pytest.mark.parametrize("emit", ["final", "event"])
def test_a_micro_batch_of_look_backs_costs_the_same_whatever_is_held(emit):
    costs = []
    for ratio in (20, 200, 2_000):
        bucket, number, rng = filled({"rolling": Rolling((("p", ratio * MINUTE),))}, ratio + LATE + 5, emit=emit)
        before, out = spent(bucket), 0
        for i in range(number, number + TURN):
            out += sum(b.num_rows for b in feed(bucket, minute(i, rng), (i + 1 - LATE) * MINUTE))
        costs.append((spent(bucket) - before) / out)
        assert 0.9 * KEYS * PER_MINUTE <= out / TURN <= 1.1 * KEYS * PER_MINUTE
    # Final rows look back from the end of the tree to its beginning; a late event looks back from anywhere, which costs a logarithm.
    assert (costs[2] <= 1.25 * costs[1] + (1 if emit == "final" else 6)).all(), costs
    assert costs[2][1] < 120, costs  # two leaves at the most, and the children of a few nodes


# Of Python objects: one whose order matters, one whose does not.
ENDS = agg.define(lift=lambda v: (v, v), combine=lambda a, b: (a[0], b[1]), lower=str, identity=None, name="ends", column="v")
SPREAD = agg.define(
    lift=lambda v: {v % 5}, combine=lambda a, b: a | b, lower=len, identity=set(), commutative=True, name="spread", column="v"
)


@pytest.mark.parametrize("emit", ["windows", "final", "event"])
def test_a_micro_batch_of_python_partials_costs_the_same_whatever_is_held(emit):
    costs = []
    for ratio in (20, 200, 2_000):
        how = {"windows": Windows(ratio * MINUTE, MINUTE)} if emit == "windows" else {"rolling": Rolling((("p", ratio * MINUTE),))}
        aggs = (*AGGS[:1], ("ends", ENDS), ("spread", SPREAD))
        bucket, number, rng = filled(how, ratio + LATE + 5, 3, "event" if emit == "event" else "final", aggs)
        before, out = spent(bucket), 0
        for i in range(number, number + TURN // 4):
            out += sum(b.num_rows for b in feed(bucket, minute(i, rng, 3), (i + 1 - LATE) * MINUTE))
        costs.append((spent(bucket) - before) / out)
    assert (costs[2] <= 1.25 * costs[1] + (2 if emit != "event" else 8)).all(), costs


@pytest.mark.parametrize("aggs", [AGGS, (("ends", ENDS),)], ids=["words", "objects"])
def test_a_micro_batch_of_look_backs_in_hops_costs_the_same_whatever_is_held(aggs):
    # Ten minutes exact, and 10, 100 and 1,000 hops of five minutes behind them.
    costs, held = [], []
    for hops in (10, 100, 1_000):
        how = {"rolling": Rolling((("ten", 10 * MINUTE), ("long", Hops(5 * hops * MINUTE, 5 * MINUTE))))}
        bucket, number, rng = filled(how, 5 * hops + LATE + 15, 2, aggs=aggs)
        before, out = spent(bucket), 0
        for i in range(number, number + TURN // 4):
            out += sum(b.num_rows for b in feed(bucket, minute(i, rng, 2), (i + 1 - LATE) * MINUTE))
        costs.append((spent(bucket) - before) / out)
        held.append(len(live(bucket)))
    assert (costs[2] <= 1.25 * costs[1] + 3).all(), costs
    assert held[2] < 2 * 1_000 + 500, held  # one entry per hop


def test_an_entry_is_held_in_little_more_than_in_columns():
    # A window of a key of 10, 60, 360 and 1,440 slices. In columns an entry is 56 bytes, and a key some more.
    for ratio, keys in ((10, 2_000), (60, 1_000), (360, 2_000), (1_440, 500)):  # as many as fill some slabs of 2 MiB
        bucket, number, rng = filled({"windows": Windows(ratio * MINUTE, MINUTE)}, ratio + LATE + 5, keys)
        for i in range(number, number + 10):
            feed(bucket, minute(i, rng, keys), (i + 1 - LATE) * MINUTE)
        run = live(bucket).run()
        columns = run.times.nbytes + run.starts.nbytes + run.keys.memory() + sum(column.memory() for column in run.columns)
        # Of 360 slices, a tree has 13 leaves with some room, and room of its own for two more.
        assert live(bucket).core.bytes() <= (1.6 if ratio == 360 else 1.5) * columns, (ratio, live(bucket).core.bytes() / columns)


def test_keys_that_are_not_due_are_not_visited():
    # A hundred thousand keys with windows of an hour, one key with rows: a micro-batch within the hour visits that key alone.
    for keys in (1_000, 100_000):
        bucket = Bucket(query(windows=Windows(60 * MINUTE, 60 * MINUTE)))
        feed(bucket, rows(np.arange(keys), np.full(keys, 5)), 0)
        feed(bucket, rows([0], [6]), 1)
        before = spent(bucket)
        for i in range(10):
            assert feed(bucket, rows([7], [10 + i]), 2 + i) == []
        assert (spent(bucket) - before <= 20).all()
        assert bucket.keys == keys


def test_keys_and_slices_are_counters():
    # Asking for them, and a commit without news, costs no visit and gives what is held.
    bucket, _, _ = filled({"windows": Windows(100 * MINUTE, MINUTE)}, 130)
    before = spent(bucket)
    held = {(k, p) for k, p in zip(*_slices(bucket), strict=True)}
    assert (bucket.keys, bucket.slices) == (KEYS, len(held))
    bucket.commit()
    bucket.commit()
    assert (spent(bucket) == before).all()


def _slices(bucket):
    run = live(bucket).run()
    return np.repeat(np.arange(len(run.keys)), np.diff(run.starts)).tolist(), run.times.tolist()


def test_keys_that_fall_empty_leave_and_their_numbers_are_used_again():
    bucket = Bucket(query(windows=Windows(4, 2)))
    feed(bucket, rows(np.arange(1000) % 10, np.arange(1000) // 100), 0)
    for i in range(10, 200):
        feed(bucket, rows([i, i + 1], [i, i + 1]), i - 4)
        assert bucket.keys <= 20
    feed(bucket, rows([0], [0]), 10**6)
    assert (bucket.keys, bucket.slices) == (0, 0)


@pytest.mark.parametrize("how", [{"windows": Windows(50, 1)}, {"rolling": Rolling((("p", 50),))}, {"windows": Sessions(50)}])
def test_the_form_follows_what_comes_against_what_is_held(how):
    made = query(**how)
    bucket = bucket_of(made)(made)
    assert bucket.form == "columns"
    everything = []

    def send(times, mark):
        batch = rows(np.arange(len(times)) % 7, times)
        everything.append((batch, mark))
        return feed(bucket, batch, mark)

    send(np.arange(500), 100)
    assert bucket.form == "columns"  # much came, nothing was held
    for i in range(10):
        send([500 + i], 100 + i)
    assert bucket.form == "live"
    send(np.arange(510, 5_000), 4_000)  # a catch-up
    assert bucket.form == "columns"
    for i in range(5):
        send([5_000 + i], 4_000 + i)
    assert bucket.form == "live"


def test_partials_that_can_not_be_combined_stay_in_columns():
    odd = agg.define(lift=float, combine=lambda a, b: a / 2 + b, identity=0.0, associative=False, name="odd", column="v")
    many = tuple((f"s{i}", agg.sum("v")) for i in range(50))  # 150 words
    for aggs in ((("odd", odd),), many):
        bucket = Bucket(Query(SCHEMA, "t", ("k",), aggs, windows=Windows(50, 1)))
        feed(bucket, rows(np.arange(500) % 7, np.arange(500)), 100)
        for i in range(5):
            feed(bucket, rows([1], [500 + i]), 100 + i)
        assert bucket.form == "columns"


HOW = {
    "windows": {"windows": Windows(400, 40)},
    "updates": {"windows": Windows(400, 40), "emit": "update"},
    "look-backs": {"rolling": Rolling((("a", 300), ("all", None)), delay=30)},
    "rows": {"rolling": Rolling((("r", Rows(5)), ("a", 300)), "both"), "late": "accept"},
    "events": {"rolling": Rolling((("a", 300),)), "emit": "event"},
    "changes": {"rolling": Rolling((("a", 300), ("b", 70))), "emit": "changed"},
}


@pytest.mark.parametrize("form", ["auto", "column", "tree"])
@pytest.mark.parametrize("name", HOW)
def test_who_catches_up_holds_what_who_went_on_holds(name, form, monkeypatch):
    # Two hold one state; each in turn goes on with it, after it has read what the other wrote since.
    monkeypatch.setenv("SASH_ENGINE_FORM", form)
    monkeypatch.setattr(store, "SMALL", 0)
    made = query(**HOW[name])
    make = bucket_of(made)
    rng, alone = random.Random(5), make(made)
    workers, blobs, meta, read = [make(made), None, None], {}, None, []

    def blob(i):
        read.append(i)
        return blobs[i]

    caught_up = 0
    for i in range(120):
        at = rng.randrange(3)
        if meta is not None and (workers[at] is None or not workers[at].catch_up(meta, blob)):
            workers[at] = make.load(made, meta, blobs)
        elif meta is not None:
            caught_up += 1
        # Rows that are counted and late have an order of their own only if their times differ.
        times = [max(0, 30 * i - 10 * rng.randrange(12)) + j for j in range(8)]
        batch, mark = rows([rng.randrange(5) for _ in times], times), max(0, 30 * i - 80)
        expected = [b.to_pylist() for b in feed(alone, batch, mark)]
        worker = workers[at] if meta is not None else workers[0]
        found = [b.to_pylist() for b in feed(worker, batch, mark)]
        assert sorted(repr(row) for part in found for row in part) == sorted(repr(row) for part in expected for row in part)
        assert (worker.keys, worker.late) == (alone.keys, alone.late)
        change = worker.commit()
        for gone in change.remove:
            del blobs[gone]
        blobs |= change.put
        meta = change.meta
    assert caught_up > 60
    assert len(read) < 4 * caught_up


def test_who_is_of_another_line_does_not_catch_up():
    made = query(windows=Windows(40, 4))
    first, second = Bucket(made), Bucket(made)
    feed(first, rows([1], [1]), 0)
    feed(second, rows([1], [1]), 0)
    first.commit()
    commit = second.commit()
    watermark = first.watermark
    assert not first.catch_up(commit.meta, commit.put.__getitem__)
    assert first.watermark == watermark
