"""The tile store: what goes in comes out, once, whoever is killed, merges or reads meanwhile."""

import json
import multiprocessing
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sash import agg
from sash.wheel import BeyondWatermark, NotRetained, TileStore
from sash.wheel import tile_changes as module
from tests.wheel.tile_batches import AGGS, MINUTE, ONE, UTC, made, random_batches, tiles

# --- what goes in comes out


@pytest.mark.parametrize("seed", range(4))
def test_every_range_of_every_key_equals_brute_force(tmp_path, seed):
    batches = random_batches(seed, 20)
    store = made(tmp_path / "s", batches)
    everything = [row for rows, _ in batches for row in rows]
    assert len(store) == len(everything)
    assert len(store.files()) < 20  # merged as they came
    reopened = TileStore(tmp_path / "s")
    assert sorted(reopened.keys()) == sorted({z for z, _, _ in everything})
    rng = random.Random(seed)
    wheels = {name: reopened.wheels(name, start=0) for name in AGGS}
    for _ in range(60):
        zone, (start, end) = f"z{rng.randrange(5)}", sorted(rng.randrange(20 * 7 + 1) for _ in range(2))
        values = [x for z, m, v in everything if z == zone and start <= m < end for x in v]
        found = {name: w.query(zone, start * MINUTE, end * MINUTE) for name, w in wheels.items()}
        mean = sum(values) / len(values) if values else None
        ends = (min(values), max(values)) if values else None
        assert found == {"n": len(values), "total": sum(values), "mean": mean, "worst": max(values, default=None), "ends": ends}
    total = sum(x for _, m, v in everything if 10 <= m < 100 for x in v)
    assert wheels["total"].query_all(10 * MINUTE, 100 * MINUTE) == total


def test_some_keys_and_some_time_are_opened_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("sash.wheel.tile_segments._ROWS", 16)
    rows = [(f"z{z:03d}", m, [z + m]) for z in range(40) for m in range(z % 3, 30, 3)]
    store = made(tmp_path / "s", [(rows, 30)])
    wheels = store.wheels("total", keys=["z007", "z011", "nobody"], start=6 * MINUTE, end=20 * MINUTE)
    assert sorted(wheels.keys()) == ["z007", "z011"]
    assert wheels.query("z007", 6 * MINUTE, 20 * MINUTE) == sum(7 + m for z, m, _ in rows if z == "z007" and 6 <= m < 20)
    with pytest.raises(NotRetained):
        wheels.query("z007", 5 * MINUTE, 20 * MINUTE)
    with pytest.raises(BeyondWatermark):
        wheels.query("z007", 6 * MINUTE, 21 * MINUTE)


def test_several_key_columns_null_keys_and_no_key(tmp_path):
    at = pa.array([0, 0, MINUTE, MINUTE], pa.int64()).cast(UTC)
    store = TileStore.create(tmp_path / "two", aggs={"n": agg.count()}, grain="1m", key=["zone", "hour"])
    table = pa.table({"zone": ["a", None, "a", None], "hour": [1, 1, 2, None], "slice_start": at, "n": [1, 2, 4, 8]})
    store.write(table, query="q", batch=0, watermark=2 * MINUTE)
    assert set(store.keys()) == {("a", 1), ("a", 2), (None, 1), (None, None)}
    wheels = store.wheels("n", keys=[("a", 2), (None, None)])
    assert wheels.query(("a", 2), 0, 2 * MINUTE) == 4
    assert wheels.query((None, None), 0, 2 * MINUTE) == 8
    assert len(wheels) == 2

    store = TileStore.create(tmp_path / "none", aggs={"n": agg.count()}, grain="1m")
    store.write(pa.table({"slice_start": at[1:3], "n": [3, 4]}), query="q", batch=0, watermark=2 * MINUTE)
    assert store.keys() == [()]
    assert store.wheels("n").query((), 0, 2 * MINUTE) == 7
    assert store.wheels("n", keys=[()]).query((), MINUTE, 2 * MINUTE) == 4


def test_all_aggregations_at_once_are_a_struct(tmp_path):
    wheels = made(tmp_path / "s", ONE).wheels()
    assert wheels.query("a", 0, 2 * MINUTE) == {"n": 3, "total": 13, "mean": 13 / 3, "worst": 7, "ends": (1, 7)}


def test_slices_without_a_value_count_for_nothing_else(tmp_path):
    store = made(tmp_path / "s", [([("a", 0, []), ("a", 1, [3])], 2)])
    assert [store.wheels(name).query("a", 0, 2 * MINUTE) for name in AGGS] == [1, 3, 3.0, 3, (3, 3)]


def test_partials_of_every_kind_are_stored_and_merged(tmp_path):
    from sash.engine.tiles import tile_aggregation

    kinds = {
        "std": agg.std("v"),
        "p90": agg.quantile("v", 0.9),
        "seen": agg.distinct("v"),
        "parts": agg.struct(m=agg.mean("v"), s=agg.sum("v")),
    }
    store = TileStore.create(tmp_path / "s", aggs=kinds, grain="1m")
    values = [[1.5, 2.5], [2.5, 9.0, -1.0]]

    def tile(a, items):
        t = tile_aggregation(a)
        partial = t.identity()
        for x in items:
            partial = t.combine(partial, t.lift(x, 0) if not t.parts else tuple(p.lift(x, 0) for _, p in t.parts))
        return t.lower(partial)

    columns = {name: [tile(a, v) for v in values] for name, a in kinds.items()}
    store.write(pa.table({"slice_start": pa.array([0, MINUTE], pa.int64()).cast(UTC), **columns}), query="q", batch=0, watermark=2 * MINUTE)
    flat = [x for v in values for x in v]
    reopened = TileStore(tmp_path / "s")
    assert reopened.aggs == kinds
    for name in ("std", "p90", "seen"):
        a = kinds[name]
        partial = a.identity()
        for x in flat:
            partial = a.combine(partial, a.lift(x, 0))
        assert reopened.wheels(name).query((), 0, 2 * MINUTE) == pytest.approx(a.lower(partial))
    assert reopened.wheels("parts").query((), 0, 2 * MINUTE) == {"m": sum(flat) / 5, "s": sum(flat)}


def test_sketches_are_stored_and_merged(tmp_path):
    pytest.importorskip("datasketches", reason="the extra sketches is not installed")
    from sash.engine.tiles import tile_aggregation

    aggs = {"seen": agg.approx_distinct("v"), "p90": agg.approx_quantile("v", 0.9)}
    store = TileStore.create(tmp_path / "s", aggs=aggs, grain="1m")
    columns = {}
    for name, a in aggs.items():
        tile = tile_aggregation(a)
        partials = [tile.identity()] * 3
        for x in range(3000):
            partials[x % 3] = tile.combine(partials[x % 3], tile.lift(float(x), 0))
        columns[name] = pa.array([tile.lower(p) for p in partials], pa.binary())
    at = pa.array([0, MINUTE, 2 * MINUTE], pa.int64()).cast(UTC)
    store.write(pa.table({"slice_start": at, **columns}), query="q", batch=0, watermark=3 * MINUTE)
    assert TileStore(store.path).wheels("seen").query((), 0, 3 * MINUTE) == pytest.approx(3000, rel=0.05)
    assert TileStore(store.path).wheels("p90").query((), 0, 3 * MINUTE) == pytest.approx(2700, abs=90)


def test_every_aggregation_of_the_catalogue_comes_back_from_the_manifest():
    from sash.agg.cards import CARDS
    from sash.wheel.tile_manifest import Definition

    aggs = {f"a{i}": eval(f"agg.{card.example}") for i, card in enumerate(CARDS)} | {
        "who": agg.argmax("v", of="w"),
        "some": agg.sum("v", where="ok"),
    }
    definition = Definition(aggs, MINUTE, ("zone",))
    read = Definition.read(json.loads(json.dumps(definition.document())), {})
    assert read.fingerprint() == definition.fingerprint()


# --- other engines


def test_other_engines_read_the_folder_as_parquet(tmp_path):
    batches = random_batches(1, 12)
    made(tmp_path / "s", batches)
    rows = [row for rows, _ in batches for row in rows]
    table = pq.read_table(tmp_path / "s")
    assert table.num_rows == len(rows)
    assert pc.sum(table["total"]).as_py() == sum(x for _, _, v in rows for x in v)
    assert table.column_names == ["zone", "slice_start", "slice_end", *AGGS]
    duckdb = pytest.importorskip("duckdb", reason="the extra bench is not installed")
    assert duckdb.sql(f"select sum(mean.sum) from '{tmp_path}/s/*.parquet'").fetchall()[0][0] == sum(x for _, _, v in rows for x in v)


# --- once, whoever is killed


def test_a_batch_that_is_written_again_changes_nothing(tmp_path):
    batches = random_batches(2, 3)
    store = made(tmp_path / "s", batches)
    before = {p.name: p.read_bytes() for p in store.files()}
    for i, (rows, watermark) in enumerate(batches):
        assert not TileStore(tmp_path / "s").write(tiles(rows), query="q", batch=i, watermark=watermark * MINUTE)
    assert {p.name: p.read_bytes() for p in TileStore(tmp_path / "s").files()} == before


# --- while the stream runs


def test_open_wheels_take_in_new_segments_without_rebuilding(tmp_path):
    writer = made(tmp_path / "s", ONE)
    reader = TileStore(tmp_path / "s")
    wheels, one = reader.wheels("total"), reader.wheels("total", keys=["b"])
    assert not reader.refresh()
    writer.write(tiles([("a", 2, [10]), ("c", 3, [20])]), query="q", batch=1, watermark=4 * MINUTE)
    with pytest.raises(BeyondWatermark):
        wheels.query("a", 0, 3 * MINUTE)
    assert reader.refresh()
    assert reader.watermark == 4 * MINUTE
    assert wheels.query("a", 0, 4 * MINUTE) == 23
    assert wheels.query_all(2 * MINUTE, 4 * MINUTE) == 30
    assert one.query("b", 0, 4 * MINUTE) == 4
    assert list(one.keys()) == ["b"]
    for batch in range(2, 40):  # merges on the way
        writer.write(tiles([("a", batch + 2, [1])]), query="q", batch=batch, watermark=(batch + 3) * MINUTE)
        if batch % 5 == 0:
            reader.refresh()
    reader.refresh()
    assert wheels.query("a", 0, 42 * MINUTE) == 23 + 38


def test_a_watermark_moves_without_slices(tmp_path):
    store = made(tmp_path / "s", ONE)
    reader = TileStore(tmp_path / "s")
    wheels = reader.wheels("n")
    store.write(tiles([]), query="q", batch=1, watermark=9 * MINUTE + 5)
    assert reader.refresh()
    assert wheels.query("a", 0, 9 * MINUTE) == 3
    assert len(reader.files()) == 1


def write_many(path, count):
    store = TileStore(path)
    for batch in range(1, count):
        store.write(
            tiles([("a", batch + 1, [1]), (f"k{batch % 7}", batch + 1, [2])]), query="q", batch=batch, watermark=(batch + 2) * MINUTE
        )


def test_readers_see_whole_batches_while_another_process_writes_and_merges(tmp_path):
    made(tmp_path / "s", ONE)
    writer = multiprocessing.get_context("spawn").Process(target=write_many, args=(tmp_path / "s", 60))
    writer.start()
    reader = TileStore(tmp_path / "s")
    live = reader.wheels("total")
    seen = set()
    while writer.is_alive() or not seen:
        reader.refresh()
        upto = reader.watermark // MINUTE
        seen.add(upto)
        expected = 17 + 3 * (upto - 2)
        assert live.query_all(0, upto * MINUTE) == expected
        fresh = TileStore(tmp_path / "s")
        assert fresh.wheels("total").query_all(0, fresh.watermark) == 17 + 3 * (fresh.watermark // MINUTE - 2)
    writer.join()
    assert writer.exitcode == 0
    reader.refresh()
    assert live.query_all(0, 61 * MINUTE) == 17 + 3 * 59


# --- compaction and retention


def test_compaction_leaves_one_segment_and_every_answer(tmp_path):
    store = made(tmp_path / "s", random_batches(5, 20))
    reader = TileStore(tmp_path / "s")
    segments, upto = len(store.files()), store.watermark
    before = [reader.wheels("total", start=0).query(key, 0, upto) for key in sorted(store.keys())]
    assert segments > 1
    assert store.compact() == segments
    assert len(store.files()) == len(list((tmp_path / "s").glob("*.parquet"))) == 1
    assert store.compact() == 1
    # the reader's manifest names segments that are gone: it looks again
    assert [reader.wheels("total", start=0).query(key, 0, upto) for key in sorted(reader.keys())] == before
    store.write(tiles([("z0", 400, [1])]), query="q", batch=20, watermark=401 * MINUTE)
    assert len(TileStore(tmp_path / "s").files()) == 2


def test_retention_drops_what_is_old_and_says_so(tmp_path):
    batches = random_batches(6, 20)
    store = made(tmp_path / "s", batches)
    rows = [row for rows, _ in batches for row in rows]
    gone = sum(m < 80 for _, m, _ in rows)
    assert store.expire("1h") == gone  # the watermark is at minute 140
    assert store.expire("1h") == 0
    assert len(store) == pq.read_table(tmp_path / "s").num_rows == len(rows) - gone
    reopened = TileStore(tmp_path / "s")
    wheels = reopened.wheels("n")
    assert wheels.query_all(80 * MINUTE, 140 * MINUTE) == sum(len(v) for _, m, v in rows if m >= 80)
    with pytest.raises(NotRetained):
        wheels.query("z0", 79 * MINUTE, 140 * MINUTE)
    with pytest.raises(NotRetained, match="1970-01-01 01:20"):
        reopened.wheels("n", start=0)
    assert store.expire(140 * MINUTE) == len(rows) - gone
    assert store.files() == []


def test_retention_after_every_batch_rewrites_seldom(tmp_path, monkeypatch):
    store = made(tmp_path / "s")
    rewritten = 0
    real = module.merged

    def counted(files, manifest, old, before=None):
        nonlocal rewritten
        rewritten += before is not None
        return real(files, manifest, old, before)

    monkeypatch.setattr(module, "merged", counted)
    for batch in range(200):
        store.write(tiles([("a", batch, [1])]), query="q", batch=batch, watermark=(batch + 1) * MINUTE)
        store.expire("50m", exactly=False)
        assert store.kept_from == max(batch + 1 - 50, 0) * MINUTE or batch < 49
        assert store.wheels("n", start=max(batch - 49, 0) * MINUTE).query("a", max(batch - 49, 0) * MINUTE, (batch + 1) * MINUTE) == min(
            batch + 1, 50
        )
    assert rewritten < 60
    assert len(store) < 100
    with pytest.raises(NotRetained):
        store.wheels("n", start=149 * MINUTE)
