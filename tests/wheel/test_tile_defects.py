"""What went wrong with tile stores once: a test each, named after what must hold."""

import json
import math
import multiprocessing
import random

import pyarrow as pa
import pytest

from sash import agg
from sash.wheel import NotRetained, TileStore, TileStoreError
from tests.wheel.tile_batches import AGGS, MINUTE, ONE, UTC, made, random_batches, tiles

# --- expire


@pytest.mark.parametrize("before", ["-1d", "-1us", 3 * MINUTE, "2999-01-01"])
def test_expire_refuses_bounds_after_the_watermark_and_changes_nothing(tmp_path, before):
    store = made(tmp_path / "s", ONE)
    with pytest.raises(TileStoreError, match="Nothing was dropped"):
        store.expire(before)
    assert TileStore(tmp_path / "s").kept_from is None
    store.write(tiles([("a", 2, [9])]), query="q", batch=1, watermark=3 * MINUTE)
    assert TileStore(tmp_path / "s").wheels("total", start=0).query("a", 0, 3 * MINUTE) == 22


def test_everything_expired_later_slices_are_reachable(tmp_path):
    store = made(tmp_path / "s", ONE)
    assert store.expire("0s") == 3
    assert store.wheels("n").keys() == []
    store.write(tiles([("a", 2, [9])]), query="q", batch=1, watermark=3 * MINUTE)
    assert TileStore(tmp_path / "s").wheels("total").query("a", 2 * MINUTE, 3 * MINUTE) == 9


def test_a_reader_opened_before_two_expiries_is_told_not_retained_or_reads_again(tmp_path):
    writer = made(tmp_path / "s", [([("a", m, [m]) for m in range(60)], 60)])
    reader = TileStore(tmp_path / "s")
    for cut in (10, 20, 30):
        assert writer.expire(cut * MINUTE) == 10
    with pytest.raises(NotRetained, match="00:30"):
        reader.wheels("total", start=0)
    reader = TileStore(tmp_path / "s")
    for cut in (40, 50):
        writer.expire(cut * MINUTE)
    wheels = reader.wheels("total")  # from where slices are kept by now
    assert wheels.query("a", 50 * MINUTE, 60 * MINUTE) == sum(range(50, 60))


def test_names_of_segments_are_never_used_again(tmp_path):
    store = made(tmp_path / "s")
    seen = {}
    for batch in range(40):
        store.write(tiles([("a", batch, [batch])]), query="q", batch=batch, watermark=(batch + 1) * MINUTE)
        if batch % 3 == 2:
            store.expire((batch - 1) * MINUTE)
        if batch % 5 == 4:
            store.compact()
        for path in store.files():
            assert seen.setdefault(path.name, path.read_bytes()) == path.read_bytes()


def test_open_wheels_are_not_told_short_answers_when_slices_they_lack_were_dropped(tmp_path):
    writer = made(tmp_path / "s", ONE)
    reader = TileStore(tmp_path / "s")
    wheels = reader.wheels("total")
    writer.write(tiles([("a", m, [1]) for m in range(2, 60)]), query="q", batch=1, watermark=60 * MINUTE)
    writer.expire(30 * MINUTE)
    with pytest.raises(NotRetained, match="They stay as they are"):
        reader.refresh()
    assert wheels.query("a", 0, 2 * MINUTE) == 13
    assert reader.wheels("total").query("a", 30 * MINUTE, 60 * MINUTE) == 30


# --- write


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_a_slice_that_is_twice_in_a_batch_is_refused_by_name(tmp_path, order):
    store = made(tmp_path / "s", ONE)
    rows = [("a", 5, [1]), ("b", 5, [2]), ("a", 5, [4])]
    with pytest.raises(TileStoreError, match="of the key 'a' that starts at 1970-01-01 00:05 is there twice"):
        store.write(tiles([rows[i] for i in order]), query="q", batch=1, watermark=6 * MINUTE)
    assert len(TileStore(tmp_path / "s")) == 3
    assert store.write(tiles(rows[:2]), query="q", batch=1, watermark=6 * MINUTE)


def test_slices_of_null_and_nan_keys_are_one_key_each(tmp_path):
    store = TileStore.create(tmp_path / "s", aggs={"n": agg.count()}, grain="1m", key="x")
    for twice in (None, math.nan):
        table = pa.table({"x": pa.array([twice, 1.0, twice], pa.float64()), "slice_start": pa.array([0] * 3).cast(UTC), "n": [1, 2, 3]})
        with pytest.raises(TileStoreError, match="is there twice"):
            store.write(table, query="q", batch=0, watermark=MINUTE)
    for keys in ([math.nan, None, 1.0], [math.nan, None, *map(float, range(100))]):
        store = TileStore.create(tmp_path / str(len(keys)), aggs={"n": agg.count()}, grain="1m", key="x")
        column = pa.array(keys, pa.float64())
        at = pa.array([0] * len(keys)).cast(UTC)
        store.write(pa.table({"x": column, "slice_start": at, "n": list(range(1, len(keys) + 1))}), query="q", batch=0, watermark=MINUTE)
        assert [store.wheels("n", keys=[key]).landmark_all() for key in (math.nan, None)] == [1, 2]


# --- create


def _create(path, unit, gate):
    gate.wait()
    try:
        TileStore.create(path, aggs={"n": agg.sum(unit)}, grain="1m")
    except TileStoreError as error:
        raise SystemExit(3 if "another definition" in str(error) else 4) from None


def test_of_two_processes_that_create_different_stores_at_once_one_is_refused(tmp_path, monkeypatch):
    """The other process has made its store after this one saw that there was none."""
    from sash.wheel import tile_manifest

    path = tmp_path / "s"
    real = tile_manifest.Manifest.save
    TileStore.create(tmp_path / "other", aggs={"n": agg.sum("w")}, grain="1m")
    meanwhile = iter([True])

    import contextlib
    import fcntl

    flock = fcntl.flock

    def slow(file, what):
        if next(meanwhile, False):  # this one waits for the lock; the other one had it
            (path / "_sash" / "manifest.json").write_bytes((tmp_path / "other" / "_sash" / "manifest.json").read_bytes())
        return flock(file, what)

    monkeypatch.setattr(fcntl, "flock", slow)
    with contextlib.suppress(StopIteration), pytest.raises(TileStoreError, match="of another definition"):
        TileStore.create(path, aggs={"n": agg.sum("v")}, grain="1m")
    assert TileStore(path).aggs == {"n": agg.sum("w")}
    assert real is tile_manifest.Manifest.save


@pytest.mark.stress
def test_processes_that_race_to_create_agree_on_one_definition(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    for attempt in range(5):
        gate = spawn.Barrier(4)
        racers = [spawn.Process(target=_create, args=(tmp_path / str(attempt), name, gate)) for name in "vwvw"]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        assert sorted(racer.exitcode for racer in racers) == [0, 0, 3, 3]


@pytest.mark.parametrize("path", ["foo://bucket/tiles", "s4://bucket/tiles", "http://somewhere/tiles", "mock:tiles", "dbfs:/tiles"])
def test_a_path_on_no_file_system_is_refused_and_makes_no_folder(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for ask in (lambda: TileStore.create(path, aggs=AGGS, grain="1m", key="zone"), lambda: TileStore(path)):
        with pytest.raises(TileStoreError, match="is on no file system"):
            ask()
    assert not list(tmp_path.iterdir())


def test_a_path_in_an_object_store_makes_no_local_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=r"(?i)s3|bucket|connect|network"):
        TileStore.create("s3://nobody/tiles?endpoint_override=127.0.0.1:1&scheme=http&region=x", aggs=AGGS, grain="1m", key="zone")
    assert not list(tmp_path.iterdir())


# --- damage


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_anywhere_is_a_tile_store_error_or_changes_no_answer(tmp_path, seed):
    batches = random_batches(seed, 3, zones=3)
    store = made(tmp_path / "s", batches)
    store.compact()
    rng = random.Random(seed)
    files = [p for p in sorted((tmp_path / "s").rglob("*")) if p.is_file() and p.name != "lock"]

    def answers():
        found = TileStore(tmp_path / "s")
        whole = [found.wheels(name, start=0).group_by_all(0, 21 * MINUTE, "1m") for name in AGGS]
        return sorted(found.keys()), whole, found.wheels("mean", keys=["z1"], start=0).query("z1", 0, 21 * MINUTE), len(found)

    expected = repr(answers())
    told = 0
    for path in files:
        whole = path.read_bytes()
        index = next((tmp_path / "s" / "_sash").glob("*.index"))
        of_index = index.read_bytes()
        places = rng.sample(range(len(whole)), min(120, len(whole)))
        if path.suffix == ".parquet":
            places += list(range(len(whole) - 300, len(whole)))  # its footer's end
        for at in places:
            damaged = bytearray(whole)
            damaged[at] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            try:
                assert repr(answers()) == expected, f"{path.name}, byte {at}"
            except TileStoreError:
                told += 1
        path.write_bytes(whole)
        if path != index:
            index.write_bytes(of_index)
    assert told > 300
    assert repr(answers()) == expected


def test_a_sealed_manifest_of_nonsense_is_a_tile_store_error(tmp_path):
    from sash.wheel.tile_manifest import _checksum

    made(tmp_path / "s", ONE)
    path = tmp_path / "s" / "_sash" / "manifest.json"
    document = json.loads(path.read_text())
    document.pop("checksum")
    for field, nonsense in [
        ("units", [{"file": 3}]),
        ("units", 7),
        ("columns", []),
        ("definition", {}),
        ("definition", {"aggs": {"n": {"agg": "sum"}}, "grain_us": "x", "keys": []}),
        ("version", "two"),
        ("fingerprint", None),
    ]:
        changed = {**document, field: nonsense}
        path.write_text(json.dumps({**changed, "checksum": _checksum(changed)}))
        with pytest.raises(TileStoreError):
            TileStore(tmp_path / "s")


# --- questions


def test_the_advice_of_beyond_watermark_holds_for_keyed_wheels(tmp_path):
    from sash.wheel import BeyondWatermark

    wheels = made(tmp_path / "s", ONE).wheels("total")
    with pytest.raises(BeyondWatermark, match="clamp=True"):
        wheels.query("a", 0, 9 * MINUTE)
    assert wheels.query("a", 0, 9 * MINUTE, clamp=True) == 13
    assert wheels.query("nobody", 0, 9 * MINUTE, clamp=True) == 0
    assert wheels.query("a", 5 * MINUTE, 9 * MINUTE, clamp=True) == 0
    assert wheels.query_all(0, 9 * MINUTE, clamp=True) == 17
    assert wheels.query_each(0, 9 * MINUTE, clamp=True) == (["a", "b"], [13, 4])
    assert wheels.top(1, 0, 9 * MINUTE, clamp=True) == [("a", 13)]


def test_wheels_of_all_aggregations_are_native_and_equal_those_of_each(tmp_path):
    batches = random_batches(8, 20)
    store = made(tmp_path / "s", batches)
    together = store.wheels(start=0)
    assert together.dtype != "object"  # one native structure for all parts
    alone = {name: store.wheels(name, start=0) for name in AGGS}
    rng = random.Random(8)
    for _ in range(50):
        start, end = sorted(rng.randrange(141) * MINUTE for _ in range(2))
        key = f"z{rng.randrange(6)}"
        assert together.query(key, start, end) == {name: w.query(key, start, end) for name, w in alone.items()}
    assert together.landmark_all() == {name: w.landmark_all() for name, w in alone.items()}


def test_wheels_of_floats_nulls_and_python_parts_together_equal_those_of_each(tmp_path):
    from sash.engine.tiles import tile_aggregation

    for extra in ({}, {"std": agg.std("v")}):
        aggs = {"n": agg.count(), "s": agg.sum("v"), "m": agg.mean("v"), "lo": agg.min("v"), "r": agg.relvar("v")} | extra
        store = TileStore.create(tmp_path / str(len(aggs)), aggs=aggs, grain="1m", key="k")
        for batch, values in enumerate([[None, None], [1.5, None], [2, 4.25]]):
            rows = [[v] if v is not None else [] for v in values]
            columns = {
                "n": pa.array([1] * 2),
                "s": pa.array([sum(v) if v else None for v in rows], pa.float64()),
                "m": pa.array(
                    [{"sum": sum(v) if v else None, "count": len(v)} for v in rows],
                    pa.struct([("sum", pa.float64()), ("count", pa.int64())]),
                ),
                "lo": pa.array([min(v, default=None) for v in rows], pa.float64()),
                "r": pa.array(
                    [{"min": v[0], "max": v[0]} if v else None for v in rows], pa.struct([("min", pa.float64()), ("max", pa.float64())])
                ),
            }
            if extra:
                t = tile_aggregation(aggs["std"])
                columns["std"] = pa.array([t.lower(t.lift(v[0], 0) if v else t.identity()) for v in rows], pa.binary())
            at = pa.array([batch * MINUTE] * 2).cast(UTC)
            store.write(pa.table({"k": ["a", "b"], "slice_start": at, **columns}), query="q", batch=batch, watermark=(batch + 1) * MINUTE)
        together = store.wheels()
        for key in "ab":
            for start in range(3):
                expected = {name: store.wheels(name).query(key, start * MINUTE, 3 * MINUTE) for name in aggs}
                assert together.query(key, start * MINUTE, 3 * MINUTE) == expected


def test_the_same_question_about_a_quantile_gets_the_same_answer(tmp_path):
    pytest.importorskip("datasketches", reason="the extra sketches is not installed")
    from sash.engine.tiles import tile_aggregation

    a = agg.approx_quantile("v", 0.9)
    store = TileStore.create(tmp_path / "s", aggs={"p90": a}, grain="1m")
    tile, rng = tile_aggregation(a), random.Random(1)
    sketches = []
    for _ in range(200):
        partial = tile.identity()
        for _ in range(300):
            partial = tile.combine(partial, tile.lift(rng.gauss(0, 100), 0))
        sketches.append(tile.lower(partial))
    at = pa.array([m * MINUTE for m in range(200)]).cast(UTC)
    store.write(pa.table({"slice_start": at, "p90": sketches}), query="q", batch=0, watermark=200 * MINUTE)
    for wheels in (store.wheels("p90"), TileStore(store.path).wheels("p90")):
        answers = {wheels.query((), 7 * MINUTE, 190 * MINUTE) for _ in range(5)}
        assert len(answers) == 1
    assert len({TileStore(store.path).wheels("p90").query_all(0, 200 * MINUTE) for _ in range(3)}) == 1
