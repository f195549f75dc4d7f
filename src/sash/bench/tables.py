"""Results as text: columns that are aligned, the same in every experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["columns", "rate", "varied"]


def columns(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Lay rows out under their heads, numbers to the right.

    >>> print(columns(["name", "n"], [["daba_lite", 16], ["fiba", 4194304]]))
    name               n
    daba_lite         16
    fiba       4,194,304
    """
    texts = [list(head), *([_text(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
    right = [i > 0 for i in range(len(head))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width) for text, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in texts
    )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else "" if value is None else str(value)


def rate(cell: dict[str, Any]) -> list[float]:
    """Give a cell's median, least and greatest throughput in million items per second."""
    return [cell["spread"][name] / 1e6 for name in ("median", "least", "greatest")]


def varied(cells: list[dict[str, Any]], names: Iterable[str]) -> list[str]:
    """Choose the settings that differ between cells, and the first in any case."""
    ordered = list(names)
    return [name for i, name in enumerate(ordered) if i == 0 or len({str(cell.get(name)) for cell in cells}) > 1]
