"""The programs in examples/ run as they are. The one on Spark is run by tests/spark/test_docs.py, in its session."""

import pathlib
import runpy

import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
SAYS = {
    "frames.py": "Features of each trip",
    "training_set.py": "nothing from a label's time on is in its features",
    "service.py": "'trips_1h': 480",
}
NEEDS = {"frames.py": "pandas", "training_set.py": "pandas", "service.py": "starlette"}


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs(name, capsys):
    pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out


def test_every_example_is_run_and_listed():
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    assert programs == {*SAYS, "live_pipeline.py"}
    listed = (EXAMPLES / "README.md").read_text()
    assert [name for name in programs if f"[{name}]({name})" not in listed] == []
