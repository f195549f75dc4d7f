"""`sash bench`: every experiment at a tiny size, one cell and the figure; wrong settings are errors."""

import json

import pytest

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
