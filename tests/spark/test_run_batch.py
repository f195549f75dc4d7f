"""`sash run --batch`: one file for nightly jobs and backfills; a range that is run again is replaced, never doubled."""

import datetime as dt
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash import cli
from sash.wheel import TileStore

pytestmark = pytest.mark.spark

BASE = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
PIPELINE = """
time = "at"
key = "zone"
watermark = "10 minutes"
checkpoint = "checkpoint"
[source]
format = "parquet"
path = "in"
[[windows]]
name = "hourly"
range = "2 hours"
slide = "1 hour"
aggs = { n = "count", fare = "sum(fare)" }
sink = { format = "parquet", path = "hourly" }
[[rolling]]
name = "features"
lookbacks = ["3h"]
aggs = { s = "sum(fare)" }
sink = { format = "json", path = "features" }
[tiles]
grain = "1h"
path = "tiles"
aggs = { fare = "sum(fare)" }
"""


def rows_of(day, seed):
    rng = random.Random(seed)
    times = [BASE + dt.timedelta(days=day, seconds=rng.randrange(86_400)) for _ in range(200)]
    return [{"at": at, "zone": rng.choice("ab"), "fare": rng.randrange(100)} for at in times]


def write_day(folder, day, seed):
    rows = rows_of(day, seed)
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{day}.parquet")
    return rows


def expected(rows):
    hour = dt.timedelta(hours=1)
    windows, slices = {}, {}
    for row in rows:
        start = row["at"].replace(minute=0, second=0)
        slices[row["zone"], start] = slices.get((row["zone"], start), 0) + row["fare"]
        for end in (start + hour, start + 2 * hour):
            n, fare = windows.get((row["zone"], end), (0, 0))
            windows[row["zone"], end] = (n + 1, fare + row["fare"])
    features = sorted(
        (
            row["zone"],
            row["at"].timestamp(),
            sum(r["fare"] for r in rows if r["zone"] == row["zone"] and row["at"] - 3 * hour < r["at"] <= row["at"]),
        )
        for row in rows
    )
    return windows, features, slices


def utc(at):
    """A time as Spark's Parquet gives it: without a zone, in UTC."""
    return at.replace(tzinfo=dt.UTC)


def found(folder):
    hourly = pq.read_table(folder / "hourly").to_pylist()
    windows = {(row["zone"], utc(row["window_end"])): (row["n"], row["fare"]) for row in hourly}
    assert len(windows) == len(hourly)
    lines = [json.loads(line) for path in (folder / "features").glob("*.json") for line in path.read_text().splitlines()]
    features = sorted((row["zone"], dt.datetime.fromisoformat(row["at"]).timestamp(), row["s_3h"]) for row in lines)
    tiles = TileStore(folder / "tiles").table().to_pylist()
    return windows, features, {(row["zone"], row["slice_start"]): row["fare"] for row in tiles}


def test_days_run_one_by_one_and_again_are_as_if_all_had_run_at_once(shared, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE)
    days = {day: write_day(tmp_path / "in", day, day) for day in range(3)}

    def run(*arguments):
        code = cli.main(["run", "--batch", str(file), *arguments])
        return code, *capsys.readouterr()

    for day in range(3):
        code, out, err = run("--from", f"2024-03-0{day + 1}", "--to", f"2024-03-0{day + 2}")
        assert (code, err) == (0, "")
        assert f"2024-03-0{day + 1} 00:00 to 2024-03-0{day + 2} 00:00" in out

    # the second day is corrected: its range and the one after, which its windows and look-backs reach into, are run again
    days[1] = write_day(tmp_path / "in", 1, 77)
    for _ in range(2):
        assert run("--from", "2024-03-02", "--to", "2024-03-04")[0] == 0
    windows, features, slices = expected([row for rows in days.values() for row in rows])
    upto = BASE + dt.timedelta(days=3)
    windows = {key: value for key, value in windows.items() if key[1] <= upto}
    assert found(tmp_path) == (windows, features, slices)

    # a part of a range that is there can't be replaced, a gap in the tiles can't be left: both are said, and nothing changes
    code, _, err = run("--from", "2024-03-03", "--to", "2024-03-05")
    assert code == 1
    assert "it can't be replaced in part" in err
    code, _, err = run("--from", "2024-04-01", "--to", "2024-04-02", "--check")
    assert code == 1
    assert "would be taken for empty" in err
    code, _, err = run("--from", "2024-03-03", "--to", "2024-03-03")
    assert "is not before --to" in err
    assert found(tmp_path) == (windows, features, slices)

    # a stream's log would hide what batches have written
    assert cli.main(["run", "--check", str(file)]) == 1
    assert "has files of sash run --batch" in capsys.readouterr().err

    # all at once covers every range that is there
    assert run()[0] == 0
    again = found(tmp_path)
    assert again[1:] == (features, slices)
    assert {key: value for key, value in again[0].items() if key[1] <= upto} == windows


def test_a_range_goes_once_to_a_sink_that_can_replace_nothing(shared, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    write_day(tmp_path / "in", 0, 0)
    file = tmp_path / "pipeline.toml"
    text = PIPELINE[: PIPELINE.index("[[rolling]]")].replace('format = "parquet", path = "hourly"', 'format = "noop"')
    file.write_text(text)
    asked = ["run", "--batch", str(file), "--from", "2024-03-01", "--to", "2024-03-02"]
    assert cli.main(asked) == 0
    assert "2024-03-01 00:00 to 2024-03-02 00:00 to noop" in capsys.readouterr().out
    assert cli.main(asked) == 0
    assert "was sent before" in capsys.readouterr().out
    assert cli.main([*asked[:-1], "2024-03-01 12:00"]) == 1
    assert "was sent to noop" in capsys.readouterr().err
    assert cli.main(["run", str(file), "--from", "2024-03-01"]) == 1
    assert "Add --batch" in capsys.readouterr().err


def test_a_stream_with_history_is_as_batch_over_both(shared, tmp_path, capsys):
    for folder in ("in", "past"):
        (tmp_path / folder).mkdir()
    days = [write_day(tmp_path / "past", 0, 0), write_day(tmp_path / "in", 1, 1)]
    beyond = {"at": BASE + dt.timedelta(days=3), "zone": "a", "fare": 1}  # closes all that is before it
    pq.write_table(pa.Table.from_pylist([beyond]), tmp_path / "in" / "last.parquet")
    file = tmp_path / "pipeline.toml"
    history = '[history]\nformat = "parquet"\npath = "past"\nuntil = 2024-03-02\n[[windows]]'
    file.write_text(
        PIPELINE.replace("[[windows]]", history).replace('json", path', 'parquet", path').replace("[[rolling]]", "[[rolling]]\n")
    )
    assert cli.main(["run", str(file)]) == 0, capsys.readouterr().err
    windows, features, slices = expected([*days[0], *days[1]])
    until = BASE + dt.timedelta(days=1)
    hourly = pq.read_table(tmp_path / "hourly").to_pylist()
    assert {(r["zone"], utc(r["window_end"])): (r["n"], r["fare"]) for r in hourly} == {k: v for k, v in windows.items() if k[1] > until}
    rows = sorted((r["zone"], utc(r["at"]).timestamp(), r["s_3h"]) for r in pq.read_table(tmp_path / "features").to_pylist())
    assert rows == [row for row in features if row[1] >= until.timestamp()]
    tiles = TileStore(tmp_path / "tiles").table().to_pylist()
    assert {(r["zone"], r["slice_start"]): r["fare"] for r in tiles} == slices
    capsys.readouterr()
    assert cli.main(["run", "--check", str(file)]) == 0, capsys.readouterr().err
    assert cli.main(["run", "--check", "--batch", str(file)]) == 1
    err = capsys.readouterr().err
    assert err.count("is written by a stream, whose log hides") == 2
    assert "a batch can't replace what a stream has written" in err
