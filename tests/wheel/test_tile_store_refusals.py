"""What a tile store refuses: a second writer, other shapes, damage, questions that make no sense."""

import json
import random

import pyarrow as pa
import pytest

from sash import agg
from sash.wheel import TileStore, TileStoreError
from sash.wheel.tile_files import Here
from tests.wheel.tile_batches import AGGS, MINUTE, ONE, UTC, made, tiles


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
        ({"aggs": {name: a for name, a in AGGS.items() if name != "n"} | {"more": agg.count()}}, "it has no more"),
    ):
        with pytest.raises(TileStoreError, match=says):
            TileStore.create(tmp_path / "s", **({"aggs": AGGS, "grain": "1m", "key": "zone"} | change))
    assert len(TileStore(tmp_path / "s")) == 3


def test_a_truncated_segment_is_an_error_and_nothing_is_half_read(tmp_path):
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
    with pytest.raises(TileStoreError, match=r"tiles-00000000-00000000-\w+.parquet is damaged"):
        [TileStore(tmp_path / "s").wheels(name) for name in AGGS]


def test_a_missing_segment_is_an_error(tmp_path):
    store = made(tmp_path / "s", ONE)
    store.files()[0].unlink()
    with pytest.raises(TileStoreError, match="is missing: the manifest names it, with 3 slices"):
        store.wheels("n")


def test_a_segment_of_another_store_is_refused(tmp_path):
    store = made(tmp_path / "s", ONE)
    other = made(tmp_path / "o", ONE, AGGS | {"n": agg.count("v")})
    data = other.files()[0].read_bytes()
    store.files()[0].write_bytes(data)
    for index in (tmp_path / "s" / "_sash").glob("*.index"):
        index.write_bytes(next((tmp_path / "o" / "_sash").glob("*.index")).read_bytes())
    with pytest.raises(TileStoreError, match=r"holds tiles of another definition|is damaged: it has"):
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
            assert wheels.query(key, 0, MINUTE) == i


@pytest.mark.parametrize("damage", ["missing", "truncated", "another's", "missing, and nothing can be written"])
def test_an_index_is_made_again_from_the_tiles(tmp_path, monkeypatch, damage):
    store = made(tmp_path / "s", ONE)
    index = next((tmp_path / "s" / "_sash").glob("*.index"))
    if damage.startswith("missing"):
        index.unlink()
        if damage != "missing":
            monkeypatch.setattr(Here, "put", lambda *given: (_ for _ in ()).throw(PermissionError("read-only")))
    else:
        index.write_bytes(index.read_bytes()[:-3] if damage == "truncated" else b"SASH nonsense")
    assert TileStore(tmp_path / "s").wheels("total", keys=["a"]).query("a", 0, 2 * MINUTE) == 13
    assert store.keys() == ["a", "b"]


def manifest(path):
    return path / "_sash" / "manifest.json"


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    made(tmp_path / "s", ONE)
    document = json.loads(manifest(tmp_path / "s").read_text())
    manifest(tmp_path / "s").write_text(json.dumps({**document, "version": 3}))
    with pytest.raises(TileStoreError, match="version 3, newer than this Sash reads"):
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
