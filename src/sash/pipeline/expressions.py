"""Aggregations as text: `mean(fare)`, `quantile(fare, 0.9)`, `count`: what a pipeline file and the command line say."""

from __future__ import annotations

import ast
import difflib
from typing import Any, Final

from sash import agg
from sash.agg import Aggregation

__all__ = ["aggregation"]

_NAMES: Final = sorted(set(agg.__all__) - {"Aggregation", "define"})


def aggregation(text: str) -> Aggregation:
    """Read an aggregation: a name of sash.agg, and what it takes; a bare word is a column.

    >>> aggregation("top_k(fare, 3)"), aggregation("count"), aggregation("struct(low=min(fare), n=count)")
    (agg.top_k('fare', k=3), agg.count(), agg.struct(low=agg.min('fare'), n=agg.count()))
    >>> aggregation("avg(fare)")
    Traceback (most recent call last):
    ...
    ValueError: 'avg' is not an aggregation. All of them are in docs/aggregations.md.
    """
    if not isinstance(text, str):
        raise ValueError(f'{text!r} is not an aggregation. Write it as text, e.g. "mean(fare)".')
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f'{text!r} is not an aggregation. Write a name and a column, e.g. "mean(fare)".') from None
    return _made(node, text)


def _made(node: ast.expr, text: str) -> Aggregation:
    call = node if isinstance(node, ast.Call) else ast.Call(func=node, args=[], keywords=[])
    if not isinstance(call.func, ast.Name):
        raise ValueError(f'{text!r} is not an aggregation. Write a name and a column, e.g. "mean(fare)".')
    name = call.func.id
    if name not in _NAMES:
        near = difflib.get_close_matches(name, _NAMES, 1, 0.5)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"{name!r} is not an aggregation.{meant} All of them are in docs/aggregations.md.")
    if name == "struct":
        if call.args:
            raise ValueError('struct() takes named parts only, e.g. "struct(low=min(fare), high=max(fare))".')
        return agg.struct(**{part.arg or "": _made(part.value, text) for part in call.keywords})
    try:
        made: Aggregation = getattr(agg, name)(
            *(_argument(a, text) for a in call.args), **{k.arg or "": _argument(k.value, text) for k in call.keywords}
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{text!r}: {error}") from None
    return made


def _argument(node: ast.expr, text: str) -> Any:
    """A column (a bare word or a quoted one), a number, or a list of numbers."""
    if isinstance(node, ast.Name):
        return node.id
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"{ast.unparse(node)} is neither a column nor a number. Make a column of it before, in the source") from None
