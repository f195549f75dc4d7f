"""The figures that an algorithm's loop in the core makes, named by what they vary."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any, Final

from sash.bench import plots
from sash.bench.cells import Cell, measure_cell
from sash.bench.experiments import EXPERIMENTS
from sash.bench.machine import say
from sash.bench.tables import columns, rate, varied

__all__ = ["measure", "plot", "table"]

IN_ORDER: Final = (
    "plain_ring",
    "subtract_on_evict",
    "two_stacks_lite",
    "two_stacks",
    "daba_lite",
    "daba",
    "flat_fit",
    "flat_fat",
    "b_int",
    "amta",
    "fiba",
    "block_fiba",
)
ANY_ORDER: Final = ("b_tree", "fiba", "block_fiba")
SIZES: Final = (1 << 4, 1 << 10, 1 << 14, 1 << 18, 1 << 22)
LARGE: Final = 1 << 22


def _fifo(quick: bool) -> list[Cell]:
    sizes, rounds = (SIZES[2::2], 2_000_000) if quick else (SIZES, 10_000_000)
    inverse = ("plain_ring", "subtract_on_evict")
    cells = [Cell("fifo", name, "sum", size, rounds=rounds) for name in IN_ORDER for size in sizes]
    cells += [Cell("fifo", name, "max", 1 << 14, rounds=rounds) for name in (*IN_ORDER, "monotonic_deque") if name not in inverse]
    return cells + [Cell("fifo", name, "geomean", 1 << 14, rounds=rounds // 4) for name in IN_ORDER]


def _dynamic(quick: bool) -> list[Cell]:
    rounds = 1_000_000 if quick else 10_000_000
    return [Cell("dynamic", name, "sum", size, rounds=rounds) for name in IN_ORDER if name != "plain_ring" for size in (1 << 10, 1 << 18)]


def _latency(quick: bool) -> list[Cell]:
    rounds = 1_000_000 if quick else 10_000_000
    names = ("subtract_on_evict", "two_stacks_lite", "daba", "daba_lite", "flat_fit", "fiba", "block_fiba")
    return [Cell("latency", name, "sum", 1 << 14, rounds=rounds, repeats=1) for name in names]


def _ooo(quick: bool) -> list[Cell]:
    rounds = 500_000 if quick else 2_000_000
    distances = (0, 16, 1 << 10, 1 << 20)
    fixed = [Cell("ooo", name, "sum", LARGE, d, rounds=rounds) for name in ANY_ORDER for d in distances]
    return fixed + [Cell("ooo", name, "sum", LARGE, d, rounds=rounds, delays="scattered") for name in ANY_ORDER for d in distances[1:]]


def _bulk(kind: str) -> Callable[[bool], list[Cell]]:
    def cells(quick: bool) -> list[Cell]:
        bulks = (1, 16, 1 << 10, 1 << 16)
        distances = (0, 1 << 10, 1 << 20) if kind == "bulk" else (0,)
        items = 1 << (20 if quick else 23)
        names = ANY_ORDER[1:]
        return [Cell(kind, name, "sum", LARGE, d, m, max(4, items // m)) for name in names for m in bulks for d in distances]

    return cells


_FIGURES: Final[dict[str, Callable[[bool], list[Cell]]]] = {
    "fifo": _fifo,
    "dynamic": _dynamic,
    "latency": _latency,
    "ooo": _ooo,
    "bulk-evict": _bulk("bulk-evict"),
    "bulk": _bulk("bulk"),
}
_AXES: Final = {
    "fifo": ("size", "entries in the window"),
    "dynamic": ("size", "largest window"),
    "ooo": ("distance", "distance d"),
    "bulk": ("bulk", "items per bulk m"),
    "bulk-evict": ("bulk", "items per bulk m"),
}


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure one cell where an algorithm is named, else the figure, or those of its cells that the options select."""
    return [_told(cell) for cell in chosen(name, options, _FIGURES[name](options.quick))]


def chosen(name: str, options: argparse.Namespace, figure: list[Cell]) -> list[Cell]:
    """Make the cells that the options ask for."""
    fields = [field.name for field in dataclasses.fields(Cell) if field.name != "experiment"]
    given = {field: getattr(options, field) for field in fields if getattr(options, field, None) is not None}
    if "algorithm" in given:
        return [Cell(name, **given)]
    how = {field: given.pop(field) for field in ("rounds", "repeats") if field in given}
    found = [cell for cell in figure if all(getattr(cell, field) == value for field, value in given.items())]
    if not found:
        asked = " ".join(f"--{field.replace('_', '-')} {value}" for field, value in given.items())
        raise ValueError(f"the figure {name} has no cell with {asked}. Name an --algorithm for a cell of your own.")
    return [dataclasses.replace(cell, **how) for cell in found]


def _told(cell: Cell) -> dict[str, Any]:
    result = measure_cell(cell)
    shown = result.get("throughput")
    speed = f"{shown / 1e6:8.1f} M items/s" if shown else f"{result['ticks']['p50']:8.0f} cycles"
    setting = f"n={cell.size:<8} d={cell.distance:<8} {cell.delays:9} m={cell.bulk:<6}"
    say(f"{cell.experiment:10} {cell.algorithm:18} {cell.agg:8} {setting} {speed}")
    return result


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the cells out as text, one line each."""
    settings = varied(cells, [field.name for field in dataclasses.fields(Cell) if field.name not in ("experiment", "repeats")])
    if name == "latency":
        return columns([*settings, *cells[0]["ticks"]], [[*(c[s] for s in settings), *c["ticks"].values()] for c in cells])
    head = [*settings, "M items/s", "least", "greatest", "combines"]
    return columns(head, [[*(c[s] for s in settings), *rate(c), c["combines_per_item"]] for c in cells])


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw throughput by what the figure varies, a line per algorithm; of latencies, the percentiles."""
    axes = figure.subplots()
    axes.set(title=f"{name}: {EXPERIMENTS[name].help}")
    if name == "latency":
        for cell in cells:
            axes.plot(list(cell["ticks"]), list(cell["ticks"].values()), marker="o", label=cell["algorithm"])
        axes.set(yscale="log", ylabel="cycles per round")
        axes.legend(fontsize=8)
        return
    x, label = _AXES[name]
    sums = [cell for cell in cells if cell["agg"] == cells[0]["agg"] and (x == "distance" or cell["distance"] == 0)]
    plots.lines(axes, sums, x, "throughput", lambda c: c["algorithm"] if c["delays"] == "fixed" else f"{c['algorithm']}, scattered")
    axes.set(xlabel=label, ylabel="million items per second")
