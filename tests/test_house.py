"""Every fact stands in one place: an aggregation is asked, never looked up by its name, and algorithms are listed once."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

from sash import agg, slide, swag
from sash.swag.algorithms import ALGORITHMS, snake_case, table

SOURCE = pathlib.Path(__file__).parents[1] / "src" / "sash"
CORE = SOURCE.parent / "core"
AGGREGATIONS = set(agg.__all__) - {"Aggregation", "define", "struct"}  # the last two are ways to make one, and have parts and callables
# bench names what its peers call an aggregation, which no aggregation of ours can know.
MAY_NAME_AGGREGATIONS = {"agg", "bench"}


def texts(node: ast.AST) -> set[str]:
    """The string literals of an expression that is one, or a collection of them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return set().union(*map(texts, node.elts))
    return set()


def is_a_name(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "name") or (isinstance(node, ast.Name) and node.id == "name")


def decisions_by_name(source: str) -> list[int]:
    """The lines that compare a name with names of aggregations, match on them, or look it up in a table of them."""
    lines = []
    tree = ast.parse(source)
    tables = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and _is_table(node.value)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            of_names = any(AGGREGATIONS & texts(side) for side in sides)
            of_tables = any(isinstance(side, ast.Name) and side.id in tables for side in sides)
            if any(map(is_a_name, sides)) and (of_names or of_tables):
                lines.append(node.lineno)
        elif isinstance(node, ast.Match) and is_a_name(node.subject):
            patterns = [p for case in node.cases for p in ast.walk(case.pattern) if isinstance(p, ast.MatchValue)]
            lines += [p.lineno for p in patterns if AGGREGATIONS & texts(p.value)]
        elif isinstance(node, ast.Subscript) and is_a_name(node.slice):
            lines += [node.lineno] if _is_table(node.value) or getattr(node.value, "id", "") in tables else []
    return lines


def _is_table(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):  # frozenset({...})
        return any(map(_is_table, node.args))
    keys = set().union(*(texts(k) for k in node.keys if k is not None)) if isinstance(node, ast.Dict) else texts(node)
    return len(keys) > 1 and keys <= AGGREGATIONS


def test_a_decision_by_name_is_seen():
    seen = """
if a.name == "sum": pass
if part.aggregation.name in ("first", "last"): pass
TABLE = {"sum", "mean"}
name = a.name
if a.name in TABLE: pass
match a.name:
    case "min" | "max": pass
{"median": 0, "quantile": 1}[name]
"""
    unseen = """
if field.name == "price": pass
if a.result.kind == "sum": pass
"""
    assert sorted(set(decisions_by_name(seen))) == [2, 3, 6, 8, 9]
    assert decisions_by_name(unseen) == []


def test_no_room_decides_by_the_name_of_an_aggregation():
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        if inside.parts[0] not in MAY_NAME_AGGREGATIONS:
            found += [f"{inside}:{line}" for line in decisions_by_name(path.read_text())]
    assert not found, "ask the Aggregation instead: sash.agg.base and sash.agg.forms"


# The registry of kernels, and that of kernels whose partials are known at run time only.
MAY_NAME_KERNELS = {"registry.hpp", "run_time_kernels.cpp"}


def test_the_core_names_kernels_in_its_registries_alone():
    named = re.compile(r"name\s*[!=]=\s*\"(\w+)\"")
    found = [
        f"{path.relative_to(CORE)}:{number} {kernel}"
        for path in sorted(CORE.rglob("*.[ch]pp"))
        if path.name not in MAY_NAME_KERNELS and path.relative_to(CORE).parts[0] != "bench"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for kernel in named.findall(line)
        if kernel in AGGREGATIONS
    ]
    assert not found


# --- algorithms

CLASSES = set(ALGORITHMS)
NAMES = CLASSES | {snake_case(name) for name in CLASSES}
MANY = 5  # fewer are a choice of examples


def lists_of_algorithms(source: str) -> list[int]:
    """The lines of collections and texts that name five algorithms or more."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        named = set()
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            named = texts(node)
        elif isinstance(node, ast.Dict):
            named = set().union(*(texts(key) for key in node.keys if key is not None))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = set(re.findall(r"\w+", node.value))
        if len(named & NAMES) >= MANY:
            lines.append(node.lineno)
    return lines


def test_a_second_list_of_algorithms_is_seen():
    assert lists_of_algorithms('ALL = ("Daba", "DabaLite", "Fiba", "BTree", "Recalc")') == [1]
    assert lists_of_algorithms('raise TypeError("use daba, daba_lite, fiba, b_tree or recalc")') == [1]
    assert lists_of_algorithms('TWO = ("daba", "fiba")') == []


def test_algorithms_are_listed_in_the_core_alone():
    # swag/__init__.py exports the classes, by name for type checkers; the next test holds it to the table.
    pages = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "swag" / "__init__.py"]
    found = [f"{path.relative_to(SOURCE)}:{line}" for path in pages for line in lists_of_algorithms(path.read_text())]
    strings = re.compile(r'"(?:[^"\\]|\\.)*"')
    for path in sorted((CORE / "bindings").rglob("*.[ch]pp")):
        said = {word for text in strings.findall(path.read_text()) for word in re.findall(r"\w+", text)}
        found += [str(path.relative_to(CORE))] if len(said & CLASSES) >= MANY else []
    assert not found, "ask _core.algorithms() instead: sash.swag.algorithms"


def test_what_swag_exports_is_the_table_of_the_core():
    assert set(swag.__all__) - {"Coarse", "Keyed", "Window"} == CLASSES
    for name, entry in ALGORITHMS.items():
        cls = getattr(swag, name)
        assert issubclass(cls, swag.Window)
        a = agg.median() if entry.needs_median_like else agg.max() if entry.needs_selective else agg.count()
        assert cls(a, **({"max_delay": 1} if entry.needs_delay else {})).algorithm is entry


@pytest.mark.parametrize(("page", "papers"), [("README.md", False), ("docs/windows.md", True)])
def test_the_table_of_algorithms_in_the_docs_is_that_of_the_core(page, papers):
    written = (SOURCE.parents[1] / page).read_text()
    assert table(papers) in written, "paste what sash.swag.algorithms.table() gives"


@pytest.mark.parametrize("name", [entry.name for entry in ALGORITHMS.values() if not entry.needs_delay])
def test_slide_can_build_every_algorithm_that_it_offers(name):
    entry = ALGORITHMS[name]
    a = agg.median() if entry.needs_median_like else agg.max() if entry.needs_selective else agg.sum()
    found = slide([3, 1, 2], agg=a, times=[1, 2, 3], period=2, algorithm=snake_case(name))
    assert found.tolist() == {"median": [3, 2, 1.5], "max": [3, 3, 2], "sum": [3, 4, 3]}[a.name]


@pytest.mark.parametrize("name", ["coarse", "reordered", "keyed", "window"])
def test_slide_offers_only_what_it_can_build(name):
    with pytest.raises(ValueError, match="Use 'auto' or one of") as error:
        slide([1], agg=agg.sum(), size=1, algorithm=name)
    assert f" {name}" not in str(error.value).split("one of:")[1]


# --- tests


def test_tests_import_what_they_share_in_one_way():
    broken = []
    tests = pathlib.Path(__file__).parent
    shared = {path.stem for path in tests.rglob("*.py") if not path.stem.startswith(("test_", "__"))}
    for path in sorted(tests.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.level or node.module in shared):
                broken.append(f"{path.relative_to(tests)}:{node.lineno}")
    assert not broken, "write from tests.oracles import ..., with the whole path"
