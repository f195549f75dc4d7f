"""slide(): times asked for, least numbers of items, NaN as null, several key columns, and results in the kind that was given."""

import datetime as dt
import math
import random
from decimal import Decimal

import numpy as np
import pytest

from sash import agg, slide
from sash.containers import objects

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

CLOSED = ("right", "left", "both", "neither")
AGGS = {
    "count": agg.count(),
    "sum": agg.sum(),
    "mean": agg.mean(),
    "max": agg.max(),
    "std": agg.std(),
    "median": agg.median(),
    "distinct": agg.distinct(),
    "last": agg.last(),
    "collect": agg.collect(),
    "top": agg.top_k(2),
}
KINDS = {
    "list": list,
    "numpy": lambda x: np.array(x),
    "pandas": lambda x: pd.Series(x, index=[f"row {i}" for i in range(len(x))], name="v"),
    "polars": lambda x: pl.Series("v", x),
    "arrow": pa.array,
    "chunked": lambda x: pa.chunked_array([x[: len(x) // 2], x[len(x) // 2 :]], type=pa.array(x).type),
}


def inside(events, t, period, closed):
    left, right = closed in ("left", "both"), closed in ("right", "both")
    return [v for u, v in events if (u > t - period or (left and u == t - period)) and (u < t or (right and u == t))]


def brute(aggregation, values):
    """The aggregation of a list, from its definition."""
    partial = aggregation.identity()
    for value in values:
        if value is not None:
            partial = aggregation.combine(partial, aggregation.lift(value))
    return aggregation.lower(partial)


def same(found, wanted):
    found, wanted = ([None if x is None or x != x else x for x in each] for each in (found, wanted))
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert x == y or (isinstance(y, float) and math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9)), (x, y)


def keyed(rng, count=60, keys=("a", "b", None), floats=False):
    """Items in order of time within their key, with ties and nulls; and times that are asked for, in any order."""
    items = sorted(((rng.randrange(40), rng.choice(keys)) for _ in range(count)), key=lambda item: item[0])
    values = [rng.choice([None, *range(9)]) for _ in items]
    if floats:
        values = [None if v is None else float(v) for v in values]
    asked = [(rng.choice([-3, 60, *(t for t, _ in items)]), rng.choice([*keys, "nobody"])) for _ in range(30)]
    return items, values, asked


@pytest.mark.parametrize("name", AGGS)
@pytest.mark.parametrize("closed", [None, *CLOSED])
@pytest.mark.parametrize("seed", range(2))
def test_times_that_are_asked_for_get_what_the_period_before_them_holds(name, closed, seed):
    rng = random.Random(f"{name} {closed} {seed}")
    items, values, asked = keyed(rng, floats=seed == 1)
    period, how = rng.choice([1, 5, 17]), {} if closed is None else {"closed": closed}
    found = slide(
        values,
        agg=AGGS[name],
        times=[t for t, _ in items],
        period=period,
        by=[k for _, k in items],
        at=[t for t, _ in asked],
        at_by=[k for _, k in asked],
        **how,
    )
    wanted = []
    for t, key in asked:
        known = [(u, v) for (u, k), v in zip(items, values, strict=True) if k == key and type(k) is type(key)]
        wanted.append(brute(AGGS[name], inside(known, t, period, closed or "left")))
    same(found.tolist(), wanted)


def test_nothing_from_the_time_on_leaks_into_it():
    rng = random.Random(8)
    times = sorted(rng.randrange(50) for _ in range(200))
    asked = [rng.randrange(60) for _ in range(100)]
    newest = slide(times, agg=agg.max(), times=times, period=1_000, at=asked)
    assert all(math.isnan(n) or n < t for n, t in zip(newest, asked, strict=True))


def test_asked_times_come_out_in_the_order_and_kind_of_at():
    events = pd.Series([1.0, 2.0, 3.0], name="fare")
    times = pd.to_datetime(["2024-01-01 10:00", "2024-01-01 10:30", "2024-01-01 11:00"])
    labels = pd.Series(pd.to_datetime(["2024-01-01 11:00", "2024-01-01 10:30"]), index=["late", "early"])
    out = slide(events, agg=agg.sum(), times=times, period="1h", at=labels)
    pd.testing.assert_series_equal(out, pd.Series([3.0, 1.0], index=["late", "early"], name="fare"))
    indexed = slide(events, agg=agg.sum(), times=times, period=np.timedelta64(1, "h"), at=pd.DatetimeIndex(labels))
    assert indexed.index.equals(pd.DatetimeIndex(labels))
    assert indexed.tolist() == [3.0, 1.0]
    asked = slide([1, 2], agg=agg.sum(), times=[0, 5], period=10, at=pl.Series("t", [6, 0]))
    assert asked.to_list() == [3, 0]


def test_a_training_set_of_many_keys_equals_a_range_join_in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(5)
    events = pa.table({"k": rng.integers(0, 40, 5_000), "t": np.sort(rng.integers(0, 20_000, 5_000)), "v": rng.integers(-9, 9, 5_000)})
    labels = pa.table({"i": np.arange(2_000), "k": rng.integers(0, 50, 2_000), "t": rng.integers(0, 21_000, 2_000)})
    common = {"times": events["t"], "period": 700, "by": events["k"], "at": labels["t"], "at_by": labels["k"]}
    joined = duckdb.sql(
        "select i, count(e.t), coalesce(sum(v), 0)::bigint, max(v) from labels l "
        "left join events e on e.k = l.k and e.t >= l.t - 700 and e.t < l.t group by i order by i"
    ).fetchall()
    found = [slide(events["v"], agg=a, **common).to_pylist() for a in (agg.count(), agg.sum(), agg.max())]
    assert [tuple(row) for row in zip(range(2_000), *found, strict=True)] == joined


@pytest.mark.parametrize("size", [1, 3, 10])
@pytest.mark.parametrize("least", [0, 1, 2, 3])
def test_min_periods_by_count_is_that_of_pandas(size, least):
    if least > size:
        with pytest.raises(ValueError, match=rf"min_periods={least} is not from 0 to size={size}"):
            slide([1.0], agg=agg.sum(), size=size, min_periods=least)
        return
    rng = np.random.default_rng(size)
    values = pd.Series(np.where(rng.random(60) < 0.4, np.nan, rng.normal(size=60)), name="v")
    rolled = values.rolling(size, min_periods=least)
    for a, wanted in ((agg.sum(), rolled.sum()), (agg.mean(), rolled.mean()), (agg.max(), rolled.max()), (agg.median(), rolled.median())):
        found = slide(values, agg=a, size=size, min_periods=least, skipna=True)
        pd.testing.assert_series_equal(found, wanted, check_exact=False, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("least", [1, 2, 4])
def test_min_periods_by_time_is_that_of_pandas(closed, least):
    rng = np.random.default_rng(least)
    times = pd.to_datetime(np.sort(rng.choice(10_000, 80, replace=False)), unit="s")  # no ties: pandas does not look ahead among them
    values = pd.Series(np.where(rng.random(80) < 0.3, np.nan, rng.normal(size=80)), index=times, name="v")
    rolled = values.rolling("10min", min_periods=least, closed=closed)
    for a, wanted in ((agg.sum(), rolled.sum()), (agg.mean(), rolled.mean()), (agg.min(), rolled.min()), (agg.std(), rolled.std())):
        found = slide(values, agg=a, times=values.index, period="10min", closed=closed, min_periods=least, skipna=True)
        pd.testing.assert_series_equal(found, wanted, check_exact=False, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", AGGS)
def test_a_window_of_too_few_items_has_no_result_whatever_the_aggregation(name):
    rng = random.Random(name)
    values = [rng.choice([None, *range(9)]) for _ in range(50)]
    found = slide(values, agg=AGGS[name], size=4, min_periods=3)
    windows = [[v for v in values[max(0, i - 3) : i + 1] if v is not None] for i in range(50)]
    same(found.tolist(), [brute(AGGS[name], w) if len(w) >= 3 else None for w in windows])


def test_the_type_of_results_does_not_depend_on_whether_a_window_was_too_small():
    for values in ([1, 2, 3], [1, 2, None]):
        assert slide(values, agg=agg.sum(), size=2, min_periods=2).dtype == np.float64
    assert slide([1, 2, 3], agg=agg.sum(), size=2, min_periods=1).dtype == np.int64
    big = slide([2**60 + 1, 2**60], agg=agg.max(), size=2, min_periods=2)
    assert big.tolist() == [None, 2**60 + 1]


def test_nan_is_a_value_unless_it_is_skipped():
    values = [1.0, math.nan, 3.0, 5.0]
    same(slide(values, agg=agg.sum(), size=2).tolist(), [1, math.nan, math.nan, 8])
    same(slide(values, agg=agg.sum(), size=2, skipna=True).tolist(), [1, 1, 3, 8])
    assert slide(values, agg=agg.count(), size=2).tolist() == [1, 2, 2, 2]
    assert slide(values, agg=agg.count(), size=2, skipna=True).tolist() == [1, 1, 1, 2]
    assert slide(values, agg=agg.collect(), size=2, skipna=True).tolist() == [[1.0], [1.0], [3.0], [3.0, 5.0]]
    table = {"v": values, "w": [1, 2, 3, 4]}
    both = slide(table, agg=agg.struct(v=agg.sum("v"), w=agg.sum("w")), size=2, skipna=True)
    assert both.tolist() == [{"v": 1.0, "w": 1}, {"v": 1.0, "w": 3}, {"v": 3.0, "w": 5}, {"v": 8.0, "w": 7}]


def test_null_and_nan_stay_apart_in_kinds_that_have_both():
    values = [None, math.nan, None, 2.0]
    for made in (pl.Series("v", values), pa.array(values)):
        out = objects(slide(made, agg=agg.max(), size=1))
        assert out[0] is None
        assert out[1] != out[1]
        assert out[2:] == [None, 2.0]
    nullable = slide(pd.Series([1, None, 3], dtype="Int64", name="v"), agg=agg.max(), size=1)
    assert nullable.tolist() == [1, pd.NA, 3]
    assert str(slide(pd.Series([1, 2], dtype="int64[pyarrow]"), agg=agg.sum(), size=2).dtype) == "int64[pyarrow]"


DTYPES = {
    "int": [3, 1, None, 4, 1, 5],
    "float": [0.5, None, 2.5, -1.5, 2.5, 0.0],
    "bool": [True, False, None, True, True, False],
    "decimal": [Decimal("1.10"), None, Decimal("2.25"), Decimal("-3.00"), Decimal("0.50"), Decimal("7.75")],
    "date": [dt.date(2024, 1, d) if d else None for d in (5, 3, 0, 9, 1, 2)],
    "datetime": [dt.datetime(2024, 1, d, 12) if d else None for d in (5, 3, 0, 9, 1, 2)],
    "duration": [dt.timedelta(hours=h) if h else None for h in (5, 3, 0, 9, 1, 2)],
    "text": ["b", None, "a", "c", "a", "d"],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_goes_in_comes_out_in_its_kind(kind, dtype):
    values = DTYPES[dtype]
    if kind == "numpy" and dtype in ("int", "float", "bool"):
        values = [v for v in values if v is not None] * 2
    given = KINDS[kind](values)
    how = {"size": 3, "skipna": kind == "pandas"}  # there NaN stands for nothing
    out = slide(given, agg=agg.max(), **how)
    windows = [[v for v in values[max(0, i - 2) : i + 1] if v is not None] for i in range(len(values))]
    expected = [max(w, default=None) for w in windows]
    found = [None if x is None or x is pd.NaT or x != x else x for x in (out.to_list() if kind == "polars" else objects(out))]
    found = [x.to_pydatetime() if isinstance(x, pd.Timestamp) else x.to_pytimedelta() if isinstance(x, pd.Timedelta) else x for x in found]
    assert found == expected
    if kind == "pandas":
        assert isinstance(out, pd.Series)
        assert out.index.equals(given.index)
        assert out.name == "v"
    else:
        assert isinstance(out, {"list": np.ndarray, "arrow": pa.Array}.get(kind, type(given)))
        assert kind not in ("arrow", "chunked") or dtype == "bool" or out.type == given.type
    counted = slide(given, agg=agg.count(), **how)
    assert objects(counted) == [len(w) for w in windows]


def test_of_a_frame_comes_a_column_with_its_name_and_index():
    frame = pd.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]}, index=[7, 8, 9])
    pd.testing.assert_series_equal(slide(frame, agg=agg.sum("v"), size=2, by=frame["k"]), pd.Series([1, 2, 4], index=[7, 8, 9], name="v"))
    out = slide(pl.DataFrame({"v": [1, 2, 3]}), agg=agg.sum("v"), size=2)
    assert (out.name, out.to_list()) == ("v", [1, 3, 5])
    assert slide(pa.table({"v": [1, 2, 3]}), agg=agg.sum("v"), size=2).to_pylist() == [1, 3, 5]
    assert slide(pa.table({"v": [1, 3]}), agg=agg.minmax("v"), size=2).to_pylist() == [{"min": 1, "max": 1}, {"min": 1, "max": 3}]


def test_several_columns_make_a_key():
    rng = random.Random(2)
    values = list(range(80))
    one, two = [rng.choice("ab") for _ in values], [rng.choice([1, 2, None]) for _ in values]
    together = slide(values, agg=agg.sum(), size=3, by=list(zip(one, two, strict=True))).tolist()
    forms = (
        {"one": one, "two": two},
        pd.DataFrame({"one": one, "two": pd.array(two, dtype="Int64")}),
        pl.DataFrame({"one": one, "two": two}),
        pa.table({"one": one, "two": two}),
        [one, two],
        (np.array(one), pa.array(two)),
    )
    for by in forms:
        assert slide(values, agg=agg.sum(), size=3, by=by).tolist() == together
    asked = {"at": [40, 41, 42], "at_by": [["a", "b", "z"], [1, None, 1]]}
    found = slide(values, agg=agg.count(), times=values, period=1_000, by=[one, two], **asked).tolist()
    pairs = list(zip(one, two, strict=True))[:42]
    assert found == [pairs[:40].count(("a", 1)), pairs[:41].count(("b", None)), 0]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"size": 2, "at": [1]}, ValueError, "at= asks for windows by time"),
        ({"times": [0, 1], "period": 5, "order": "arrival", "at": [1]}, ValueError, "whatever the order of arrival"),
        ({"times": [0, 1], "period": 5, "at_by": ["a"]}, ValueError, "at=, which is missing"),
        ({"times": [0, 1], "period": 5, "at": [1], "by": ["a", "b"]}, ValueError, "go together"),
        ({"times": [0, 1], "period": 5, "at": [1], "by": ["a", "b"], "at_by": ["a", "b"]}, ValueError, "1 times at= but 2 at_by"),
        ({"times": [1, 0], "period": 5, "at": [1]}, ValueError, "time 0 follows 1"),
        ({"times": [0, 1], "period": 5, "at": [1.5]}, ValueError, "float64 times and times= int64"),
        ({"size": 2, "min_periods": -1}, ValueError, "min_periods=-1 is not from 0"),
        ({"size": 2, "min_periods": 1.5}, TypeError, "min_periods=1.5 is not a count"),
        ({"size": 2, "by": [["a", "b"], [1]]}, ValueError, "2 values but 1 by"),
    ],
)
def test_bad_arguments_name_the_value_the_rule_and_the_fix(arguments, error, words):
    with pytest.raises(error, match=words):
        slide([1, 2], agg=agg.sum(), **arguments)


def test_nothing_at_all_is_fine():
    assert slide([], agg=agg.sum(), times=[], period=5, at=[]).tolist() == []
    assert slide([], agg=agg.sum(), times=[], period=5, at=[3]).tolist() == [0]
    assert slide([1], agg=agg.max(), times=[1], period=5, at=[]).tolist() == []
    assert slide(pd.Series([], dtype="float64"), agg=agg.sum(), size=2, min_periods=1).tolist() == []
