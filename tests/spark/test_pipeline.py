"""A pipeline as a user drives it: run, ask while it runs, stop, run on, look into it; what Spark must tell is told with lines."""

import collections
import datetime as dt
import json
import os
import random
import re
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from sash import cli
from sash.wheel import TileStore

pytestmark = pytest.mark.spark

BASE = dt.datetime(2024, 1, 1)
PIPELINE = """
name = "taxis"
time = "at"
key = "zone"
watermark = "10 minutes"
checkpoint = "checkpoint"
trigger = "{trigger}"

[source]
format = "csv"
path = "in"
schema = "at timestamp, zone string, fare long"
options = {{ header = true, maxFilesPerTrigger = 1 }}

[[windows]]
name = "hourly"
range = "1 hour"
slide = "20 minutes"
aggs = {{ n = "count", fare = "mean(fare)" }}
sink = {{ format = "parquet", path = "hourly" }}

[tiles]
grain = "1m"
aggs = {{ n = "count", fare = "mean(fare)" }}
path = "tiles"
"""


def tiles_only():
    before, _, rest = PIPELINE.format(trigger="available now").partition("[[windows]]")
    return before + rest[rest.index("[tiles]") :]


def sash(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "sash.cli", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def hour_of_rows(number):
    """The rows of one file: an hour, in any order, some up to 8 minutes from the hour before."""
    rng = random.Random(number)
    times = [BASE + dt.timedelta(hours=number, seconds=rng.randrange(-480 if number else 0, 3600)) for _ in range(300)]
    return [(at, rng.choice("abc"), rng.randrange(1, 50)) for at in times]


def add_file(folder, number):
    lines = ["at,zone,fare", *(f"{at},{zone},{fare}" for at, zone, fare in hour_of_rows(number))]
    aside = folder / f".{number}.tmp"
    aside.write_text("\n".join(lines) + "\n")
    os.utime(aside, (1_700_000_000 + number,) * 2)
    aside.rename(folder / f"{number:02d}.csv")


def expected_windows(rows, watermark):
    """Every hour by 20 minutes that ends by the watermark: brute force."""
    found = collections.defaultdict(list)
    for at, zone, fare in rows:
        slot = int((at - BASE).total_seconds()) // 1200
        for start in range(slot - 2, slot + 1):
            found[zone, start].append(fare)
    ends = {(zone, start): BASE + dt.timedelta(seconds=start * 1200 + 3600) for zone, start in found}
    return {k: (len(v), sum(v) / len(v)) for k, v in found.items() if ends[k] <= watermark}


def found_hourly(table):
    """The rows of hourly in the form of expected_windows."""
    return {(r["zone"], (r["window_start"].replace(tzinfo=None) - BASE) // dt.timedelta(minutes=20)): (r["n"], r["fare"]) for r in table}


def test_run_ask_stop_run_on_and_inspect(shared, tmp_path, capsys):
    source = tmp_path / "in"
    source.mkdir()
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE.format(trigger="1 second"))
    add_file(source, 0)

    # a stream that would run for ever: asked while it runs, stopped by Ctrl-C
    running = sash("run", file, "--master", "local[2]", start_new_session=True)
    for line in running.stdout:
        if line.startswith("tiles") and "watermark 2024-01-01 00:4" in line:
            break
    asked = sash("query", tmp_path / "tiles", "--format", "json", "--agg", "n")
    answer = json.loads(asked.communicate()[0])
    assert running.poll() is None
    upto = dt.datetime.fromisoformat(answer["to"])
    rows = hour_of_rows(0)
    assert upto > BASE + dt.timedelta(minutes=40)
    assert answer["rows"] == [{"n": sum(at < upto for at, _, _ in rows)}]
    os.killpg(running.pid, signal.SIGINT)  # as a terminal sends it: to every process of the group
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert err == ""
    assert out.endswith("stopped; the next run goes on from here\n")

    # the same file, now up to the end: it goes on where it stopped
    add_file(source, 1)
    file.write_text(PIPELINE.format(trigger="available now"))
    assert cli.main(["run", str(file)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    last = {line.split()[0]: line for line in out.splitlines()}
    assert "[####################] 100%  300 rows" in last["tiles"]
    assert "[####################] 100%  300 rows" in last["hourly"]
    assert out.endswith("done: all that the source has is read\n")

    # what came out is what brute force says of both files, each window and slice once
    rows += hour_of_rows(1)
    watermark = max(at for at, _, _ in rows) - dt.timedelta(minutes=10)
    table = pq.read_table(tmp_path / "hourly").to_pylist()
    assert found_hourly(table) == expected_windows(rows, watermark)
    assert len(table) == len(expected_windows(rows, watermark))
    store = TileStore(tmp_path / "tiles")
    end = watermark.replace(second=0)
    n, fares = store.wheels("n"), store.wheels("fare")
    for zone in "abc":
        mine = [fare for at, z, fare in rows if z == zone and BASE + dt.timedelta(minutes=30) <= at < end]
        assert n.query(zone, BASE + dt.timedelta(minutes=30), end) == len(mine)
        assert fares.query(zone, BASE + dt.timedelta(minutes=30), end) == sum(mine) / len(mine)

    # the checkpoint holds what is open: the slices and windows that the watermark has not passed
    assert cli.main(["inspect", str(tmp_path / "checkpoint"), "--buckets"]) == 0
    text = capsys.readouterr().out
    assert "hourly: complete up to 2024-01-01 01:4" in text
    assert "tiles: complete up to 2024-01-01 01:4" in text
    # a definition is told in words: no bytes of fingerprints, lengths of time with their unit
    assert re.search(r"aggregation n +agg\.count\(\)$", text, re.MULTILINE)
    assert re.search(r"range +1h$", text, re.MULTILINE)
    assert not [noise for noise in ("000000", "b'", "None") if noise in text]
    assert cli.main(["inspect", str(tmp_path / "checkpoint" / "tiles"), "--format", "json"]) == 0
    state = json.loads(capsys.readouterr().out)["tiles"]
    held = {(zone, at.replace(second=0)) for at, zone, _ in rows if at.replace(second=0) + dt.timedelta(minutes=1) > watermark}
    assert (state["keys"], state["slices"], state["late"]) == (3, len(held), 0)
    assert state["bytes"] > 0

    # another definition on the same store is refused before anything runs
    file.write_text(file.read_text().replace('grain = "1m"', 'grain = "2m"'))
    assert cli.main(["run", str(file)]) == 1
    assert "its grain is 1m, not 2m" in capsys.readouterr().err


def test_a_pipeline_is_explained_and_checked_without_beginning_it(shared, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    for number in range(2):
        add_file(tmp_path / "in", number)
    file = tmp_path / "pipeline.toml"
    file.write_text(tiles_only())
    assert cli.main(["explain", "pipeline", str(file)]) == 0
    said = capsys.readouterr().out
    assert f"tiles -> tile store {tmp_path / 'tiles'}" in said
    assert "windows of 1m every 1m, by zone, as a stream" in said
    assert not (tmp_path / "tiles").exists()  # explained, not begun
    assert cli.main(["run", str(file), "--check"]) == 0
    assert capsys.readouterr().out.endswith("nothing is wrong with it\n")
    assert not (tmp_path / "tiles").exists()


def test_what_only_spark_can_tell_is_told_at_once_with_lines(shared, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    add_file(tmp_path / "in", 0)
    file = tmp_path / "pipeline.toml"
    text = PIPELINE.format(trigger="available now").replace("mean(fare)", "mean(fair)").replace('key = "zone"', 'key = "zones"')
    file.write_text(text)
    assert cli.main(["run", str(file)]) == 1
    err = capsys.readouterr().err.splitlines()
    line = text.splitlines().index('key = "zones"') + 1
    assert err[0] == f"sash run: 1 thing is wrong with {file}"
    assert err[1].startswith(f"{file}:{line}: key='zones' is not a column. The columns are at, zone, fare.")
    file.write_text(PIPELINE.format(trigger="available now").replace("mean(fare)", "mean(fair)"))
    assert cli.main(["run", str(file)]) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[0] == f"sash run: 2 things are wrong with {file}"
    assert [line.split(":")[1] for line in err[1:]] == ["19", "24"]
    assert all("'fair' is not a column" in line for line in err[1:])
    file.write_text(PIPELINE.format(trigger="available now").replace('format = "csv"', 'format = "nosuchformat"'))
    assert cli.main(["run", str(file)]) == 1
    assert f"{file}:9: the source can't be read" in capsys.readouterr().err


def test_a_failing_query_stops_the_others_and_says_why(shared, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    add_file(tmp_path / "in", 0)
    file = tmp_path / "pipeline.toml"
    sink = 'path = "hourly", select = ["assert_true(n < 3, concat(zone, \\" is too many\\")) as ok", "zone"] }}'.replace('\\"', "'")
    file.write_text(PIPELINE.replace('path = "hourly" }}', sink).format(trigger="available now"))
    assert cli.main(["run", str(file)]) == 1
    err = capsys.readouterr().err
    assert "hourly failed: " in err
    assert "is too many" in err
    assert "Traceback" not in err
    assert "STREAM_FAILED" not in err


def sink_rows(folder):
    """The rows that a file sink has by its log, which alone says what of its files counts."""
    logs = [log for log in (folder / "_spark_metadata").iterdir() if not log.name.startswith(".")]
    names = {json.loads(line)["path"].rpartition("/")[2] for log in logs for line in log.read_text().splitlines()[1:]}
    return [row for name in names for row in pq.read_table(folder / name).to_pylist()]


@pytest.mark.stress
@pytest.mark.timeout(900)
def test_killed_again_and_again_it_ends_with_every_slice_and_window_once(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(6):
        add_file(tmp_path / "in", number)
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE.format(trigger="available now"))
    rng = random.Random(7)
    for _ in range(5):
        running = sash("run", file, "--master", "local[2]", start_new_session=True)
        left = rng.randrange(1, 5)  # lines of progress to live
        for line in running.stdout:
            left -= line.startswith(("tiles", "hourly"))
            if not left:
                break
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    # New rows for the last run: without them Spark runs no batch, also where a killed one has moved the watermark.
    add_file(tmp_path / "in", 6)
    last = sash("run", file, "--master", "local[2]")
    _, err = last.communicate(timeout=180)
    assert last.returncode == 0, err
    rows = [row for number in range(7) for row in hour_of_rows(number)]
    watermark = max(at for at, _, _ in rows) - dt.timedelta(minutes=10)
    slices = collections.Counter((zone, at.replace(second=0)) for at, zone, _ in rows)
    closed = {key: n for key, n in slices.items() if key[1] + dt.timedelta(minutes=1) <= watermark}
    tiles = pq.read_table(tmp_path / "tiles").to_pylist()
    assert {(row["zone"], row["slice_start"].replace(tzinfo=None)): row["n"] for row in tiles} == closed
    assert len(tiles) == len(closed)
    hourly = sink_rows(tmp_path / "hourly")
    assert found_hourly(hourly) == expected_windows(rows, watermark)
    assert len(hourly) == len(expected_windows(rows, watermark))
