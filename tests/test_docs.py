"""The examples in the README and in docs/ run."""

import doctest
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page(page):
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_the_readme_has_examples_that_run():
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).attempted >= 10
