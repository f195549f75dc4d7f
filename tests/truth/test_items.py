"""Items, whatever they come in: every part of an aggregation gets its own column of them, unrounded, or the call is refused."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sash import agg, slide, swag, window
from sash.containers import objects
from sash.wheel import KeyedWheels, Wheel

BIG = 2**53 + 1  # no float64 is equal to it
ROWS = [{"v": 1, "x": 10.0, "k": 1}, {"v": 2, "x": 20.0, "k": 0}, {"v": 3, "x": 60.0, "k": 1}]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
IN_PYTHON = agg.struct(s=agg.sum("v"), m=agg.median("x"))  # a part that only Python runs


def bulk(aggregation, values):
    w = swag.DabaLite(aggregation)
    w.bulk_insert(values)
    return w.query()


def by_wheel(aggregation, values):
    w = Wheel(aggregation, unit="s")
    w.insert_many(values, times=[0, 1, 2])
    w.advance_to(60)
    return w.landmark()


def by_keyed_wheels(aggregation, values):
    w = KeyedWheels(aggregation, unit="s")
    w.insert_many(["a"] * 3, values, times=[0, 1, 2])
    w.advance_to(60)
    return w.landmark("a")


def by_slide(aggregation, values):
    return objects(slide(values, agg=aggregation, size=3))[-1]


def by_keyed(aggregation, values):
    w = swag.Keyed(lambda: swag.DabaLite(aggregation))
    w.insert_many(["a"] * 3, values)
    return w.query("a")


every_entry = pytest.mark.parametrize("enter", [bulk, by_wheel, by_keyed_wheels, by_slide, by_keyed])

# --- each part its own column


@every_entry
@pytest.mark.parametrize(
    "values",
    [ROWS, COLUMNS, pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.Table.from_pylist(ROWS), pa.array(ROWS)],
    ids=lambda v: type(v).__name__,
)
def test_a_struct_gives_each_part_its_own_column(enter, values):
    assert enter(IN_PYTHON, values) == {"s": 6, "m": 20.0}


@every_entry
def test_an_aggregation_in_python_takes_its_column_where_another_says_so(enter):
    assert enter(agg.median("x", where="k"), ROWS) == 35.0
    assert enter(agg.sum("v", where="k"), COLUMNS) == 4


@pytest.mark.parametrize("enter", [bulk, by_wheel, by_keyed_wheels, by_slide])
def test_a_column_of_text_decides_for_rows_before_its_first_text(enter):
    rows = [{"v": 1, "t": None}, {"v": 2, "t": "b"}, {"v": 3, "t": "a"}]
    assert enter(agg.struct(s=agg.sum("v"), m=agg.max("t")), rows) == {"s": 6, "m": "b"}


# --- lengths


@every_entry
@pytest.mark.parametrize("aggregation", [agg.sum("v"), agg.sum("w", where="v"), agg.median("v"), IN_PYTHON])
def test_columns_of_unequal_length_are_refused_by_name(enter, aggregation):
    with pytest.raises(ValueError, match=r"'w' has 3 rows, but column 'v' has 1"):
        enter(aggregation, {"w": [1] * 3, "v": [1], "x": [1.0] * 3})


# --- containers


@every_entry
@pytest.mark.parametrize(
    "values",
    [
        pl.Series([1, None, 3]),
        pl.Series([1, None, 3], dtype=pl.UInt8),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1, None, 3], dtype="int32[pyarrow]"),
        pd.Series([1, None, 3], dtype=object),
        np.ma.masked_equal([1, 2, 3], 2),
        pa.chunked_array([[1], [None, 3]]),
        [np.int64(1), pd.NA, np.uint8(3)],
    ],
    ids=lambda v: f"{type(v).__module__.split('.')[0]} {getattr(v, 'dtype', '')}",
)
def test_a_null_is_a_null_in_every_container(enter, values):
    assert enter(agg.sum(), values) == 4
    assert enter(agg.count(), values) == 2
    assert enter(agg.collect(), values) == [1, 3]


@every_entry
@pytest.mark.parametrize(
    "values",
    [pd.Series(["a", None, "c"], dtype=t) for t in ("string", "object", "string[pyarrow]", "category")],
    ids=lambda v: str(v.dtype),
)
def test_text_that_is_missing_is_a_null(enter, values):
    assert enter(agg.max(), values) == "c"
    assert enter(agg.concat(), values) == "ac"
    assert enter(agg.count(), values) == 2


@every_entry
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda rows: rows], ids=["pandas", "polars", "records"])
def test_count_counts_the_rows_of_a_table(enter, make):
    assert enter(agg.count(), make(ROWS)) == 3


@every_entry
def test_tuples_of_unequal_length_are_items(enter):
    assert enter(agg.max(), [(1,), (1, 2), (0, 5, 6)]) == (1, 2)


def test_keys_of_any_shape_are_keys():
    ragged = [(1,), (1, 2), (1,)]
    assert slide([1, 2, 3], agg=agg.sum(), size=2, by=ragged).tolist() == [1, 2, 4]
    for keys in (pl.Series(["a", None, "a"]), pd.Series(["a", None, "a"], dtype="string"), np.array(["a", None, "a"], object)):
        assert slide([1, 2, 3], agg=agg.sum(), size=2, by=keys).tolist() == [1, 2, 4]
        w = KeyedWheels(agg.sum(), unit="s")
        w.insert_many(keys, [1, 2, 3], times=pl.Series([0, 1, 2]))
        w.advance_to(60)
        assert (w.landmark("a"), w.landmark(None)) == (4, 2)


def test_moments_and_decimals_are_values():
    days = [dt.date(2020, 1, 2), dt.date(2020, 1, 1), dt.date(2020, 1, 3)]
    for column in (days, np.array(days, "M8[D]"), pl.Series(days), pa.array(days)):
        assert bulk(agg.max(), column) == dt.date(2020, 1, 3)
    stamps = [dt.datetime(2020, 1, 1, 0, 0, s) for s in (2, 0, 1)]
    for column in (stamps, pd.Series(stamps), np.array(stamps, "M8[ns]"), pl.Series(stamps), pa.array(stamps, pa.timestamp("ns"))):
        assert bulk(agg.max(), column) == stamps[0]
    money = [decimal.Decimal("0.10"), decimal.Decimal("0.20"), None]
    for column in (money, pl.Series(money), pa.array(money), pd.Series(money)):
        assert bulk(agg.sum(), column) == decimal.Decimal("0.30")


@pytest.mark.parametrize("algorithm", [swag.DabaLite, swag.Fiba, swag.Recalc])
def test_single_items_of_numpy_and_pandas_are_plain_items(algorithm):
    w = algorithm(agg.collect())
    for i, item in enumerate([np.int64(1), np.float32(0.5), pd.NA, np.datetime64("2020-01-01"), np.str_("x"), pd.NaT]):
        w.insert(item, i)
    assert w.query() == [1, 0.5, dt.date(2020, 1, 1), "x"]
    assert [type(item) for item in w.query()] == [int, float, dt.date, str]


@pytest.mark.parametrize("gone", [None, pd.NA, pd.NaT, np.ma.masked, np.datetime64("NaT"), np.timedelta64("NaT")], ids=repr)
def test_every_null_is_an_entry_without_a_value(gone):
    for make in (agg.sum, agg.max, agg.collect, lambda: agg.struct(n=agg.count(), m=agg.median())):
        w, plain = swag.DabaLite(make()), swag.DabaLite(make())
        for window_, null in ((w, gone), (plain, None)):
            window_.insert(null, 0)
            window_.insert(3, 1)
        assert (w.query(), len(w)) == (plain.query(), 2)


def test_nat_in_a_record_of_numpy_is_no_value():
    rows = np.array([(1, "NaT"), (2, "2024-05-01"), (3, "NaT")], [("v", "i8"), ("d", "M8[D]")])
    for values in (rows, list(rows), [np.datetime64("NaT"), np.datetime64("2024-05-01"), np.datetime64("NaT")]):
        for make in (swag.DabaLite, swag.Fiba, lambda a: swag.Reordered(a, max_delay=1)):
            window = make(agg.count("d"))
            window.bulk_insert(values, [0, 1, 2])
            assert (window.query(), len(window)) == (1, 3)


def test_a_record_that_is_null_is_an_entry_without_a_value():
    rows = pa.array([{"v": 1, "k": 1}, None, {"v": 3, "k": 1}])
    for aggregation, want in (
        (agg.sum("v", where="k"), 4),
        (agg.count(), 2),
        (agg.struct(m=agg.median("v", where="k"), n=agg.count()), {"m": 2.0, "n": 2}),
    ):
        assert bulk(aggregation, rows) == want
        w = swag.DabaLite(aggregation)
        for row in rows.to_pylist():
            w.insert(row)
        assert (w.query(), len(w)) == (want, 3)


# --- integers


def test_integers_beside_an_empty_result_are_not_rounded():
    assert slide([BIG, None], agg=agg.max(), size=1).tolist() == [BIG, None]
    assert slide([BIG, 5], agg=agg.max(), times=[0, 1], period=5, closed="left").tolist() == [None, BIG]
    assert slide([BIG, 5], agg=agg.ith_smallest(2), size=2).tolist() == [None, BIG]
    assert slide([BIG, None], agg=agg.quantile(0.5, interpolation="lower"), size=1).tolist() == [BIG, None]
    assert slide([-BIG, None], agg=agg.first(), size=1, by=["a", "b"]).tolist() == [-BIG, None]
    w = swag.Fiba(agg.max())
    w.insert(BIG, 0)
    assert w.query_many([0, 5], [0, 5]).tolist() == [BIG, None]
    wheel = Wheel(agg.max(), unit="s")
    wheel.insert(BIG, 0)
    wheel.advance_to(60)
    assert wheel.query_many([0, 5], [1, 6]).tolist() == [BIG, None]


@pytest.mark.parametrize("dtype", ["UInt64", "Int64", "int64", "int64[pyarrow]"])
def test_integers_beside_an_empty_result_are_not_rounded_in_columns_of_pandas(dtype):
    found = slide(pd.Series([2, 2**63 - 2, 7], dtype=dtype), agg=agg.max(), times=[0, 1, 2], period=5, closed="left")
    assert [None if pd.isna(x) else int(x) for x in found] == [None, 2, 2**63 - 2]


def test_integers_that_floats_hold_stay_in_a_float_column_beside_nan():
    for values in ([2**53, None], [-(2**53), None], [7, None]):
        out = slide(values, agg=agg.max(), size=1)
        assert (out.dtype, out[0], np.isnan(out[1])) == (np.float64, values[0], True)
    assert slide([BIG, 5], agg=agg.max(), size=2).dtype == np.int64  # no window can be empty


@every_entry
@pytest.mark.parametrize("values", [[2**63, 5, 1], np.array([2**63, 5, 1], np.uint64), pl.Series([2**63, 5, 1], dtype=pl.UInt64)])
def test_an_integer_beyond_64_bits_is_refused_by_its_value(enter, values):
    with pytest.raises(OverflowError, match=r"item 9223372036854775808 does not fit int64.*dtype='object'"):
        enter(agg.max(), values)
    with pytest.raises(OverflowError, match="9223372036854775808"):
        swag.DabaLite(agg.max()).insert(2**63)
    assert bulk(agg.max(dtype="object"), values) == 2**63


# --- promises


def test_a_window_that_was_chosen_for_integers_refuses_floats():
    w = window(agg.sum(dtype="int64"))
    assert type(w) is swag.SubtractOnEvict
    w.insert(10**16)
    for give in (lambda: w.insert(1.0), lambda: w.bulk_insert([1.0]), lambda: w.bulk_insert(np.array([1.0]))):
        with pytest.raises(TypeError, match=r"integers were promised.*subtracts.*SubtractOnEvict"):
            give()
    w.insert(1)
    w.evict()
    assert (w.query(), len(w), w.dtype) == (1, 1, "int64")
    stored = swag.SubtractOnEvict.from_bytes(w.to_bytes(), agg.sum(dtype="int64"))
    with pytest.raises(TypeError, match="integers were promised"):
        stored.insert(0.5)


def test_naming_the_window_that_subtracts_is_asking_for_it():
    w = swag.SubtractOnEvict(agg.sum(dtype="int64"))
    w.insert(1)
    w.insert(0.5)
    assert (w.query(), w.dtype) == (1.5, "float64")
    counting = window(agg.count())  # integers inside, whatever the items are
    counting.insert(0.5)
    assert counting.query() == 1
