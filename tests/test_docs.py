"""The examples in the README and in docs/ run: sessions as doctests, pipeline files through the reader, links to files that are there.

Spark's are run by tests/spark/test_docs.py.
"""

import doctest
import pathlib
import re
import shlex

import pytest

from sash import cli
from sash.pipeline import document

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page(page):
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_the_readme_has_examples_that_run():
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).attempted >= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_pipeline_files_in_the_docs_are_right(tmp_path):
    blocks = [block for page in PAGES for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.S)]
    assert blocks
    for block in blocks:
        (tmp_path / "trips").mkdir(exist_ok=True)
        file = tmp_path / "pipeline.toml"
        file.write_text(block)
        assert document.read(file).sections


def test_commands_in_the_docs_are_known(capsys):
    said = [line for page in PAGES for line in re.findall(r"^ *(sash [a-z]+ .*?)(?:\s+#.*)?$", page.read_text(), re.M)]
    assert len(said) > 10
    for line in said:
        try:
            cli.parse(shlex.split(line)[1:])
        except SystemExit:
            pytest.fail(f"{line}: {capsys.readouterr().err}")
