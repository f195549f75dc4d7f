"""Every fact stands in one place: an aggregation is asked, never looked up by its name."""

from __future__ import annotations

import ast
import pathlib

import sash
from sash import agg

SOURCE = pathlib.Path(sash.__file__).parent
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
