"""Which keys are one, and that they come out as they went in: one table of keys for every entry point."""

import datetime as dt
import decimal
import json
import math
import struct

import numpy as np
import pytest

from sash import agg, slide
from sash.keys import is_key, read_key, write_key
from sash.swag import DabaLite, Keyed
from sash.wheel import KeyedWheels, TileStore

pa = pytest.importorskip("pyarrow")

D = decimal.Decimal
UTC = dt.UTC
PLUS2 = dt.timezone(dt.timedelta(hours=2))
OTHER_NAN = struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\xff")[0]  # another NaN, by sign and bits
NOON = dt.datetime(2024, 5, 1, 12)

# Of each type: values, those that are one key standing together; None is a key of each.
TABLE = {
    "int64": (pa.int64(), [[1], [-5], [2**62], [0]]),
    "int8": (pa.int8(), [[1], [-128]]),
    "uint64": (pa.uint64(), [[1], [2**63], [2**64 - 1]]),
    "bool": (pa.bool_(), [[True], [False]]),
    "float64": (pa.float64(), [[1.0], [0.0, -0.0], [math.nan, OTHER_NAN, -math.nan], [math.inf]]),
    "float32": (pa.float32(), [[1.5], [0.0, -0.0], [math.nan, -math.nan]]),
    "text": (pa.string(), [["a"], [""], ["1"], ["é"], ["a longer one than eight"]]),
    "bytes": (pa.binary(), [[b"a"], [b""], [b"\x00"], [b"\x00\x00"]]),
    "date": (pa.date32(), [[dt.date(2024, 5, 1)], [dt.date(1969, 12, 31)]]),
    "timestamp": (pa.timestamp("us"), [[NOON], [NOON + dt.timedelta(microseconds=1)], [dt.datetime(1969, 12, 31)]]),
    "instant": (
        pa.timestamp("us", "UTC"),
        [
            [NOON.replace(tzinfo=UTC), NOON.replace(hour=14, tzinfo=PLUS2)],
            [NOON.replace(tzinfo=PLUS2)],
            [NOON.replace(year=1960, tzinfo=UTC)],
        ],
    ),
    "decimal": (pa.decimal128(20, 2), [[D("1.10"), D("1.1")], [D("-7.00"), D("-7")], [D("0.00"), D("-0")], [D("1234567890123456.78")]]),
}
EVERY = pytest.mark.parametrize("kind", TABLE)


def rows_of(kind):
    """(key, number of its class) for every value twice, and null."""
    _, classes = TABLE[kind]
    rows = [(value, i) for i, values in enumerate([*classes, [None]]) for value in values]
    return rows + rows[::-1]


def expected(kind):
    """How many rows each class has."""
    out = {}
    for _, i in rows_of(kind):
        out[i] = out.get(i, 0) + 1
    return out


def same(a, b):
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return type(a) is type(b) and a == b


def names_class(kind, key):
    """The class that a key which came out belongs to; it must be equal, and of the same type."""
    classes = [*TABLE[kind][1], [None]]
    found = [i for i, values in enumerate(classes) if any(same(key, value) for value in values)]
    assert len(found) == 1, (kind, key)
    return found[0]


def check(kind, counts):
    """counts: what each key that came out counts."""
    assert {names_class(kind, key): n for key, n in counts} == expected(kind), kind
    assert len(counts) == len(expected(kind))


@EVERY
def test_the_codec_tells_keys_apart_and_gives_them_back(kind):
    names = {}
    for value, i in rows_of(kind):
        names.setdefault(i, set()).add(write_key(value))
        assert names_class(kind, read_key(write_key(value))) == i
        assert is_key(value)
        inside = read_key(write_key((value, "x")))
        assert names_class(kind, inside[0]) == i
    assert all(len(written) == 1 for written in names.values())
    assert len(set().union(*names.values())) == len(names)


def test_equal_values_of_several_types_are_several_keys():
    values = [
        1,
        1.0,
        True,
        "1",
        b"1",
        D(1),
        (1,),
        None,
        dt.date(1970, 1, 2),
        dt.datetime(1970, 1, 1),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        (),
    ]
    assert len({write_key(value) for value in values}) == len(values)
    assert write_key(np.int8(1)) == write_key(1)
    assert write_key(np.uint64(2**63)) == write_key(2**63)
    assert write_key(np.float32(1)) == write_key(1.0)
    assert write_key(np.bool_(True)) == write_key(True)
    assert write_key(np.str_("a")) == write_key("a")
    assert write_key(np.datetime64("2024-05-01")) == write_key(dt.date(2024, 5, 1))
    assert write_key(np.datetime64("2024-05-01T12:00:00.000000000")) == write_key(NOON)
    assert write_key(np.datetime64("NaT")) == write_key(None)
    pd = pytest.importorskip("pandas")
    assert write_key(pd.Timestamp("2024-05-01 12:00")) == write_key(NOON)
    assert write_key(pd.NaT) == write_key(pd.NA) == write_key(None)
    for strange in ([1], {1}, object(), ((1,),), pd.Timestamp("2024-05-01 12:00:00.000000001"), np.datetime64(1, "ns")):
        assert not is_key(strange)
        with pytest.raises(TypeError, match="can't be a key"):
            write_key(strange)


def test_damaged_keys_are_refused():
    for written in (write_key(NOON), write_key(D("1.5")), write_key(2**70), write_key(dt.date(2024, 1, 1))):
        for cut in range(len(written)):
            with pytest.raises(ValueError):
                read_key(written[:cut])
        with pytest.raises(ValueError):
            read_key(written + b"x")
    for wild in (
        b"m\x08\x00\x00\x00" + b"\x7f" * 8,
        b"d\x08\x00\x00\x00" + b"\x7f" * 8,
        b"d\x01\x00\x00\x00a",
        b"?\x00\x00\x00\x00",
        b"c\x01\x00\x00\x00?",
    ):
        with pytest.raises(ValueError):
            read_key(wild)


@EVERY
def test_keyed_windows(kind):
    rows = rows_of(kind)
    one, many = Keyed(lambda: DabaLite(agg.count())), Keyed(lambda: DabaLite(agg.count()))
    for value, _ in rows:
        one.insert(value, 1)
    many.insert_many([value for value, _ in rows], [1] * len(rows))
    for keyed in (one, many):
        check(kind, [(key, keyed.query(key)) for key in keyed])
        assert all(value in keyed for value, _ in rows)
        assert len(keyed[rows[0][0]]) == keyed.query(rows[0][0])


@EVERY
def test_slide_by(kind):
    rows = rows_of(kind)
    type_ = TABLE[kind][0]
    keys = [value for value, _ in rows]
    running, wanted = {}, []
    for _, i in rows:
        running[i] = running.get(i, 0) + 1
        wanted.append(running[i])
    forms = [keys, np.array([*keys, None], object)[:-1], pa.array(keys, type_)]
    if kind in ("float64", "float32", "int64", "bool"):
        plain = [(value, w) for value, w in zip(keys, wanted, strict=True) if value is not None]
        found = slide([1] * len(plain), agg=agg.count(), size=1_000, by=np.array([value for value, _ in plain], kind.replace("text", "U")))
        assert found.tolist() == [w for _, w in plain]
    for form in forms:
        assert slide([1] * len(rows), agg=agg.count(), size=1_000, by=form).tolist() == wanted


@EVERY
def test_keyed_wheels(kind):
    rows = rows_of(kind)
    keys = [value for value, _ in rows]
    for form in (keys, pa.array(keys, TABLE[kind][0]), pa.chunked_array([pa.array(keys, TABLE[kind][0])]), None):
        wheels = KeyedWheels(agg.count(), grain=1, levels=())
        if form is None:
            for key in keys:
                wheels.insert(key, 1, 0)
        else:
            wheels.insert_many(form, [1] * len(rows), [0] * len(rows))
        wheels.advance_to(1)
        for w in (wheels, KeyedWheels.from_bytes(wheels.to_bytes(), agg.count())):
            check(kind, [(key, w.query(key, 0, 1)) for key in w])
            assert all(key in w for key in keys)
            names, values = w.query_each(0, 1)
            check(kind, list(zip(names, values, strict=True)))
    pairs = KeyedWheels(agg.count(), grain=1, levels=())
    pairs.insert_many((pa.array(keys, TABLE[kind][0]), ["x"] * len(keys)), [1] * len(rows), [0] * len(rows))
    pairs.advance_to(1)
    check(kind, [(key[0], pairs.query(key, 0, 1)) for key in pairs])


@EVERY
def test_a_bucket_of_the_engine(kind):
    from sash.engine import Bucket, Query, Slicer, Windows

    rows = rows_of(kind)
    type_ = TABLE[kind][0]
    schema = pa.schema([("k", type_), ("t", pa.int64())])
    query = Query(schema, "t", ("k",), (("n", agg.count()),), windows=Windows(10, 10))
    bucket = Bucket(query)
    for at in range(0, len(rows), 3):
        part = rows[at : at + 3]
        batch = pa.record_batch([pa.array([value for value, _ in part], type_), pa.array([5] * len(part), pa.int64())], schema=schema)
        for packed in Slicer(query, 1).pack(batch):
            bucket.add(packed.blob)
    commit = bucket.commit()
    for b in (bucket, Bucket.load(query, commit.meta, commit.put)):
        found = [row for out in b.advance(100) for row in out.to_pylist()]
        check(kind, [(row["k"], row["n"]) for row in found])


def tile_store(path, kind, batches=2):
    rows = rows_of(kind)
    type_ = TABLE[kind][0]
    store = TileStore.create(path, aggs={"n": agg.count()}, grain="1m", key="k")
    for batch in range(batches):
        counts = expected(kind)
        first = {i: value for value, i in reversed(rows)}
        table = pa.table(
            {
                "k": pa.array([first[i] for i in counts], type_),
                "slice_start": pa.array([batch * 60_000_000] * len(counts), pa.int64()).cast(pa.timestamp("us", "UTC")),
                "n": pa.array(list(counts.values()), pa.int64()),
            }
        )
        store.write(table, query="q", batch=batch, watermark=(batch + 1) * 60_000_000)
    return TileStore(path)


@EVERY
def test_a_tile_store(kind, tmp_path):
    store = tile_store(tmp_path / "tiles", kind)
    wheels = store.wheels("n")
    end = wheels.watermark
    check(kind, [(key, wheels.query(key, 0, end) // 2) for key in wheels])
    check(kind, [(key, wheels.query(key, 0, end) // 2) for key in list(store.keys())])
    for value, i in rows_of(kind):
        for wanted in ([value], [value, rows_of(kind)[0][0]]):
            some = store.wheels("n", keys=wanted)
            assert some.query(value, 0, end) == 2 * expected(kind)[i], (kind, value)


def test_a_nan_key_is_found_in_a_store_of_any_size(tmp_path):
    for others in (1, 40, 200):
        store = TileStore.create(tmp_path / str(others), aggs={"n": agg.count()}, grain="1m", key="k")
        keys = [*map(float, range(others)), OTHER_NAN]
        start = pa.array([0] * len(keys), pa.int64()).cast(pa.timestamp("us", "UTC"))
        store.write(pa.table({"k": keys, "slice_start": start, "n": [3] * len(keys)}), query="q", batch=0, watermark=60_000_000)
        assert store.wheels("n", keys=[math.nan]).query(math.nan, 0, 60_000_000) == 3
        assert store.wheels("n", keys=[0.0, -math.nan]).query(math.nan, 0, 60_000_000) == 3


@EVERY
def test_sash_query(kind, tmp_path, capsys):
    from sash import cli
    from sash.wheel.questions import key_text

    tile_store(tmp_path / "tiles", kind)
    for value, i in rows_of(kind):
        if value is None or (isinstance(value, bytes) and b"\x00" in value):
            continue  # no word stands for these on a command line
        text = value.decode() if isinstance(value, bytes) else key_text(value)
        code = cli.main(["query", str(tmp_path / "tiles"), "--format", "json", "--agg", "n", f"--key={text}"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), (kind, value, err)
        assert json.loads(out)["rows"][0]["n"] == 2 * expected(kind)[i], (kind, value)


def test_nan_is_the_largest_of_results_that_only_python_can_order():
    wheels = KeyedWheels(agg.mean(dtype="object"), grain=1, levels=())
    wheels.insert_many(["a", "b", "c", "d"], [5.0, math.nan, 7.0, 6.0], [0, 0, 0, 0])
    wheels.advance_to(1)
    found = wheels.top(3, 0, 1)
    assert [key for key, _ in found] == ["b", "c", "d"]
