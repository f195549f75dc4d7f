"""What a bucket stores: little per commit, refused when it does not fit, the same after a reload."""

import contextlib
import statistics

import numpy as np
import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Bucket, Query, Rolling, Rows, Sessions, Slicer, Windows, bucket_of

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])
AGGS = (("n", agg.count()), ("s", agg.sum("v")), ("hi", agg.max("v")))


def rows(keys, times, values=None):
    keys = np.asarray(keys, np.int64)
    values = np.arange(len(keys)) % 1000 if values is None else values
    return pa.record_batch(
        [pa.array(keys), pa.array(np.asarray(times, np.int64)).cast(SCHEMA.field("t").type), pa.array(values)], schema=SCHEMA
    )


def windows(range_=10, slide=5, **changes):
    return Query(**({"schema": SCHEMA, "time": "t", "keys": ("k",), "aggs": AGGS, "windows": Windows(range_, slide)} | changes))


def filled(query, n=50):
    bucket = Bucket(query)
    for packed in Slicer(query, 1).pack(rows(np.arange(n) % 7, np.arange(n))):
        bucket.add(packed.blob)
    bucket.advance(20)
    return bucket


def test_a_commit_of_sessions_writes_what_came_and_what_ended_not_all_that_is_open():
    # 2,000 and 200,000 sessions are open; in each micro-batch 100 of them go on, and 100 short ones come and end.
    written = []
    for keys in (2_000, 200_000):
        query = windows(windows=Sessions(1_000))
        bucket, slicer, stored = bucket_of(query)(query), Slicer(query, 1), {}
        each = []
        for i in range(-1, 20):
            now = 400 * i
            came = np.arange(keys) if i < 0 else np.concatenate([np.arange(100), 10**6 + 100 * i + np.arange(100)])
            for packed in slicer.pack(rows(came, np.full(len(came), 10_000 + now))):
                bucket.add(packed.blob)
            bucket.advance(9_500 + now if i < 2 else 10_400)
            change = bucket.commit()
            stored = {k: blob for k, blob in stored.items() if k not in change.remove} | change.put
            each.append(sum(map(len, change.put.values())))
        written.append(statistics.median(each[1:]))
        again = bucket_of(query).load(query, change.meta, stored)
        assert (again.keys, again.slices) == (bucket.keys, bucket.slices)
        left = [sorted(repr(row) for out in each.advance(None) for row in out.to_pylist()) for each in (again, bucket)]
        assert left[0] == left[1]
    assert written[1] <= 1.2 * written[0] + 1_000, written


@pytest.mark.parametrize("spread", ["slices of few keys", "many keys"])
def test_a_batch_that_touches_one_key_in_a_hundred_writes_little_of_the_state(spread):
    # A million slices, or a quarter of a million keys. Every micro-batch touches 1 % of the keys: which share of the
    # stored bytes does its commit write?
    keys, panes = (10_000, 100) if spread == "slices of few keys" else (250_000, 1)
    query = windows(range_=1_000, slide=1)
    bucket, slicer, stored, shares = Bucket(query), Slicer(query, 1), {}, []
    rng = np.random.default_rng(5)

    def commit():
        change = bucket.commit()
        for gone in change.remove:
            del stored[gone]
        stored.update(change.put)
        return sum(map(len, change.put.values()))

    for chunk in np.array_split(np.arange(panes), min(panes, 10)):
        for packed in slicer.pack(rows(np.repeat(np.arange(keys), len(chunk)), np.tile(chunk, keys))):
            bucket.add(packed.blob)
    commit()
    assert bucket.slices == keys * panes
    for i in range(50):
        touched = rng.choice(keys, keys // 100, replace=False)
        for packed in slicer.pack(rows(touched, np.full(len(touched), panes + i))):
            bucket.add(packed.blob)
        bucket.advance(-10)
        shares.append(commit() / sum(map(len, stored.values())))
    assert statistics.median(shares) <= 0.03
    assert statistics.mean(shares) <= 0.06
    assert len(stored) <= 20


def test_a_small_state_is_one_blob_and_a_dead_delta_leaves_unread(monkeypatch):
    query = windows(range_=4, slide=2)
    bucket, slicer = Bucket(query), Slicer(query, 1)
    live: dict[int, bytes] = {}
    for i in range(12):
        for packed in slicer.pack(rows([1, 2], [2 * i, 2 * i + 1])):
            bucket.add(packed.blob)
        bucket.advance(2 * i)
        change = bucket.commit()
        live = {k: v for k, v in live.items() if k not in change.remove} | change.put
        assert len(live) == 1
    bucket.advance(1_000)
    change = bucket.commit()
    assert change.put == {}
    assert set(change.remove) == set(live)

    from sash.engine import store

    monkeypatch.setattr(store, "SMALL", 0)
    monkeypatch.setattr(store, "_quantiles", lambda times, forever: [int(times.max())])
    monkeypatch.setattr(store, "FAN", 10**9)  # never merged: each must leave by itself
    bucket, live = Bucket(query), {}
    for i in range(12):
        for packed in slicer.pack(rows([1, 2], [2 * i, 2 * i + 1])):
            bucket.add(packed.blob)
        bucket.advance(2 * i)
        change = bucket.commit()
        live = {k: v for k, v in live.items() if k not in change.remove} | change.put
        assert len(live) <= 3


def test_nothing_new_writes_nothing():
    bucket = filled(windows())
    assert bucket.commit().put
    change = bucket.commit()
    assert (change.put, change.remove) == ({}, [])
    assert change.meta != bucket.commit().meta  # a fresh version all the same


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"windows": Windows(20, 5)}, "range was 10us, is 20us"),
        ({"windows": Windows(10, 10)}, "slide was 5, is 10"),
        ({"aggs": (*AGGS[:2], ("hi", agg.min("v")))}, "aggregation hi was agg.max('v'), is agg.min('v')"),
        ({"keys": ("k", "v")}, "key was"),
        ({"windows": None, "rolling": Rolling((("1s", 1),))}, "its windows are of another kind"),
    ],
)
def test_another_definitions_state_is_refused_and_named(changes, said):
    commit = filled(windows()).commit()
    with pytest.raises(ValueError, match=said.replace("(", r"\(").replace(")", r"\)")):
        Bucket.load(windows(**changes), commit.meta, commit.put)


def test_code_that_changed_is_another_definition():
    def query(lift):
        return windows(aggs=(("u", agg.define(lift=lift, combine=lambda a, b: a + b, identity=0, name="u", column="v")),))

    commit = filled(query(lambda x: x + 1)).commit()
    Bucket.load(query(lambda x: x + 1), commit.meta, commit.put)
    with pytest.raises(ValueError, match="aggregation u has other code"):
        Bucket.load(query(lambda x: x + 2), commit.meta, commit.put)


def test_an_aggregation_without_a_name_can_run_but_not_be_stored():
    query = windows(aggs=(("u", agg.define(lift=lambda x: x, combine=lambda a, b: a + b, identity=0, column="v")),))
    bucket = filled(query)
    with pytest.raises(ValueError, match="needs a name"):
        bucket.commit()


def test_damaged_and_missing_bytes_are_refused():
    query = windows()
    commit = filled(query).commit()
    [(i, blob)] = commit.put.items()
    for cut in (0, 10, len(blob) // 2, len(blob) - 1):
        with pytest.raises(ValueError, match=r"damaged|do not come from Sash"):
            Bucket.load(query, commit.meta, {i: blob[:cut]})
    for at in range(0, len(blob), 7):
        with pytest.raises(ValueError, match=r"damaged|Sash|definition|hold a"):
            Bucket.load(query, commit.meta, {i: blob[:at] + bytes([blob[at] ^ 255]) + blob[at + 1 :]})
    with pytest.raises(ValueError, match="blob 0 of this state is missing"):
        Bucket.load(query, commit.meta, {})
    with pytest.raises(ValueError, match=r"definition|hold a"):
        Bucket(windows(range_=20)).add(Slicer(query, 1).pack(rows([1], [1]))[0].blob)


def test_damage_that_passes_the_checksum_is_refused_too():
    from sash.engine.run import Run

    query = windows()
    run, _ = filled(query)._run, None
    data = run.pack()
    for at in range(len(data)):
        for value in (0, 255, data[at] ^ 1):
            with contextlib.suppress(ValueError, TypeError, ArithmeticError, MemoryError):  # refused; or read, and then usable
                damaged, _ = Run.unpack(query.layout, data[:at] + bytes([value]) + data[at + 1 :])
                damaged.merge(run, combine=True)
                damaged.keep(0)


def test_rows_and_the_whole_past_survive_many_commits(monkeypatch):
    from sash.engine import store

    monkeypatch.setattr(store, "SMALL", 0)
    monkeypatch.setattr(store, "LEAST", 1)
    rolling = Rolling((("3rows", Rows(3)), ("all", None), ("5us", 5)))
    query = windows(windows=None, rolling=rolling, aggs=(("s", agg.sum("v")), ("f", agg.first("v")), ("c", agg.collect("v"))))
    slicer, live = Slicer(query, 1), {}
    kept, again = Bucket(query), Bucket(query)
    for i in range(25):
        for bucket in (kept, again):
            for packed in slicer.pack(rows([1, 2, 1], [3 * i, 3 * i + 1, 3 * i + 2], pa.array([i, 2 * i, -i]))):
                bucket.add(packed.blob)
        expected, found = kept.advance(3 * i), again.advance(3 * i)
        assert [b.to_pylist() for b in found] == [b.to_pylist() for b in expected]
        change = again.commit()
        live = {k: v for k, v in live.items() if k not in change.remove} | change.put
        again = Bucket.load(query, change.meta, live)
        assert len(live) < 20
    assert kept.advance(10**6)[0].to_pylist()[-1]["c_all"] == [x for i in range(25) for x in (i, -i)]


def test_a_long_state_is_stored_in_pieces_of_some_keys_each(monkeypatch):
    monkeypatch.setattr("sash.engine.store.ENTRIES", 100)
    query = Query(pa.schema([("k", pa.int64()), ("t", pa.int64())]), "t", ("k",), (("n", agg.count()),), rolling=Rolling((("9", 10**9),)))
    bucket = Bucket(query)
    bucket.advance(0)
    rows = {"k": [i % 37 for i in range(40_000)], "t": [1 + i for i in range(40_000)]}
    for packed in Slicer(query, 1).pack(pa.RecordBatch.from_pydict(rows, query.schema)):
        bucket.add(packed.blob)
    bucket.advance(40_000)
    commit = bucket.commit()
    assert len(commit.put) == 37  # a key has more than a hundred, and is not cut
    assert Bucket.load(query, commit.meta, commit.put).slices == 40_000
