"""What frames keep: kinds, types, indexes, connections; what is done in parts; what is refused, and how."""

import datetime as dt
import inspect
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sash
from sash import agg, frames
from sash.engine import lookbacks
from sash.errors import DefinitionError
from sash.frames import run
from tests.engine import cases
from tests.frames.kinds import KINDS, to_arrow
from tests.frames.test_oracle import asked_by, expected_of, rows_of

AT = [dt.datetime(2024, 1, 1) + dt.timedelta(seconds=s) for s in (50, 0, 70, 130, 80)]
TRIPS = pa.table({"at": pa.array(AT, pa.timestamp("us")), "zone": ["b", "a", "b", "a", "a"], "fare": [5, 7, None, 8, 9]})
HOUR = {"time": "at", "key": "zone", "range": "2m", "slide": "1m", "aggs": {"n": agg.count(), "s": agg.sum("fare")}}
BACK = {"time": "at", "key": "zone", "lookbacks": ["1m"], "aggs": {"n": agg.count(), "s": agg.sum("fare"), "m": agg.mean("fare")}}


@pytest.mark.parametrize("seed", range(40))
def test_parts_in_threads_equal_the_whole(seed, monkeypatch):
    monkeypatch.setattr(run, "_PART", 3 + seed % 5)
    monkeypatch.setattr(lookbacks, "CUT", 2 + seed % 4)
    case = cases.random_case(1000 + seed, windows=seed % 2 == 0, late="drop")
    function = sash.windows if seed % 2 == 0 else sash.rolling
    out = rows_of(function(pa.Table.from_batches([case.batch]), **asked_by(case.query)))
    assert sorted(map(repr, out)) == sorted(map(repr, expected_of(case.query, case.batch))), (seed, case.query)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_give_no_rows_with_the_same_columns(kind):
    none = KINDS[kind](TRIPS.slice(0, 0)) if kind != "batch" else pa.RecordBatch.from_pylist([], TRIPS.schema)
    assert to_arrow(kind, sash.windows(none, **HOUR)).column_names == ["zone", "window_start", "window_end", "n", "s"]
    none = KINDS[kind](TRIPS.slice(0, 0)) if kind != "batch" else pa.RecordBatch.from_pylist([], TRIPS.schema)
    out = to_arrow(kind, sash.rolling(none, **BACK))
    assert (out.num_rows, out.column_names) == (0, ["at", "zone", "fare", "n_1m", "s_1m", "m_1m"])


@pytest.mark.parametrize("kind", KINDS)
def test_sessions_and_tiles_of_every_kind(kind):
    visits = to_arrow(kind, sash.windows(KINDS[kind](TRIPS), time="at", session="30s", key="zone", aggs={"n": agg.count()}))
    assert visits.column("n").to_pylist() == [1, 1, 1, 2]
    out = to_arrow(kind, sash.tiles(KINDS[kind](TRIPS), time="at", grain="1m", key="zone", aggs={"fare": agg.mean("fare")}))
    assert out.column_names == ["zone", "slice_start", "slice_end", "fare"]
    assert [(row["zone"], row["fare"]) for row in out.to_pylist()] == [
        ("a", {"sum": 7, "count": 1}),
        ("a", {"sum": 9, "count": 1}),
        ("a", {"sum": 8, "count": 1}),
        ("b", {"sum": 5, "count": 1}),
        ("b", {"sum": None, "count": 0}),
    ]


def test_pandas_keeps_its_index_and_leaves_out_rows_without_a_time():
    df = TRIPS.to_pandas().set_axis([3, 1, 3, 0, 9])
    df.loc[1, "at"] = pd.NaT
    out = sash.rolling(df, **BACK)
    assert list(out.index) == [3, 3, 0, 9]
    assert list(out.columns) == ["at", "zone", "fare", "n_1m", "s_1m", "m_1m"]
    pd.testing.assert_frame_equal(out[["at", "zone", "fare"]], df.loc[[True, False, True, True, True]])


def test_pandas_types_follow_from_the_definition_not_from_the_rows():
    df = TRIPS.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    for part in (df, df.iloc[:2], df.iloc[:0]):
        out = sash.rolling(part, **BACK)
        assert [str(out[name].dtype) for name in ("n_1m", "s_1m", "m_1m")] == ["int64", "Int64", "float64"]
    arrow = sash.rolling(TRIPS.to_pandas(types_mapper=pd.ArrowDtype), **BACK)
    assert [str(arrow[name].dtype) for name in ("n_1m", "s_1m", "m_1m")] == ["int64[pyarrow]", "int64[pyarrow]", "double[pyarrow]"]


def test_integers_above_2_to_the_53_stay_exact_beside_nulls():
    big = 2**53 + 1
    table = pa.table({"at": pa.array([1, 2], pa.timestamp("us")), "v": [None, big]})
    for kind in ("pandas", "polars", "duckdb", "table"):
        out = to_arrow(kind, sash.rolling(KINDS[kind](table), time="at", lookbacks=["1us"], aggs={"m": agg.max("v")}))
        assert out.column("m_1us").to_pylist() == [None, big]


def test_nan_is_missing_in_numpy_columns_of_pandas_and_a_value_in_others():
    df = pd.DataFrame({"at": AT[:3], "x": [1.0, np.nan, 3.0]})
    asked = {"time": "at", "range": "1h", "aggs": {"n": agg.count("x"), "s": agg.sum("x")}}
    assert sash.windows(df, **asked)[["n", "s"]].to_numpy().tolist() == [[2, 4.0]]
    out = sash.windows(pl.from_pandas(df, nan_to_null=False), **asked)
    assert out["n"].to_list() == [3]
    assert np.isnan(out["s"].to_list()[0])


def test_columns_that_are_not_read_may_hold_anything():
    df = TRIPS.to_pandas().assign(odd=[1, "two", {3}, object(), None])
    assert sash.rolling(df, **BACK)["odd"].iloc[1] == "two"
    assert len(sash.windows(df, **HOUR)) == 7
    with pytest.raises(DefinitionError, match="the column 'odd' of type object can't be read"):
        sash.windows(df, **(HOUR | {"aggs": {"o": agg.max("odd")}}))


CATEGORIES = ["b", "a"]


def test_keys_come_back_of_their_own_type():
    df = TRIPS.to_pandas().assign(zone=lambda d: pd.Categorical(d["zone"], CATEGORIES))
    out = sash.windows(df, **HOUR)
    assert out["zone"].dtype == df["zone"].dtype
    assert out["window_end"].dtype == df["at"].dtype
    enum = pl.from_arrow(TRIPS).with_columns(pl.col("zone").cast(pl.Enum(CATEGORIES)), pl.col("at").dt.cast_time_unit("ms"))
    lazy = sash.windows(enum.lazy(), **HOUR)
    assert lazy.collect_schema() == sash.windows(enum, **HOUR).schema
    assert dict(lazy.collect_schema())["zone"] == enum.schema["zone"]
    assert dict(lazy.collect_schema())["window_end"] == pl.Datetime("ms")
    coded = TRIPS.set_column(1, "zone", TRIPS.column("zone").dictionary_encode())
    assert sash.windows(coded, **HOUR).schema.field("zone").type == coded.schema.field("zone").type
    assert sash.windows(coded, **HOUR).column("zone").to_pylist() == ["a"] * 4 + ["b"] * 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_keep_their_unit_and_zone(unit, zone):
    type_ = pa.timestamp(unit, zone)
    table = TRIPS.set_column(0, "at", TRIPS.column("at").cast(pa.timestamp(unit)).cast(type_))
    out = sash.windows(table, **HOUR)
    assert out.schema.field("window_end").type == type_
    assert out.column("window_end").cast(pa.timestamp("us", zone)).cast(pa.int64()).to_pylist()[0] % 60_000_000 == 0
    assert sash.windows(table.to_pandas(), **HOUR)["window_end"].dtype == table.to_pandas()["at"].dtype


def test_a_lazy_frame_is_not_run_before_it_is_collected():
    ran = []

    def watch(df):
        ran.append(len(df))
        return df

    lazy = pl.from_arrow(TRIPS).lazy().map_batches(watch, schema=pl.from_arrow(TRIPS).schema)
    out = sash.rolling(lazy, **BACK)
    assert ran == []
    assert out.filter(pl.col("zone") == "b").select("n_1m").collect()["n_1m"].to_list() == [1, 2]
    assert ran == [5]


def test_a_relation_comes_back_to_its_own_connection():
    con = duckdb.connect()
    con.execute("create table trips as select range as i, timestamp '2024-01-01' + interval 1 second * range as at from range(100)")
    out = sash.rolling(con.table("trips"), time="at", lookbacks=["10s"], aggs={"n": agg.count()})
    joined = out.set_alias("o").join(con.table("trips").set_alias("t"), "o.i = t.i")
    assert joined.aggregate("max(n_10s), count(*)").fetchall() == [(10, 100)]


def test_a_reader_is_left_alone_by_a_definition_that_is_refused():
    reader = TRIPS.to_reader()
    with pytest.raises(DefinitionError):
        sash.windows(reader, **(HOUR | {"key": "area"}))
    assert reader.read_all().num_rows == 5


def test_rows_from_the_future_are_left_out():
    late = pa.array([AT[0]] * 5, pa.timestamp("us"))
    table = TRIPS.append_column("arrived", late)
    out = sash.rolling(table, **(BACK | {"max_ahead": ("25s", "arrived")}))
    assert out.column("at").to_pylist() == [AT[0], AT[1], AT[2]]
    assert sash.windows(table, **(HOUR | {"max_ahead": ("25s", "arrived")})).column("n").to_pylist() == [1, 1, 1, 2, 1]
    soon = pa.array([dt.datetime.now(dt.UTC) + dt.timedelta(hours=h) for h in (-1, 3)], pa.timestamp("us", "UTC"))
    out = sash.windows(pa.table({"at": soon}), time="at", range="1d", aggs={"n": agg.count()}, max_ahead="2h")
    assert sum(out.column("n").to_pylist()) == 1
    with pytest.raises(DefinitionError, match="'zone' is of type string, not a timestamp"):
        sash.rolling(table, **(BACK | {"max_ahead": ("25s", "zone")}))


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars lazy", "table", "reader", "duckdb"])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"time": "when"}, "time='when' is not a column. The columns are at, zone, fare"),
        ({"time": "fare"}, "time='fare' is of type int64, not a timestamp. Cast it first: .*fare"),
        ({"key": "area"}, "key='area' is not a column. The columns are at, zone, fare"),
        ({"aggs": {"s": agg.sum("fares")}}, "aggs\\['s'\\] column='fares' is not a column. The columns are at, zone, fare"),
        ({"aggs": {"s": agg.sum("zone")}}, "can't be computed of a column of type"),
        ({"tie": "seq"}, "tie='seq' is not a column"),
        ({"watermark": "-1s"}, "watermark='-1s' is negative"),
        ({"max_ahead": ("1h", "came")}, "max_ahead='came' is not a column"),
    ],
)
def test_errors_name_the_column_and_the_columns_there_are(kind, changed, message):
    for function, asked in ((sash.windows, HOUR), (sash.rolling, BACK)):
        with pytest.raises(DefinitionError, match=message):
            function(KINDS[kind](TRIPS), **(asked | changed))


def test_a_result_named_as_a_column_is_refused():
    table = TRIPS.append_column("n_1m", TRIPS.column("fare"))
    with pytest.raises(DefinitionError, match="two columns named n_1m"):
        sash.rolling(table, **BACK)


@pytest.mark.parametrize("other", [[1, 2], {"at": [1]}, pd.Series([1]), pl.Series([1]), 7])
def test_what_is_no_frame_is_refused_by_its_type(other):
    with pytest.raises(TypeError, match=r"is not a frame that is known here\. Pass a pandas or Polars"):
        sash.windows(other, **HOUR)


STREAMING = ("history", "history_until", "idle")  # how a stream begins and goes on; a frame has all of its rows


def test_the_arguments_are_those_of_spark():
    spark = pytest.importorskip("sash.spark", reason="Spark is not installed", exc_type=ImportError)

    for name in ("windows", "rolling", "tiles"):
        ours, theirs = (inspect.signature(getattr(room, name)).parameters for room in (frames, spark))
        theirs = [p for p in theirs.values() if p.name not in STREAMING]
        assert [(p.name, p.kind, p.default) for p in ours.values()] == [(p.name, p.kind, p.default) for p in theirs]
        assert inspect.signature(getattr(sash, name)) == inspect.signature(getattr(frames, name))


def test_only_the_library_of_the_frame_is_loaded():
    code = (
        "import sys, pyarrow as pa, sash\n"
        "t = pa.table({'at': pa.array([1], pa.timestamp('us'))})\n"
        "sash.windows(t, time='at', range='1s', aggs={'n': sash.agg.count()})\n"
        "print(sorted({'polars', 'duckdb', 'pyspark'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
