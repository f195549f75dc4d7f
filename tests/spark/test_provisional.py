"""Tiles of a stream with what is not final yet: at every micro-batch they are the batch result over all rows seen so far."""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sash import agg
from sash.errors import DefinitionError
from sash.spark import tile_sink, tiles
from sash.wheel import TileStore
from tests.spark.arrivals import EVENTS, arrival, cut, rows, totals
from tests.spark.conftest import at

pytestmark = pytest.mark.spark

GRAIN = 10  # seconds
AGGS = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}
ASKED = {"time": "at", "key": "key", "grain": f"{GRAIN} seconds", "watermark": "20 seconds", "aggs": AGGS}
MICROS = 10**6


def micros(t):
    return int(at(t).timestamp()) * MICROS


def created(folder):
    return TileStore.create(folder / "tiles", aggs=AGGS, grain=ASKED["grain"], key="key")


def compare(path, seen):
    """Tiles and open slices together equal the rows seen, key by key, over a few ranges."""
    store = TileStore(path)
    if not seen:
        return
    first = min(t for _, t, _ in seen) // GRAIN * GRAIN
    last = (max(t for _, t, _ in seen) // GRAIN + 1) * GRAIN
    wheels = {name: store.wheels(name, start=micros(first), provisional=True) for name in AGGS}
    middle = (first + last) // 2 // GRAIN * GRAIN
    for key in {key for key, _, _ in seen}:
        for a, b in ((first, last), (first, middle), (middle, last)):
            values = [value for k, t, value in seen if k == key and a <= t < b]
            n, total, high = totals(values)
            found = tuple(wheels[name].query(key, micros(a), micros(b)) for name in AGGS)
            assert found == (n, total or 0, high), (key, a, b)  # a wheel's sum of nothing is 0


@pytest.mark.parametrize("cache", ["true", "false"])
@pytest.mark.parametrize("seed", [1, 2])
def test_tiles_and_open_slices_are_all_rows_seen_so_far_at_every_micro_batch(spark, stream, seed, cache):
    rng = random.Random(seed)
    batches = cut(rng, arrival(rng, 300, ["a", "b", None], 15, late_share=0.1, late_by=60), 7)
    spark.conf.set("spark.sash.cache", cache)
    source = stream(EVENTS, rows(batches))
    store, checkpoint = created(source.folder), str(source.folder / "checkpoint")
    write = tile_sink(store, checkpoint, provisional=True)
    seen, open_batches = [], 0

    def sink(df, batch):
        nonlocal open_batches
        closed = TileStore(store.path).watermark or 0
        write(df, batch)
        taken = batches[batch] if batch < len(batches) else []  # the last ones have no data
        seen.extend((key, t, value) for key, t, value in taken if micros(t // GRAIN * GRAIN + GRAIN) > closed)
        compare(store.path, seen)
        open_batches += TileStore(store.path).provisional is not None

    try:
        query = source.start(lambda df: tiles(df, emit="update", **ASKED), sink, mode="update")
        query.awaitTermination()
    finally:
        spark.conf.unset("spark.sash.cache")
    assert len(seen) < sum(map(len, batches)), "some rows must be late"
    assert open_batches >= 5


def test_a_sink_says_how_provisional_tiles_must_be_told(stream, tmp_path):
    source = stream(EVENTS, rows([[("a", 5.0, 1)]]))
    checkpoint = str(source.folder / "checkpoint")
    for given, provisional in (({}, True), ({"emit": "update"}, False)):
        store = TileStore.create(tmp_path / f"{provisional}", aggs=AGGS, grain=ASKED["grain"], key="key")
        seen = []

        def sink(df, batch, store=store, provisional=provisional, seen=seen):
            with pytest.raises(DefinitionError) as raised:
                tile_sink(store, checkpoint, provisional=provisional)(df, batch)
            seen.append(str(raised.value))
            df.count()  # a batch whose rows nobody asked for has no state to commit, and Spark refuses it

        source.start(lambda df, given=given: tiles(df, **given, **ASKED), sink, mode="update" if given else "append").awaitTermination()
        assert 'emit="update"' in seen[0]
        assert "provisional=True" in seen[0]
        shutil.rmtree(checkpoint)


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {root!r})
source, folder, point, kill = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
from pathlib import Path
from sash.spark import session, tile_sink, tiles
from sash.wheel import tile_files
from tests.spark.test_provisional import ASKED, created

spark = session(master="local[2]", **{{"spark.sql.shuffle.partitions": 2}})
store = created(Path(folder))
batch_now = [-1]
put = tile_files.Here.put

def killing(self, name, data):
    here = batch_now[0] == kill and name.endswith("manifest.json")
    if here and point == "before":
        os.killpg(0, signal.SIGKILL)
    put(self, name, data)
    if here and point == "after":
        os.killpg(0, signal.SIGKILL)

tile_files.Here.put = killing
write = tile_sink(store, folder + "/checkpoint", provisional=True)

def sink(df, batch):
    batch_now[0] = batch
    write(df, batch)

rows = spark.readStream.schema("key string, at timestamp, value long").option("maxFilesPerTrigger", 1).parquet(source)
query = tiles(rows, emit="update", **ASKED).writeStream.foreachBatch(sink).outputMode("update").trigger(availableNow=True)
query.option("checkpointLocation", folder + "/checkpoint").start().awaitTermination()
"""


@pytest.mark.parametrize("point", [pytest.param("before", marks=pytest.mark.stress), "after"])
def test_after_kill_9_around_the_manifest_the_next_run_replaces_what_is_open(stream, tmp_path, point):
    rng = random.Random(3)
    batches = cut(rng, arrival(rng, 120, ["a", "b"], 15), 4)  # nothing is late: all rows count
    source = stream(EVENTS, rows(batches))
    (tmp_path / "run").mkdir()

    def run(kill):
        script = SCRIPT.format(root=str(Path(__file__).parents[2]))
        given = [str(source.source), str(tmp_path / "run"), point, str(kill)]
        with (tmp_path / "log").open("w") as log:
            done = subprocess.run([sys.executable, "-c", script, *given], start_new_session=True, stdout=log, stderr=log, env=os.environ)
        return done.returncode

    assert run(2) == -signal.SIGKILL, (tmp_path / "log").read_text()[-3000:]
    done = TileStore(tmp_path / "run" / "tiles").batch
    assert done == (1 if point == "before" else 2)
    compare(tmp_path / "run" / "tiles", [row for batch in batches[: done + 1] for row in batch])
    assert run(-1) == 0, (tmp_path / "log").read_text()[-3000:]
    compare(tmp_path / "run" / "tiles", [row for batch in batches for row in batch])
    store = TileStore(tmp_path / "run" / "tiles")
    assert len(list((Path(store.path) / "_sash").glob("tiles-*.parquet"))) == 1
