"""Races in one run: slide() against what users run today, on one core, results compared."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from sash import agg
from sash.bench import plots
from sash.bench.machine import pinned, say, spread, timed
from sash.bench.tables import columns
from sash.rolling import slide

__all__ = ["Race", "measure", "plot", "run_race", "slide_races", "table"]

Array = np.ndarray[Any, Any]
Runner = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Race:
    """One line of the table: an aggregation over windows of one kind and size."""

    agg: str
    by: str  # "count" or "time"
    window: int
    size: int


def slide_races(quick: bool, size: int | None = None) -> list[Race]:
    """List the races of slide()."""
    n = size or (1_000_000 if quick else 5_000_000)
    windows = (100, 10_000) if quick else (10, 100, 10_000, 1_000_000)
    names = ("sum", "mean", "min", "max", "std")
    return [Race(name, by, window, n) for name in names for by in ("count", "time") for window in windows]


def run_race(race: Race, repeats: int = 3) -> dict[str, Any]:
    """Time slide() and every peer that is installed; ratios are ours to theirs, above 1 where we are faster."""
    values = np.random.default_rng(1).normal(size=race.size)
    times = np.arange(race.size, dtype=np.int64)
    aggregation = getattr(agg, race.agg)()
    arguments: dict[str, Any] = {"size": race.window} if race.by == "count" else {"times": times, "period": race.window}
    contenders: dict[str, Runner] = {"sash": lambda: slide(values, agg=aggregation, **arguments)}
    contenders |= {name: run for name, run in _peers(race, values, times).items() if run is not None}
    expected = np.asarray(contenders["sash"](), dtype=float)
    rates = {}
    with pinned():
        for name, run in contenders.items():
            found = np.asarray(run(), dtype=float)
            at = np.arange(race.window, race.size, max(1, race.size // 997))
            if not np.allclose(found[at], expected[at], rtol=1e-6, atol=1e-6):
                raise AssertionError(f"{name} and sash disagree on {race}")
            rates[name] = spread([race.size / s for s in timed(run, repeats)])
    ours = rates["sash"]["median"]
    ratios = {name: ours / rate["median"] for name, rate in rates.items() if name != "sash"}
    return {**dataclasses.asdict(race), "throughput": ours, "rates": rates, "ratios": ratios}


def _peers(race: Race, values: Array, times: Array) -> dict[str, Runner | None]:
    peers: dict[str, Runner | None] = {}
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        series = pd.Series(values) if race.by == "count" else pd.Series(values, index=pd.to_datetime(times, unit="s"))
        rolling = series.rolling(race.window, min_periods=1) if race.by == "count" else series.rolling(f"{race.window}s")
        peers["pandas"] = getattr(rolling, race.agg)
    if importlib.util.find_spec("polars"):
        import polars as pl

        column = pl.Series("x", values)
        if race.by == "count":
            peers["polars"] = lambda: getattr(column, f"rolling_{race.agg}")(race.window, min_samples=1).to_numpy()
        else:
            frame = pl.DataFrame({"x": values, "t": times})
            call = getattr(pl.col("x"), f"rolling_{race.agg}_by")("t", window_size=f"{race.window}i")
            peers["polars"] = lambda: frame.select(call)["x"].to_numpy()
    if race.by == "count" and importlib.util.find_spec("bottleneck"):
        import bottleneck as bn

        move = getattr(bn, f"move_{race.agg}")
        extra = {"ddof": 1} if race.agg == "std" else {}
        peers["bottleneck"] = lambda: move(values, race.window, min_count=1, **extra)
    return peers


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the races that the options select."""
    asked = {field: getattr(options, field) for field in ("agg", "by", "window") if getattr(options, field) is not None}
    races = [r for r in slide_races(options.quick, options.size) if all(getattr(r, field) == value for field, value in asked.items())]
    if not races:
        raise ValueError(f"{name} has no race with {asked}.")
    return [_told(run_race(race, options.repeats or 3)) for race in races]


def _told(cell: dict[str, Any]) -> dict[str, Any]:
    ratios = "  ".join(f"{name} x{ratio:.2f}" for name, ratio in cell["ratios"].items())
    say(f"slide {cell['agg']:5} by {cell['by']:5} {cell['window']:>8}  {ratios}")
    return cell


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the races out as text: how many times faster than each peer, the closest first."""
    rows = [[c["agg"], c["by"], c["window"], c["throughput"] / 1e6, _ratios(c)] for c in cells]
    return columns(["agg", "by", "window", "M items/s", "times faster than"], rows)


def _ratios(cell: dict[str, Any]) -> str:
    return "  ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(cell["ratios"].items(), key=lambda item: item[1]))


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw a group of bars per race."""
    plots.bars(figure.subplots(), cells, lambda c: f"{c['agg']} by {c['by']}, {c['window']:,}", "slide() against its peers")
