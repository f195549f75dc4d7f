"""Slices of a range put in the place of others: a store that batch jobs write, against a dict."""

import random

import pyarrow as pa
import pytest

from sash import agg
from sash.wheel import TileStore
from sash.wheel.errors import NotRetained, TileStoreError

MINUTE = 60_000_000


def tiles(slices):
    """Slices {(key, minute): value} as a table."""
    rows = sorted(slices.items())
    starts = pa.array([minute * MINUTE for (_, minute), _ in rows], pa.int64()).cast(pa.timestamp("us", "UTC"))
    keys, values = pa.array([key for (key, _), _ in rows], pa.string()), pa.array([v for _, v in rows], pa.int64())
    return pa.table({"zone": keys, "slice_start": starts, "v": values})


def held(store):
    if not len(TileStore(store.path)):
        return {}
    return {(r["zone"], int(r["slice_start"].timestamp()) // 60): r["v"] for r in TileStore(store.path).table().to_pylist()}


@pytest.mark.parametrize("seed", range(5))
def test_ranges_replaced_in_any_order_hold_what_was_written_last(tmp_path, seed):
    rng = random.Random(seed)
    store = TileStore.create(tmp_path / "s", aggs={"v": agg.sum("v")}, grain="1m", key="zone")
    model, upto = {}, 0
    for _ in range(25):
        start = rng.randint(0, upto)
        end = rng.choice([None, start + rng.randint(1, 40)])
        new = {(rng.choice("abc"), rng.randrange(start, end or start + 20)): rng.randrange(99) for _ in range(rng.randrange(12))}
        model = {at: v for at, v in model.items() if at[1] < start or (end is not None and at[1] >= end)} | new
        assert store.replace(tiles(new), start=start * MINUTE, end=None if end is None else end * MINUTE) == len(new)
        upto = max(upto, end or 0, *(minute + 1 for _, minute in new), 0)
        assert held(store) == model
    assert store.watermark == upto * MINUTE
    wheels = TileStore(store.path).wheels("v")
    for key in {key for key, _ in model}:
        assert wheels.query(key, 0, upto * MINUTE) == sum(v for (k, _), v in model.items() if k == key)
    # a stream goes on from there, and then a batch may no longer
    after = tiles({("a", upto): 5})
    assert store.write(after, query="q", batch=0, watermark=(upto + 1) * MINUTE)
    with pytest.raises(TileStoreError, match="written by the query q"):
        store.replace(tiles({}), start=0, end=MINUTE)
    assert held(store) == model | {("a", upto): 5}


def test_what_would_leave_a_gap_or_lies_outside_is_refused_and_changes_nothing(tmp_path):
    store = TileStore.create(tmp_path / "s", aggs={"v": agg.sum("v")}, grain="1m", key="zone")
    store.replace(tiles({("a", 10): 1}), start=10 * MINUTE, end=20 * MINUTE)
    with pytest.raises(NotRetained):
        store.wheels("v").query("a", 0, 20 * MINUTE)  # nothing was said of what lies before
    for slices, start, end, words in [
        ({("a", 31): 1}, 30, 40, "would be taken for empty. Start at 1970-01-01 00:20"),
        ({("a", 1): 1}, 0, 5, "would be taken for empty. End at 1970-01-01 00:10"),
        ({("a", 9): 1}, 10, 20, "before start="),
        ({("a", 20): 1}, 10, 20, "it is not complete"),
    ]:
        with pytest.raises(TileStoreError, match=words):
            store.replace(tiles(slices), start=start * MINUTE, end=end * MINUTE)
    with pytest.raises(TileStoreError, match="not on the grain"):
        store.check_stretch(MINUTE + 1, None)
    assert held(store) == {("a", 10): 1}
    store.replace(tiles({("a", 1): 2}), start=0, end=10 * MINUTE)
    assert TileStore(store.path).wheels("v").query("a", 0, 20 * MINUTE) == 3
