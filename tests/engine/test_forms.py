"""No second semantics: every aggregation and every look-back gives the same in columns, in arrays and in trees, batch by batch."""

import math
import random

import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Hops, Query, Rolling, Rows, Sessions, Slicer, Windows, bucket_of, store
from sash.engine.live import live_of
from tests.engine.cases import normal

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64()), ("x", pa.float64()), ("w", pa.string())])

NUMBERS = [
    *(agg.count, agg.sum, agg.mean, agg.geomean, agg.product, agg.var, agg.std, agg.skew, agg.kurtosis, agg.linreg, agg.any, agg.all),
    *(agg.min, agg.max, agg.minmax, agg.relvar, agg.argmin, agg.argmax, agg.mincount, agg.maxcount, agg.m4, agg.median, agg.distinct),
    *(agg.first, agg.last, agg.collect, agg.approx_distinct, agg.bloom, agg.count_min, agg.frequent_items),
]
WITH = [
    *(agg.histogram([0, 3, 6], "v"), agg.top_k(2, "v"), agg.bottom_k(2, "v"), agg.first_k(2, "v"), agg.last_k(2, "v")),
    *(agg.ith_youngest(2, "v"), agg.quantile(0.3, "v"), agg.ith_smallest(2, "v"), agg.approx_quantile(0.5, "v"), agg.concat("w")),
    *(agg.bit_and("v"), agg.bit_or("v"), agg.ewma("v", half_life=20), agg.sum("x", exact=True), agg.collect("w"), agg.max("w")),
    agg.struct(total=agg.sum("v"), list=agg.collect("v"), middle=agg.median("v")),
    agg.define(lift=str, combine=lambda a, b: a + b, identity="", name="joined", column="v"),
    agg.define(
        lift=lambda v: (v, 1), combine=lambda a, b: (a[0] + b[0], a[1] + b[1]), identity=(0, 0), commutative=True, name="pairs", column="v"
    ),
]
SHAPES = {
    "windows": {"windows": Windows(24, 6)},
    "updates": {"windows": Windows(24, 8), "emit": "update"},
    "sessions": {"windows": Sessions(3)},
    "final": {"rolling": Rolling((("9", 9), ("all", None), ("20", Hops(20, 5))))},
    "late": {"rolling": Rolling((("9", 9), ("20", Hops(20, 5)), ("15", Hops(15, 10))), "both"), "late": "accept"},
    "rows": {"rolling": Rolling((("r", Rows(3)), ("9", 9), ("20", Hops(20, 5))))},
    "events": {"rolling": Rolling((("9", 9), ("20", Hops(20, 5))), "left"), "emit": "event"},
    "changes": {"rolling": Rolling((("9", 9), ("20", Hops(20, 5)), ("all", None))), "emit": "changed"},
}


ALL = [*(a("v") for a in NUMBERS), *WITH]


def rounded(value):
    """Moments to six digits: forms combine in another order."""
    if isinstance(value, tuple):
        return tuple(rounded(inner) for inner in value)
    return value if not isinstance(value, float) else 0.0 if abs(value) < 1e-6 else float(f"{value:.6g}")


def batches(rng, n=90):
    """Rows that come out of order by up to 12, some of them late, and a watermark after every few."""
    rows = [
        (rng.randrange(2), t, rng.choice([None, *range(9)]), rng.choice([0.5, math.nan, 1e9, -3.25]), rng.choice("abc")) for t in range(n)
    ]
    rows.sort(key=lambda row: row[1] + rng.uniform(0, 12))
    cuts = sorted(rng.sample(range(n), 9))
    parts = [rows[i:j] for i, j in zip([0, *cuts], [*cuts, n], strict=True)]
    newest, out = 0, []
    for part in [*parts, []]:
        newest = max([newest, *(row[1] for row in part)])
        out.append((part, newest - rng.choice([5, 9])))
    return [*out, ([], newest + 13), ([], newest + 60)]


def told(query, parts, seed):
    rng, make = random.Random(seed), bucket_of(query)
    bucket, slicer, blobs, out = make(query), Slicer(query, 1), {}, []
    bucket.advance(-100)
    for part, mark in parts:
        for packed in slicer.pack(pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in part], SCHEMA)):
            bucket.add(packed.blob)
        out.append(sorted(repr(rounded(normal(row))) for given in bucket.advance(mark) for row in given.to_pylist()))
        out.append((bucket.keys, bucket.late))
        if rng.random() < 0.5:
            commit = bucket.commit()
            blobs = {i: blob for i, blob in blobs.items() if i not in commit.remove} | commit.put
            if rng.random() < 0.5:
                bucket = make.load(query, commit.meta, blobs)
    return out


def check_forms(a, shapes, seed, monkeypatch):
    monkeypatch.setattr(store, "SMALL", 0)
    for number, shape in enumerate(shapes, seed):
        how = SHAPES[shape]
        query = Query(SCHEMA, "t", ("k",), (("a", a), ("n", agg.count())), **how)
        assert live_of(query) is not None
        parts = batches(random.Random(number))
        found = {}
        for form in ("column", "array", "tree"):
            monkeypatch.setenv("SASH_ENGINE_FORM", form)
            found[form] = told(query, parts, number)
        assert sum(len(rows) for rows in found["column"][::2]) > 3, shape
        assert found["array"] == found["column"], shape
        assert found["tree"] == found["column"], shape


@pytest.mark.parametrize("number", range(len(ALL)), ids=lambda number: ALL[number].name)
def test_an_aggregation_gives_the_same_in_every_form(number, monkeypatch):
    # Three shapes of the eight, others for the next aggregation.
    check_forms(ALL[number], [[*SHAPES][(3 * number + i) % len(SHAPES)] for i in range(3)], number, monkeypatch)


@pytest.mark.stress
@pytest.mark.parametrize("a", ALL, ids=lambda a: a.name)
def test_an_aggregation_gives_the_same_in_every_form_and_shape(a, monkeypatch):
    for seed in range(3):
        check_forms(a, SHAPES, 100 * seed, monkeypatch)
