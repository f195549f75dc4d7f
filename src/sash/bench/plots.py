"""The figures as pictures: what several experiments draw alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sash.bench.experiments import module_of
from sash.errors import missing_extra

__all__ = ["draw", "lines", "marks", "ratios", "violins"]

Cells = list[dict[str, Any]]


def draw(experiment: str, cells: Cells, file: Path) -> None:
    """Draw an experiment's cells to a PNG."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("matplotlib", "bench") from None
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    module_of(experiment).plot(experiment, cells, figure)
    for axes in figure.axes:
        axes.grid(alpha=0.3)
    figure.savefig(file, dpi=110)


def lines(axes: Any, cells: Cells, x: str, y: str, label: Callable[[dict[str, Any]], str], scale: float = 1e-6) -> None:
    """Draw a line per label, on logarithmic axes; 0 stands at 1, which the axis can show."""
    for i, text in enumerate(dict.fromkeys(label(cell) for cell in cells)):
        chosen = sorted((cell for cell in cells if label(cell) == text), key=lambda cell: cell[x])
        style = "--" if "scattered" in text else "-"
        mark = "os^vD"[i // 10]  # there are ten colours
        axes.plot([max(cell[x], 1) for cell in chosen], [cell[y] * scale for cell in chosen], style, marker=mark, markersize=4, label=text)
    axes.set(xscale="log", yscale="log")
    _label_decades(axes.yaxis)
    if cells:
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4)


def marks(axes: Any, labels: list[str], values: list[float], name: str | None = None, mark: str = "o") -> None:
    """Draw a mark with its figure per label, on a logarithmic axis: the length of a bar would say nothing there."""
    axes.plot(values, range(len(values)), mark, markersize=6, label=name)
    for i, value in enumerate(values):
        axes.annotate(
            f"{value:,.0f}" if value >= 1000 else f"{value:.3g}",
            (value, i),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    axes.set(xscale="log", yticks=range(len(labels)), yticklabels=labels, ylim=(len(labels) - 0.4, -0.6))
    axes.margins(x=0.12)


def _label_decades(axis: Any) -> None:
    """Label 1, 2 and 5 of every decade as plain numbers: most figures span one or two."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def ratios(figure: Any, cells: Cells, label: Callable[[dict[str, Any]], str], title: str) -> None:
    """Draw races: a row per cell, a mark per peer with its spread; right of the line at 1 we are faster."""
    figure.set_size_inches(9, max(2.6, 1.4 + 0.27 * len(cells)))
    axes = figure.subplots()
    axes.axvspan(1e-9, 1, color="tab:red", alpha=0.06)
    axes.axvline(1, color="black", linewidth=1)
    for i, peer in enumerate(dict.fromkeys(peer for cell in cells for peer in cell["ratios"])):
        rows = [j for j, cell in enumerate(cells) if peer in cell["ratios"]]
        found = [cells[j]["ratios"][peer] for j in rows]
        ends = [cells[j]["ratio_spread"][peer] for j in rows]
        bars = [
            [ratio - low for ratio, (low, _) in zip(found, ends, strict=True)],
            [high - r for r, (_, high) in zip(found, ends, strict=True)],
        ]
        axes.errorbar(found, rows, xerr=bars, fmt="osDv^<>pP"[i % 9], markersize=6, capsize=2, linewidth=1, label=peer)
    every = [ratio for cell in cells for ratio in cell["ratios"].values()] or [1.0]
    axes.set(
        xscale="log",
        xlim=(min(0.5, min(every) / 1.5), max(2, max(every) * 1.5)),
        yticks=range(len(cells)),
        yticklabels=[label(cell) for cell in cells],
        xlabel="times faster than the peer (log scale; left of 1 the peer is faster)",
        title=title,
    )
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def violins(axes: Any, cells: Cells, label: Callable[[dict[str, Any]], str]) -> None:
    """Draw distributions of latencies on a logarithmic axis: width is how often, the marks are p50 and p99.9."""
    for i, cell in enumerate(cells):
        edges, counts = cell["histogram"]["edges"], cell["histogram"]["counts"]
        most = max(counts) or 1
        middle = [(low * high) ** 0.5 for low, high in itertools.pairwise(edges)]
        width = [0.42 * (count / most) ** 0.25 for count in counts]  # a fourth root: rare ones must show
        axes.fill_betweenx(middle, [i - w for w in width], [i + w for w in width], alpha=0.5, linewidth=0)
        axes.plot([i - 0.3, i + 0.3], [cell["ns"]["p50"]] * 2, color="saddlebrown", linewidth=2)
        axes.plot([i - 0.2, i + 0.2], [cell["ns"]["p99.9"]] * 2, color="black", linewidth=2)
    floor = min(cell["ns"]["p50"] for cell in cells) / 3  # below it are rounds within a tick of the counter
    axes.set(yscale="log", ylim=(floor, None), ylabel="ns per round (brown: p50, black: p99.9)", xticks=range(len(cells)))
    axes.set_xticklabels([label(cell) for cell in cells], fontsize=8, rotation=20)
