"""Queries that fail: what the network did is tried again, so many times, with a word each; all else ends the run with its cause."""

import io
import itertools
import types

import pytest

from sash.pipeline import watch
from sash.pipeline.failures import is_passing, reason
from sash.pipeline.progress import Meter, Screen
from sash.pipeline.replacing import Stretch

GONE = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: org.apache.kafka.common.errors.TimeoutException: "
    "Timed out waiting for a node assignment. Call: describeTopics SQLSTATE: XXKST\n=== Streaming Query ===\n"
)
WRONG = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: An exception was raised by the Python Proxy. Return Message: "
    'Traceback (most recent call last):\n  File "x.py", line 1, in write\nsash.wheel.errors.TileStoreError: the store is another\'s.\n'
)


@pytest.mark.parametrize(
    ("error", "says", "passing"),
    [
        (GONE, "TimeoutException: Timed out waiting for a node assignment. Call: describeTopics", True),
        (WRONG, "the store is another's.", False),
        ("Return Message: Traceback (most recent call last):\n  File y\npyspark.X: z\nKeyError: 'fare'\n", "KeyError: 'fare'", False),
        (
            "Job aborted.\nCaused by: java.io.IOException: x\n\tat a\nCaused by: java.net.ConnectException: Connection refused\n\tat b",
            None,
            True,
        ),
        ("[UNRESOLVED_COLUMN] `x` cannot be resolved. SQLSTATE: 42703\n== SQL ==", "[UNRESOLVED_COLUMN] `x` cannot be resolved.", False),
        ("java.lang.OutOfMemoryError: Java heap space", "OutOfMemoryError: Java heap space", False),
        (ValueError(), "ValueError", False),
    ],
)
def test_the_cause_is_told_and_what_may_pass_is_known(error, says, passing):
    told = reason(error)
    assert told == (says or "ConnectException: Connection refused")
    assert "Traceback" not in told
    assert is_passing(error) is passing


class Query:
    """A query that has failed, or has ended."""

    def __init__(self, error=None):
        self.error, self.isActive, self.recentProgress = error, False, []
        self.status = {"isTriggerActive": False, "message": ""}

    def exception(self):
        return self.error

    def stop(self):
        self.isActive = False


def watched(monkeypatch, errors, retries):
    """Watch one query that fails in these ways, one start after the other."""
    clock = [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    left = [Query(error) for error in errors]
    started = []

    def start(name):
        started.append(clock[0])
        return left.pop(0)

    job = types.SimpleNamespace(pipeline=types.SimpleNamespace(retries=retries), start=lambda: {"q": start("q")}, start_one=start)
    meter = Meter("q", None, None)
    found = watch.Watch(job, {"q": meter}, Screen([meter], io.StringIO()), lambda: 0).until_done()
    return found, started


def test_a_broker_that_comes_back_is_waited_for_ever_longer(monkeypatch, capsys):
    found, started = watched(monkeypatch, [GONE, GONE, GONE, None], 5)
    assert found == {}
    assert [round(b - a) for a, b in itertools.pairwise(started)] == [1, 2, 4]
    said = capsys.readouterr().err.splitlines()
    assert [line.partition("; ")[2] for line in said] == ["again in 1 s (1 of 5)", "again in 2 s (2 of 5)", "again in 4 s (3 of 5)"]
    assert all(line.startswith("q: TimeoutException: ") for line in said)


@pytest.mark.parametrize(("errors", "retries", "starts"), [([GONE] * 9, 2, 3), ([WRONG], 5, 1), ([GONE, WRONG], 5, 2), ([GONE], 0, 1)])
def test_tries_are_bounded_and_what_does_not_pass_is_not_tried(monkeypatch, capsys, errors, retries, starts):
    found, started = watched(monkeypatch, errors, retries)
    assert found == {"q": errors[starts - 1]}
    assert len(started) == starts


def test_stretches_are_known_by_the_names_of_their_files():
    day = Stretch.read("2024-03-01", "2024-03-02")
    assert day.name() == "batch-20240301T000000.000000Z-20240302T000000.000000Z-"
    for stretch in (day, Stretch(), Stretch(end=1), Stretch.read("2024-03-01 00:00:00.000001", None)):
        assert Stretch.of_name(f"{stretch.name()}part-0.parquet") == stretch
    assert Stretch.of_name("part-0.parquet") is None
    assert Stretch().contains(day)
    assert not day.contains(Stretch())
    assert day.overlaps(Stretch())
    assert not day.overlaps(Stretch(start=day.end))
    assert day.condition("window_end", True) == (
        "`window_end` > TIMESTAMP '2024-03-01 00:00:00.000000 UTC' AND `window_end` <= TIMESTAMP '2024-03-02 00:00:00.000000 UTC'"
    )
    assert Stretch().condition("x", False) is None
