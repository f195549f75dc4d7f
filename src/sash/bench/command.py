"""`sash bench`: one command per claim."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from sash.bench.cells import Cell, measure
from sash.bench.figures import FIGURES
from sash.bench.machine import facts, say
from sash.bench.races import run_race, slide_races

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the experiments and the options they share."""
    listed = "; ".join(f"{name}: {what}" for name, (what, _) in FIGURES.items())
    parser.add_argument("experiment", choices=[*FIGURES, "slide"], help=listed)
    parser.add_argument("--algorithm", metavar="NAME", help="one cell instead of the figure: a class name in snake_case, e.g. daba_lite")
    parser.add_argument("--agg", default="sum", help="sum, sum_int, max or geomean (default: sum)")
    parser.add_argument("--size", type=int, metavar="N", help="entries in the window; for slide, items in the array")
    parser.add_argument("--distance", type=int, default=0, metavar="D", help="how many places late an insert is (default: 0)")
    parser.add_argument(
        "--delays", choices=["fixed", "scattered"], default="fixed", help="every insert at the distance, or at random up to it"
    )
    parser.add_argument("--bulk", type=int, default=1, metavar="M", help="items per bulk (default: 1)")
    parser.add_argument("--min-arity", type=int, default=0, metavar="A", help="of fiba and b_tree: 2, 4, 8 or 16")
    parser.add_argument("--rounds", type=int, metavar="R", help="rounds per repeat")
    parser.add_argument("--repeats", type=int, default=3, metavar="K", help="repeats; the median counts (default: 3)")
    parser.add_argument("--quick", action="store_true", help="fewer cells and rounds")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON; - for standard output, which then holds nothing else")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure as PNG")


def run(args: argparse.Namespace) -> int:
    """Measure, then print a table, JSON, or a plot."""
    try:
        results = _races(args) if args.experiment == "slide" else [_told(cell) for cell in _cells(args)]
    except (ValueError, AssertionError) as error:
        print(f"sash bench: {error}", file=sys.stderr)
        return 1
    single = args.algorithm is not None and args.experiment != "slide"
    document: Any = {**(results[0] if single else {"experiment": args.experiment, "cells": results}), "machine": facts()}
    if args.json == "-":
        json.dump(document, sys.stdout, indent=1)
        print()
        return 0
    if args.json:
        Path(args.json).write_text(json.dumps(document, indent=1))
    if args.plot:
        from sash.bench.plots import plot

        plot(args.experiment, results, args.plot)
    print(table(args.experiment, results))
    return 0


def _cells(args: argparse.Namespace) -> list[Cell]:
    if args.algorithm is None:
        return FIGURES[args.experiment][1](args.quick)
    given = {"size": args.size, "rounds": args.rounds}
    return [
        Cell(
            args.experiment,
            args.algorithm,
            args.agg,
            distance=args.distance,
            bulk=args.bulk,
            repeats=args.repeats,
            delays=args.delays,
            min_arity=args.min_arity,
            **{name: value for name, value in given.items() if value is not None},
        )
    ]


def _told(cell: Cell) -> dict[str, Any]:
    result = measure(cell)
    shown = result.get("throughput")
    rate = f"{shown / 1e6:8.1f} M items/s" if shown else f"{result['ticks']['p50']:8.0f} cycles"
    setting = f"n={cell.size:<8} d={cell.distance:<8} {cell.delays:9} m={cell.bulk:<6}"
    say(f"{cell.experiment:10} {cell.algorithm:18} {cell.agg:8} {setting} {rate}")
    return result


def _races(args: argparse.Namespace) -> list[dict[str, Any]]:
    out = []
    for race in slide_races(args.quick, args.size):
        out.append(run_race(race, args.repeats))
        ratios = "  ".join(f"{name} x{ratio:.2f}" for name, ratio in out[-1]["ratios"].items())
        say(f"slide {race.agg:5} by {race.by:5} {race.window:>8}  {ratios}")
    return out


def table(experiment: str, results: list[dict[str, Any]]) -> str:
    """Lay results out as text, one line per cell."""
    if experiment == "slide":
        head = f"{'agg':6}{'by':7}{'window':>9}{'M items/s':>11}  times faster than"
        return "\n".join([head, *(_race_line(r) for r in results)])
    named = [field.name for field in dataclasses.fields(Cell) if field.name not in ("experiment", "repeats")]
    varied = [name for name in named if len({r[name] for r in results}) > 1 or name == "algorithm"]
    lines = ["".join(f"{name:>19}" for name in varied) + f"{'M items/s':>12}{'least':>9}{'greatest':>9}{'combines':>10}"]
    if experiment == "latency":
        lines = [
            "".join(f"{name:>19}" for name in varied)
            + "".join(f"{name:>10}" for name in ("p50", "p99", "p99.9", "p99.999", "max"))
            + "   cycles"
        ]
    for r in results:
        start = "".join(f"{r[name]:>19}" for name in varied)
        if experiment == "latency":
            lines.append(start + "".join(f"{value:>10.0f}" for value in r["ticks"].values()))
            continue
        rates = r["spread"]
        numbers = (
            f"{rates['median'] / 1e6:>12.1f}{rates['least'] / 1e6:>9.1f}{rates['greatest'] / 1e6:>9.1f}{r['combines_per_item']:>10.2f}"
        )
        lines.append(start + numbers)
    return "\n".join(lines)


def _race_line(r: dict[str, Any]) -> str:
    ratios = "  ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(r["ratios"].items(), key=lambda item: item[1]))
    return f"{r['agg']:6}{r['by']:7}{r['window']:>9}{r['throughput'] / 1e6:>11.1f}  {ratios}"
