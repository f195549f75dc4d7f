"""Races in one run: slide() against what users run today, results compared."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import time
from typing import Any, Final

import numpy as np

from sash import agg
from sash.agg.base import Aggregation
from sash.arrays import slide
from sash.bench import plots
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.machine import pinned, say, spread
from sash.bench.peers import PEERS, QUANTILE, TOP, Contender, Data, Race
from sash.bench.tables import columns

__all__ = ["findings", "measure", "plot", "run_race", "table"]

_NUMBERS: Final = ("sum", "mean", "min", "max", "std")
_AGGS: Final = {
    "slide": _NUMBERS,
    "median": ("median",),
    "quantile": ("quantile",),
    "distinct": ("distinct",),
    "top-k": ("top_k",),
    "udf": ("udf",),
    "key": ("sum", "max"),
}
_PATIENCE: Final = 1.0  # seconds for the repeats of one contender


def _races(name: str, options: argparse.Namespace) -> list[Race]:
    n = options.size or (1_000_000 if options.quick else 5_000_000)
    windows: tuple[int, ...] = (100, 10_000) if options.quick else (10, 100, 10_000, 1_000_000)
    if options.window:
        windows = (options.window,)
    windows = tuple(window for window in windows if window <= n)
    if name == "key":
        keys = (options.keys,) if options.keys else (100, 10_000) if options.quick else (1, 100, 10_000)
        windows = (options.window,) if options.window else (100,)
        return [Race(name, a, by, w, n, k) for a in _AGGS[name] for by in ("count", "time") for w in windows for k in keys]
    if name == "top-k":  # its results are lists
        n = min(n, 300_000)
    return [Race(name, a, by, w, n) for a in _AGGS[name] for by in ("count", "time") for w in windows]


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the races that the options select."""
    asked = {field: getattr(options, field) for field in ("agg", "by") if getattr(options, field, None) is not None}
    races = [race for race in _races(name, options) if all(getattr(race, field) == value for field, value in asked.items())]
    if not races:
        known = ", ".join(_AGGS[name])
        raise ValueError(f"{name} has no race with {asked}. It races {known}, by count and by time, windows up to its size.")
    return [_told(run_race(race, options.repeats or 3)) for race in races]


def aggregation_of(name: str) -> Aggregation:
    """Make the aggregation of a race."""
    if name == "quantile":
        return agg.quantile(QUANTILE)
    if name == "top_k":
        return agg.top_k(TOP)
    if name == "udf":
        return _spread()
    made: Aggregation = getattr(agg, name)()
    return made


@functools.cache
def _spread() -> Aggregation:
    return agg.define(
        lift=lambda x: (x, x),
        combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        lower=lambda p: p[1] - p[0],
        identity=(float("inf"), float("-inf")),
        name="bench.spread",
        dtype="float64",
        commutative=True,
        compiled=True,
    )


def data_of(race: Race) -> Data:
    """Make the columns of a race: normal values; whole numbers below 1,000 where values must repeat."""
    random = np.random.default_rng(1)
    values = random.integers(0, 1000, race.size) if race.agg == "distinct" else random.normal(size=race.size)
    return Data(values, np.arange(race.size, dtype=np.int64), random.integers(0, race.keys, race.size))


def run_race(race: Race, repeats: int = 3) -> dict[str, Any]:
    """Time slide() and every peer that is installed; ratios are ours to theirs, above 1 where we are faster."""
    data = data_of(race)
    ours = _ours(race, data)
    rates, expected = {}, ours.run()
    # Keys run on every core, here and in the peers that can; all else on one.
    with contextlib.nullcontext() if race.experiment == "key" else pinned():
        rates["sash"] = _rates(race, "sash", ours, expected, repeats)
        for name, (package, peer) in PEERS.items():
            contender = peer(race, data) if importlib.util.find_spec(package) else None
            if contender is not None:
                rates[name] = _rates(race, name, contender, expected, repeats)
    mine = rates["sash"]
    others = {name: theirs for name, theirs in rates.items() if name != "sash"}
    cell = {
        **dataclasses.asdict(race),
        "throughput": mine["median"],
        "rates": rates,
        "ratios": {name: mine["median"] / theirs["median"] for name, theirs in others.items()},
        "ratio_spread": {n: [mine["least"] / theirs["greatest"], mine["greatest"] / theirs["least"]] for n, theirs in others.items()},
    }
    if race.agg in ("sum", "mean", "std"):
        cell["errors"] = _errors(race, list(rates))
    return cell


def _ours(race: Race, data: Data) -> Contender:
    arguments: dict[str, Any] = {"size": race.window} if race.by == "count" else {"times": data.times, "period": race.window}
    if race.experiment == "key":
        arguments["by"] = data.keys
    aggregation = aggregation_of(race.agg)
    return Contender(lambda: slide(data.values, agg=aggregation, **arguments), race.size)


def _rates(race: Race, name: str, contender: Contender, expected: Any, repeats: int) -> dict[str, float]:
    """Time a contender, whose first result must be ours; what is slow is repeated less."""
    start = time.perf_counter()
    found = contender.run()
    took = time.perf_counter() - start
    if len(found) != contender.items or not _same(found[contender.first :], expected[contender.first : contender.items]):
        raise AssertionError(f"{name} and sash disagree on {race}.")
    seconds = []
    for _ in range(repeats if took < _PATIENCE / repeats else 1):
        start = time.perf_counter()
        contender.run()
        seconds.append(time.perf_counter() - start)
    return spread([(contender.items - contender.first) / s for s in seconds])


def _same(found: Any, expected: Any) -> bool:
    if expected.dtype == object:  # lists
        step = max(1, len(expected) // 1009)
        return all(list(x) == list(y) for x, y in zip(found[::step], expected[::step], strict=True))
    if np.ma.isMaskedArray(found):
        found = found.filled(np.nan)
    return np.allclose(np.asarray(found, dtype=float), np.asarray(expected, dtype=float), rtol=1e-6, atol=1e-6, equal_nan=True)


def _errors(race: Race, names: list[str]) -> dict[str, float]:
    """Give each contender's largest error on windows that a spike of 1e12 has left: those that subtract keep some of it.

    Relative to the largest right result; infinite where a result is missing.
    """
    n, w = 20_000, min(race.window, 1000)
    small = dataclasses.replace(race, size=n, window=w, keys=1)
    data = data_of(small)
    data.values[n // 4] = 1e12
    after = n // 4 + w
    windows = np.lib.stride_tricks.sliding_window_view(data.values, w)[after - w + 1 :]
    right = windows.std(axis=1, ddof=1) if race.agg == "std" else getattr(windows, race.agg)(axis=1)
    out = {}
    for name in names:
        contender = _ours(small, data) if name == "sash" else PEERS[name][1](small, data)
        if contender is not None:
            wrong = np.abs(np.asarray(contender.run(), dtype=float)[after:] - right) / np.abs(right).max()
            out[name] = float(np.nan_to_num(wrong, nan=np.inf).max())
    return out


def _label(cell: dict[str, Any]) -> str:
    keys = f", {cell['keys']:,} keys" if cell["experiment"] == "key" else ""
    return f"{cell['agg']} by {cell['by']}, {cell['window']:,}{keys}"


def _told(cell: dict[str, Any]) -> dict[str, Any]:
    say(f"{cell['experiment']:9} {_label(cell):32} {cell['throughput'] / 1e6:8.1f} M items/s   {_ratios(cell)}")
    return cell


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the races out as text: how many times faster than each peer, the closest first."""
    return columns(["race", "M items/s", "times faster than"], [[_label(c), c["throughput"] / 1e6, _ratios(c)] for c in cells])


def _ratios(cell: dict[str, Any]) -> str:
    return "  ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(cell["ratios"].items(), key=lambda item: item[1]))


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw a row per race, a mark per peer."""
    plots.ratios(figure, cells, _label, f"{name}: {EXPERIMENTS[name].help}")


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check that no peer is faster where windows have 100 items or more; of those that subtract, say so."""
    long = [(c, peer, ratio) for c in cells if c["window"] >= 100 for peer, ratio in c["ratios"].items()]
    out = []
    for drifts, which in ((False, "the fastest peer"), (True, "peers that subtract")):
        raced = [(c, peer, ratio) for c, peer, ratio in long if _drifts(c, peer) == drifts]
        if not raced:
            continue
        c, peer, least = min(raced, key=lambda found: found[2])
        claim = f"{name}: at least as fast as {which}, windows of 100 items and more"
        if least >= 1:
            out.append(Finding(claim, True, f"closest: {least:.2f} times {peer} ({_label(c)})"))
            continue
        lost = [f"{_label(c)}: {ratio:.2f} times {peer}" for c, peer, ratio in raced if ratio < 1]
        figures, cause = f"{len(lost)} of {len(raced)}: " + "; ".join(lost), ""
        if drifts:
            wrong = {peer: max(c["errors"][peer] for c, p, _ in raced if p == peer) for _, peer, _ in raced}
            errors = ", ".join(f"{peer} {_error(most)}" for peer, most in wrong.items())
            cause = (
                "Subtracting what leaves is a combine cheaper than two stacks, and wrong for good after one large item. Largest relative "
                f"error after a spike of 1e12 has left the window: {errors}, slide() {_error(_ours_off(raced))}."
            )
        out.append(Finding(claim, False, figures, cause))
    return out


def _drifts(cell: dict[str, Any], peer: str) -> bool:
    """Tell whether a peer's results stay wrong once a large item has left, as running sums that subtract do."""
    errors = cell.get("errors", {})
    return bool(errors.get(peer, 0.0) > 1e-9)


def _ours_off(raced: list[tuple[dict[str, Any], str, float]]) -> float:
    return max(float(c["errors"]["sash"]) for c, _, _ in raced)


def _error(value: float) -> str:
    return "NaN" if np.isinf(value) else f"{value:.1g}"
