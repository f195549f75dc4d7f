"""The notebook of docs/ runs, and shows what it gives."""

import pathlib

import pytest

from tests.frames import notebooks

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[2] / "docs").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_it_gives(path):
    notebook = notebooks.read(path)
    said = notebooks.results(notebook)
    assert len([text for text in said if text is not None]) >= 5
    assert said == notebooks.stored(notebook)
