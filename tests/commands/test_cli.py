"""The `sash` command: what every subcommand has in common, and those that need neither store nor Spark."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import sash
from sash import cli
from sash.commands.run import stderr_to

ROOT = pathlib.Path(__file__).parents[2]


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "sash.cli", *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "sash: say what to do, one of run, query, "),
        (["completion"], "the following arguments are required: shell"),
        (["completion", "csh"], "invalid choice: 'csh'"),
        (["fly"], "invalid choice: 'fly'"),
        (["query", "store", "--speed"], "unrecognized arguments: --speed"),
        (["query"], "the following arguments are required: STORE"),
        (["query", "s", "--top", "many"], "invalid int value: 'many'"),
        (["explain", "horse"], "invalid choice: 'horse'"),
    ],
)
def test_what_is_asked_wrongly_is_one_line(capsys, arguments, says):
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    err = capsys.readouterr().err
    assert left.value.code == 2
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "none.toml"], "sash run: none.toml does not exist"),
        (["query", "nowhere"], "sash query: nowhere does not exist: it is no tile store"),
        (["inspect", "nowhere"], "sash inspect: nowhere is not a folder"),
        (["explain", "window", "--agg", "avg"], "sash explain: 'avg' is not an aggregation"),
        (["explain", "slide", "--agg", "sum"], "a window is by count or by time"),
        (["explain", "wheel", "--agg", "sum", "--from", "x", "--to", "y"], "'x' is not a time"),
        (["explain", "wheel", "--agg", "sum", "--from", "2000-01-01", "--to", "2030-01-01", "--grain", "1s"], "too large to try"),
        (["explain", "pipeline", "none.toml"], "sash explain: none.toml does not exist"),
    ],
)
def test_what_can_be_mended_is_one_line_without_a_traceback(capsys, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 1
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_a_folder_that_is_no_checkpoint_is_told(capsys, tmp_path):
    assert cli.main(["inspect", str(tmp_path)]) == 1
    assert "is not a checkpoint: it has neither metadata nor offsets" in capsys.readouterr().err
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text("{}")
    assert cli.main(["inspect", str(tmp_path)]) == 1
    assert "has no finished batch yet" in capsys.readouterr().err
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1")
    assert cli.main(["inspect", str(tmp_path)]) == 1
    assert "has no state" in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error():
    script = f"{sys.executable} -m sash.cli explain window --agg max --worst-case | head -1"
    left = subprocess.run(["bash", "-c", f"set -o pipefail; {script}"], capture_output=True, text=True)
    assert (left.returncode, left.stderr) == (0, "")
    # and one that is gone before anything is written
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m sash.cli explain window --agg max > >(exec 0<&-; exit); true"], capture_output=True, text=True
    )
    assert closed.stderr == ""


def test_explain_says_what_would_be_chosen(capsys):
    for arguments, says in (
        (["window", "--agg", "max", "--worst-case"], "max, in order, worst case: DabaLite"),
        (["window", "--agg", "sum", "--any-order", "--ranges"], "BlockFiba"),
        (["slide", "--agg", "median", "--size", "100"], "ranked     whole array in the core"),
        (["slide", "--agg", "sum", "--period", "1h", "--order", "arrival"], "an out-of-order window follows the largest time"),
        (["slide", "--agg", "max", "--size", "5", "--items", "object"], "DabaLite, driven item by item from Python   <- chosen"),
        (["wheel", "--agg", "mean", "--from", "2013-07-01", "--to", "2013-07-08 12:30"], "1d x 7, 1h x 12, 1m x 30"),
    ):
        assert cli.main(["explain", *arguments]) == 0
        assert says in capsys.readouterr().out


def test_help_lists_every_command():
    said = run("--help").stdout
    assert all(re.search(rf"^    {name}\s", said, re.M) for name in cli.COMMANDS)


def test_python_m_sash_is_sash_and_tells_the_version_of_the_package():
    said = subprocess.run([sys.executable, "-m", "sash", "--version"], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, f"sash {sash.__version__}\n")
    assert run("--version").stdout == said.stdout


def test_the_version_is_the_one_of_the_changelog_and_of_the_citation():
    newest = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)[0]
    cited = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)[0]
    assert (newest, cited) == (sash.__version__, sash.__version__)


@pytest.mark.parametrize("shell", cli.SHELLS)
def test_completion_knows_every_command_and_its_options(capsys, shell):
    pytest.importorskip("shtab")
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in cli.COMMANDS)
    assert re.search(r"(--|-l )explain\b", script)  # an option of sash query
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, capture_output=True, text=True).stderr == ""


def test_a_command_that_lacks_a_package_says_so_in_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == "sash completion: completion needs the package shtab. Install it: pip install shtab\n"


def test_bench_without_its_native_loops_says_how_to_get_them():
    code = "import sys; sys.modules['sash._bench'] = None; from sash.cli import main; main(['bench', 'fifo'])"
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert left.returncode == 1
    assert left.stderr.startswith("sash bench: this build is without the native loops of the benchmarks")
    assert "SASH_BENCH=ON" in left.stderr
    assert left.stderr.count("\n") == 1


def test_a_log_keeps_what_earlier_runs_said(tmp_path, capfd):
    for said in (b"first\n", b"second\n"):
        with stderr_to(tmp_path / "spark.log"):
            os.write(2, said)
    assert (tmp_path / "spark.log").read_bytes() == b"first\nsecond\n"
    assert capfd.readouterr().err == ""
