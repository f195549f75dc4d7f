"""`sash bench`: every experiment at a tiny size, one cell and the figure; wrong settings are errors."""

import dataclasses
import json

import numpy as np
import pytest

from sash.bench.cells import Cell
from sash.bench.experiments import EXPERIMENTS, module_of
from sash.cli import main


def cell(capsys, arguments):
    assert main(["bench", *arguments.split(), "--json", "-", "--repeats", "1"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_what_the_command_calls(name):
    module = module_of(name)
    assert all(callable(getattr(module, function)) for function in ("measure", "table", "plot"))


def test_one_cell_says_what_was_measured_and_on_what(capsys):
    told = cell(capsys, "ooo --algorithm fiba --min-arity 8 --agg sum --size 4096 --distance 64 --rounds 5000")
    assert (told["experiment"], told["algorithm"], told["min_arity"], told["distance"]) == ("ooo", "fiba", 8, 64)
    assert told["window_size"] == 4096
    assert told["throughput"] > 0
    assert told["spread"]["least"] <= told["throughput"] <= told["spread"]["greatest"]
    assert told["combines_per_item"] > 1
    assert {"processor", "compiler", "versions"} <= set(told["machine"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fifo --algorithm daba_lite --distance 5", "fifo takes no --distance"),
        ("fifo --algorithm nonsense --rounds 10", "no cell for algorithm nonsense"),
        ("ooo --algorithm daba_lite --size 64 --distance 4 --rounds 10", "no cell for algorithm daba_lite"),
        ("ooo --algorithm fiba --size 64 --distance 64 --rounds 10", "not smaller than the window"),
        ("bulk --algorithm fiba --size 64 --bulk 65 --rounds 10", "would empty it"),
        ("fifo --size 12345", "no cell with --size 12345"),
        ("slide --agg nonsense", "no race"),
    ],
)
def test_a_wrong_setting_is_an_error_not_a_fast_number(capsys, arguments, message):
    assert main(["bench", *arguments.split()]) == 1
    assert message in capsys.readouterr().err


TINY = {
    "fifo": "--algorithm two_stacks_lite --agg bloom --size 64 --rounds 500",
    "dynamic": "--algorithm daba --size 64 --rounds 500",
    "latency": "--algorithm fiba --size 256 --distance 16 --rounds 500",
    "ooo": "--algorithm b_tree --size 256 --distance 16 --delays scattered --rounds 500",
    "bulk-evict": "--algorithm amta --size 256 --bulk 16 --rounds 20",
    "bulk": "--algorithm fiba_singly --size 256 --bulk 16 --distance 32 --rounds 20",
    "debs12": "--period 10m --rounds 100000",
    "citibike": "--period 1d --rounds 8000",
    "sharing": "--window 16 --size 256 --rounds 200",
    "coarse": "--window 16 --size 256 --rounds 3200",
    "freelist": "--size 4096 --bulk 64 --rounds 20",
    "memory": "--size 1000",
    "tiles": "--keys 3 --quick",
    "serve": "--keys 3 --quick",
    "wheel-stream": "--rounds 20000",
    "wheel-query": "--rounds 50 --form wheel",
    "wheel-space": "",
    "wheel-keys": "--rounds 20000 --keys 100",
    "slide": "--size 5000 --window 100",
    "median": "--size 5000 --window 100",
    "quantile": "--size 5000 --window 100",
    "distinct": "--size 5000 --window 100",
    "top-k": "--size 5000 --window 100",
    "udf": "--size 5000 --window 100",
    "key": "--size 5000 --window 10 --keys 7",
    "frames": "--size 5000 --keys 7",
}


@pytest.mark.parametrize("name", TINY)
def test_every_experiment_runs_at_a_tiny_size_checks_itself_and_draws(capsys, tmp_path, name):
    if name == "udf":
        pytest.importorskip("numba")
    document, picture = tmp_path / "it.json", tmp_path / "it.png"
    written = ["--json", str(document), "--plot", str(picture)]
    assert main(["bench", name, *TINY[name].split(), "--repeats", "1", *written]) == 0
    told = json.loads(document.read_text())
    cells = told.get("cells", [told])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) > len(cells)
    assert picture.read_bytes().startswith(b"\x89PNG")
    module = module_of(name)
    assert all(finding.figures for finding in module.findings(name, cells))


def test_contenders_that_disagree_are_an_error(monkeypatch, capsys):
    from sash.bench import peers

    def wrong(race, data):
        return peers.Contender(lambda: data.values + 1e-3, race.size)

    monkeypatch.setitem(peers.PEERS, "numpy", ("numpy", wrong))
    assert main(["bench", "slide", "--agg", "sum", "--by", "count", "--window", "10", "--size", "1000"]) == 1
    assert "numpy and sash disagree" in capsys.readouterr().err


def test_a_window_that_does_not_hold_what_is_claimed_is_an_error(monkeypatch, capsys):
    from sash.bench import cells, streams

    def emptied(*arguments):
        return real(*arguments) | {"smallest": 3}

    real = cells._bench.loop
    monkeypatch.setattr(cells._bench, "loop", emptied)
    assert main(["bench", "fifo", "--algorithm", "daba_lite", "--size", "64", "--rounds", "10"]) == 1
    assert "the window held 3 to 64 entries, not the 64" in capsys.readouterr().err

    monkeypatch.setattr(streams._bench, "shape", lambda times, period: {"n": times * 0, "m": times * 0, "d": times * 0})
    assert main(["bench", "citibike", "--algorithm", "fiba", "--period", "1d", "--rounds", "8000"]) == 1
    assert "fiba held" in capsys.readouterr().err


def test_the_shape_of_a_stream_by_hand():
    #  time    0  3  1  7  2(late: 7 - 5 = 2)  4  7
    #  in it   0  03 013 37  37              347 347       period 5: (newest - 5, newest]
    from sash import _bench

    found = _bench.shape(np.array([0, 3, 1, 7, 2, 4, 7]), 5)
    assert found["n"].tolist() == [1, 2, 3, 2, 2, 3, 3]
    assert found["m"].tolist() == [0, 0, 0, 2, 0, 0, 0]
    assert found["d"].tolist() == [0, 0, 1, 0, 2, 1, 0]


def test_the_report_is_one_page_with_losses_first(tmp_path, monkeypatch, capsys):
    from sash.bench import figures

    monkeypatch.setitem(figures._FIGURES, "fifo", lambda quick: [Cell("fifo", a, size=64, rounds=200) for a in ("two_stacks_lite", "daba")])
    monkeypatch.setitem(figures._FIGURES, "ooo", lambda quick: [Cell("ooo", "daba", size=64, distance=3, rounds=200)])
    assert main(["bench", "report", "--quick", "--out", str(tmp_path), "--only", "fifo,ooo"]) == 1  # ooo can't run on daba
    page = (tmp_path / "benchmarks.md").read_text()
    order = [
        "# Benchmarks",
        "## Where we lose",
        "- **ooo failed**",
        "## What is claimed",
        "## fifo",
        "![fifo](benchmarks/fifo.png)",
        "## ooo",
    ]
    assert sorted(order, key=page.index) == order
    assert json.loads((tmp_path / "benchmarks" / "fifo.json").read_text())["cells"][1]["algorithm"] == "daba"
    assert (tmp_path / "benchmarks" / "fifo.png").exists()
    assert not (tmp_path / "benchmarks" / "ooo.png").exists()
    assert main(["bench", "report", "--only", "nonsense", "--out", str(tmp_path)]) == 1
    assert "no experiment nonsense" in capsys.readouterr().err


def test_a_loss_is_told_with_its_setting_and_its_cause():
    from sash.bench import report, spark_races

    cells = [
        {"keys": 100, "range": 600, "slide": 1, "ratios": {"spark hdfs": 85.0, "default": 0.5}},
        {"keys": 100, "range": 10, "slide": 10, "ratios": {"spark hdfs": 0.52}},
    ]
    found = spark_races.findings("spark-windows", cells)
    lines = report.page([report.Section("spark-windows", 1.0, [], found, "")], True, []).splitlines()
    own, default = (line for line in lines if line.startswith("- spark-windows"))
    assert "0.5 to 85.0 times; 0.52 times (10/10 s, 100 keys). Windows that do not overlap share no work" in own
    assert default.endswith("0.50 times (600/1 s, 100 keys). The cause is not known.")


def test_bulk_evictions_are_judged_by_their_combines():
    from sash.bench import figures
    from sash.bench.cells import Cell, measure_cell

    cells = [measure_cell(Cell("bulk-evict", "fiba", size=1 << 17, bulk=m, rounds=4, repeats=1)) for m in (16, 1 << 10, 1 << 16)]
    (finding,) = figures.findings("bulk-evict", cells)
    assert finding.held
    singly = [{**cell, "evict": {**cell["evict"], "combines": 16.0 * cell["bulk"]}} for cell in cells]
    (finding,) = figures.findings("bulk-evict", singly)
    assert not finding.held


def test_the_whole_quick_figure_of_fifo_has_a_cell_for_every_algorithm_it_names(monkeypatch, capsys):
    from sash.bench import figures

    cells = [dataclasses.replace(cell, size=32, rounds=50, repeats=1) for cell in figures._fifo(True)]
    monkeypatch.setitem(figures._FIGURES, "fifo", lambda quick: cells)
    assert main(["bench", "fifo", "--quick"]) == 0
    assert "monotonic_deque" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("algorithm", "size", "bulk"), [("fiba", 1 << 22, 1), ("fiba", 1 << 22, 65536), ("block_fiba", 64, 3), ("recalc", 1 << 14, 1)]
)
def test_a_cell_of_ones_own_takes_about_as_many_steps_whatever_its_bulk(algorithm, size, bulk):
    import argparse

    from sash.bench import figures

    (cell,) = figures.chosen("bulk-evict", argparse.Namespace(algorithm=algorithm, size=size, bulk=bulk), [])
    steps = cell.rounds * bulk * (size // 64 if algorithm == "recalc" else 1)
    assert cell.rounds >= 4
    assert steps <= 2_000_000
    (asked,) = figures.chosen("bulk-evict", argparse.Namespace(algorithm=algorithm, size=size, bulk=bulk, rounds=7), [])
    assert asked.rounds == 7
