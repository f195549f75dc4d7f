"""Every public name has a docstring that begins with one sentence, and an example that runs.

Examples of sash.spark need a session: tests/spark/test_docs.py runs them.
"""

import doctest
import importlib
import inspect

import pytest

MODULES = ("sash", "sash.agg", "sash.swag", "sash.wheel", "sash.frames", "sash.spark", "sash.serve", "sash.errors")


def public(module):
    try:
        home = importlib.import_module(module)
    except ImportError:  # its extra is not installed
        return []
    return [(f"{module}.{name}", getattr(home, name)) for name in home.__all__ if not inspect.ismodule(getattr(home, name))]


def names():
    return [pair for module in MODULES for pair in public(module)]


def examples(name, found):
    return doctest.DocTestParser().get_doctest(inspect.getdoc(found) or "", {}, name, None, None)


@pytest.mark.parametrize(("name", "found"), names(), ids=[name for name, _ in names()])
def test_a_public_name_has_a_docstring_with_an_example(name, found):
    doc = inspect.getdoc(found) or ""
    assert doc.splitlines()[0].endswith((".", ":")) or len(doc.splitlines()) > 1, f"{name} has no sentence that says what it is for"
    assert examples(name, found).examples, f"{name} has no example: add one to its docstring"


@pytest.mark.parametrize("name", [name for name, _ in public("sash.swag")])
def test_the_examples_of_the_core_run(name):
    # doctest.testmod does not look into native modules, so tests/test_doctests.py misses these.
    found = dict(public("sash.swag"))[name]
    test = examples(name, found)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


def test_the_example_of_a_wheels_reader_runs():
    from sash.wheel import Reader

    assert doctest.DocTestRunner().run(examples("Reader", Reader)).failed == 0


CLASSES = [(name, found) for name, found in names() if inspect.isclass(found) and not issubclass(found, BaseException)]


@pytest.mark.parametrize(("name", "found"), CLASSES, ids=[name for name, _ in CLASSES])
def test_every_method_of_a_public_class_has_a_docstring(name, found):
    fields = set(getattr(found, "_fields", ())) | set(getattr(found, "__dataclass_fields__", ()))
    bases = [base for base in found.__mro__ if base.__module__.startswith("sash")]
    members = {member for base in bases for member in vars(base) if not member.startswith("_")} - fields
    assert [member for member in sorted(members) if not inspect.getdoc(getattr(found, member))] == []


def test_a_name_without_an_example_is_seen():
    def bare():
        """Do something."""

    assert not examples("bare", bare).examples
