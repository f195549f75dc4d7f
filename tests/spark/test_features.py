"""Features on Spark: look-backs at the times of labels, in hops, several ranges, windows that fall empty, calendars; batch and stream."""

import datetime as dt
import random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from sash import agg
from sash.errors import DefinitionError
from sash.spark import explain, rolling, windows
from tests.spark.arrivals import EVENTS, arrival, cut, rows, totals
from tests.spark.conftest import at, seconds

pytestmark = pytest.mark.spark

AGGS = {"n": agg.count(), "s": agg.sum("value"), "hi": agg.max("value")}
LABELS = pa.schema([("id", pa.int64()), ("key", pa.string()), ("when", pa.timestamp("us", tz="UTC"))])
ROLLING = {"time": "at", "key": "key", "aggs": AGGS}


def events(seed, count=300):
    rng = random.Random(seed)
    return arrival(rng, count, ["a", "b", None], 20), rng


def labels_of(rng, known, count=80):
    times = [t for _, t, _ in known]
    return [(i, rng.choice(["a", "b", None, "nobody"]), rng.choice([*rng.sample(times, 5), rng.uniform(-10, 320)])) for i in range(count)]


def expected_labels(known, labels, lookbacks):
    """Every label with the rows of its key in [t - period, t)."""
    out = []
    for i, key, t in labels:
        each = [totals([v for k, u, v in known if k == key and (u >= begin(t) and u < t)]) for begin in lookbacks]
        out.append((i, key, round(t, 6), *(cell[a] for a in range(3) for cell in each)))
    return sorted(out, key=repr)


def told_labels(batches):
    return sorted(((i, key, round(seconds(t), 6), *rest) for batch in batches for i, key, t, *rest in batch), key=repr)


LOOKBACKS = {"30s": lambda t: t - 30, "100s/7s": lambda t: (at(t).timestamp() - 100) // 7 * 7 - at(0).timestamp()}


@pytest.mark.parametrize("seed", range(2))
def test_labels_in_batch_equal_brute_force(stream, spark, seed):
    known, rng = events(seed)
    labels = labels_of(rng, known)
    df = stream(EVENTS, rows([known])).batch()
    other = stream(LABELS, [[(i, key, at(t)) for i, key, t in labels]]).batch()
    out = rolling(df, lookbacks=list(LOOKBACKS), at=other, at_time="when", **ROLLING)
    assert out.columns == ["id", "key", "when", "n_30s", "n_100s", "s_30s", "s_100s", "hi_30s", "hi_100s"]
    assert told_labels([[tuple(row) for row in out.collect()]]) == expected_labels(known, labels, LOOKBACKS.values())
    assert "at the times of another table" in explain(out)


def test_labels_equal_a_range_join_in_duckdb(stream, spark):
    duckdb = pytest.importorskip("duckdb")
    known, rng = events(7)
    labels = labels_of(rng, known)
    df, other = stream(EVENTS, rows([known])).batch(), stream(LABELS, [[(i, key, at(t)) for i, key, t in labels]]).batch()
    found = rolling(df, lookbacks=["1m"], at=other, at_time="when", **ROLLING).select("id", "n_1m", "s_1m", "hi_1m").collect()
    events_table, labels_table = df.toArrow(), other.toArrow()  # DuckDB finds them by these names
    assert events_table.num_rows + labels_table.num_rows > 300
    joined = duckdb.sql(
        'select id, count(e."at"), sum(value)::bigint, max(value) from labels_table l left join events_table e '
        'on l.key is not distinct from e.key and e."at" >= l."when" - interval 1 minute and e."at" < l."when" group by id'
    ).fetchall()
    assert sorted(tuple(row) for row in found) == sorted(joined)


def test_labels_in_a_stream_come_out_when_the_watermark_passes_them(stream, spark, cache):
    known, rng = events(3, 200)
    labels = labels_of(rng, known, 50)
    mixed = cut(rng, sorted([*known, *labels], key=lambda row: row[2] if isinstance(row[0], int) else row[1]), 4)
    pairs = [([row for row in part if not isinstance(row[0], int)], [row for row in part if isinstance(row[0], int)]) for part in mixed]
    left = stream(EVENTS, rows([[*part] for part, _ in pairs]))
    right = stream(LABELS, [[(i, key, at(t)) for i, key, t in part] for _, part in pairs])
    left.append(rows([[("end", 1_000.0, 0)]])[0])
    right.append([])
    found = left.run(lambda df: rolling(df, lookbacks=list(LOOKBACKS), at=right.read(), at_time="when", watermark="400s", **ROLLING))
    assert told_labels(found) == expected_labels(known, labels, LOOKBACKS.values())


def test_look_backs_in_hops_give_the_same_in_a_stream_and_in_batch(stream, spark, cache):
    known, rng = events(5, 250)
    source = stream(EVENTS, rows([*cut(rng, known, 5), [("end", 2_000.0, 0)]]))
    asked = {**ROLLING, "lookbacks": ["10s", "90s/15s", "60s/15s"]}
    out = source.run(lambda df: rolling(df, watermark="60s", **asked))
    batch = [tuple(row) for row in rolling(source.batch(), **asked).filter("key is null or key != 'end'").collect()]
    assert sorted((row for given in out for row in given), key=repr) == sorted(batch, key=repr)
    begins = at(0).timestamp()
    for key, when, _, *cells in batch:
        t = seconds(when)
        first = (begins + t - 90) // 15 * 15 - begins
        assert cells[1] == sum(k == key and first <= u <= t for k, u, _ in known)


def test_several_ranges_equal_as_many_queries(stream, spark, cache):
    known, rng = events(6, 250)
    source = stream(EVENTS, rows([*cut(rng, known, 4), [("end", 2_000.0, 0)]]))
    ranges, common = ["20s", "60s", "100s"], {"slide": "10s", "watermark": "30s", **ROLLING}
    single = {r: [row for given in source.run(lambda df, r=r: windows(df, range=r, **common), f"one {r}") for row in given] for r in ranges}
    every = {r: {(key, end): values for key, _, end, *values in found} for r, found in single.items()}
    together = [row for given in source.run(lambda df: windows(df, range=ranges, **common), "together") for row in given]
    assert {(key, end) for key, end, *_ in together} == set(every["100s"])
    for key, end, *cells in together:
        for j, r in enumerate(ranges):
            assert cells[j::3] == every[r].get((key, end), [0, None, None])
    batch = windows(source.batch(), range=ranges, **{**common, "watermark": None})
    assert batch.columns == ["key", "window_end", *(f"{name}_{r}" for name in AGGS for r in ranges)]
    closed = {tuple(row) for row in batch.collect() if row["key"] != "end"}
    assert closed == set(together)


def test_a_window_that_falls_empty_is_told_once(stream, spark, cache):
    #            0         10        20        30        40       range 10 s, slide 5 s
    # key a      3                             31                 gone after [0, 10), again after [30, 40)
    source = stream(EVENTS, rows([[("a", 3.0, 1)], [("b", 16.0, 1)], [("a", 31.0, 2)], [("b", 90.0, 1)]]))
    asked = {"time": "at", "key": "key", "range": "10s", "slide": "5s", "aggs": {"n": agg.count(), "s": agg.sum("value")}}
    out = source.run(lambda df: windows(df, empty="once", watermark="0s", **asked))
    mine = [[(seconds(end), n, s) for key, _, end, n, s in given if key == "a"] for given in out]
    told = [row for given in mine for row in sorted(given)]
    assert told == [(5.0, 1, 1), (10.0, 1, 1), (15.0, 0, None), (35.0, 1, 2), (40.0, 1, 2), (45.0, 0, None)]


def test_days_of_a_time_zone_are_local(stream, spark):
    zone = ZoneInfo("America/New_York")
    night = dt.datetime(2024, 3, 9, 23, 30, tzinfo=zone)  # clocks change on the 10th
    stamps = [(night + dt.timedelta(hours=h)).astimezone(dt.UTC) for h in range(0, 60, 5)]
    source = stream(EVENTS, [[("a", stamp, 1) for stamp in stamps]])
    out = windows(source.batch(), time="at", key="key", range="1 day", tz="America/New_York", aggs={"n": agg.count()})
    days = {}
    for stamp in stamps:
        days[stamp.astimezone(zone).date()] = days.get(stamp.astimezone(zone).date(), 0) + 1
    found = {
        row["window_start"].replace(tzinfo=dt.UTC).astimezone(zone): (row["window_end"] - row["window_start"], row["n"])
        for row in out.collect()
    }
    assert {start.date(): n for start, (_, n) in found.items()} == days
    assert {start.time() for start in found} == {dt.time()}
    assert {start.date(): length for start, (length, _) in found.items()}[dt.date(2024, 3, 10)] == dt.timedelta(hours=23)
    assert "windows of 1 days every 1 days in America/New_York" in explain(out)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"lookbacks": ["1h/1d"]}, "Swap them"),
        ({"lookbacks": ["1h", "1h/10m"]}, "two columns named"),
        ({"lookbacks": ["1h"], "at_time": "when"}, "which is missing"),
        ({"range": ["1h", "5m"], "slide": "10m"}, "larger than range"),
        ({"range": ["1h", "5m"]}, "needs a slide"),
        ({"range": "1 hour", "tz": "Europe/Berlin"}, "whole number of days"),
        ({"range": "1 month", "slide": "1 day", "tz": "Europe/Berlin"}, "different kinds"),
        ({"range": "1 month"}, "month"),
        ({"range": "1 day", "tz": "Mars/Olympus"}, "not a known time zone"),
        ({"range": "1h", "empty": "twice"}, "'drop', 'once'"),
        ({"session": "1h", "empty": "once"}, "do not go together"),
    ],
)
def test_what_can_not_be_asked_is_refused_with_the_reason(stream, asked, said):
    df = stream(EVENTS, rows([[("a", 1.0, 1)]])).batch()
    with pytest.raises(DefinitionError, match=said):
        (rolling if "lookbacks" in asked else windows)(df, **ROLLING, **asked)


def test_tables_that_do_not_fit_are_refused_with_the_reason(stream):
    df = stream(EVENTS, rows([[("a", 1.0, 1)]])).batch()
    labels = stream(LABELS, [[(1, "a", at(1))]]).batch()
    for other, said in (
        (labels.drop("key"), "at has no key column 'key'"),
        (labels.withColumnRenamed("id", "value"), "both tables have a column 'value'"),
        (labels.selectExpr("id", "cast(1 as int) as key", "when"), "Cast one of them"),
        (labels.selectExpr("id", "key", "cast(when as string) as when"), "not a timestamp"),
        (labels.drop("when"), "at_time='when' is not a column"),
    ):
        with pytest.raises(DefinitionError, match=said):
            rolling(df, lookbacks=["1h"], at=other, at_time="when", **ROLLING)
