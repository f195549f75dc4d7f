"""The figures that an algorithm's loop in the core makes, named by what they vary."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any, Final

from sash.bench import plots
from sash.bench.cells import AMORTISED, Cell, measure_cell, sensible_rounds
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.machine import say
from sash.bench.tables import columns, rate, varied
from sash.swag.algorithms import contenders

__all__ = ["findings", "measure", "plot", "table"]

INVERSE: Final = ("plain_ring", "subtract_on_evict")
ANY_MONOID: Final = contenders("fifo", any_monoid=True)
IN_ORDER: Final = (*INVERSE, *ANY_MONOID)
ANY_ORDER: Final = contenders("ooo")
LATE_BULK: Final = ("fiba_singly", *contenders("bulk", in_order=False))
BULK: Final = (*contenders("bulk", in_order=True), *LATE_BULK)
SIZES: Final = (1 << 4, 1 << 10, 1 << 14, 1 << 18, 1 << 22)
LARGE: Final = 1 << 22


def _fifo(quick: bool) -> list[Cell]:
    sizes, rounds = (SIZES[::2], 2_000_000) if quick else (SIZES, 10_000_000)
    # A lap of an amortised algorithm is a whole turn of the window: the step of O(n) is in each.
    cells = [
        Cell("fifo", name, "sum", size, rounds=max(rounds, size) if name in AMORTISED else rounds) for name in IN_ORDER for size in sizes
    ]
    cells += [Cell("fifo", name, "max", 1 << 14, rounds=rounds) for name in (*ANY_MONOID, "monotonic_deque")]
    cells += [Cell("fifo", name, "geomean", 1 << 14, rounds=rounds // 4) for name in IN_ORDER]
    return cells + [Cell("fifo", name, "bloom", 1 << 14, rounds=rounds // 10) for name in ANY_MONOID]


def _dynamic(quick: bool) -> list[Cell]:
    sizes, rounds = ((1 << 10, 1 << 18), 2_000_000) if quick else (SIZES, 10_000_000)
    return [Cell("dynamic", name, "sum", size, rounds=rounds) for name in IN_ORDER if name != "plain_ring" for size in sizes]


def _latency(quick: bool) -> list[Cell]:
    rounds = 1_000_000 if quick else 10_000_000
    cells = [Cell("latency", name, "sum", 1 << 14, rounds=rounds, repeats=1) for name in contenders("latency")]
    if not quick:
        names = contenders("latency", any_monoid=True)
        cells += [Cell("latency", name, "bloom", 1 << 14, rounds=rounds // 10, repeats=1) for name in names]
    return cells + [Cell("latency", name, "sum", LARGE, d, rounds=rounds // 2, repeats=1) for name in ANY_ORDER for d in (0, 1 << 20)]


def _ooo(quick: bool) -> list[Cell]:
    rounds = 500_000 if quick else 2_000_000
    distances = (0, 16, 1 << 10, 1 << 20) if quick else (0, 1, 16, 1 << 8, 1 << 10, 1 << 14, 1 << 17, 1 << 20)
    trees = [(name, 0) for name in ANY_ORDER]
    trees.insert(1, ("fiba", 4))
    return [
        Cell("ooo", name, "sum", LARGE, d, rounds=rounds, delays=delays, min_arity=arity)
        for delays in ("fixed", "scattered")
        for name, arity in trees
        for d in distances[delays == "scattered" :]
    ]


def _bulk(kind: str) -> Callable[[bool], list[Cell]]:
    def cells(quick: bool) -> list[Cell]:
        bulks = (1, 16, 1 << 10, 1 << 16)
        items = 1 << (20 if quick else 23)
        out = [Cell(kind, name, "sum", LARGE, 0, m, max(4, items // m)) for name in BULK for m in bulks]
        if kind == "bulk":  # late ones, in bulks of 1,024 and one by one
            late = [(m, d) for m in (1 << 10, 1) for d in (1 << 10, 1 << 20)]
            out += [Cell(kind, name, "sum", LARGE, d, m, max(4, items // m)) for name in LATE_BULK for m, d in late]
        return out

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
        cell = Cell(name, **given)
        return [cell if "rounds" in given else dataclasses.replace(cell, rounds=sensible_rounds(cell))]
    how = {field: given.pop(field) for field in ("rounds", "repeats") if field in given}
    found = [cell for cell in figure if all(getattr(cell, field) == value for field, value in given.items())]
    if not found:
        asked = " ".join(f"--{field.replace('_', '-')} {value}" for field, value in given.items())
        raise ValueError(f"the figure {name} has no cell with {asked}. Name an --algorithm for a cell of your own.")
    return [dataclasses.replace(cell, **how) for cell in found]


def _told(cell: Cell) -> dict[str, Any]:
    result = measure_cell(cell)
    shown = result.get("throughput")
    speed = f"{shown / 1e6:8.1f} M items/s" if shown else f"{result['ns']['p50']:8.0f} ns"
    named = _algorithm(result)
    setting = f"n={cell.size:<8} d={cell.distance:<8} {cell.delays:9} m={cell.bulk:<6}"
    say(f"{cell.experiment:10} {named:18} {cell.agg:8} {setting} {speed}")
    return result


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the cells out as text, one line each."""
    known = ("experiment", "rounds", "repeats", "min_arity")
    settings = varied(cells, [field.name for field in dataclasses.fields(Cell) if field.name not in known])
    cells = [{**cell, "algorithm": _algorithm(cell)} for cell in cells]
    if name == "latency":
        head = [*settings, *(f"{name} ns" for name in cells[0]["ns"]), "combines"]
        return columns(head, [[*(c[s] for s in settings), *c["ns"].values(), c["combines_per_item"]] for c in cells])
    head = [*settings, "M items/s", "least", "greatest", "combines"]
    return columns(head, [[*(c[s] for s in settings), *rate(c), c["combines_per_item"]] for c in cells])


def _algorithm(cell: dict[str, Any]) -> str:
    return f"{cell['algorithm']} {cell['min_arity'] or ''}".rstrip()


def _late(cell: dict[str, Any]) -> str:
    return f"{cell['algorithm']}\nd = {cell['distance']:,}"


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw throughput by what the figure varies, a line per algorithm; of latencies, the distribution."""
    figure.suptitle(f"{name}: {EXPERIMENTS[name].help}", fontsize=11)
    if name == "latency":
        figure.set_size_inches(13, 5.5)
        small = [c for c in cells if c["size"] == cells[0]["size"] and c["agg"] == cells[0]["agg"]]
        large = [c for c in cells if c["size"] != cells[0]["size"]]
        panels = figure.subplots(1, 2 if large else 1, squeeze=False).flat
        for axes, some in zip(panels, [small, large] if large else [small], strict=True):
            plots.violins(axes, some, _late if some is large else _algorithm)
            axes.set(title=f"{some[0]['agg']}, n = {some[0]['size']:,}")
        return
    x, label = _AXES[name]
    shown = [cell for cell in cells if cell["agg"] == cells[0]["agg"]]
    late = name == "bulk" and any(cell["distance"] for cell in shown)
    others = [cell for cell in cells if name == "fifo" and cell not in shown]
    panels = figure.subplots(1, 2 if late or others else 1, squeeze=False).flat
    axes = next(panels)
    sums = [cell for cell in shown if x == "distance" or cell["distance"] == 0]
    plots.lines(axes, sums, x, "throughput", lambda c: _algorithm(c) + (", scattered" if c["delays"] != "fixed" else ""))
    axes.set(xlabel=label, ylabel="million items per second")
    if others:
        figure.set_size_inches(13, 6)
        axes.set(title=cells[0]["agg"])
        axes = next(panels)
        for aggregation, mark in zip(dict.fromkeys(cell["agg"] for cell in others), "osDv^", strict=False):
            some = [cell for cell in others if cell["agg"] == aggregation]
            axes.plot([c["throughput"] / 1e6 for c in some], [c["algorithm"] for c in some], mark, label=aggregation)
        axes.invert_yaxis()
        axes.set(title=f"others, n = {others[0]['size']:,}", xscale="log", xlabel="million items per second")
        axes.legend(fontsize=8)
    if late:
        figure.set_size_inches(13, 6)
        axes.set(title="in order")
        axes = next(panels)
        some = [cell for cell in shown if cell["algorithm"] in LATE_BULK and cell["bulk"] in (1, 1 << 10)]
        plots.lines(axes, some, "distance", "throughput", lambda c: f"{c['algorithm']}, m = {c['bulk']:,}")
        axes.set(title="late", xlabel="distance d")


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check what the papers say of each figure."""
    return _CLAIMS[name](cells) if name in _CLAIMS else []


def _pick(cells: list[dict[str, Any]], **setting: Any) -> dict[str, dict[str, Any]]:
    return {c["algorithm"]: c for c in cells if all(c[field] == value for field, value in setting.items())}


def _fastest(cells: list[dict[str, Any]]) -> list[Finding]:
    out = []
    for aggregation, size in dict.fromkeys((c["agg"], c["size"]) for c in cells):
        any_monoid = ("plain_ring", "subtract_on_evict", "monotonic_deque")  # these need an inverse, or an order
        by = {a: c["throughput"] / 1e6 for a, c in _pick(cells, agg=aggregation, size=size).items() if a not in any_monoid}
        if "two_stacks_lite" not in by or len(by) < 3:
            continue
        best = max(by, key=lambda a: by[a])
        why = f"two_stacks_lite {by['two_stacks_lite']:.1f} M rounds/s" + (f", {best} {by[best]:.1f}" if best != "two_stacks_lite" else "")
        claim = f"fifo: TwoStacksLite is the fastest on average ({aggregation}, n = {size:,})"
        cause = "Partials of 512 bytes fill 8 MiB: memory decides, not combines, and the two change places from run to run."
        out.append(Finding(claim, best == "two_stacks_lite", why, cause if aggregation == "bloom" else ""))
    sizes = sorted({c["size"] for c in cells if c["agg"] == "sum"})
    for algorithm in ("fiba", "block_fiba"):
        rates = [c["throughput"] / 1e6 for size in sizes if (c := _pick(cells, agg="sum", size=size).get(algorithm))]
        if len(rates) > 1:
            why = f"{max(rates):.1f} to {min(rates):.1f} M rounds/s from n = {sizes[0]:,} to {sizes[-1]:,}"
            out.append(Finding(f"fifo: {algorithm} is flat in n", max(rates) < 2 * min(rates), why))
    return out


def _flattest(cells: list[dict[str, Any]]) -> list[Finding]:
    by = {a: c["ns"] for a, c in _pick(cells, agg="sum", distance=0, size=1 << 14).items()}
    worst = [a for a in ("two_stacks", "two_stacks_lite", "flat_fit") if a in by]
    if "daba_lite" not in by or not worst:
        return []
    # The step of O(n) comes once in 16,384 rounds, 6 in 100,000: the last 5 show it. The very last ones are interrupts of the machine's.
    tail = {a: by[a]["p99.995"] for a in ("daba_lite", *worst)}
    figures = "p99.995 in ns: " + ", ".join(f"{a} {ns:,.0f}" for a, ns in tail.items())
    claim = "latency: DabaLite is the flattest in the tail, next to algorithms with an O(n) step"
    return [Finding(claim, min(tail, key=lambda a: tail[a]) == "daba_lite", figures)]


def _logarithmic(cells: list[dict[str, Any]]) -> list[Finding]:
    out = []
    for algorithm, delays in dict.fromkeys((_algorithm(c), c["delays"]) for c in cells if c["algorithm"] != "b_tree"):
        chosen = sorted((c for c in cells if (_algorithm(c), c["delays"]) == (algorithm, delays)), key=lambda c: c["distance"])
        if len(chosen) < 3:
            continue
        counts = {c["distance"]: c["combines_per_item"] for c in chosen}
        # From d to d squared, logarithmic work doubles; nodes filled at random places are fuller than those filled in order.
        low, high = counts.get(1 << 10), counts.get(1 << 20)
        if low and high:
            shown = [c for c in chosen if c in (chosen[0], chosen[-1]) or c["distance"] == 1 << 10]
            steps = (
                f"{c['combines_per_item']:.1f} combines, {c['throughput'] / 1e6:.1f} M rounds/s at d = {c['distance']:,}" for c in shown
            )
            why = "; ".join(steps)
            out.append(Finding(f"ooo: {algorithm} is logarithmic in d ({delays} delays)", high <= 2.5 * low, why))
    return out


def _bulk_logarithmic(cells: list[dict[str, Any]]) -> list[Finding]:
    out = []
    for algorithm in ("fiba", "block_fiba"):
        by = {c["bulk"]: c["evict"] for c in cells if c["algorithm"] == algorithm and c["distance"] == 0 and "evict" in c}
        if {16, 1 << 10, 1 << 16} <= set(by):
            told = (f"{by[m]['combines']:.0f} combines, {by[m]['ns']['p50']:,.0f} ns for m = {m:,}" for m in (16, 1 << 10, 1 << 16))
            # 2^16 is (2^10) ** 1.6, so logarithmic work grows 1.6 times at most.
            held = by[1 << 16]["combines"] <= 1.6 * by[1 << 10]["combines"]
            out.append(Finding(f"bulk-evict: {algorithm} evicts m in O(log m)", held, f"mean and median eviction: {'; '.join(told)}"))
    return out


def _bulk_helps(cells: list[dict[str, Any]]) -> list[Finding]:
    by = {(c["algorithm"], c["bulk"], c["distance"]): c["throughput"] for c in cells}
    pairs = [
        (d, by["fiba", 1 << 10, d] / by["fiba_singly", 1 << 10, d]) for d in (0, 1 << 10, 1 << 20) if ("fiba_singly", 1 << 10, d) in by
    ]
    if not pairs:
        return []
    why = ", ".join(f"d = {d:,}: {ratio:.1f} times" for d, ratio in pairs)
    return [Finding("bulk: FiBA's bulk operations beat loops over single ones (m = 1,024)", all(ratio > 1 for _, ratio in pairs), why)]


_CLAIMS: Final[dict[str, Callable[[list[dict[str, Any]]], list[Finding]]]] = {
    "fifo": _fastest,
    "latency": _flattest,
    "ooo": _logarithmic,
    "bulk-evict": _bulk_logarithmic,
    "bulk": _bulk_helps,
}
