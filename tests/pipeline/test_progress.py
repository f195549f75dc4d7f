"""What a running pipeline says of itself, from reports made up here."""

import io
import os
import types

import pytest

from sash.pipeline.progress import Meter, Screen, source_files


def report(batch, rows, late=0, watermark="2024-01-01T00:10:00.000Z"):
    observed = {"sash.tiles.1.in": types.SimpleNamespace(asDict=lambda: {"rows": rows, "null_times": None})}
    observed["sash.tiles.1.out"] = types.SimpleNamespace(asDict=lambda: {"late": late, "keys": 3, "slices": 40})
    operator = types.SimpleNamespace(memoryUsedBytes=1_500_000)
    return types.SimpleNamespace(
        batchId=batch,
        observedMetrics=observed,
        numInputRows=rows,
        processedRowsPerSecond=1e3,
        durationMs={"triggerExecution": 250},
        stateOperators=[operator],
        eventTime={"watermark": watermark},
    )


def commit(checkpoint, batch, *files):
    for folder in ("commits", "sources/0"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    lines = ["v1", *(f'{{"path":"file://{file}","timestamp":1,"batchId":{batch}}}' for file in files)]
    (checkpoint / "sources" / "0" / str(batch)).write_text("\n".join(lines))
    (checkpoint / "commits" / str(batch)).write_text("v1\n{}")


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name, size in (("a.csv", 100), ("b c.csv", 300), ("d.csv", 600)):
        (folder / name).write_bytes(b"x" * size)
    (folder / "_hidden").write_bytes(b"x" * 999)
    return folder


def test_the_bar_counts_the_bytes_of_committed_files(source, tmp_path):
    files = source_files(str(source))
    assert sorted(files.values()) == [100, 300, 600]
    checkpoint = tmp_path / "checkpoint"
    commit(checkpoint, 0, source / "a.csv")  # of an earlier run: not to be done again
    meter = Meter("tiles", files, checkpoint)
    assert meter.share() == 0
    commit(checkpoint, 1, str(source / "b c.csv").replace(" ", "%20"))
    assert meter.share() == pytest.approx(300 / 900)
    (checkpoint / "sources" / "0" / "2").write_text(f'v1\n{{"path":"file://{source}/d.csv","timestamp":1,"batchId":2}}')
    assert meter.share() == pytest.approx(300 / 900)  # taken, not committed
    (checkpoint / "commits" / "2").write_text("v1\n{}")
    assert meter.share() == 1
    assert Meter("tiles", files, checkpoint).share() == 1  # nothing left to do
    assert Meter("tiles", None, checkpoint).share() is None


def test_a_line_adds_up_the_reports(tmp_path):
    meter = Meter("tiles", None, None)
    assert "watermark none yet" in meter.line()
    query = types.SimpleNamespace(recentProgress=[report(4, 100, watermark="1970-01-01T00:00:00.000Z"), report(5, 50, late=2)])
    assert meter.read(query)
    assert not meter.read(query)
    line = meter.line()
    assert line.startswith("tiles      150 rows, ")
    assert line.endswith("watermark 2024-01-01 00:10, 2 late, state 3 keys, 40 slices, 1.5 MB")


def test_a_terminal_is_drawn_over_and_a_file_is_not(monkeypatch):
    meter = Meter("tiles", None, None)
    plain = io.StringIO()
    screen = Screen([meter], plain)
    screen.show([])
    screen.show([meter])
    assert plain.getvalue().count("\n") == 1

    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def fileno(self):
            return 1

    monkeypatch.setattr(os, "get_terminal_size", lambda fd: os.terminal_size((40, 10)))
    terminal = Terminal()
    screen = Screen([meter, meter], terminal)
    screen.show([meter])
    screen.show([], last=True)
    assert terminal.getvalue().count("\x1b[2A") == 1
    assert all(len(line.rpartition("\x1b[K")[2]) < 40 for line in terminal.getvalue().splitlines())


def test_what_is_elsewhere_has_no_bar():
    assert source_files(None) is None
    assert source_files("s3://bucket/trips") is None
