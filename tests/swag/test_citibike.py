"""Bike trips in the order they ended, windows over when they began: disorder as it comes.

The file is not part of the repository; a synthetic twin of a few thousand trips stands in where it is absent.
"""

import pathlib

import numpy as np
import pytest

from sash import agg
from sash.swag import BlockFiba, Fiba

FILE = pathlib.Path(__file__).parents[3] / "shared" / "data" / "citibike_jc_201806_202005.parquet"
DAY = 86_400_000_000


def twin(n=4000, seed=1):
    """Trips with long-tailed durations, by their end."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, 20 * DAY, n))
    duration = np.where(rng.random(n) < 0.01, rng.integers(3600, 3 * 86_400, n), rng.exponential(600, n).astype(np.int64) + 60)
    order = np.argsort(start + duration * 1_000_000, kind="stable")
    return start[order], duration[order]


def trips():
    parquet = pytest.importorskip("pyarrow.parquet")
    if not FILE.exists():
        pytest.skip("the Citi Bike file is not here; the synthetic twin is tested beside this")
    table = parquet.read_table(FILE, columns=["start_ts", "stop_ts", "duration_s"])
    start = table["start_ts"].to_numpy().astype("datetime64[us]").astype(np.int64)
    stop = table["stop_ts"].to_numpy().astype("datetime64[us]").astype(np.int64)
    order = np.argsort(stop, kind="stable")
    return start[order], table["duration_s"].to_numpy()[order].astype(np.int64)


@pytest.mark.parametrize("algorithm", [Fiba, BlockFiba])
@pytest.mark.parametrize("source", [twin, trips])
def test_a_day_of_trips_after_every_event(source, algorithm):
    start, duration = source()
    newest = np.maximum.accumulate(start)
    sample = set(np.random.default_rng(2).choice(len(start), min(len(start), 300), replace=False).tolist())
    w = algorithm(agg.struct(sum=agg.sum(), mean=agg.mean(), max=agg.max()))
    order = np.argsort(start[: max(sample) + 1], kind="stable")
    by_start, rank = start[order], order
    for i, (t, d) in enumerate(zip(start[: max(sample) + 1].tolist(), duration.tolist(), strict=False)):
        low = int(newest[i]) - DAY
        if t > low:
            w.insert(d, t)
        w.bulk_evict(low)
        if i not in sample:
            continue
        near = rank[np.searchsorted(by_start, low, "right") : np.searchsorted(by_start, newest[i], "right")]
        inside = duration[near[near <= i]]
        assert w.query() == {"sum": inside.sum(), "mean": inside.sum() / len(inside), "max": inside.max()}
