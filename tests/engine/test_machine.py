"""A bucket in its live form, step by step against a plain model: rows come, time goes on, the state is stored, read, followed."""

import random
from bisect import insort
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Hops, Query, Rolling, Rows, Sessions, Slicer, Windows, bucket_of, store

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])
AGGS = (("n", agg.count()), ("s", agg.sum("v")), ("hi", agg.max("v")), ("at", agg.argmax("v")))
# A Python object whose order matters: by time, then by value.
ENDS = agg.define(lift=lambda v: (v, v), combine=lambda a, b: (a[0], b[1]), lower=str, identity=None, name="ends", column="v")
STEPS, MANY = 20_000, 1_000_000  # rows


def lowered(rows):
    """Of (time, arrival, value) in order of time."""
    if not rows:
        return (0, None, None, None, str(None))
    top, ends = max(v for _, _, v in rows), sorted((t, v) for t, _, v in rows)
    return (len(rows), sum(v for _, _, v in rows), top, min(t for t, _, v in rows if v == top), str((ends[0][1], ends[-1][1])))


class Model:
    """Rows by key in order of time and arrival."""

    def __init__(self, windows=None, rolling=None, results=4):
        self.windows, self.rolling, self.results = windows, rolling, results
        self.rows, self.mark = {}, -(10**9)

    def keep(self, oldest, rows=0):
        for key in list(self.rows):
            held = self.rows[key]
            cut = 0
            while cut < len(held) - rows and held[cut][0] < oldest:
                cut += 1
            del held[:cut]
            if not held:
                del self.rows[key]


class WindowModel(Model):
    def step(self, came, mark):
        length, slide = self.windows.range, self.windows.slide
        for n, (k, t, v) in enumerate(came):
            if t // slide * slide + length > self.mark:
                insort(self.rows.setdefault(k, []), (t, n, v))
        out = []
        first = (self.mark - length) // slide * slide + slide
        for k, held in self.rows.items():
            # Windows that hold no row are not told: start where the first row is.
            start = max(first, (held[0][0] - length) // slide * slide + slide) if held else mark
            while start + length <= mark and start <= held[-1][0]:
                rows = [r for r in held if start <= r[0] < start + length]
                if rows:
                    out.append((k, start, start + length, *lowered(rows)[: self.results]))
                start += slide
        self.mark = mark
        self.keep((mark - length) // slide * slide + slide)
        return out


class SessionModel(Model):
    def step(self, came, mark):
        gap, out = self.windows.gap, []
        for n, (k, t, v) in enumerate(came):
            if t > self.mark - gap:
                insort(self.rows.setdefault(k, []), (t, n, v))
        for k, held in list(self.rows.items()):
            cuts = [0, *(i for i in range(1, len(held)) if held[i][0] - held[i - 1][0] > gap), len(held)]
            over = [held[a:b] for a, b in pairwise(cuts) if held[b - 1][0] + gap <= mark]
            out += [(k, rows[0][0], rows[-1][0] + gap, *lowered(rows)[: self.results]) for rows in over]
            del held[: sum(map(len, over))]
            if not held:
                del self.rows[k]
        self.mark = mark
        return out


class RollingModel(Model):
    def __init__(self, **how):
        super().__init__(**how)
        self.pending, self.arrivals = [], 0

    def step(self, came, mark):
        for k, t, v in came:
            if t > self.mark:
                insort(self.pending, (t, k, v))
        cut = 0
        while cut < len(self.pending) and self.pending[cut][0] <= mark:
            cut += 1
        final, self.pending = self.pending[:cut], self.pending[cut:]
        places = []
        for t, k, v in final:  # in order of time, then of value: what orders rows of one time
            held = self.rows.setdefault(k, [])
            self.arrivals += 1
            held.append((t, self.arrivals, v))
            places.append(len(held))
        out = []
        periods = [p for _, p in self.rolling.lookbacks]
        for (t, k, v), place in zip(final, places, strict=True):
            held = self.rows[k]
            frames = [
                held[max(0, place - p.n) : place] if isinstance(p, Rows) else [r for r in held if self.begin(t, p) <= r[0] <= t]
                for p in periods
            ]
            values = [lowered(frame) for frame in frames]
            out.append((k, t, v, *(value[i] for i in range(self.results) for value in values)))
        self.mark = mark
        oldest = min(self.begin(mark + 1, p) for p in periods if not isinstance(p, Rows))
        self.keep(oldest, max((p.n for p in periods if isinstance(p, Rows)), default=0))
        return out

    @staticmethod
    def begin(t, period):
        return (t - period.period) // period.hop * period.hop if isinstance(period, Hops) else t - period + 1


def run(form, steps, seed, monkeypatch):
    monkeypatch.setenv("SASH_ENGINE_FORM", form)
    if seed % 2:
        monkeypatch.setattr(store, "SMALL", 0)
    rng = random.Random(seed)
    done = 0
    while done < steps:
        done += life(*drawn(rng), rng, min(5_000, steps - done))


def drawn(rng):
    """A query and the model of it."""
    slide = rng.choice([1, 5, 20])
    aggs = AGGS if rng.random() < 0.7 else (*AGGS, ("ends", ENDS))
    kind = rng.choice([WindowModel, WindowModel, SessionModel, RollingModel, RollingModel])
    if kind is WindowModel:
        how = {"windows": Windows(slide * rng.choice([1, 3, 40]) + rng.choice([0, slide // 2]), slide)}
    elif kind is SessionModel:
        how = {"windows": Sessions(slide)}
    else:
        lookbacks = rng.sample([("a", 7), ("b", 60), ("c", 400), ("d", Hops(300, 60)), ("e", Hops(50, 10))], rng.randint(1, 3))
        lookbacks += rng.choice([[], [("r", Rows(rng.choice([1, 4, 40])))]])
        how = {"rolling": Rolling(tuple(lookbacks))}
    return Query(SCHEMA, "t", ("k",), aggs, **how), kind(**how, results=len(aggs))


def life(query, model, rng, steps):
    make, slicer = bucket_of(query), Slicer(query, 1)
    bucket, other, blobs, now, mark, done = make(query), None, {}, 0, -50, 0
    bucket.advance(mark)
    model.mark = mark
    keys = rng.choice([1, 5, 200])
    while done < steps:
        n = rng.choice([0, 1, 5, 40, 40, 40, 400])
        now += rng.choice([0, 1, 10, 10, 10, 100, 700])
        # One value per time and key: rows that are counted have an order of their own only if they differ.
        came = [
            (rng.randrange(keys), now - (rng.randrange(8) if rng.random() < 0.8 else rng.randrange(60)), rng.randrange(1000))
            for _ in range(n)
        ]
        if came:
            batch = pa.record_batch([pa.array(np.array(column, np.int64)) for column in zip(*came, strict=True)], schema=SCHEMA)
            for packed in slicer.pack(batch):
                bucket.add(packed.blob)
        mark = max(mark, now - rng.randrange(20, 50))
        found = [tuple(row.values()) for out in bucket.advance(mark) for row in out.to_pylist()]
        expected = model.step(came, mark)
        assert sorted(found, key=repr) == sorted(expected, key=repr), query
        done += n + 1
        if rng.random() < 0.2:
            commit = bucket.commit()
            blobs = {i: blob for i, blob in blobs.items() if i not in commit.remove} | commit.put
            if rng.random() < 0.3:
                bucket, other = other, bucket
                if bucket is None or not bucket.catch_up(commit.meta, blobs.__getitem__):
                    bucket = make.load(query, commit.meta, blobs)
    held = {k for k in model.rows} | {k for _, k, _ in getattr(model, "pending", [])}
    assert bucket.keys == len(held)
    return done


@pytest.mark.parametrize("form", ["auto", "array", "tree"])
def test_a_bucket_equals_its_model(form, monkeypatch):
    run(form, STEPS, 1 + len(form), monkeypatch)


@pytest.mark.stress
@pytest.mark.parametrize("form", ["auto", "array", "tree"])
def test_a_bucket_equals_its_model_over_a_million_steps(form, monkeypatch):
    run(form, MANY, 17 + len(form), monkeypatch)
