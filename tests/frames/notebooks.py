"""Notebooks as plain JSON: run their cells in one name space, and what each last expression prints as."""

import ast
import json
import pathlib
from typing import Any


def read(path: pathlib.Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def results(notebook: dict[str, Any]) -> list[str | None]:
    """Run the code cells in order; for each the text of its last expression, None where it has none."""
    space: dict[str, Any] = {}
    said = []
    for i, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        tree = ast.parse("".join(cell["source"]), f"cell {i + 1}")
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {i + 1}", "exec"), space)
        value = None if last is None else eval(compile(last, f"cell {i + 1}", "eval"), space)
        said.append(None if value is None else repr(value))
    return said


def stored(notebook: dict[str, Any]) -> list[str | None]:
    """What the notebook shows for each of its code cells."""
    outputs = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(shown[0]["data"]["text/plain"]) if shown else None for shown in outputs]
