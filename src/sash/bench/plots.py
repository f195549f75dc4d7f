"""The figures as pictures: what several experiments draw alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sash.bench.experiments import module_of
from sash.errors import missing_extra

__all__ = ["bars", "draw", "lines"]

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
    for text in dict.fromkeys(label(cell) for cell in cells):
        chosen = sorted((cell for cell in cells if label(cell) == text), key=lambda cell: cell[x])
        style = "--" if "scattered" in text else "-"
        axes.plot([max(cell[x], 1) for cell in chosen], [cell[y] * scale for cell in chosen], style, marker="o", markersize=4, label=text)
    axes.set(xscale="log", yscale="log")
    axes.legend(fontsize=8, ncols=2)


def bars(axes: Any, cells: Cells, label: Callable[[dict[str, Any]], str], title: str) -> None:
    """Draw races: a group of bars per cell, a bar per peer, 1 where both are as fast."""
    peers = sorted({peer for cell in cells for peer in cell["ratios"]})
    height = 0.8 / max(len(peers), 1)
    for i, peer in enumerate(peers):
        places = [j + i * height for j in range(len(cells))]
        axes.barh(places, [cell["ratios"].get(peer, float("nan")) for cell in cells], height, label=peer)
    axes.axvline(1, color="black", linewidth=1)
    axes.set(
        xscale="log",
        yticks=[j + 0.4 - height / 2 for j in range(len(cells))],
        yticklabels=[label(cell) for cell in cells],
        xlabel="times faster than the peer (1: equal)",
        title=title,
    )
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.legend(fontsize=8)
