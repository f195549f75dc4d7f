"""One cell of a figure: an algorithm on an aggregation, at one setting, its loop in the core."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np

from sash import _bench
from sash.bench.machine import nanoseconds_per_tick, pinned, spread
from sash.swag.algorithms import ALGORITHMS, contenders, snake_case

__all__ = ["AMORTISED", "Cell", "latencies", "measure_cell", "sensible_rounds"]


# A step of O(n) every n rounds.
AMORTISED: Final = tuple(name for name in contenders("latency") if any(snake_case(a.name) == name and a.spike for a in ALGORITHMS.values()))


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


def _run(cell: Cell, rounds: int, laps: int, count: bool = False) -> dict[str, Any]:
    setting = (cell.experiment, cell.algorithm, cell.agg, cell.size, cell.distance, cell.bulk)
    outcome: dict[str, Any] = _bench.loop(*setting, rounds, laps, cell.delays == "scattered", cell.min_arity, count)
    return outcome


def measure_cell(cell: Cell) -> dict[str, Any]:
    """Measure one cell: repeats follow one another on one window; check that it held what the cell claims."""
    with pinned():
        run = _run(cell, cell.rounds, cell.repeats)
        # Combines are counted on sums; a deque of candidates compares, and does not combine.
        selective = cell.algorithm == "monotonic_deque"
        counted = None if selective else _run(cell, counting_rounds(cell), 1, count=True)
    held = (run["smallest"], run["largest"])
    if held[1] != cell.size or (held[0] != cell.size and cell.experiment != "dynamic"):
        raise AssertionError(f"the window held {held[0]} to {held[1]} entries, not the {cell.size} that the experiment claims.")
    result = {**dataclasses.asdict(cell), "window_size": held[1], "combines_per_item": counted and counted["combines"] / counted["items"]}
    if cell.experiment == "latency":
        return result | latencies([run["ticks"]])
    rates = spread([run["items"] / seconds for seconds in run["laps"]])
    result |= {"throughput": rates["median"], "spread": rates}
    if cell.experiment.startswith("bulk"):
        result["evict"] = latencies([run["ticks"]]) | {"combines": counted and counted["evict_combines"] / counted["rounds"]}
    return result


def sensible_rounds(cell: Cell) -> int:
    """Say how many rounds a cell has that no figure chose: about two million steps, so that it ends within a minute."""
    steps = cell.bulk * max(1, cell.size // 64 if cell.algorithm == "recalc" else 1)
    return max(4, Cell.rounds // steps)


def counting_rounds(cell: Cell) -> int:
    """Say how many rounds show what an operation takes on average: of amortised algorithms, a whole turn of the window."""
    turn = cell.size // cell.bulk if cell.algorithm in AMORTISED else 0
    return max(8, turn, min(cell.rounds, 20_000 // cell.bulk))


def latencies(runs: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    """Make percentiles and a histogram in nanoseconds of cycles counted around single operations."""
    ns = np.concatenate(runs) * nanoseconds_per_tick()
    named = {"p50": 50, "p99": 99, "p99.9": 99.9, "p99.995": 99.995, "p99.999": 99.999}
    edges = np.geomspace(max(ns.min(), 1), max(ns.max(), 2) * 1.01, 80)
    return {
        "ns": {name: float(np.percentile(ns, q)) for name, q in named.items()} | {"max": float(ns.max())},
        "histogram": {"edges": edges.tolist(), "counts": np.histogram(ns, edges)[0].tolist()},
    }
