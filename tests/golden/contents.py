"""What the golden files hold: the same windows, wheels, states and tiles for every version, and the answers they must give.

``python -m tests.golden.contents 0.2`` in the root of the project writes the files of a version. Files of earlier versions are never
written again: tests/golden/test_golden.py reads all of them. ``--add`` writes only what a version has no file of.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from sash import agg, swag
from sash.engine import Query, Rolling, Rows, Sessions, Slicer, Windows, bucket_of
from sash.frames import Live
from sash.swag.algorithms import ALGORITHMS
from sash.wheel import KeyedWheels, TileStore, Wheel

HERE = pathlib.Path(__file__).parent
JOINED = agg.define(lift=lambda x: (x,), combine=lambda a, b: a + b, lower=list, identity=(), name="joined")

AGGREGATIONS = {
    "sum": agg.sum(),
    "mean": agg.mean(),
    "var": agg.var(),
    "max": agg.max(),
    "argmax": agg.argmax(),
    "collect": agg.collect(),
    "median": agg.median(),
    "distinct": agg.distinct(),
    "bloom": agg.bloom(),
    "exactsum": agg.sum(exact=True),
    "exactstd": agg.std(exact=True),
    "struct": agg.struct(s=agg.sum(), hi=agg.max(), all=agg.collect()),
    "joined": JOINED,
}
TAKES = {"SubtractOnEvict": ("sum", "mean"), "MonotonicDeque": ("max",), "OrderStatistics": ("median", "distinct")}
CLASSES = list(ALGORITHMS)
LARGE = {"bloom": ("DabaLite", "Fiba"), "exactsum": ("DabaLite", "BlockFiba"), "exactstd": ("DabaLite", "BlockFiba")}  # partials


def windows() -> Iterator[tuple[str, Any]]:
    """Every class with every aggregation it takes, by name: a window that has seen inserts and evictions."""
    for cls in CLASSES:
        for name in TAKES.get(cls, AGGREGATIONS):
            if cls not in LARGE.get(name, (cls,)) or (cls == "Reordered" and name not in ("sum", "collect")):
                continue
            w = getattr(swag, cls)(AGGREGATIONS[name], **({"max_delay": 30} if cls == "Reordered" else {}))
            for i in range(40):
                w.insert((i * 7) % 11, i // 2 * 10 if cls not in ("Fiba", "BlockFiba", "BTree") else (i * 17) % 40)
            w.bulk_evict(9)
            yield f"{cls}-{name}", w


def window_of(file: str, data: bytes) -> Any:
    """Read a window by the name of its file."""
    cls, name = file.split("-")
    return getattr(swag, cls).from_bytes(data, AGGREGATIONS[name])


def told(value: Any) -> Any:
    """A result as JSON holds it; of floats twelve digits, since a tree that was read again may combine in another order."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {name: told(part) for name, part in value.items()}
    return [told(part) for part in value] if isinstance(value, list | tuple) else value


def asked_of_a_window(w: Any, name: str) -> Any:
    """What is asked of a window, before and after it goes on."""
    options = {"arg": 3} if name.endswith("bloom") else {}
    before = [len(w), w.oldest, w.youngest, told(w.query(**options))]
    w.insert(5, w.youngest + 1)
    w.evict()
    return [*before, len(w), told(w.query(**options))]


def wheels() -> Iterator[tuple[str, Any]]:
    """Wheels by name."""
    for name in ("sum", "mean", "max", "struct", "joined"):
        w = Wheel(AGGREGATIONS[name], unit="s", grain="1s", levels=("1m", "1h"))
        w.window("90s", "30s")
        w.insert_many([i % 13 for i in range(500)], times=[(i * 37) % 900 for i in range(500)])
        w.advance_to(700)
        yield f"Wheel-{name}", w
    for name in ("sum", "mean"):
        k = KeyedWheels(AGGREGATIONS[name], unit="s", grain="1m")
        k.insert_many(["a", "b", None] * 100, list(range(300)), times=[i * 20 for i in range(300)])
        k.advance_to(5_000)
        yield f"KeyedWheels-{name}", k


def wheel_of(file: str, data: bytes) -> Any:
    """Read a wheel by the name of its file."""
    cls, name = file.split("-")
    return {"Wheel": Wheel, "KeyedWheels": KeyedWheels}[cls].from_bytes(data, AGGREGATIONS[name])


def asked_of_a_wheel(w: Any) -> Any:
    """What is asked of a wheel, before and after it goes on."""
    if isinstance(w, KeyedWheels):
        return told([w.query("a", 0, 4_980), w.query(None, 60, 3_600), w.query_all(0, 600), w.advance_to(6_000), w.query("b", 0, 6_000)])
    return told([w.query(0, 700), w.query(61, 640), w.landmark(), w.advance_to(900), w.query(0, 900)])


SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("x", pa.float64())])
AGGS = (
    ("n", agg.count()),
    ("s", agg.sum("v")),
    ("hi", agg.max("x")),
    ("m", agg.mean("x")),
    ("f", agg.first("v")),
    ("c", agg.collect("v")),
)
QUERIES = {
    "windows": Query(SCHEMA, "t", ("k",), AGGS, windows=Windows(60, 10)),
    "update": Query(SCHEMA, "t", ("k",), AGGS, windows=Windows(60, 10), emit="update"),
    "sessions": Query(SCHEMA, "t", ("k",), AGGS, windows=Sessions(15)),
    "rolling": Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("50", 50), ("5rows", Rows(5)), ("all", None)))),
    "event": Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("50", 50),)), emit="event"),
    "changed": Query(SCHEMA, "t", ("k",), AGGS, rolling=Rolling((("50", 50),)), emit="changed"),
}


def rows(first: int, last: int) -> pa.RecordBatch:
    """Rows of three keys, out of order by up to 12."""
    numbers = list(range(first, last))
    return pa.record_batch(
        [
            pa.array([i + (i * 7) % 13 for i in numbers]),
            pa.array([("a", "b", None)[i * 5 % 3] for i in numbers]),
            pa.array([None if i % 9 == 0 else i % 17 for i in numbers], pa.int64()),
            pa.array([i % 7 / 4 for i in numbers]),
        ],
        schema=SCHEMA,
    )


def feed(query: Query, bucket: Any, first: int, last: int, step: int = 40) -> list[str]:
    """Send rows in micro-batches, the watermark 15 behind; what comes out, as text."""
    out = []
    for at in range(first, last, step):
        for packed in Slicer(query, 1).pack(rows(at, at + step)):
            bucket.add(packed.blob)
        out += [repr(row) for batch in bucket.advance(at + step - 15) for row in batch.to_pylist()]
        bucket.commit()
    return sorted(out)


def states() -> Iterator[tuple[str, dict[str, bytes]]]:
    """The stored state of a bucket after some micro-batches, by the name of its query: its meta value and blobs."""
    for name, query in QUERIES.items():
        bucket, blobs = bucket_of(query)(query), {}
        for at in range(0, 200, 40):
            for packed in Slicer(query, 1).pack(rows(at, at + 40)):
                bucket.add(packed.blob)
            bucket.advance(at + 25)
            commit = bucket.commit()
            blobs = {i: blob for i, blob in blobs.items() if i not in commit.remove} | commit.put
        yield name, {"meta": commit.meta, **{str(i): blob for i, blob in blobs.items()}}


def state_of(name: str, files: dict[str, bytes]) -> Any:
    """Read a state."""
    query = QUERIES[name]
    return bucket_of(query).load(query, files["meta"], {int(i): blob for i, blob in files.items() if i != "meta"})


LIVE: dict[str, dict[str, Any]] = {
    "windows": {"range": "60us", "slide": "10us"},
    "sessions": {"session": "15us"},
    "rolling": {"lookbacks": ["50us", None]},
}
TIMED = SCHEMA.set(0, pa.field("t", pa.timestamp("us", "UTC")))


def lives() -> Iterator[tuple[str, Any]]:
    """Live ones by name, some rows fed and not yet taken in."""
    for name, asked in LIVE.items():
        live = Live(TIMED, time="t", key="k", aggs=dict(AGGS), **asked)
        live.feed(rows(0, 120).cast(TIMED))
        live.advance(100)
        live.feed(rows(120, 160).cast(TIMED))
        yield name, live


def live_of(name: str, data: bytes) -> Any:
    """Read a live one by the name of its file."""
    return Live.load(data, TIMED, time="t", key="k", aggs=dict(AGGS), **LIVE[name])


def asked_of_a_live(live: Any) -> Any:
    """What comes out when it goes on."""
    live.feed(rows(160, 200).cast(TIMED))
    return sorted(str([str(value) for value in row.values()]) for batch in live.advance(190) for row in batch.to_pylist())


TILES = {"n": agg.count(), "s": agg.sum("v"), "m": agg.mean("v"), "c": agg.collect("v")}


def write_tiles(folder: pathlib.Path) -> None:
    """A tile store of two batches."""
    from sash.engine.tiles import tile_aggregation

    store = TileStore.create(folder, aggs=TILES, grain="1m", key="k")
    query = Query(
        pa.schema([("t", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64())]),
        "t",
        ("k",),
        tuple((name, tile_aggregation(a)) for name, a in TILES.items()),
        windows=Windows(60_000_000, 60_000_000),
    )
    for batch in (0, 1):
        minutes = range(batch * 5, batch * 5 + 5)
        table = pa.table(
            {
                "t": pa.array([m * 60_000_000 + s * 1_000_000 for m in minutes for s in range(0, 60, 20)], pa.timestamp("us", "UTC")),
                "k": pa.array([("a", "b")[s // 20 % 2] for _ in minutes for s in range(0, 60, 20)]),
                "v": pa.array([m + s for m in minutes for s in range(0, 60, 20)]),
            }
        )
        bucket = bucket_of(query)(query)
        for packed in Slicer(query, 1).pack(table.to_batches()[0]):
            bucket.add(packed.blob)
        tiles = pa.Table.from_batches(list(bucket.flush())).rename_columns(["k", "slice_start", "slice_end", *TILES])
        store.write(tiles, query="golden", batch=batch, watermark=(batch + 1) * 300_000_000)


def asked_of_tiles(folder: pathlib.Path) -> Any:
    """What is asked of a tile store."""
    store = TileStore(folder)
    return told([store.watermark, len(store), *(store.wheels(name).query("a", 0, 600_000_000) for name in TILES)])


def add(version: str) -> None:
    """Write the files that a version does not have yet, of what it learnt to store meanwhile; what is there stays as it is."""
    folder = HERE / version
    answers: dict[str, Any] = json.loads((folder / "answers.json").read_text())
    for kind, made in (("windows", windows), ("wheels", wheels), ("lives", lives)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for name, thing in made():
            file = folder / kind / f"{name}.bin"
            if not file.exists():
                file.write_bytes(thing.save() if kind == "lives" else thing.to_bytes())
                answers[f"live {name}" if kind == "lives" else name] = _asked(kind, thing, name)
    (folder / "answers.json").write_text(json.dumps(answers, indent=1))


def _asked(kind: str, thing: Any, name: str) -> Any:
    if kind == "lives":
        return asked_of_a_live(thing)
    return asked_of_a_window(thing, name) if kind == "windows" else asked_of_a_wheel(thing)


def write(version: str) -> None:
    """Write the files of a version, and the answers that they give now."""
    folder = HERE / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "answers.json").write_text("{}")
    add(version)
    answers: dict[str, Any] = json.loads((folder / "answers.json").read_text())
    for name, files in states():
        (folder / "states" / name).mkdir(parents=True)
        for file, data in files.items():
            (folder / "states" / name / f"{file}.bin").write_bytes(data)
        answers[f"state {name}"] = feed(QUERIES[name], state_of(name, files), 200, 280)
    write_tiles(folder / "tiles")
    answers["tiles"] = asked_of_tiles(folder / "tiles")
    (folder / "answers.json").write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    (add if "--add" in sys.argv else write)(sys.argv[1])
