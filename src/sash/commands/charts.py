"""Answers of `sash query` as pictures."""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.errors import DefinitionError, missing_extra
from sash.time import timestamp_text

if TYPE_CHECKING:
    from sash.agg import Aggregation
    from sash.commands.query import Answer

__all__ = ["chart", "pyplot"]


def pyplot() -> Any:
    """Give matplotlib's pyplot, drawing to files."""
    # On its first run matplotlib says that it looks for fonts: nothing that a user could act on.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    try:
        import matplotlib as mpl
    except ImportError:
        raise missing_extra("matplotlib", "demo") from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def chart(answer: Answer, file: Path, title: str, aggs: dict[str, Aggregation]) -> None:
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
        (_lines if named is not None else _bars)(panel, answer, i, named, keys, _label(answer.columns[i], aggs))
    if named is not None:
        panels[-1, 0].set_xlabel("time (UTC)")
    span = f"{timestamp_text(answer.start)} to {timestamp_text(answer.end)}"
    figure.suptitle(f"{title}: {span}, complete up to {timestamp_text(answer.complete)}", fontsize=11)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def _label(name: str, aggs: dict[str, Aggregation]) -> str:
    """The name of a column of values, and what it is."""
    aggregation = aggs.get(name.partition(".")[0])
    return name if aggregation is None else f"{name}: {aggregation.name}" + (f" of {aggregation.column}" if aggregation.column else "")


def _lines(panel: Any, answer: Answer, column: int, named: int | None, keys: list[int], label: str) -> None:
    assert named is not None
    series: dict[str, list[tuple[dt.datetime, Any]]] = {}
    for row in answer.rows:
        key = ", ".join(str(row[k]) for k in keys)
        series.setdefault(key, []).append((dt.datetime.fromisoformat(row[named]), float("nan") if row[column] is None else row[column]))
    for key, points in series.items():
        panel.plot(*zip(*points, strict=True), label=key, linewidth=1.2, marker="." if len(points) < 60 else None)
    panel.set_ylabel(label)
    panel.grid(alpha=0.3)
    if keys:
        panel.legend(fontsize=8, ncols=4)


def _bars(panel: Any, answer: Answer, column: int, named: int | None, keys: list[int], label: str) -> None:
    labels = [", ".join(str(row[k]) for k in keys) or "all" for row in answer.rows]
    panel.barh(labels, [float("nan") if row[column] is None else row[column] for row in answer.rows])
    panel.invert_yaxis()
    panel.set_xlabel(label)
    panel.grid(alpha=0.3, axis="x")
