"""Windows of other shapes: two of one stream, asked now and then, evicted in bulk without the free list."""

from __future__ import annotations

import argparse
from typing import Any, Final

from sash import _bench
from sash.bench import plots
from sash.bench.cells import latencies
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.machine import pinned, say, spread
from sash.bench.tables import columns, rate
from sash.swag.algorithms import contenders

__all__ = ["findings", "measure", "plot", "table"]

_FORMS: Final = {"sharing": ("range", "twin"), "coarse": ("plain", "slices", "buckets"), "freelist": ("deferred", "eager")}
Cells = list[dict[str, Any]]


def measure(name: str, options: argparse.Namespace) -> Cells:
    """Measure one experiment's cells."""
    if options.form and options.form not in _FORMS[name]:
        raise ValueError(f"{name} has no form {options.form}. Its forms are {', '.join(_FORMS[name])}.")
    forms = (options.form,) if options.form else _FORMS[name]
    return {"sharing": _sharing, "coarse": _coarse, "freelist": _freelist}[name](options, forms)


def _timed(cell: dict[str, Any], run: Any, rounds: int, repeats: int | None) -> dict[str, Any]:
    with pinned():
        runs = [run(rounds, "throughput") for _ in range(repeats or 3)]
    least, most = min(r["smallest"] for r in runs), max(r["largest"] for r in runs)
    if not least == most == cell["size"]:
        raise AssertionError(f"the window held {least} to {most} entries, not the {cell['size']} that the experiment claims.")
    rates = spread([r["items"] / r["seconds"] for r in runs])
    shown = " ".join(str(cell[field]) for field in ("algorithm", "form", "window") if field in cell)
    say(f"{cell['experiment']:9} {shown:40} {rates['median'] / 1e6:8.2f} M items/s")
    return {**cell, "window_size": most, "throughput": rates["median"], "spread": rates}


def _agreed(cells: Cells, field: str) -> Cells:
    """Check that the contenders of one setting gave the same results."""
    for value in {cell[field] for cell in cells}:
        found = {cell["algorithm"] + " " + cell["form"]: cell["check"] for cell in cells if cell[field] == value}
        if len(set(found.values())) != 1:
            raise AssertionError(f"contenders disagree at {field} {value}: {found}.")
    return cells


def _sharing(options: argparse.Namespace, forms: tuple[str, ...]) -> Cells:
    size = options.size or (1 << 20 if options.quick else 1 << 22)
    rounds = options.rounds or (200_000 if options.quick else 2_000_000)
    smalls = [options.window] if options.window else [s for s in (1, 16, 1 << 10, 1 << 16, 1 << 20, 1 << 22) if s <= size]
    out = []
    for algorithm in [options.algorithm] if options.algorithm else contenders("ooo"):
        for small in smalls:
            for form in forms:

                def run(count: int, mode: str, a: str = algorithm, s: int = small, shared: bool = form == "range") -> Any:
                    return _bench.sharing(a, size, s, count, shared, mode)

                cell = {"experiment": "sharing", "algorithm": algorithm, "form": form, "size": size, "window": small, "rounds": rounds}
                cell["check"] = run(2000, "watch")["results"]
                out.append(_timed(cell, run, rounds, options.repeats))
    return _agreed(out, "window")


def _coarse(options: argparse.Namespace, forms: tuple[str, ...]) -> Cells:
    size = options.size or 1 << 13
    items = options.rounds or (2_000_000 if options.quick else 20_000_000)
    grains = [options.window] if options.window else [g for g in (1, 4, 16, 64, 256, 1024) if g <= size]
    out = []
    for algorithm in [options.algorithm] if options.algorithm else [*contenders("coarse"), "buckets"]:
        for grain in grains:
            for form in forms:
                if (form == "buckets") != (algorithm == "buckets"):
                    continue
                # An accumulator per window takes size / grain combines per item.
                count = items if form != "buckets" else max(10 * grain, items * grain // size)

                def run(asks: int, mode: str, a: str = algorithm, g: int = grain, coarse: bool = form == "slices") -> Any:
                    return _bench.coarse(a, size, g, asks, coarse, mode)

                cell = {"experiment": "coarse", "algorithm": algorithm, "form": form, "size": size, "window": grain, "rounds": count}
                cell["check"] = run(20, "watch")["results"]
                out.append(_timed(cell, run, max(1, count // grain), options.repeats))
    if not out:
        raise ValueError("buckets has no form but its own; use --algorithm buckets without --form.")
    return _agreed(out, "window")


def _freelist(options: argparse.Namespace, forms: tuple[str, ...]) -> Cells:
    size, bulk = options.size or 1 << 22, options.bulk or 4096
    rounds = options.rounds or (2_000 if options.quick else 20_000)
    if bulk > size:
        raise ValueError(f"a bulk of {bulk} would empty the window of {size}. Use a larger size.")
    out = []
    for arity in [options.min_arity] if options.min_arity else [4, 8]:
        for form in forms:
            with pinned():
                run = _bench.freelist(size, bulk, rounds, arity, form == "deferred")
            if not run["smallest"] == run["largest"] == size:
                raise AssertionError(f"the window held {run['smallest']} to {run['largest']} entries, not {size}.")
            cell: dict[str, Any] = {
                "experiment": "freelist",
                "algorithm": f"fiba {arity}",
                "min_arity": arity,
                "form": form,
                "size": size,
                "bulk": bulk,
            }
            rates = spread([run["items"] / run["seconds"]])
            cell |= {"rounds": rounds, "window_size": size, "throughput": rates["median"], "spread": rates, **latencies([run["ticks"]])}
            say(f"freelist  {cell['algorithm']:8} {form:9} p50 {cell['ns']['p50']:9.0f} ns  p99.9 {cell['ns']['p99.9']:9.0f} ns")
            out.append(cell)
    return out


def table(name: str, cells: Cells) -> str:
    """Lay the cells out as text, one line each."""
    if name == "freelist":
        return "ns per bulk eviction\n" + columns(
            ["algorithm", "free list", "m", *cells[0]["ns"]], [[c["algorithm"], c["form"], c["bulk"], *c["ns"].values()] for c in cells]
        )
    varied = "small window" if name == "sharing" else "asked every"
    head = ["algorithm", "form", varied, "M items/s", "least", "greatest"]
    return columns(head, [[c["algorithm"], c["form"], c["window"], *rate(c)] for c in cells])


def plot(name: str, cells: Cells, figure: Any) -> None:
    """Draw throughput by the small window or the grain; of the free list, the distribution of latencies."""
    axes = figure.subplots()
    axes.set_title(f"{name}: {EXPERIMENTS[name].help}", fontsize=11)
    if name == "freelist":
        plots.violins(axes, cells, lambda c: f"{c['algorithm']}, {c['form']}")
        axes.set(ylabel=f"ns per eviction of {cells[0]['bulk']:,} (brown: p50, black: p99.9)")
        return
    plots.lines(
        axes, cells, "window", "throughput", lambda c: c["algorithm"] if c["form"] == "buckets" else f"{c['algorithm']}, {c['form']}"
    )
    axes.set(xlabel="small window" if name == "sharing" else "asked every g items", ylabel="million items per second")


def findings(name: str, cells: Cells) -> list[Finding]:
    """Check what the papers say of these shapes."""
    by = {(c["algorithm"], c["form"], c.get("window", 0)): c for c in cells}
    if name == "freelist":
        pairs = [
            (a, by[a, "eager", w]["ns"]["p50"] / c["ns"]["p50"])
            for (a, form, w), c in by.items()
            if form == "deferred"
            if (a, "eager", w) in by
        ]
        why = ", ".join(f"{a}: without it the median bulk eviction takes {r:.0f} times as long" for a, r in pairs)
        return (
            [Finding("freelist: the deferred free list is indispensable for bulk evictions", all(r > 2 for _, r in pairs), why)]
            if pairs
            else []
        )
    if name == "sharing":
        ratios = [
            c["throughput"] / by[a, "twin", w]["throughput"] for (a, form, w), c in by.items() if form == "range" and (a, "twin", w) in by
        ]
        claim = "sharing: one tree with range queries is in the same ballpark as two trees"
        figures = f"{min(ratios):.2f} to {max(ratios):.2f} times as fast"
        cause = (
            "A range closes the gap at BlockFiba's third finger, so the next late item has to be searched for; two trees keep theirs open."
        )
        return [Finding(claim, min(ratios) > 1 / 3, figures, cause)] if ratios else []
    out = []
    for algorithm in ("fiba", "block_fiba"):
        grains = sorted(w for a, form, w in by if (a, form) == (algorithm, "slices"))
        if len(grains) > 1 and (algorithm, "plain", grains[0]) in by:
            plain = [by[algorithm, "plain", g]["throughput"] for g in grains]
            sliced = [by[algorithm, "slices", g]["throughput"] for g in grains]
            why = f"plain {plain[0] / 1e6:.0f} to {plain[-1] / 1e6:.0f} M items/s, slices {sliced[0] / 1e6:.0f} to {sliced[-1] / 1e6:.0f}"
            claim = f"coarse: slices make {algorithm} faster as windows get coarser, and no slower than plain from 4 items on"
            held = sliced[-1] > sliced[0] and all(s > p for s, p in zip(sliced[1:], plain[1:], strict=True))
            out.append(Finding(claim, held, why))
    return out
