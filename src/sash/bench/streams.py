"""Windows by time over streams: sensor readings in order, bicycle trips that end after later ones began.

`debs12` stands in for the DEBS 2012 recording, of which 170 s are public here: a generator at 100 Hz with gaps. `citibike`
replays trips by the time they ended, windows over the time they began; where the file is absent, made-up trips stand in.
"""

from __future__ import annotations

import argparse
import functools
import math
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from sash import _bench
from sash.bench import plots
from sash.bench.cells import latencies
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.machine import pinned, say, spread
from sash.bench.tables import columns, rate
from sash.swag.algorithms import contenders
from sash.time import duration

__all__ = ["findings", "measure", "plot", "table"]

Array = np.ndarray[Any, Any]
_TRIPS: Final = "citibike_jc_201806_202005.parquet"
_LATENCY: Final = "10m"  # the period whose rounds are timed one by one
_DAY: Final = "1d"  # the period whose shape is drawn


class Stream(NamedTuple):
    """Times and whole-number values in order of arrival, and where they are from."""

    times: Array
    values: Array
    source: str


@functools.cache
def readings(count: int) -> Stream:
    """Make sensor readings at about 100 Hz, with a pause of up to a minute every few minutes."""
    random = np.random.default_rng(12)
    steps = random.integers(9_000, 11_001, count)
    pauses = random.random(count) < 1 / 30_000
    steps[pauses] += random.integers(1_000_000, 60_000_000, int(pauses.sum()))
    values = 10_000 + np.cumsum(random.integers(-3, 4, count)) % 1000
    return Stream(np.cumsum(steps), values.astype(float), "made up: 100 Hz with gaps")


@functools.cache
def trips(folder: str | None, count: int | None) -> Stream:
    """Read bicycle trips in the order they ended, or make some up: most take minutes, a few days."""
    file = Path(folder or "../shared/data") / _TRIPS
    if file.exists():
        import polars as pl

        frame = pl.read_parquet(file, columns=["start_ts", "stop_ts", "duration_s"]).sort("stop_ts").head(count or 10**9)
        return Stream(frame["start_ts"].to_physical().to_numpy(), frame["duration_s"].to_numpy().astype(float), "Jersey City Citi Bike")
    if folder is not None:
        raise ValueError(f"{file} is not there.")
    random = np.random.default_rng(15)
    n = count or 750_000
    day = np.sort(random.uniform(0, max(3.0, n / 1000), n))
    day += 0.08 * np.sin(2 * math.pi * day)  # busier by day than by night
    took = np.where(random.random(n) < 0.001, random.uniform(3600, 200_000, n), random.lognormal(6, 0.8, n))
    began = np.sort((day * 86_400_000_000).astype(np.int64))
    order = np.argsort(began + (took * 1e6).astype(np.int64), kind="stable")
    return Stream(began[order], np.round(took)[order], "made up: the file is absent")


def _cells(name: str, options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """List (algorithm, aggregation, period)."""
    if name == "debs12":
        algorithms = contenders("latency", any_monoid=True)
        periods = ["10ms", "1s", "1m", "10m", "1h"] if options.quick else ["10ms", "100ms", "1s", "10s", "1m", "10m", "1h", "6h"]
        aggs = ["relvar"]
    else:
        algorithms = (*contenders("ooo"), "fiba_singly")
        periods = ["6h", "1d", "8d", "32d"] if options.quick else ["6h", "12h", "1d", "2d", "4d", "8d", "16d", "32d"]
        aggs = ["sum", "geomean"]
    algorithms = (options.algorithm,) if options.algorithm else algorithms
    periods = [options.period] if options.period else periods
    return [(algorithm, a, period) for a in ([options.agg] if options.agg else aggs) for period in periods for algorithm in algorithms]


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure the cells; what each window holds at every round is checked against a count without windows."""
    if name == "debs12":
        stream = readings(options.rounds or (1_000_000 if options.quick else 8_000_000))
    else:
        stream = trips(options.data, options.rounds)
    shapes: dict[str, dict[str, Any]] = {}
    reference: dict[str, float] = {}
    out = []
    for algorithm, aggregation, period in _cells(name, options):
        micros = duration(period)
        if period not in shapes:
            shapes[period] = _bench.shape(stream.times, micros)
        run = functools.partial(_bench.stream, algorithm, aggregation, stream.times, stream.values, micros, options.min_arity or 0)
        watched = run("watch")
        held = shapes[period]["n"][watched["started"] :]
        if watched["sizes"] != held.sum() or watched["largest"] != held.max():
            raise AssertionError(f"{algorithm} held {watched['sizes']} entries over all rounds of {period}, not {held.sum()}.")
        if reference.setdefault(period, watched["results"]) != watched["results"]:
            raise AssertionError(f"{algorithm} and the one before it disagree on windows of {period}.")
        with pinned():
            rates = spread([r["items"] / r["seconds"] for r in (run("throughput") for _ in range(options.repeats or 3))])
            single = latencies([run("latency")["ticks"]]) if name == "debs12" and period == _LATENCY else {}
        cell = {"experiment": name, "algorithm": algorithm, "agg": aggregation, "period": period, "micros": micros, "source": stream.source}
        cell |= {
            "rounds": watched["rounds"],
            "window_size": float(held.mean()),
            "combines_per_item": watched["combines"] / len(stream.times),
        }
        cell |= {"throughput": rates["median"], "spread": rates, **single, "shape": _summary(shapes[period], period == _DAY)}
        say(f"{name:9} {algorithm:16} {aggregation:8} {period:>6} {rates['median'] / 1e6:8.1f} M items/s")
        out.append(cell)
    return out


def _summary(shape: dict[str, Array], histograms: bool) -> dict[str, Any]:
    """Describe sizes n, evicted bulks m and distances d; the bins of histograms double in width."""
    out: dict[str, Any] = {}
    for name, found in shape.items():
        out[name] = {"mean": float(found.mean()), "p99": float(np.percentile(found, 99)), "max": int(found.max())}
        if histograms:
            edges = np.concatenate([[0], 2.0 ** np.arange(0, math.ceil(math.log2(max(found.max(), 1) + 1)) + 1)])
            if name == "n":
                edges = np.linspace(0, max(1, int(found.max())), 41)
            out[name]["histogram"] = {"edges": edges.tolist(), "counts": np.histogram(found, edges)[0].tolist()}
    return out


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the cells out as text, one line each, then the latencies."""
    head = ["algorithm", "agg", "period", "mean n", "M items/s", "least", "greatest", "combines"]
    rows = [[c["algorithm"], c["agg"], c["period"], c["window_size"], *rate(c), c["combines_per_item"]] for c in cells]
    text = f"data: {cells[0]['source']}\n" + columns(head, rows)
    single = [c for c in cells if "ns" in c]
    if single:
        text += f"\n\nns per round, windows of {_LATENCY}\n"
        text += columns(["algorithm", *single[0]["ns"]], [[c["algorithm"], *c["ns"].values()] for c in single])
    return text


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw throughput by period; beside it latencies, or the shape of the stream."""
    shown = [c for c in cells if c["agg"] == cells[0]["agg"]]
    figure.suptitle(f"{name}: {EXPERIMENTS[name].help}\ndata: {cells[0]['source']}", fontsize=11)
    day = next((c["shape"] for c in cells if "histogram" in c["shape"]["n"]), None)
    single = [c for c in cells if "ns" in c]
    figure.set_size_inches(12 if day or single else 9, 7.5 if day else 5)
    panels = figure.subplots(2, 2).flat if day else iter(figure.subplots(1, 2 if single else 1, squeeze=False).flat)
    axes = next(panels)
    plots.lines(axes, shown, "micros", "throughput", lambda c: c["algorithm"])
    ticks = dict(sorted({c["micros"]: c["period"] for c in shown}.items()))
    axes.set(xlabel="window", ylabel="million items per second", xticks=list(ticks))
    axes.set_xticklabels(ticks.values())
    axes.minorticks_off()
    if single:
        plots.violins(next(panels), single, lambda c: c["algorithm"])
    for key, text in (("n", "window sizes n"), ("m", "evicted at once m"), ("d", "distance d")) if day else ():
        assert day is not None
        axes = next(panels)
        edges, counts = day[key]["histogram"]["edges"], day[key]["histogram"]["counts"]
        axes.stairs(counts, edges, fill=True, alpha=0.6)
        axes.set(xlabel=f"{text}, windows of {_DAY}", ylabel="rounds", yscale="log")
        if key != "n":
            axes.set_xscale("symlog", linthresh=1)
            axes.set_xlim(left=0)


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check what the papers say of real streams."""
    by = {(c["algorithm"], c["agg"], c["period"]): c["throughput"] for c in cells}
    if name == "debs12":
        lite = [(p, by[a, "relvar", p] / by[b, "relvar", p], a) for a, b in (("two_stacks_lite", "two_stacks"), ("daba_lite", "daba"))
                for p in dict.fromkeys(c["period"] for c in cells) if {(a, "relvar", p), (b, "relvar", p)} <= set(by)]  # fmt: skip
        if not lite:
            return []
        least = min(lite, key=lambda found: found[1])
        why = f"from {least[1]:.2f} ({least[2]}, {least[0]}) to {max(r for _, r, _ in lite):.2f} times"
        return [Finding("debs12: the Lite forms are at least as fast as the full ones on sensor data", least[1] >= 0.95, why)]
    out = []
    leave = max(c["shape"]["m"]["mean"] for c in cells)
    few = f"A trip's arrival lets {leave:.1f} go at a time: to cut so few off costs what it costs to evict them one by one."
    for better, worse, claim, cause in (
        ("fiba", "b_tree", "FiBA is faster than a B-tree with aggregates on trips out of order", ""),
        ("fiba", "fiba_singly", "bulk eviction makes FiBA faster on real data", few),
    ):
        both = [(p, a, by[better, a, p] / by[worse, a, p]) for _, a, p in by if {(better, a, p), (worse, a, p)} <= set(by)]
        if both:
            least_, most = min(r for *_, r in both), max(r for *_, r in both)
            out.append(Finding(f"citibike: {claim}", least_ >= 1, f"{least_:.2f} to {most:.2f} times", cause))
    return out
