"""The tile store: what goes in comes out, once, whoever is killed, merges or reads meanwhile; and what it refuses."""

import json
import multiprocessing
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sash import agg
from sash.wheel import BeyondWatermark, NotRetained, TileStore, TileStoreError
from sash.wheel import tile_store as module

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
    monkeypatch.setattr("sash.wheel.tile_units._ROWS", 16)
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
    from sash.keyed.tiles import tile_aggregation

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
    from sash.keyed.tiles import tile_aggregation

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


class Killed(Exception):
    pass


@pytest.mark.parametrize("merging", [False, True], ids=["a batch", "a merge"])
@pytest.mark.parametrize("point", ["before the manifest", "before the rename", "before the old ones are deleted"])
def test_killed_at_any_point_nothing_is_lost_or_doubled(tmp_path, monkeypatch, merging, point):
    batches = random_batches(3, module.FAN if merging else 3, zones=2)
    *first, (rows, watermark) = [(r or [("z0", w - 1, [1])], w) for r, w in batches]
    store = made(tmp_path / "s", first)

    def die(*args, **kwargs):
        raise Killed

    with monkeypatch.context() as patched:
        saves = 0
        real_save = module.Manifest.save

        def save(self, path):
            nonlocal saves
            saves += 1
            if saves == (2 if merging else 1):
                raise Killed
            real_save(self, path)

        if point == "before the manifest":
            patched.setattr(module.Manifest, "save", save)
        elif point == "before the rename":
            patched.setattr(module.units, "_write_index", die)
        else:
            patched.setattr(module.units, "remove_unit", die)
        try:
            store.write(tiles(rows), query="q", batch=len(first), watermark=watermark * MINUTE)
        except Killed:
            assert merging or not point.endswith("deleted")
    again = TileStore(tmp_path / "s")
    again.write(tiles(rows), query="q", batch=len(first), watermark=watermark * MINUTE)
    again.write(tiles([]), query="q", batch=len(first) + 1, watermark=watermark * MINUTE)
    everything = [*(row for r, _ in first for row in r), *rows]
    assert len(again) == len(everything)
    assert pq.read_table(tmp_path / "s").num_rows == len(everything)
    assert not list((tmp_path / "s").glob(".*"))
    total = sum(x for z, _, v in everything if z == "z0" for x in v)
    assert TileStore(tmp_path / "s").wheels("total", start=0).query("z0", 0, watermark * MINUTE) == total


# --- while the stream runs


def test_open_wheels_take_in_new_units_without_rebuilding(tmp_path):
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


def test_compaction_leaves_one_unit_and_every_answer(tmp_path):
    store = made(tmp_path / "s", random_batches(5, 20))
    reader = TileStore(tmp_path / "s")
    units, upto = len(store.files()), store.watermark
    before = [reader.wheels("total", start=0).query(key, 0, upto) for key in sorted(store.keys())]
    assert units > 1
    assert store.compact() == units
    assert len(store.files()) == len(list((tmp_path / "s").glob("*.parquet"))) == 1
    assert store.compact() == 1
    # the reader's manifest names units that are gone: it looks again
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
    real = module.units.merged

    def counted(path, old, keys, grain, before=None):
        nonlocal rewritten
        rewritten += before is not None
        return real(path, old, keys, grain, before)

    monkeypatch.setattr(module.units, "merged", counted)
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


# --- what it refuses


def test_a_store_has_one_writer(tmp_path):
    store = made(tmp_path / "s", ONE)
    with pytest.raises(TileStoreError, match="is written by the query q, and this is other"):
        store.write(tiles([("a", 5, [1])]), query="other", batch=0, watermark=6 * MINUTE)
    assert TileStore(tmp_path / "s").watermark == 2 * MINUTE


@pytest.mark.parametrize(
    ("rows", "watermark", "says"),
    [
        ([("a", 1, [1])], 3, "complete up to 1970-01-01 00:02 before"),
        ([("a", 5, [1])], 5, "after the watermark 1970-01-01 00:05: it is not complete"),
    ],
)
def test_slices_out_of_their_time_are_refused_and_nothing_is_written(tmp_path, rows, watermark, says):
    store = made(tmp_path / "s", ONE)
    with pytest.raises(TileStoreError, match=says):
        store.write(tiles(rows), query="q", batch=1, watermark=watermark * MINUTE)
    assert len(TileStore(tmp_path / "s")) == 3
    assert len(list((tmp_path / "s").iterdir())) == 2


def test_tiles_of_another_shape_are_refused(tmp_path):
    store = made(tmp_path / "s", ONE)
    table = tiles([("a", 5, [1])])
    for bad, says in (
        (table.drop_columns("n"), "no column 'n'"),
        (table.set_column(2, "n", pa.array([1.5])), "Write tiles of one schema"),
        (table.set_column(1, "slice_start", pa.array([5])), "must be a timestamp"),
        (table.set_column(1, "slice_start", pa.array([5 * MINUTE + 1]).cast(UTC)), "not on the grain of 1m"),
    ):
        with pytest.raises(TileStoreError, match=says):
            store.write(bad, query="q", batch=1, watermark=6 * MINUTE)


def test_another_definition_is_refused_in_words(tmp_path):
    made(tmp_path / "s", ONE)
    for change, says in (
        ({"grain": "1h"}, "its grain is 1m, not 1h"),
        ({"key": ["zone", "x"]}, "its key is zone, not zone, x"),
        ({"aggs": AGGS | {"n": agg.sum("v")}}, r"its n is agg.count\(\), not agg.sum\('v'\)"),
        ({"aggs": AGGS | {"more": agg.count()}}, "it has no more"),
    ):
        with pytest.raises(TileStoreError, match=says):
            TileStore.create(tmp_path / "s", **({"aggs": AGGS, "grain": "1m", "key": "zone"} | change))
    assert len(TileStore(tmp_path / "s")) == 3


def test_a_truncated_unit_is_an_error_and_nothing_is_half_read(tmp_path):
    store = made(tmp_path / "s", [*ONE, ([("a", 3, [1])], 4)])
    reader = TileStore(tmp_path / "s")
    wheels = reader.wheels("total")
    damaged = store.files()[1]
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-7])
    for ask in (lambda: TileStore(tmp_path / "s").wheels("total"), store.compact, store.keys):
        with pytest.raises(
            TileStoreError, match=f"{damaged.name} is damaged: it has {len(whole) - 7:,} bytes, the manifest says {len(whole):,}"
        ):
            ask()
    assert wheels.query("a", 0, 4 * MINUTE) == 14
    assert store.wheels("total", end=2 * MINUTE).query("a", 0, 2 * MINUTE) == 13  # what does not need it is answered
    damaged.write_bytes(whole)
    assert TileStore(tmp_path / "s").wheels("total").query("a", 0, 4 * MINUTE) == 14


def test_a_changed_page_is_an_error(tmp_path):
    store = made(tmp_path / "s", [([(f"z{i}", m, [i, m]) for i in range(20) for m in range(50)], 50)])
    data = bytearray(store.files()[0].read_bytes())
    for i in range(len(data) // 4, len(data) // 4 + 64):
        data[i] ^= 0x55
    store.files()[0].write_bytes(data)
    with pytest.raises(TileStoreError, match=r"tiles-00000000-00000000.parquet is damaged"):
        [TileStore(tmp_path / "s").wheels(name) for name in AGGS]


def test_a_missing_unit_is_an_error(tmp_path):
    store = made(tmp_path / "s", ONE)
    store.files()[0].unlink()
    with pytest.raises(TileStoreError, match="is missing: the manifest names it, with 3 slices"):
        store.wheels("n")


def test_a_unit_of_another_store_is_refused(tmp_path):
    store = made(tmp_path / "s", ONE)
    other = made(tmp_path / "o", ONE, AGGS | {"n": agg.count("v")})
    data = other.files()[0].read_bytes()
    store.files()[0].write_bytes(data)
    with pytest.raises(TileStoreError, match="holds tiles of another definition"):
        store.wheels("n")


def test_a_few_keys_of_many_are_found_whatever_their_type(tmp_path):
    import datetime as dt

    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(100)]
    columns = {
        "text": pa.array([*(f"ké{i}" for i in range(99)), None]),
        "number": pa.array([*range(-50, 49), None], pa.int16()),
        "real": pa.array([*(i / 3 for i in range(98)), float("nan"), None]),
        "day": pa.array(days, pa.date32()),
    }
    for name, column in columns.items():
        store = TileStore.create(tmp_path / name, aggs={"n": agg.count()}, grain="1m", key=name)
        shuffled = list(range(100))
        random.Random(name).shuffle(shuffled)
        table = pa.table({name: column, "slice_start": pa.array([0] * 100).cast(UTC), "n": list(range(100))}).take(shuffled)
        store.write(table, query="q", batch=0, watermark=MINUTE)
        for i in (0, 41, 97, 99):
            key = column[i].as_py()
            wheels = store.wheels("n", keys=[key])
            assert len(wheels) == 1
            assert wheels.query(str(key) if name == "day" else key, 0, MINUTE) == i


@pytest.mark.parametrize("damage", ["missing", "truncated", "another's", "missing, and nothing can be written"])
def test_an_index_is_made_again_from_the_tiles(tmp_path, monkeypatch, damage):
    store = made(tmp_path / "s", ONE)
    index = next((tmp_path / "s" / "_sash").glob("*.index"))
    if damage.startswith("missing"):
        index.unlink()
        if damage != "missing":
            monkeypatch.setattr(module.units, "write_aside", lambda *given: (_ for _ in ()).throw(PermissionError("read-only")))
    else:
        index.write_bytes(index.read_bytes()[:-3] if damage == "truncated" else b"SASH nonsense")
    assert TileStore(tmp_path / "s").wheels("total", keys=["a"]).query("a", 0, 2 * MINUTE) == 13
    assert store.keys() == ["a", "b"]


def manifest(path):
    return path / "_sash" / "manifest.json"


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    made(tmp_path / "s", ONE)
    document = json.loads(manifest(tmp_path / "s").read_text())
    manifest(tmp_path / "s").write_text(json.dumps({**document, "version": 2}))
    with pytest.raises(TileStoreError, match="version 2, newer than this Sash reads"):
        TileStore(tmp_path / "s")


def test_a_missing_or_damaged_manifest_is_an_error(tmp_path):
    made(tmp_path / "s", ONE)
    text = manifest(tmp_path / "s").read_text()
    for change in (text[:-20], text.replace('"n"', '"m"'), text.replace('"batch": 0', '"batch": 7'), "[]"):
        manifest(tmp_path / "s").write_text(change)
        with pytest.raises(TileStoreError, match=r"manifest.json is damaged"):
            TileStore(tmp_path / "s")
    manifest(tmp_path / "s").unlink()
    with pytest.raises(TileStoreError, match="is a folder without a manifest"):
        TileStore(tmp_path / "s")
    with pytest.raises(TileStoreError, match="is there and is no tile store"):
        made(tmp_path / "s")
    with pytest.raises(TileStoreError, match="does not exist"):
        TileStore(tmp_path / "nowhere")
    manifest(tmp_path / "s").write_text(text)
    assert len(TileStore(tmp_path / "s")) == 3


def test_callables_must_be_given_again_and_be_the_same(tmp_path):
    def spread(factor):
        return agg.define(lift=lambda x: x * factor, combine=max, identity=0, name="spread", column="v")

    store = TileStore.create(tmp_path / "s", aggs={"spread": spread(2)}, grain="1m")
    from sash import codec

    store.write(pa.table({"slice_start": pa.array([0]).cast(UTC), "spread": [codec.encode(6)]}), query="q", batch=0, watermark=MINUTE)
    with pytest.raises(TileStoreError, match="made of Python callables"):
        TileStore(tmp_path / "s")
    with pytest.raises(TileStoreError, match="not the ones its tiles were made with"):
        TileStore(tmp_path / "s", aggs={"spread": spread(3)})
    assert TileStore(tmp_path / "s", aggs={"spread": spread(2)}).wheels("spread").query((), 0, MINUTE) == 6


def test_questions_that_make_no_sense_are_refused(tmp_path):
    store = TileStore.create(tmp_path / "s", aggs=AGGS, grain="1m", key="zone")
    with pytest.raises(TileStoreError, match="no complete slice yet"):
        store.wheels("n")
    store = made(tmp_path / "s", ONE)
    with pytest.raises(TileStoreError, match=r"has no aggregation 'fare'\. It has n, total, mean"):
        store.wheels("fare")
    with pytest.raises(TypeError, match="is one key"):
        store.wheels("n", keys="a")
    with pytest.raises(ValueError, match="is after end"):
        store.wheels("n", start=2 * MINUTE, end=MINUTE)
    with pytest.raises(TileStoreError, match="5 is not a key here: the key is zone string"):
        store.wheels("n", keys=[5])
