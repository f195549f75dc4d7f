"""Tiles as tables: against sums made by hand, by any step, also of a calendar."""

import datetime as dt
import random

import pyarrow as pa
import pytest

from sash import agg
from sash.wheel import Misaligned, NotRetained, TileStore, TileStoreError
from tests.wheel.tile_batches import AGGS, MINUTE, ONE, UTC, made, random_batches, tiles

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def micros(value):
    return (value - EPOCH) // dt.timedelta(microseconds=1)


def expected(rows, step, start=None, end=None, keys=None):
    groups = {}
    for zone, minute, values in sorted(rows):
        at = minute * MINUTE
        if (start is None or at >= start) and (end is None or at < end) and (keys is None or zone in keys):
            groups.setdefault((zone, at // step * step), []).extend(values)
    return [
        {
            "zone": zone,
            "start": at if start is None else max(at, start),
            "n": len(v),
            "total": sum(v),
            "mean": sum(v) / len(v),
            "worst": max(v),
            "ends": {"min": min(v), "max": max(v)},
        }
        for (zone, at), v in groups.items()
    ]


def found(table):
    rows = table.to_pylist()
    return [{"zone": r["zone"], "start": micros(r["slice_start"])} | {name: r[name] for name in AGGS} for r in rows]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("by", [None, "5m", "1h"])
def test_a_table_equals_sums_made_by_hand(tmp_path, seed, by):
    batches = random_batches(seed, 20)
    rows = [row for rows, _ in batches for row in rows]
    store = made(tmp_path / "s", batches)
    step = {None: 1, "5m": 5, "1h": 60}[by] * MINUTE
    assert found(store.table(by)) == expected(rows, step)
    rng = random.Random(seed)
    for _ in range(10):
        start, end = sorted(rng.randrange(141) * MINUTE for _ in range(2))
        keys = rng.sample([f"z{i}" for i in range(6)], 3)
        assert found(store.table(by, keys, start, end)) == expected(rows, step, start, end, keys)


def test_a_table_has_the_types_of_values_also_where_it_is_empty(tmp_path):
    store = made(tmp_path / "s", ONE)
    for table in (store.table(), store.table(start=0, end=0), store.table(keys=["nobody"]), store.table(by="1d")):
        assert table.schema.types == [
            pa.string(),
            UTC,
            UTC,
            pa.int64(),
            pa.int64(),
            pa.float64(),
            pa.int64(),
            pa.struct([("min", pa.int64()), ("max", pa.int64())]),
        ]
        assert table.column_names == ["zone", "slice_start", "slice_end", *AGGS]


def test_the_first_and_last_step_are_cut_where_the_range_is(tmp_path):
    store = made(tmp_path / "s", [([("a", m, [1]) for m in range(90)], 90)])
    rows = store.table("1h", start=30 * MINUTE).to_pylist()
    assert [(micros(r["slice_start"]) // MINUTE, micros(r["slice_end"]) // MINUTE, r["n"]) for r in rows] == [(30, 60, 30), (60, 90, 30)]
    store.expire(10 * MINUTE)
    (first, *_) = store.table("1h").to_pylist()
    assert (micros(first["slice_start"]) // MINUTE, first["n"]) == (10, 50)
    with pytest.raises(NotRetained):
        store.table(start=0)


def test_some_aggregations_no_key_and_several_key_columns(tmp_path):
    store = made(tmp_path / "s", ONE)
    assert store.table(aggs=["worst"]).column_names == ["zone", "slice_start", "slice_end", "worst"]
    with pytest.raises(TileStoreError, match="has no aggregation 'fare'"):
        store.table(aggs=["fare"])
    with pytest.raises(TypeError, match="is one name"):
        store.table(aggs="n")
    with pytest.raises(Misaligned, match="not a multiple of the store's grain"):
        store.table("90s")
    at = pa.array([0, 0, MINUTE, 0], pa.int64()).cast(UTC)
    none = TileStore.create(tmp_path / "none", aggs={"n": agg.count()}, grain="1m")
    none.write(pa.table({"slice_start": at[1:3], "n": [3, 4]}), query="q", batch=0, watermark=2 * MINUTE)
    assert none.table("1h").select(["n"]).to_pylist() == [{"n": 7}]
    two = TileStore.create(tmp_path / "two", aggs={"n": agg.count()}, grain="1m", key=["zone", "hour"])
    table = pa.table({"zone": ["b", None, "b", "a"], "hour": [1, 1, 1, None], "slice_start": at, "n": [1, 2, 4, 8]})
    two.write(table, query="q", batch=0, watermark=2 * MINUTE)
    rows = [(r["zone"], r["hour"], r["n"]) for r in two.table("1h").to_pylist()]
    assert rows == [("a", None, 8), ("b", 1, 5), (None, 1, 2)]


def test_values_that_are_times_and_lists_come_out_as_such(tmp_path):
    from sash.engine.tiles import tile_aggregation

    aggs = {"seen": agg.max("t"), "when": agg.argmax("v"), "top": agg.top_k("v", 2), "std": agg.std("v")}
    store = TileStore.create(tmp_path / "s", aggs=aggs, grain="1m")
    blobs = {}
    for name in ("when", "top", "std"):
        t = tile_aggregation(aggs[name])
        blobs[name] = [t.lower(t.combine(t.lift(2.5, 7), t.lift(1.5, 9)))]
    at = pa.array([0], pa.int64()).cast(UTC)
    store.write(pa.table({"slice_start": at, "seen": pa.array([5]).cast(UTC), **blobs}), query="q", batch=0, watermark=MINUTE)
    (row,) = store.table().drop_columns(["slice_start", "slice_end"]).to_pylist()
    assert row == {
        "seen": EPOCH + dt.timedelta(microseconds=5),
        "when": EPOCH + dt.timedelta(microseconds=7),
        "top": [2.5, 1.5],
        "std": pytest.approx(0.7071, abs=1e-4),
    }


@pytest.mark.parametrize("tz", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_days_of_a_time_zone(tmp_path, tz):
    from sash.wheel.calendar import Step, midnights

    start, end = (micros(dt.datetime(2024, month, 1, tzinfo=dt.UTC)) for month in (3, 5))
    minutes = random.Random(tz).sample(range(start // MINUTE, end // MINUTE), 3000)
    store = made(tmp_path / "s", [([("a", m, [1]) for m in minutes], end // MINUTE)])
    edges = midnights(start, end, Step(1, "days"), tz)
    counted = {}
    for m in minutes:
        day = max(edge for edge in edges if edge <= m * MINUTE)
        counted[day] = counted.get(day, 0) + 1
    table = store.table("1d", tz=tz, start=edges[1], end=edges[-2])
    inner = {day: n for day, n in sorted(counted.items()) if edges[1] <= day < edges[-2]}
    assert {micros(r["slice_start"]): r["n"] for r in table.to_pylist()} == inner
    months = store.table("1 month", tz=tz, aggs=["n"])
    assert sum(months["n"].to_pylist()) == 3000
    with pytest.raises(ValueError, match="months and years have no fixed length"):
        store.table("1 month")


def test_duckdb_reads_the_table(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="the extra bench is not installed")
    batches = random_batches(5, 20)
    hours = made(tmp_path / "s", batches).table("1h")
    assert hours.num_rows
    rows = [row for rows, _ in batches for row in rows]
    assert duckdb.sql("select sum(total), max(ends.max) from hours").fetchall() == [
        (sum(x for _, _, v in rows for x in v), max(x for _, _, v in rows for x in v))
    ]


# --- history, and what was added later


def test_history_then_a_query_goes_on_from_its_watermark(tmp_path):
    store = TileStore.create(tmp_path / "s", aggs=AGGS, grain="1m", key="zone")
    assert store.write_history(tiles([("a", 0, [5]), ("b", 3, [4])]), until=4 * MINUTE)
    assert not store.write_history(tiles([("a", 0, [5]), ("b", 3, [4])]), until=4 * MINUTE)
    assert store.write_history(tiles([("a", 4, [1])]), until=6 * MINUTE)
    assert (store.watermark, store.query, len(store)) == (6 * MINUTE, None, 3)
    with pytest.raises(TileStoreError, match="a slice is written once"):
        store.write(tiles([("a", 5, [1])]), query="live", batch=0, watermark=7 * MINUTE)
    assert store.write(tiles([("a", 6, [7])]), query="live", batch=0, watermark=7 * MINUTE)
    assert not store.write(tiles([("a", 6, [7])]), query="live", batch=0, watermark=7 * MINUTE)
    with pytest.raises(TileStoreError, match="which history can't overtake"):
        store.write_history(tiles([("a", 9, [1])]), until=10 * MINUTE)
    with pytest.raises(TileStoreError, match="not on the grain"):
        TileStore.create(tmp_path / "t", aggs=AGGS, grain="1m", key="zone").write_history(tiles([]), until=MINUTE + 1)
    assert store.wheels("total").query("a", 0, 7 * MINUTE) == 13


def test_history_is_taken_of_other_frames(tmp_path):
    table = tiles([("a", 0, [5])])
    pandas = pytest.importorskip("pandas", reason="the extra spark is not installed")
    polars = pytest.importorskip("polars", reason="the extra bench is not installed")
    plain = table.select(["zone", "slice_start", "n"])
    for i, frame in enumerate((plain, plain.to_pandas(), polars.from_arrow(plain), plain.to_reader(), plain.to_batches()[0])):
        store = TileStore.create(tmp_path / str(i), aggs={"n": agg.count()}, grain="1m", key="zone")
        store.write_history(frame, until=MINUTE)
        assert store.wheels("n").query("a", 0, MINUTE) == 1
    assert pandas is not None


def test_an_aggregation_that_was_added_later_is_kept_from_then_on(tmp_path):
    made(tmp_path / "s", [*ONE, ([("a", 4, [9])], 5)])
    more = AGGS | {"least": agg.min("v"), "more": agg.count()}
    store = TileStore.create(tmp_path / "s", aggs=more, grain="1m", key="zone")
    assert store.since == {"least": 5 * MINUTE, "more": 5 * MINUTE}
    with pytest.raises(TileStoreError, match="has no aggregation 'other'"):
        store.wheels("other")
    rows = tiles([("a", 6, [2, 3])]).append_column("least", pa.array([2])).append_column("more", pa.array([2]))
    assert store.write(rows, query="another query", batch=0, watermark=8 * MINUTE)  # a new checkpoint goes on
    with pytest.raises(TileStoreError, match="is written by the query another query"):
        store.write(rows, query="q", batch=2, watermark=9 * MINUTE)
    for again in (store, TileStore(tmp_path / "s")):
        assert again.wheels("least").query("a", 5 * MINUTE, 8 * MINUTE) == 2
        assert again.wheels("total", start=0).query("a", 0, 8 * MINUTE) == 13 + 9 + 5
        with pytest.raises(NotRetained, match="keeps least from 1970-01-01 00:05 on: it was added then"):
            again.wheels("least", start=0)
        with pytest.raises(NotRetained):
            again.wheels("least").query("a", 4 * MINUTE, 8 * MINUTE)
        assert again.wheels().query("a", 5 * MINUTE, 8 * MINUTE)["more"] == 2  # all together: from where all are kept
        assert again.table("1h", aggs=["more", "n"]).select(["more", "n"]).to_pylist() == [{"more": 2, "n": 2}]
        again.compact()
    again.expire(7 * MINUTE)
    assert TileStore(tmp_path / "s").wheels("least").keys() == []
    with pytest.raises(TileStoreError, match=r"its n is agg"):  # what it has, it keeps
        TileStore.create(tmp_path / "s", aggs=more | {"n": agg.sum("v")}, grain="1m", key="zone")
