"""Frames as people have them: of no rows, of nulls, with odd types, indexes and encodings. Each works, or is refused by its column."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash import agg
from sash.errors import DefinitionError
from tests.frames.kinds import KINDS, to_arrow

AT = [dt.datetime(2024, 1, 1, 0, minute) for minute in (0, 1, 5)]
ROWS = pa.table({"at": pa.array(AT, pa.timestamp("us")), "v": [1, 2, 3], "k": ["a", "b", "a"]})
AGGS = {"n": agg.count(), "s": agg.sum("v"), "m": agg.mean("v"), "hi": agg.max("v")}


def rolled(df, **changed):
    return sash.rolling(df, **({"time": "at", "key": "k", "lookbacks": ["6m"], "aggs": AGGS} | changed))


def counted(df, **changed):
    return sash.windows(df, **({"time": "at", "key": "k", "range": "1m", "aggs": {"n": agg.count()}} | changed))


def pandas(**columns):
    return ROWS.to_pandas().assign(**columns)


def sums(table):
    return table.column("s_6m").to_pylist()


VALUES = {
    "int8": pa.array([1, 2, 3], pa.int8()),
    "uint64": pa.array([1, 2, 3], pa.uint64()),
    "float16": pa.array(np.array([1, 2, 3], "float16")),
    "dictionary": pa.array([1, 2, 3]).dictionary_encode(),
    "runs": pc.run_end_encode(pa.array([1, 2, 3])),
}


@pytest.mark.parametrize("name", VALUES)
def test_numbers_of_every_encoding_add_up(name):
    assert sums(rolled(ROWS.set_column(1, "v", VALUES[name]))) == [1, 2, 4]


KEYS = {
    "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
    "large text": pa.array(["a", "b", "a"], pa.large_string()),
    "binary": pa.array([b"a", b"b", b"a"]),
    "large binary": pa.array([b"a", b"b", b"a"], pa.large_binary()),
    "runs": pc.run_end_encode(pa.array(["a", "b", "a"])),
    "uint64 above int64": pa.array([2**63, 1, 2**63], pa.uint64()),
    "decimal": pa.array([decimal.Decimal("1.5"), decimal.Decimal(2), decimal.Decimal("1.5")], pa.decimal128(9, 2)),
    "date": pa.array([1, 2, 1], pa.date32()),
    "time of day": pa.array([1, 2, 1], pa.time64("us")),
    "truth": pa.array([True, False, True]),
    "float32": pa.array([0.5, 1.5, 0.5], pa.float32()),
}
if hasattr(pa, "string_view"):
    KEYS["view"] = pa.array(["a", "b", "a"]).cast(pa.string_view())


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type_and_encoding_come_back_as_they_were(name):
    keys = KEYS[name]
    out = rolled(ROWS.set_column(2, "k", keys))
    assert sums(out) == [1, 2, 4]
    assert out.column("k").to_pylist() == keys.to_pylist()
    windows = counted(ROWS.set_column(2, "k", keys))
    assert sorted(windows.column("k").to_pylist()) == sorted(keys.to_pylist())
    assert windows.column("k").type == keys.type or name == "runs"


def test_chunks_with_dictionaries_of_their_own_are_one_key_column():
    parts = [
        pa.table({"at": ROWS["at"][i : i + 1], "v": ROWS["v"][i : i + 1], "k": ROWS["k"][i : i + 1].dictionary_encode()}) for i in range(3)
    ]
    assert sums(rolled(pa.concat_tables(parts))) == [1, 2, 4]


@pytest.mark.parametrize("kind", ["pandas", "pandas of Arrow", "polars", "polars lazy", "table", "duckdb"])
def test_a_column_of_nulls_alone_is_a_value_and_a_key(kind):
    for column in (1, 2):
        name = ROWS.column_names[column]
        out = to_arrow(kind, rolled(KINDS[kind](ROWS.set_column(column, name, pa.nulls(3)))))
        assert out.column("n_6m").to_pylist() == ([1, 1, 2] if name == "v" else [1, 2, 3])
        assert sums(out) == ([None] * 3 if name == "v" else [1, 3, 6])
    windows = to_arrow(kind, counted(KINDS[kind](ROWS.set_column(2, "k", pa.nulls(3)))))
    assert windows.column("k").to_pylist() == [None] * 3


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars lazy", "table", "duckdb"])
def test_one_row_and_times_that_are_all_missing(kind):
    assert sums(to_arrow(kind, rolled(KINDS[kind](ROWS.slice(1, 1))))) == [2]
    without = ROWS.set_column(0, "at", pa.nulls(3, pa.timestamp("us")))
    assert to_arrow(kind, rolled(KINDS[kind](without))).num_rows == 0
    assert to_arrow(kind, counted(KINDS[kind](without))).num_rows == 0


def test_columns_of_pandas_of_every_kind():
    assert list(rolled(pandas(k=pd.Categorical(["a", "b", "a"]))).s_6m) == [1, 2, 4]
    assert counted(pandas(k=pd.Categorical(["a", "b", "a"]))).k.dtype == pd.CategoricalDtype(["a", "b"])
    assert list(rolled(pandas(k=pd.array(["a", "b", "a"], "string"))).s_6m) == [1, 2, 4]
    assert list(rolled(pandas(v=pd.arrays.SparseArray([1, 0, 3]))).s_6m) == [1, 0, 4]
    assert list(rolled(pandas(v=pd.array([1, None, 3], "Int64"))).s_6m) == [1, pd.NA, 4]
    assert list(rolled(pandas(v=[True, False, True])).s_6m) == [1, 0, 2]
    assert list(rolled(pandas(unread=[object()] * 3, also=pd.interval_range(0, 3))).s_6m) == [1, 2, 4]


def test_rows_of_pandas_keep_an_index_of_several_levels():
    df = pandas().set_index(["k", "v"], drop=False).rename_axis(["zone", "number"])
    out = rolled(df)
    pd.testing.assert_index_equal(out.index, df.index)
    assert list(out.s_6m) == [1, 2, 4]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns"])
def test_windows_of_zoned_times_stay_in_their_zone(zone):
    df = pandas(at=pd.DatetimeIndex(AT).tz_localize("UTC").tz_convert(zone))
    out = counted(df)
    assert str(out.window_start.dt.tz) == zone
    assert list(out.window_start.dt.tz_convert("UTC").dt.tz_localize(None).sort_values()) == AT
    lazy = counted(pl.from_pandas(df).lazy())
    assert lazy.collect_schema()["window_start"].time_zone == zone


def test_objects_that_are_times_of_several_zones_are_instants():
    at = [pd.Timestamp(AT[0], tz="UTC"), pd.Timestamp(AT[1], tz="UTC").tz_convert("Asia/Tokyo"), pd.Timestamp(AT[2], tz="UTC")]
    assert list(rolled(pandas(at=pd.Series(at, dtype=object))).s_6m) == [1, 2, 4]


def test_enums_and_categories_of_polars_keep_their_type():
    for dtype in (pl.Enum(["b", "a"]), pl.Categorical()):
        df = pl.DataFrame(ROWS).with_columns(pl.col("k").cast(dtype))
        assert counted(df).schema["k"] == dtype
        assert rolled(df)["s_6m"].to_list() == [1, 2, 4]


def test_labels_of_another_library_are_the_same_keys():
    asked = {"at_time": "when", "time": "at", "key": "k", "lookbacks": ["6m"], "aggs": {"s": agg.sum("v")}, "closed": "right"}
    labels = pandas().rename(columns={"at": "when"})[["k", "when"]]
    for rows in (pl.DataFrame(ROWS), pl.DataFrame(ROWS).lazy(), ROWS):
        assert list(sash.rolling(rows, at=labels, **asked).s_6m) == [1, 2, 4]
    assert sash.rolling(pandas(), at=pl.from_pandas(labels), **asked)["s_6m"].to_list() == [1, 2, 4]


FAR = pa.array([2**63 - 1, 0, 0], pa.int64()).cast(pa.timestamp("us"))
LATE = pa.array([2**60, 0, 0], pa.int64()).cast(pa.timestamp("s"))


@pytest.mark.parametrize(
    ("frame", "asked", "said"),
    [
        (pandas(v=[1, "x", None]), {}, r"the column 'v' of type object can't be read: .*'x'.* Give it one type"),
        (pandas(v=np.array([1, 1, 2], "complex128")), {}, "the column 'v' of type complex128 can't be read"),
        (pandas(v=np.array([2**63, 1, 2], "uint64")), {}, "the column 'v' holds 9223372036854775808, which does not fit int64"),
        (pandas(k=[[1], [2], [1]]), {}, r"the column 'k' of type list<.*> can't be a key\. Use numbers"),
        (pandas(at=[1, 2, 3]), {}, r"time='at' is of type int64, not a timestamp\. Cast it first: pd\.to_datetime\(df\['at'\], unit='s'\)"),
        (pandas().set_index("at"), {}, r"The columns are v, k\. 'at' is in the index: use df\.reset_index\('at'\)"),
        (pandas().rename(columns={"v": 0}), {"aggs": {"s": agg.sum(0)}}, r"aggs\['s'\] column=0 is not the name of a column"),
        (pd.concat([pandas(), pandas()[["v"]]], axis=1), {}, "two columns named 'v'"),
        (pa.table({}), {}, r"time='at' is not a column\. There are none"),
        (ROWS.set_column(0, "at", FAR), {}, "time='at' holds 9223372036854775807 microseconds since 1970"),
        (ROWS.set_column(0, "at", LATE), {}, r"the column 'at' of type timestamp\[s\] can't be read: .*1152921504606846976"),
        (pl.DataFrame(ROWS).with_columns(pl.col("at").cast(pl.Date)), {}, r"Cast it first: pl\.col\('at'\)\.cast"),
        (pl.DataFrame(ROWS).with_columns(v=pl.col("k")), {}, r"agg\.sum\('v'\) can't be computed of a column of type large_string"),
    ],
)
def test_what_can_not_work_is_refused_by_its_column_before_anything_runs(frame, asked, said):
    with pytest.raises(DefinitionError, match=said):
        rolled(frame, **asked)
    with pytest.raises(DefinitionError, match=said):
        counted(frame, **{"aggs": AGGS, **asked})
