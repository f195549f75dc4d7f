"""What the factories of several families share: reading their arguments and items."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["Where", "column_and", "plain", "positive"]

Where = Callable[[Any], bool] | str | None


def column_and(column: Any, value: Any) -> tuple[str | None, Any]:
    """Tell a column from a parameter: ``top_k(3)``, ``top_k("fare", 3)`` and ``top_k(3, "fare")`` are all understood.

    >>> column_and(3, None), column_and("fare", 3), column_and(3, "fare")
    ((None, 3), ('fare', 3), ('fare', 3))
    """
    if column is None or isinstance(column, str):
        return column, value
    if value is None or isinstance(value, str):
        return value, column
    raise TypeError(f"{column!r} is not a column. Pass its name, or leave it out.")


def positive(value: Any, name: str, factory: str) -> int:
    """Read a count that starts from 1."""
    if value is None:
        raise TypeError(f"{factory} needs {name}. Pass it, e.g. {factory}({name}=3).")
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if isinstance(value, bool) or number < 1:
        raise ValueError(f"{name}={value!r} is not a count. {factory} takes a whole number from 1 on.")
    return number


def plain(x: Any) -> Any:
    """Give an item as plain Python data: NumPy's scalars unwrapped, bool as int.

    >>> plain(True), plain("text")
    (1, 'text')
    """
    kind = type(x)
    if kind is float or kind is int or kind is str:
        return x
    if kind is bool:
        return int(x)
    if hasattr(x, "dtype") and getattr(x, "ndim", None) == 0:
        return plain(x.item())
    return x
