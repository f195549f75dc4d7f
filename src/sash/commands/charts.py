"""Answers of `sash query` as pictures."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.errors import DefinitionError, missing_extra
from sash.time import timestamp_text

if TYPE_CHECKING:
    from sash.commands.query import Answer

__all__ = ["chart", "pyplot"]


def pyplot() -> Any:
    """Give matplotlib's pyplot, drawing to files."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise missing_extra("matplotlib", "demo") from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def chart(answer: Answer, file: Path, title: str) -> None:
    """Draw an answer: a panel per aggregation, over time a line per key, else a bar per key."""
    if file.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise DefinitionError(f"--plot {file}: a chart is PNG, SVG or PDF. Name the file so.")
    plt = pyplot()
    numbers = [i for i, _ in enumerate(answer.columns) if any(isinstance(row[i], int | float) for row in answer.rows)]
    named = answer.columns.index("time") if "time" in answer.columns else None
    values = [i for i in numbers if named is None or i > named] or numbers
    if not values:
        raise DefinitionError("there is nothing to draw: the answer holds no number. Ask about another time, key or aggregation.")
    keys = [i for i in range(min(values)) if i != named]
    figure, panels = plt.subplots(
        len(values), 1, figsize=(10, 2.2 + 2.3 * len(values)), sharex=named is not None, squeeze=False, layout="constrained"
    )
    for panel, i in zip(panels[:, 0], values, strict=True):
        (_lines if named is not None else _bars)(panel, answer, i, named, keys)
    if named is not None:
        panels[-1, 0].set_xlabel("time (UTC)")
    span = f"{timestamp_text(answer.start)} to {timestamp_text(answer.end)}"
    figure.suptitle(f"{title}: {span}, complete up to {timestamp_text(answer.complete)}", fontsize=11)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def _lines(panel: Any, answer: Answer, column: int, named: int | None, keys: list[int]) -> None:
    assert named is not None
    series: dict[str, list[tuple[dt.datetime, Any]]] = {}
    for row in answer.rows:
        label = ", ".join(str(row[k]) for k in keys)
        series.setdefault(label, []).append((dt.datetime.fromisoformat(row[named]), float("nan") if row[column] is None else row[column]))
    for label, points in series.items():
        panel.plot(*zip(*points, strict=True), label=label, linewidth=1.2, marker="." if len(points) < 60 else None)
    panel.set_ylabel(answer.columns[column])
    panel.grid(alpha=0.3)
    if keys:
        panel.legend(fontsize=8, ncols=4)


def _bars(panel: Any, answer: Answer, column: int, named: int | None, keys: list[int]) -> None:
    labels = [", ".join(str(row[k]) for k in keys) or "all" for row in answer.rows]
    panel.barh(labels, [float("nan") if row[column] is None else row[column] for row in answer.rows])
    panel.invert_yaxis()
    panel.set_xlabel(answer.columns[column])
    panel.grid(alpha=0.3, axis="x")
