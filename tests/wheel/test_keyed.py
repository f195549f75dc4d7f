"""Keyed wheels: keys and columns, slices, errors, size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sash import agg
from sash.errors import BrokenWindow
from sash.wheel import BeyondWatermark, KeyedWheels, Misaligned, NotRetained
from tests.oracles import close

# --- keys and columns


def test_a_number_a_text_and_a_tuple_are_different_keys():
    k = KeyedWheels(agg.count(), unit="s")
    keys = [1, "1", (1,), 1.0, True, b"1", None, (None,), ("1", None)]
    k.insert_many(keys, [0] * len(keys), [0] * len(keys))
    assert [(type(key), key) for key in k] == [(type(key), key) for key in keys]
    assert all(key in k for key in keys)
    assert "2" not in k


def columns_of(kind: str) -> Any:
    pa = pytest.importorskip("pyarrow") if kind != "numpy" else None
    match kind:
        case "numpy":
            return np.array([3, 1, 3, 2], np.int32), [3, 1, 2]
        case "text":
            return pa.array(["c", "a", "c", None]), ["c", "a", None]
        case "large text":
            return pa.array(["c", "a", "c", None], pa.large_string()), ["c", "a", None]
        case "chunks":
            return pa.chunked_array([["c", "a"], ["c", None]]), ["c", "a", None]
        case "dictionary":
            return pa.array(["c", "a", "c", None]).dictionary_encode(), ["c", "a", None]
        case "small ints":
            return pa.array([3, 1, 3, None], pa.int8()), [3, 1, None]
        case "bools":
            return pa.array([True, False, True, None]), [True, False, None]
        case "reals":
            return pa.array([0.5, -0.0, 0.5, None]), [0.5, 0.0, None]
        case "binary":
            return pa.array([b"c", b"", b"c", None]), [b"c", b"", None]
        case "two columns":
            return (np.array([3, 1, 3, 3]), pa.array(["x", "y", "x", None])), [(3, "x"), (1, "y"), (3, None)]
        case "a column and a list":
            return (np.array([3, 1, 3, 3]), ["x", "y", "x", None]), [(3, "x"), (1, "y"), (3, None)]
    raise AssertionError(kind)


@pytest.mark.parametrize(
    "kind",
    ["numpy", "text", "large text", "chunks", "dictionary", "small ints", "bools", "reals", "binary", "two columns", "a column and a list"],
)
def test_a_column_of_keys_is_the_keys_one_by_one(kind):
    column, expected = columns_of(kind)
    k = KeyedWheels(agg.count(), unit="s")
    k.insert_many(column, [1, 1, 1, 1], [0, 0, 1, 1])
    assert k.keys() == expected
    assert all(k.insert(key, 1, 5) for key in expected)
    assert len(k) == len(expected)
    k.advance_to(10)
    assert k.query_each(0, 10)[1] == [3, *([2] * (len(expected) - 1))]


def test_keys_are_kept_over_batches():
    pa = pytest.importorskip("pyarrow")
    k = KeyedWheels(agg.sum(), unit="s")
    k.insert_many(pa.array(["b", "a"]), [1, 2], [0, 0])
    k.insert_many(["c", "a"], [4, 8], [0, 0])
    k.insert_many(np.array([7, 8]), [16, 32], [0, 0])
    k.advance_to(1)
    assert k.query_each(0, 1) == (["b", "a", "c", 7, 8], [1, 10, 4, 16, 32])


@pytest.mark.parametrize(("low", "high"), [(-500, 500), (2**62, 2**62 + 900), (-(2**63), 2**63 - 1), (0, 10**6)])
def test_large_batches_of_numbers_close_together_and_far_apart(low, high):
    rng = np.random.default_rng(9)
    keys = np.concatenate([rng.integers(low, high, 4000, endpoint=True), np.array([low, high, low])])
    values = rng.integers(0, 100, len(keys))
    k = KeyedWheels(agg.sum(), unit="s")
    k.insert_many(keys[:3000], values[:3000], np.zeros(3000, np.int64))
    k.insert_many(keys[3000:], values[3000:], np.ones(len(keys) - 3000, np.int64))
    k.advance_to(2)
    expected: dict[int, int] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        expected[key] = expected.get(key, 0) + value
    assert dict(zip(*k.query_each(0, 2), strict=True)) == expected
    assert k.keys() == list(expected)


def test_a_key_whose_items_are_all_late_is_not_known():
    k = KeyedWheels(agg.sum(), unit="s")
    k.advance_to(10)
    assert not k.insert("a", 1, 9)
    assert k.insert_many(["b", "c", "b"], [1, 2, 3], [5, 10, 6]) == 2
    assert k.keys() == ["c"]
    assert k.late == 3
    assert "b" not in k
    assert k.landmark("b") == 0


@pytest.mark.parametrize("key", [object(), ["a"], ("a", ("b",)), {}])
def test_what_is_no_key_is_refused_and_changes_nothing(key):
    k = KeyedWheels(agg.sum(), unit="s")
    with pytest.raises(TypeError, match="can't be a key"):
        k.insert(key, 1, 0)
    assert len(k) == 0


def test_columns_of_different_lengths_are_refused():
    k = KeyedWheels(agg.sum(), unit="s")
    for keys, values, times in [([1], [1, 2], [0, 1]), (np.array([1, 2, 3]), [1, 2], [0, 1]), ([1, 2], [1, 2], [0])]:
        with pytest.raises(ValueError, match="one"):
            k.insert_many(keys, values, times)
    with pytest.raises(TypeError, match="one key"):
        k.insert_many("ab", [1, 2], [0, 1])
    assert len(k) == 0
    assert k.landmark_all() == 0


# --- slices


SLICES: list[tuple[agg.Aggregation, Any, Any]] = [
    (agg.sum(), [1, None, 4], 5),
    (agg.sum(), np.array([0.5, 0.0, 4.0]), 4.5),
    (agg.count(), [3, 0, 4], 7),
    (agg.min(), [3, None, -4], -4),
    (agg.max(), [3.5, None, -4.0], 3.5),
    (agg.first(), [2, None, 3], 2),
    (agg.last(), ["x", None, "y"], "y"),
    (agg.bit_or(), [1, None, 4], 5),
    (agg.mean(), {"sum": [6, None, 4], "count": [3, 0, 2]}, 2.0),
    (agg.mean(), ([6, None, 4], [3, 0, 2]), 2.0),
    (agg.mean(), [{"sum": 6, "count": 3}, {"sum": None, "count": 0}, {"sum": 4, "count": 2}], 2.0),
    (agg.minmax(), {"min": [1, None, -4], "max": [2, None, 9]}, (-4, 9)),
    (agg.relvar(), {"min": [1, None, 4], "max": [2, None, 10]}, 0.9),
    (agg.collect(), [(1,), (), (2, 3)], [1, 2, 3]),
    (agg.struct(n=agg.count(), top=agg.max()), [(1, 5), (0, None), (2, 4)], {"n": 3, "top": 5}),
]


@pytest.mark.parametrize(("aggregation", "partials", "expected"), SLICES, ids=lambda x: getattr(x, "name", None))
def test_slices_combine_as_their_items_would(aggregation, partials, expected):
    k = KeyedWheels(aggregation, unit="s", grain="1m")
    assert k.insert_slices(["a", "a", "a"], [0, 60, 120], partials) == 0
    k.advance_to(180)
    assert k.landmark("a") == k.landmark_all() == expected
    assert k.query("a", 60, 120) == aggregation.lower(aggregation.identity())


def test_a_tile_of_every_kind_comes_back_as_what_it_was_made_of():
    from sash.engine.tiles import tile_aggregation, tile_partial

    rng = np.random.default_rng(5)
    values = rng.integers(-50, 50, 200).tolist()
    for a in (agg.var(), agg.median(), agg.distinct(), agg.top_k(3), agg.argmax(), agg.histogram([0, 10]), agg.any()):
        tile = tile_aggregation(a)
        partials, times = [], []
        for slot in range(10):
            part = tile.identity()
            for i in range(20):
                part = tile.combine(part, tile.lift(values[slot * 20 + i], slot * 60 + i))
            partials.append(tile_partial(a, tile.lower(part)))
            times.append(slot * 60)
        k = KeyedWheels(a, unit="s", grain="1m")
        k.insert_slices([7] * 10, times, partials)
        k.advance_to(600)
        whole = a.identity()
        for i, value in enumerate(values):
            whole = a.combine(whole, a.lift(value, i // 20 * 60 + i % 20))
        assert close(k.landmark(7), a.lower(whole)), a.name


def test_a_slice_is_late_once_its_grain_is_closed():
    #        0         60        120
    # grain  |---------|---------|      the watermark is at 90, as a wheel fed from Spark stands inside a grain
    # slice  late      taken
    k = KeyedWheels(agg.sum(), unit="s", grain="1m")
    k.advance_to(90)
    assert k.insert_slices(["a", "a"], [0, 60], [1, 2]) == 1
    assert k.late == 1
    assert not k.insert("a", 4, 89)
    assert k.insert("a", 8, 90)
    k.advance_to(120)
    assert k.query("a", 60, 120) == 10


def test_a_slice_that_starts_inside_a_grain_is_refused():
    k = KeyedWheels(agg.sum(), unit="s", grain="1m")
    with pytest.raises(Misaligned, match="30"):
        k.insert_slices(["a", "a"], [0, 30], [1, 2])
    assert len(k) == 0


def test_python_partials_do_not_go_into_native_wheels():
    k = KeyedWheels(agg.var(), unit="s")
    k.insert("a", 1.5, 0)
    with pytest.raises(TypeError, match="dtype='object'"):
        k.insert_slices(["a"], [0], [agg.var().lift(3)])


# --- errors


def test_a_combine_that_raises_leaves_the_wheels_as_they_were():
    def combine(a: list[int], b: list[int]) -> list[int]:
        if 13 in b:
            raise ZeroDivisionError("13")
        return a + b

    k = KeyedWheels(agg.define(lift=lambda x: [x], combine=combine, identity=[], name="picky"), unit="s")
    k.insert_many(["a", "b"], [1, 2], [0, 1])
    for key, time in [("a", 0), ("b", 0), ("c", 1)]:  # in the key's slot, and in that of all keys
        with pytest.raises(ZeroDivisionError):
            k.insert(key, 13, time)
    assert k.keys() == ["a", "b"]
    k.advance_to(10)
    assert (k.landmark("a"), k.landmark("b"), k.landmark_all()) == ([1], [2], [1, 2])


def test_a_combine_that_raises_on_the_way_to_coarser_levels():
    class Fuse:
        burnt = False

    def combine(a: int, b: int) -> int:
        if Fuse.burnt:
            raise ZeroDivisionError("burnt")
        return a + b

    aggregation = agg.define(lift=lambda x: x, combine=combine, identity=0, name="fused")
    for retention, broken in (("keep", False), ("drop", True)):
        Fuse.burnt = False
        k = KeyedWheels(aggregation, unit="s", retention=retention, _few=0)
        k.insert_many(["a"] * 90, list(range(90)), list(range(90)))
        Fuse.burnt = True
        if not broken:
            Fuse.burnt = False
            k.advance_to(200)
            Fuse.burnt = True
            with pytest.raises(ZeroDivisionError):
                k.landmark("a")
            Fuse.burnt = False
            assert k.landmark("a") == sum(range(90))  # made again from the ticks
        else:
            with pytest.raises(ZeroDivisionError):
                k.advance_to(200)
            Fuse.burnt = False
            with pytest.raises(BrokenWindow, match="burnt"):
                k.landmark("a")


def test_ranges_are_refused_for_unknown_keys_too():
    k = KeyedWheels(agg.sum(), start=100, unit="s", grain=10)
    k.advance_to(200)
    with pytest.raises(BeyondWatermark):
        k.query("nobody", 100, 210)
    with pytest.raises(NotRetained):
        k.query("nobody", 90, 200)
    with pytest.raises(Misaligned):
        k.query("nobody", 101, 200)
    assert k.query("nobody", 100, 200) == 0
    assert k.query_each(100, 200) == ([], [])


def test_damaged_bytes_are_refused():
    k = KeyedWheels(agg.sum(), unit="s")
    k.insert_many(["a", "b", "a"], [1, 2, 3], [0, 59, 60])
    data = k.to_bytes()
    for i in range(0, len(data), 7):
        with pytest.raises(ValueError, match=r"."):
            KeyedWheels.from_bytes(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :], agg.sum())
    with pytest.raises(ValueError, match=r"."):
        KeyedWheels.from_bytes(data, agg.max())


def test_merging_needs_all_grains_and_equal_shapes():
    k = KeyedWheels(agg.sum(), unit="s")
    with pytest.raises(ValueError, match="keep"):
        k.merge(KeyedWheels(agg.sum(), unit="s", retention="drop"))
    with pytest.raises(ValueError, match="grain"):
        k.merge(KeyedWheels(agg.sum(), unit="s", grain=2))
    with pytest.raises(ValueError, match="aggregates"):
        k.merge(KeyedWheels(agg.max(), unit="s"))
    with pytest.raises(TypeError):
        k.merge(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="themselves"):
        k.merge(k)


# --- size


@pytest.mark.stress
def test_a_million_keys_are_cheap():
    n = 1_000_000
    k = KeyedWheels(agg.sum(), unit="s", grain="1m")
    k.insert_many(np.arange(n), np.ones(n, np.int64), np.arange(n) % 86_400)
    k.advance_to(86_400)
    assert len(k) == n
    assert k.query_all(0, 86_400) == n
    assert k.query(n - 1, 0, 86_400) == 1
    assert k.memory < 200 * n


@pytest.mark.stress
def test_a_day_of_minutes_of_100_000_keys_takes_less_than_a_gibibyte():
    rows, keys = 20_000_000, 100_000
    rng = np.random.default_rng(1)
    ids, values = rng.integers(0, keys, rows), rng.integers(0, 1000, rows)
    times = np.sort(rng.integers(0, 86_400, rows))
    k = KeyedWheels(agg.sum(), unit="s", grain="1m")
    assert k.insert_many(ids, values, times) == 0
    k.advance_to(86_400)
    assert k.memory < 2**30
    assert k.query_all(3600, 7200) == values[(times >= 3600) & (times < 7200)].sum()
    some = (ids == 77) & (times >= 3600) & (times < 72_000)
    assert k.query(77, 3600, 72_000) == values[some].sum()
