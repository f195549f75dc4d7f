"""`sash bench`: one command per claim."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from sash.bench.experiments import EXPERIMENTS, OPTIONS, module_of, refuse_stray
from sash.bench.machine import facts

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the experiments and the options they share."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "experiments:\n" + "\n".join(f"  {name:14}{e.help}" for name, e in EXPERIMENTS.items())
    parser.epilog += f"\n  {'report':14}all of them on one page, losses first"
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "report"], metavar="experiment", help="one of those listed below")
    for name, option in OPTIONS.items():
        parser.add_argument("--" + name.replace("_", "-"), **option)
    parser.add_argument("--repeats", type=int, metavar="K", help="repeats; the median counts (default: 3)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="fewer cells and rounds")
    length.add_argument("--full", action="store_true", help="all of them; as a report, more than an hour")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON; - for standard output, which then holds nothing else")
    parser.add_argument("--out", type=Path, default=Path("docs"), metavar="FOLDER", help="of the report's page (default: docs)")
    parser.add_argument("--only", metavar="NAMES", help="of the report: these experiments, separated by commas")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure as PNG")


def run(args: argparse.Namespace) -> int:
    """Measure, then print a table, JSON, or a plot."""
    try:
        if args.experiment == "report":
            return _report(args)
        refuse_stray(args.experiment, args)
        module = module_of(args.experiment)
        cells = module.measure(args.experiment, args)
    except (ValueError, AssertionError, ImportError) as error:
        print(f"sash bench: {error}", file=sys.stderr)
        return 1
    if args.json:
        written = json.dumps(document(args.experiment, cells), indent=1)
        if args.json == "-":
            print(written)
        else:
            Path(args.json).write_text(written)
    if args.plot:
        from sash.bench.plots import draw

        draw(args.experiment, cells, args.plot)
    if args.json != "-":
        print(module.table(args.experiment, cells))
    return 0


def _report(args: argparse.Namespace) -> int:
    from sash.bench.report import report

    stray = [name for name in (*OPTIONS, "repeats", "json", "plot") if getattr(args, name) is not None]
    if stray:
        raise ValueError(f"report takes no --{stray[0].replace('_', '-')}. It takes --quick or --full, --out and --only.")
    sections = report(args.out, args.full, args.only.split(",") if args.only else None)
    print(args.out / "benchmarks.md")
    return int(any(section.error for section in sections))


def document(experiment: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Make a run's JSON: one cell stands by itself, a figure lists its cells."""
    content: dict[str, Any] = cells[0] if len(cells) == 1 else {"cells": cells}
    return {"experiment": experiment, **content, "machine": facts()}
