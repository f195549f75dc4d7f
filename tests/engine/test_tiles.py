"""Tiles hold partials: combined in time order and lowered, they give what the whole gives."""

import random

import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Query, Slicer, Windows, bucket_of
from sash.engine.tiles import tile_aggregation, tile_partial

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64()), ("f", pa.bool_())])

SUMS = ["count", "sum", "mean", "geomean", "product", "var", "std", "skew", "kurtosis", "any", "all"]
EXTREMES = ["min", "max", "minmax", "relvar", "mincount", "maxcount", "argmin", "argmax"]
OTHERS = ["first", "last", "collect", "median", "distinct"]
AGGS = {name: getattr(agg, name)("v") for name in SUMS + EXTREMES + OTHERS} | {
    "some": agg.sum("v", where="f"),
    "decayed": agg.ewma("v", half_life=4),
    "mean_of_some": agg.mean("v", where="f"),
    "both": agg.struct(m=agg.mean("v"), c=agg.collect("v")),
    "own": agg.define(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="own", column="v"),
}


@pytest.mark.parametrize("name", AGGS)
def test_tiles_combine_to_the_whole(name):
    rng = random.Random(3)
    rows = [(i, rng.choice([None, *range(1, 50)]), rng.random() < 0.5) for i in range(40)]
    a = AGGS[name]
    query = Query(SCHEMA, "t", (), (("x", tile_aggregation(a)),), windows=Windows(10, 10))
    bucket = bucket_of(query)(query)
    batch = pa.record_batch([pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), SCHEMA, strict=True)], schema=SCHEMA)
    for packed in Slicer(query, 1).pack(batch):
        bucket.add(packed.blob)
    tiles = [row for out in bucket.advance(None) for row in out.to_pylist()]
    assert [tile["window_start"] for tile in tiles] == [0, 10, 20, 30]
    partial = a.identity()
    for tile in tiles:
        partial = a.combine(partial, tile_partial(a, tile["x"]))
    whole = a.identity()
    for t, v, f in rows:
        whole = a.combine(whole, a.lift({"v": v, "f": f, "t": t}, t))
    expected = a.lower(whole)
    assert a.lower(partial) == (pytest.approx(expected) if isinstance(expected, float) else expected)
