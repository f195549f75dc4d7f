"""A made-up stream for the tests of the server: trips by zone, minute by minute, and a store that they are written to.

Every module of tests of the server imports this one, so here is said what they cannot do without.
"""

import itertools
import math
import random

import pytest

from sash import agg
from sash.wheel import TileStore

pa = pytest.importorskip("pyarrow", reason="the extra 'serve' is not installed")
for name in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(name, reason="the extra 'serve' is not installed")

MINUTE = 60_000_000
T0 = 1_704_067_200_000_000  # 2024-01-01 00:00
UTC = pa.timestamp("us", "UTC")
AGGS = {"trips": agg.count(), "fare": agg.mean("fare"), "longest": agg.max("km"), "ends": agg.minmax("km")}
ZONES = ["midtown", "harlem", "chelsea", "soho", "tribeca", "astoria", "bushwick", "jamaica"]


def value(zone, minute, salt=""):
    """The trips of one zone and minute: fares, the same however often it is asked."""
    rng = random.Random(f"{zone}/{minute}/{salt}")
    level = 2.5 + 1.5 * math.sin((minute % 1440) / 1440 * 2 * math.pi - 2) + rng.gauss(0, 0.6) - 0.2 * (sum(map(ord, zone)) % 7)
    return [round(rng.uniform(4, 60), 2) for _ in range(max(0, round(level)))]


def slices(zones, first, last):
    """What sash.spark.tiles() would give of some minutes."""
    cells = [(zone, minute, found) for minute in range(first, last) for zone in zones if (found := value(zone, minute))]
    km = pa.struct([("min", pa.float64()), ("max", pa.float64())])
    return pa.table(
        {
            "zone": pa.array([zone for zone, _, _ in cells], pa.string()),
            "slice_start": pa.array([T0 + minute * MINUTE for _, minute, _ in cells], pa.int64()).cast(UTC),
            "trips": pa.array([len(found) for *_, found in cells], pa.int64()),
            "fare": pa.array(
                [{"sum": sum(found), "count": len(found)} for *_, found in cells],
                pa.struct([("sum", pa.float64()), ("count", pa.int64())]),
            ),
            "longest": pa.array([max(found) / 3 for *_, found in cells], pa.float64()),
            "ends": pa.array([{"min": min(found) / 3, "max": max(found) / 3} for *_, found in cells], km),
        }
    )


def empty(path):
    """A store that nothing was written to."""
    return TileStore.create(path, aggs=AGGS, grain="1m", key="zone")


def written(path, minutes, zones=ZONES, batches=4):
    """A store of so many minutes, in some batches."""
    store = empty(path)
    cuts = [minutes * i // batches for i in range(batches + 1)]
    for batch, (first, last) in enumerate(itertools.pairwise(cuts)):
        store.write(slices(zones, first, last), query="q", batch=batch, watermark=T0 + last * MINUTE)
    return store
