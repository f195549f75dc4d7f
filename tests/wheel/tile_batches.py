"""Batches of slices for the tests of the tile store: made by hand, and at random."""

import random

import pyarrow as pa

from sash import agg
from sash.wheel import TileStore

MINUTE = 60_000_000
UTC = pa.timestamp("us", "UTC")
AGGS = {"n": agg.count(), "total": agg.sum("v"), "mean": agg.mean("v"), "worst": agg.max("v"), "ends": agg.minmax("v")}


def tiles(rows):
    """Slices of (zone, minute, values): what sash.spark.tiles() would give."""
    return pa.table(
        {
            "zone": pa.array([zone for zone, _, _ in rows], pa.string()),
            "slice_start": pa.array([minute * MINUTE for _, minute, _ in rows], pa.int64()).cast(UTC),
            "n": pa.array([len(v) for _, _, v in rows], pa.int64()),
            "total": pa.array([sum(v) if v else None for _, _, v in rows], pa.int64()),
            "mean": pa.array(
                [{"sum": sum(v) if v else None, "count": len(v)} for _, _, v in rows],
                pa.struct([("sum", pa.int64()), ("count", pa.int64())]),
            ),
            "worst": pa.array([max(v, default=None) for _, _, v in rows], pa.int64()),
            "ends": pa.array(
                [{"min": min(v), "max": max(v)} if v else None for _, _, v in rows], pa.struct([("min", pa.int64()), ("max", pa.int64())])
            ),
        }
    )


def made(path, batches=(), aggs=AGGS):
    store = TileStore.create(path, aggs=aggs, grain="1m", key="zone")
    for i, (rows, watermark) in enumerate(batches):
        assert store.write(tiles(rows), query="q", batch=i, watermark=watermark * MINUTE)
    return store


def random_batches(seed, count, zones=5, step=7):
    rng = random.Random(seed)
    batches = []
    for i in range(count):
        cells = {(f"z{rng.randrange(zones)}", i * step + rng.randrange(step)) for _ in range(rng.randrange(12))}
        rows = [(z, m, [rng.randrange(-9, 100) for _ in range(rng.randrange(1, 4))]) for z, m in cells]
        rng.shuffle(rows)
        batches.append((rows, (i + 1) * step))
    return batches


ONE = [([("a", 0, [5]), ("a", 1, [7, 1]), ("b", 1, [4])], 2)]
