"""One cell of a figure: an algorithm on an aggregation, at one setting, its loop in the core."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from sash import _core
from sash.bench.machine import pinned, spread

__all__ = ["Cell", "measure_cell"]


@dataclasses.dataclass(frozen=True)
class Cell:
    """The setting of one measurement; the names are those of the command's options."""

    experiment: str
    algorithm: str = "daba_lite"
    agg: str = "sum"
    size: int = 1 << 14
    distance: int = 0
    bulk: int = 1
    rounds: int = 2_000_000
    repeats: int = 3
    delays: str = "fixed"
    min_arity: int = 0


def _run(cell: Cell, rounds: int, count: bool = False) -> dict[str, Any]:
    outcome: dict[str, Any] = _core.bench(
        cell.experiment,
        cell.algorithm,
        cell.agg,
        cell.size,
        cell.distance,
        cell.bulk,
        rounds,
        cell.delays == "scattered",
        cell.min_arity,
        count,
    )
    return outcome


def measure_cell(cell: Cell) -> dict[str, Any]:
    """Measure one cell, and check that the window held what the cell claims while it ran."""
    with pinned():
        runs = [_run(cell, cell.rounds) for _ in range(cell.repeats)]
        counted = _run(cell, min(cell.rounds, 20_000) + 1, count=True)
        filled = _run(cell, 1, count=True)
    least, most = min(run["smallest"] for run in runs), max(run["largest"] for run in runs)
    if cell.experiment != "dynamic" and not least == most == cell.size:
        raise AssertionError(f"the window held {least} to {most} entries, not the {cell.size} that the experiment claims")
    result = {**dataclasses.asdict(cell), "window_size": most, "combines_per_item": _per_item(counted, filled)}
    if cell.experiment == "latency":
        return result | {"ticks": _percentiles(np.concatenate([run["ticks"] for run in runs]))}
    rates = [run["items"] / run["seconds"] for run in runs]
    result |= {"throughput": spread(rates)["median"], "spread": spread(rates)}
    if cell.experiment.startswith("bulk"):
        result["evict_ticks"] = _percentiles(np.concatenate([run["ticks"] for run in runs]))
    return result


def _per_item(counted: dict[str, Any], filled: dict[str, Any]) -> float:
    """Leave the combines of the fill out: those of one round more are not its own."""
    return float((counted["combines"] - filled["combines"]) / (counted["items"] - filled["items"]))


def _percentiles(ticks: np.ndarray[Any, Any]) -> dict[str, float]:
    named = {"p50": 50, "p99": 99, "p99.9": 99.9, "p99.999": 99.999}
    return {name: float(np.percentile(ticks, q)) for name, q in named.items()} | {"max": float(ticks.max())}
