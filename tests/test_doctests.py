"""Every example in a docstring runs."""

import doctest
import importlib
import pkgutil

import pytest

import sash

HEAVY = ("sash.spark", "sash.bench", "sash.demo", "sash.cli")
MODULES = [m.name for m in pkgutil.walk_packages(sash.__path__, "sash.") if not m.name.startswith(HEAVY) and m.name != "sash._core"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
