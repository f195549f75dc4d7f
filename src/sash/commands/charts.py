"""Answers of `sash query` as pictures."""

from __future__ import annotations

import datetime as dt
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sash.errors import DefinitionError, missing_extra
from sash.time import duration, timestamp_text

if TYPE_CHECKING:
    from sash.agg import Aggregation
    from sash.commands.query import Answer

__all__ = ["chart", "pyplot", "step_in_words"]

_UNITS: Final = {"us": "microsecond", "ms": "millisecond", "s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}


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


def chart(answer: Answer, file: Path, title: str, aggs: dict[str, Aggregation], by: str | None = None) -> None:
    """Draw an answer: a panel per aggregation, over time a line of steps per key, else a bar per key."""
    if file.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise DefinitionError(f"--plot {file}: a chart is PNG, SVG or PDF. Name the file so.")
    plt = pyplot()
    numbers = [i for i, _ in enumerate(answer.columns) if any(isinstance(row[i], int | float) for row in answer.rows)]
    named = answer.columns.index("time") if "time" in answer.columns else None
    values = [i for i in numbers if named is None or i > named] or numbers
    if not values:
        raise DefinitionError("there is nothing to draw: the answer holds no number. Ask about another time, key or aggregation.")
    keys = [i for i in range(min(values)) if i != named]
    high = 2.4 if named is not None else 0.7 + 0.34 * len(answer.rows)
    figure, panels = plt.subplots(
        len(values), 1, figsize=(10, 1.3 + high * len(values)), sharex=named is not None, squeeze=False, layout="constrained"
    )
    for panel, i in zip(panels[:, 0], values, strict=True):
        panel.set_title(_what(answer.columns[i], aggs) + (f" by {step_in_words(by)}" if by else ""), fontsize=11, loc="left")
        if named is None:
            _bars(panel, answer, i, keys)
        else:
            _steps(panel, answer, i, named, keys, by or "")
    if named is not None:
        zone = answer.rows[0][named][-6:] if re.search(r"[+-]\d\d:\d\d$", answer.rows[0][named]) else "UTC"
        panels[-1, 0].set_xlabel(f"start of the step ({zone})")
        if keys:  # beside the panels, where no line runs
            names = list(dict.fromkeys(_key(row, keys) for row in answer.rows))
            lines = [plt.Line2D([], [], color=f"C{i % 10}", linewidth=2, label=name) for i, name in enumerate(names)]
            figure.legend(handles=lines, fontsize=8, loc="outside right upper", title=", ".join(answer.columns[k] for k in keys))
    span = f"{timestamp_text(answer.start)} to {timestamp_text(answer.end)}"
    figure.suptitle(f"{title}: {span}, complete up to {timestamp_text(answer.complete)} (UTC)", fontsize=10, color="dimgray")
    figure.savefig(file, dpi=130)
    plt.close(figure)


def step_in_words(by: str) -> str:
    """Say a length of time as people do.

    >>> step_in_words("6h"), step_in_words("1d"), step_in_words("1 month"), step_in_words("1h 30m")
    ('6 hours', 'day', 'month', '1h 30m')
    """
    found = re.fullmatch(r"(\d+)\s*([a-z]+)", by.strip())
    if not found:
        return by
    word = _UNITS.get(found[2], found[2].rstrip("s"))
    return word if int(found[1]) == 1 else f"{int(found[1]):,} {word}s"


def _what(name: str, aggs: dict[str, Aggregation]) -> str:
    """A column of values in words: "mean fare", "longest: max km", "trips: count"."""
    aggregation = aggs.get(name.partition(".")[0])
    if aggregation is None:
        return name
    said = aggregation.name + (f" {aggregation.column}" if aggregation.column else "")
    return said if aggregation.column == name else f"{name}: {said}"


def _key(row: list[Any], keys: list[int]) -> str:
    return ", ".join(str(row[k]) for k in keys)


def _steps(panel: Any, answer: Answer, column: int, named: int, keys: list[int], by: str) -> None:
    """A value holds for its whole step, so it is drawn over all of it; a step that the range cuts off is dotted."""
    series: dict[str, list[tuple[dt.datetime, Any]]] = {}
    for row in answer.rows:
        series.setdefault(_key(row, keys), []).append((dt.datetime.fromisoformat(row[named]), row[column]))
    cut = False
    for number, points in enumerate(series.values()):
        end = dt.datetime.fromisoformat(timestamp_text(answer.end))
        zone = points[0][0].tzinfo
        edges = [*(at for at, _ in points), end.replace(tzinfo=dt.UTC).astimezone(zone) if zone else end]
        style = {"color": f"C{number % 10}", "linewidth": 2.0 if len(points) < 60 else 1.3, "solid_capstyle": "butt"}
        for i, (_, value) in enumerate(points):
            if value is None:
                continue
            short = (i == 0 and _inside(edges[0], by)) or (i + 1 == len(points) and _inside(edges[-1], by))
            cut |= short
            panel.plot([edges[i], edges[i + 1]], [value, value], linestyle=":" if short else "-", **style)
            if i and points[i - 1][1] is not None:
                panel.plot([edges[i], edges[i]], [points[i - 1][1], value], color=style["color"], linewidth=0.6, alpha=0.5)
    if cut:
        panel.set_title("dotted: a step that the range cuts short", fontsize=8, loc="right", color="dimgray")
    panel.yaxis.set_major_formatter("{x:,.10g}")
    panel.grid(alpha=0.3)
    panel.margins(y=0.12)


def _inside(at: dt.datetime, by: str) -> bool:
    """Whether a time lies within a step, not at its edge: steps begin at multiples since the epoch, in a time zone at its midnights."""
    if at.tzinfo is None:
        return bool(int(at.replace(tzinfo=dt.UTC).timestamp() * 1_000_000) % duration(by))
    week, month = ("w" in by), ("month" in by)
    return at.time() != dt.time() or (week and at.weekday() != 0) or (month and at.day != 1)


def _bars(panel: Any, answer: Answer, column: int, keys: list[int]) -> None:
    labels = [_key(row, keys) or "all keys" for row in answer.rows]
    values = [float("nan") if row[column] is None else row[column] for row in answer.rows]
    drawn = panel.barh(range(len(values)), values, height=0.62)
    panel.bar_label(drawn, [_number(value) for value in values], padding=4, fontsize=9)
    panel.set_yticks(range(len(values)), labels)
    room = 0.6 if len(values) > 1 else 1.1
    panel.set_ylim(len(values) - 1 + room, -room)
    panel.xaxis.set_major_formatter("{x:,.10g}")
    panel.margins(x=0.14)
    panel.grid(alpha=0.3, axis="x")


def _number(value: float) -> str:
    return "none" if value != value else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
