"""`sash query`, as from the shell: answers equal brute force, and say how far they are complete."""

import csv
import io
import json
import random
import subprocess
import sys

import pyarrow as pa
import pytest

from sash import agg, cli
from sash.wheel import TileStore

MINUTE = 60_000_000
T0 = 1_704_067_200_000_000  # 2024-01-01 00:00
UTC = pa.timestamp("us", "UTC")
HOURS = 6
ROWS = [
    (zone, line, minute, random.Random(f"{zone}{line}{minute}").randrange(1, 100))
    for zone in ("north", "south")
    for line in (1, 2, 3)
    for minute in range(line, HOURS * 60, 2 * line)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("query") / "tiles"
    made = TileStore.create(path, aggs={"n": agg.count(), "ends": agg.minmax("v"), "last": agg.max("at")}, grain="1m", key=["zone", "line"])
    half = HOURS * 30
    for batch, rows in enumerate(([r for r in ROWS if r[2] < half], [r for r in ROWS if r[2] >= half])):
        at = pa.array([T0 + m * MINUTE for _, _, m, _ in rows]).cast(UTC)
        table = {
            "zone": [z for z, _, _, _ in rows],
            "line": pa.array([n for _, n, _, _ in rows], pa.int32()),
            "slice_start": at,
            "n": [v for _, _, _, v in rows],
            "ends": [{"min": -v, "max": v} for _, _, _, v in rows],
            "last": at,
        }
        made.write(pa.table(table), query="q", batch=batch, watermark=T0 + (batch + 1) * half * MINUTE + 30_000_000)
    return path


def ask(capsys, store, *options):
    code = cli.main(["query", str(store), *options])
    out, err = capsys.readouterr()
    return code, out, err


def total(rows, start=0, end=HOURS * 60, **only):
    return sum(v for z, n, m, v in rows if start <= m < end and only.get("zone", z) == z and only.get("line", n) == n)


def as_json(capsys, store, *options):
    code, out, err = ask(capsys, store, "--format", "json", *options)
    assert (code, err) == (0, "")
    return json.loads(out)


def test_everything_at_once_as_a_table(capsys, store):
    code, out, _ = ask(capsys, store)
    head, row, _, said = out.splitlines()
    assert code == 0
    assert head.split() == ["n", "ends.min", "ends.max", "last"]
    biggest = max(v for *_, v in ROWS)
    assert row.split() == [f"{total(ROWS):,}", str(-biggest), str(biggest), "2024-01-01", "05:59"]
    assert said.startswith("[2024-01-01 00:01, 2024-01-01 06:00), complete up to the watermark 2024-01-01 06:00:30; opened in ")


def test_a_key_a_range_and_buckets(capsys, store):
    found = as_json(capsys, store, "--agg", "n", "--key", "south,2", "--from", "2024-01-01 00:30", "--to", "2024-01-01 03:10", "--by", "1h")
    assert (found["from"], found["to"], found["complete_up_to"]) == ("2024-01-01 00:30", "2024-01-01 03:10", "2024-01-01 06:00:30")
    spans = [("00:30", 30, 60), ("01:00", 60, 120), ("02:00", 120, 180), ("03:00", 180, 190)]
    assert found["rows"] == [
        {"zone": "south", "line": 2, "time": f"2024-01-01 {at}", "n": total(ROWS, a, b, zone="south", line=2)} for at, a, b in spans
    ]


def test_several_keys_and_aggregations_as_csv(capsys, store):
    code, out, err = ask(capsys, store, "--agg", "n,ends", "--key", "north,1", "--key", "south,3", "--from", "2h", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [(r["zone"], int(r["line"]), int(r["n"])) for r in rows] == [
        ("north", 1, total(ROWS, 240, zone="north", line=1)),
        ("south", 3, total(ROWS, 240, zone="south", line=3)),
    ]
    assert "complete up to the watermark 2024-01-01 06:00:30" in err  # beside the data, not in it


def test_the_largest_keys(capsys, store):
    found = as_json(capsys, store, "--agg", "n", "--top", "2", "--from", "2024-01-01 03:00")["rows"]
    sums = {(z, n): total(ROWS, 180, zone=z, line=n) for z, n, _, _ in ROWS}
    assert [(r["zone"], r["line"], r["n"]) for r in found] == [(*key, sums[key]) for key in sorted(sums, key=sums.get, reverse=True)[:2]]


def test_what_is_not_complete_is_left_out_and_said(capsys, store):
    found = as_json(capsys, store, "--agg", "n", "--from", "2023-12-31", "--to", "2024-01-02")
    assert found["to"] == "2024-01-01 06:00"
    assert found["rows"] == [{"n": total(ROWS)}]
    assert found["notes"] == [
        "--to 2024-01-02 00:00 is after the watermark: the answer ends at 2024-01-01 06:00",
        "--from 2023-12-31 00:00 is before the first tile: the answer begins at 2024-01-01 00:01",
    ]


def test_the_plan_is_told(capsys, store):
    code, out, _ = ask(capsys, store, "--agg", "ends", "--from", "2024-01-01 01:00", "--to", "2024-01-01 03:00", "--explain")
    assert code == 0
    assert "minmax over [" in out
    assert "<- chosen" in out
    _, out, _ = ask(capsys, store, "--agg", "ends", "--key", "north,1", "--explain")
    assert "slots that hold something" in out


def test_the_keys_are_listed(capsys, store):
    assert sorted(ask(capsys, store, "--keys")[1].split()) == sorted({f"{z},{n}" for z, n, _, _ in ROWS})


@pytest.mark.parametrize(
    "options", [["--by", "30m"], ["--agg", "n", "--key", "north,1", "--key", "south,1", "--by", "1h"], ["--agg", "n", "--top", "3"]]
)
def test_charts_are_drawn(capsys, store, tmp_path, options):
    pytest.importorskip("matplotlib", reason="the extra demo is not installed")
    assert ask(capsys, store, *options, "--plot", str(tmp_path / "chart.png"))[0] == 0
    assert (tmp_path / "chart.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "chart.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--agg", "m"], "has no aggregation 'm'. It has n, ends, last."),
        (["--key", "north"], "--key 'north' has 1 parts; the key is zone, line"),
        (["--key", "north,one"], "'one' is not a value of line, which is int32"),
        (["--key", "nort,1"], "has no key nort,1. Did you mean north,1"),
        (["--from", "yesterday"], "'yesterday' is not a time"),
        (["--from", "2024-01-01 00:00:30"], "not on the store's grain of 1m. Use 2024-01-01 00:00."),
        (["--from", "2024-01-01 05:00", "--to", "2024-01-01 04:00"], "--from must be before --to"),
        (["--by", "90s"], "--by 90s is not a multiple of the store's grain, 1m"),
        (["--by", "1 month"], "months and years have no fixed length"),
        (["--top", "3"], "--top needs one aggregation to go by. Add --agg, one of n, ends, last"),
        (["--top", "0", "--agg", "n"], "--top 0 is no number of keys"),
        (["--top", "3", "--agg", "n", "--by", "1h"], "Leave --key and --by out"),
        (["--plot", "chart.doc"], "a chart is PNG, SVG or PDF"),
    ],
)
def test_what_can_t_be_asked_is_one_line(capsys, store, options, says):
    code, out, err = ask(capsys, store, *options)
    assert code == 1
    assert says in err
    assert err.count("\n") == 1
    assert out == ""


def test_a_store_without_key_or_slices(capsys, tmp_path):
    made = TileStore.create(tmp_path / "s", aggs={"n": agg.count()}, grain="1m")
    assert "has no complete slice yet" in ask(capsys, tmp_path / "s")[2]
    made.write(pa.table({"slice_start": pa.array([T0]).cast(UTC), "n": [5]}), query="q", batch=0, watermark=T0 + MINUTE)
    assert as_json(capsys, tmp_path / "s")["rows"] == [{"n": 5}]
    assert "has no key. Leave --key out" in ask(capsys, tmp_path / "s", "--key", "a")[2]


def test_it_starts_neither_spark_nor_pandas(store):
    code = (
        "import sys; from sash import cli; "
        f"cli.main(['query', {str(store)!r}, '--agg', 'n', '--key', 'north,1']); "
        "print(sorted({'pyspark', 'pandas', 'matplotlib', 'duckdb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_days_of_a_time_zone_begin_at_its_midnights(capsys, tmp_path):
    start, hours = 1_711_580_400_000_000, 24 * 7  # 2024-03-27 23:00 UTC, midnight in Berlin; the clock changes on the 31st
    store = TileStore.create(tmp_path / "days", aggs={"n": agg.count()}, grain="1h")
    at = pa.array([start + h * 60 * MINUTE for h in range(hours)]).cast(UTC)
    store.write_history(pa.table({"slice_start": at, "n": [1] * hours}), until=start + hours * 60 * MINUTE)
    rows = as_json(capsys, tmp_path / "days", "--by", "1d", "--tz", "Europe/Berlin")["rows"]
    assert [(r["time"], r["n"]) for r in rows] == [
        ("2024-03-28 00:00+01:00", 24),
        ("2024-03-29 00:00+01:00", 24),
        ("2024-03-30 00:00+01:00", 24),
        ("2024-03-31 00:00+01:00", 23),
        ("2024-04-01 00:00+02:00", 24),
        ("2024-04-02 00:00+02:00", 24),
        ("2024-04-03 00:00+02:00", 24),
        ("2024-04-04 00:00+02:00", 1),
    ]
    rows = as_json(capsys, tmp_path / "days", "--by", "1w", "--tz", "Europe/Berlin", "--from", "2024-03-31")["rows"]
    assert [(r["time"], r["n"]) for r in rows] == [("2024-03-31 00:00+01:00", 23), ("2024-04-01 00:00+02:00", 73)]
    rows = as_json(capsys, tmp_path / "days", "--by", "1 month", "--tz", "Europe/Berlin")["rows"]
    assert [r["n"] for r in rows] == [95, 73]
    for options, says in (
        (["--by", "1 month"], "months and years have no fixed length"),
        (["--by", "2h", "--tz", "Europe/Berlin"], "no length of a calendar"),
        (["--by", "1d", "--tz", "Europe/Nowhere"], "is not a known time zone"),
        (["--by", "1d", "--tz", "Asia/Kolkata"], "not a multiple of the wheel's grain"),
    ):
        code, _, err = ask(capsys, tmp_path / "days", *options)
        assert code == 1
        assert says in err


def test_an_aggregation_that_was_added_later_is_answered_from_then_on(capsys, tmp_path):
    store = TileStore.create(tmp_path / "s", aggs={"n": agg.count()}, grain="1h")
    hour = 60 * MINUTE
    store.write_history(pa.table({"slice_start": pa.array([0, hour]).cast(UTC), "n": [1, 2]}), until=2 * hour)
    store = TileStore.create(tmp_path / "s", aggs={"n": agg.count(), "s": agg.sum("v")}, grain="1h")
    store.write_history(pa.table({"slice_start": pa.array([2 * hour]).cast(UTC), "n": [4], "s": [8]}), until=3 * hour)
    assert as_json(capsys, tmp_path / "s", "--agg", "n")["rows"] == [{"n": 7}]
    assert as_json(capsys, tmp_path / "s", "--agg", "s")["rows"] == [{"s": 8}]
    document = as_json(capsys, tmp_path / "s", "--agg", "s", "--from", "1970-01-01")
    assert document["notes"] == ["--from 1970-01-01 00:00 is before the first tile: the answer begins at 1970-01-01 02:00"]


def test_a_store_on_no_file_system_is_one_line(capsys):
    code, _, err = ask(capsys, "foo://bucket/tiles")
    assert code == 1
    assert "is on no file system" in err
    assert err.count("\n") == 1
