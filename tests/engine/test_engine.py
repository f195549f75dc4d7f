"""The keyed engine against its plain form, on random queries, rows, orders of arrival and cuts into micro-batches."""

import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Bucket, Query, Slicer, Sweep, Windows, store, stretches
from tests.engine import cases, plain

random_case, rows_of = cases.random_case, cases.rows_of


class Reloaded:
    """A bucket that is stored and read again after every batch, as without a cache in the worker."""

    def __init__(self, query: Query, make: type[Bucket] = Bucket) -> None:
        self.query, self.make, self.bucket, self.blobs = query, make, make(query), {}

    def __getattr__(self, name):
        return getattr(self.bucket, name)

    def end_batch(self):
        commit = self.bucket.commit()
        assert not set(commit.put) & set(self.blobs)
        for i in commit.remove:
            del self.blobs[i]
        self.blobs |= commit.put
        self.bucket = self.make.load(self.query, commit.meta, self.blobs)


class Kept(Reloaded):
    """A bucket that is stored after every batch and stays in memory, as with a cache in the worker."""

    def end_batch(self):
        kept = self.bucket
        super().end_batch()
        self.bucket = kept


class Alternating(Reloaded):
    """Two workers that take turns, each with the bucket it had: it is brought up to date from what the other stored."""

    caught_up = 0

    def __init__(self, query: Query) -> None:
        super().__init__(query)
        self.other, self.turn = None, 0

    def end_batch(self):
        commit = self.bucket.commit()
        for i in commit.remove:
            del self.blobs[i]
        self.blobs |= commit.put
        self.turn += 1
        if self.turn % 3 == 0:  # the same worker again
            return
        self.bucket, self.other = self.other, self.bucket
        if self.bucket is not None and self.bucket.catch_up(commit.meta, self.blobs.__getitem__):
            Alternating.caught_up += 1
        else:
            self.bucket = Bucket.load(self.query, commit.meta, self.blobs)


def stream(case, make, slicer, buckets, delays):
    """Feed micro-batches; after each the watermark is the largest time seen less a delay. All that comes out, batch by batch."""
    query = case.query
    states = [make(query) for _ in range(buckets)]
    largest, out = None, []
    for batch, delay in zip(case.parts, delays, strict=True):
        for packed in slicer(query, buckets).pack(batch):
            states[packed.bucket].add(packed.blob)
            if packed.max_time is not None:
                largest = packed.max_time if largest is None else max(largest, packed.max_time)
        watermark = -(10**6) if largest is None else largest - delay
        given = [rows for state in states for rows in state.advance(watermark)]
        out.append((rows_of(given), sum(state.late for state in states), sum(state.keys for state in states)))
        for state in states:
            getattr(state, "end_batch", lambda: None)()
    out.append((rows_of([rows for state in states for rows in state.advance(None)]), 0, 0))
    return out


@pytest.mark.parametrize("form", ["auto", "column", "array", "tree"])
@pytest.mark.parametrize("make", [Bucket, Reloaded, Kept, Alternating])
@pytest.mark.parametrize("seed", range(60))
def test_stream_equals_plain_batch_by_batch_with_late_rows(seed, make, form, monkeypatch):
    monkeypatch.setenv("SASH_ENGINE_FORM", form)
    if seed % 2:
        monkeypatch.setattr(store, "SMALL", 0)
        monkeypatch.setattr(store, "FAN", 2 + seed % 3)
        monkeypatch.setattr(store, "LEAST", 1 + seed % 5 * 300)
    case = random_case(seed, native=seed % 4 == 0)
    case.parts = case.batches()
    delays = [case.random.randint(0, 25) for _ in case.parts]
    expected = stream(case, plain.Bucket, plain.Slicer, 1, delays)
    found = stream(case, make, Slicer, 1 + seed % 3, delays)
    assert found == expected, (seed, case.query)


@pytest.mark.parametrize("seed", range(100, 160))
def test_sweep_equals_plain_and_bucket_for_any_arrival_order(seed, monkeypatch):
    if seed % 3:
        monkeypatch.setattr(stretches, "BATCH", seed % 7)
    case = random_case(seed, late="drop")
    case.parts = [case.batch]
    [*_, (expected, _, _)] = stream(case, plain.Bucket, plain.Slicer, 1, [10**9])
    [*_, (streamed, _, _)] = stream(case, Bucket, Slicer, 2, [10**9])
    assert streamed == expected, (seed, case.query)
    state = Bucket(case.query)
    for packed in Slicer(case.query, 1).pack(case.batch):
        state.add(packed.blob)
    flushed = list(state.flush())
    assert rows_of(flushed) == expected, (seed, case.query)
    assert state.slices == 0
    if case.query.windows is not None:
        return  # swept by flush()
    ordered = cases.Case(case.query, case.sorted(), case.random)
    sweep = Sweep(case.query)
    given = [rows for batch in ordered.batches(12) for rows in sweep.feed(batch)] + list(sweep.finish())
    assert rows_of(given) == expected, (seed, case.query)


@pytest.mark.parametrize("seed", range(200, 230))
def test_stream_equals_batch_when_no_row_is_late(seed):
    case = random_case(seed, late="drop")
    case.parts = case.batches()
    out = stream(case, Reloaded, Slicer, 2, [10**6] * len(case.parts))
    assert sum(late for _, late, _ in out) == 0
    if case.query.windows is None:
        sweep = Sweep(case.query)
        given = [*sweep.feed(case.sorted()), *sweep.finish()]
    else:
        whole = Bucket(case.query)
        for packed in Slicer(case.query, 1).pack(case.batch):
            whole.add(packed.blob)
        given = list(whole.flush())
    assert sorted(row for rows, *_ in out for row in rows) == rows_of(given)


def test_late_row_counts_in_open_windows_only():
    #            0         10        20        30    range 10, slide 5
    # batch 1    a(3)      b(12)               W = 12: [-5, 5) and [0, 10) are out
    # batch 2         c(7)                     late: [0, 10) is closed, [5, 15) is open and takes it
    query = Query(pa.schema([("t", pa.int64()), ("v", pa.int64())]), "t", (), (("s", agg.sum("v")),), windows=Windows(10, 5))
    bucket, slicer = Bucket(query), Slicer(query, 1)

    def send(*rows):
        batch = pa.RecordBatch.from_pylist([{"t": t, "v": v} for t, v in rows], query.schema)
        for packed in slicer.pack(batch):
            bucket.add(packed.blob)

    def got(batches):
        return [(row["window_start"], row["window_end"], row["s"]) for batch in batches for row in batch.to_pylist()]

    send((3, 1), (12, 2))
    assert got(bucket.advance(12)) == [(-5, 5, 1), (0, 10, 1)]
    assert bucket.late == 0
    send((7, 4))
    assert bucket.late == 1
    assert got(bucket.advance(20)) == [(5, 15, 6), (10, 20, 2)]
    assert (bucket.slices, bucket.keys) == (0, 0)
