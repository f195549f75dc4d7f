"""`sash bench report`: every experiment on one page, losses first."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any, Final

from sash.bench.experiments import EXPERIMENTS, OPTIONS, Finding, module_of
from sash.bench.headlines import update
from sash.bench.machine import facts, say
from sash.bench.plots import draw

__all__ = ["report"]

# What --quick leaves out of the experiments that take minutes; None leaves all of it out.
_SHORTER: Final[dict[str, dict[str, Any] | None]] = {
    "spark-windows": {"keys": 100, "ratio": 600},
    "spark-batch": {"ratio": 60, "repeats": 1},
    "spark-rolling": {"repeats": 1, "size": 200_000},
    "spark-live": {"keys": 500, "rows": 1_000},
    "spark-ooo": None,
    "spark-bulk": None,
    "spark-latency": None,
    "spark-keys": None,
}
_UNSTEADY: Final = 1.5  # the greatest of a cell's repeats to the least: above this, its median says little


@dataclasses.dataclass
class Section:
    """What one experiment gave, or why it gave nothing."""

    name: str
    seconds: float
    cells: list[dict[str, Any]]
    findings: list[Finding]
    table: str
    error: str = ""


def report(folder: Path, full: bool, only: list[str] | None = None) -> list[Section]:
    """Run the experiments and write benchmarks.md, and benchmarks/ with a PNG and a JSON file for each, to a folder.

    The README above that folder gets its figures and its picture from the page.
    """
    unknown = set(only or ()) - set(EXPERIMENTS)
    if unknown:
        raise ValueError(f"there is no experiment {', '.join(sorted(unknown))}. There are {', '.join(EXPERIMENTS)}.")
    figures = folder / "benchmarks"
    figures.mkdir(parents=True, exist_ok=True)
    chosen = [name for name in EXPERIMENTS if name in (only or EXPERIMENTS)]
    left_out = [name for name in chosen if not full and not only and _SHORTER.get(name, {}) is None]
    sections = [_section(name, figures, full) for name in chosen if name not in left_out]
    (folder / "benchmarks.md").write_text(page(sections, full, left_out))
    update(folder)
    told = [dataclasses.asdict(section) | {"cells": len(section.cells)} for section in sections]
    (figures / "report.json").write_text(json.dumps({"machine": facts(), "full": full, "sections": told}, indent=1))
    return sections


def _section(name: str, folder: Path, full: bool) -> Section:
    start = time.perf_counter()
    try:
        module = module_of(name)
        given = dict.fromkeys([*OPTIONS, "repeats"]) | ({} if full else _SHORTER.get(name) or {})
        cells = module.measure(name, argparse.Namespace(**given, experiment=name, quick=not full))
        found = module.findings(name, cells) if hasattr(module, "findings") else []
        (folder / f"{name}.json").write_text(json.dumps({"experiment": name, "cells": cells, "machine": facts()}, indent=1))
        draw(name, cells, folder / f"{name}.png")
        section = Section(name, time.perf_counter() - start, cells, found, module.table(name, cells))
    except (ValueError, AssertionError, ImportError, RuntimeError) as error:
        section = Section(name, time.perf_counter() - start, [], [], "", f"{type(error).__name__}: {error}")
    say(f"-- {name}: {section.error or 'done'} after {section.seconds:.0f} s")
    return section


def page(sections: list[Section], full: bool, left_out: list[str]) -> str:
    """Lay the sections out as Markdown: what was lost, what held, then every figure with its command."""
    machine = facts()
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    cells = [cell for section in sections for cell in section.cells if "spread" in cell]
    unsteady = [cell for cell in cells if cell["spread"]["greatest"] > _UNSTEADY * cell["spread"]["least"]]
    found = [finding for section in sections for finding in section.findings]
    lines = [
        "# Benchmarks",
        "",
        f"Made by `sash bench report --{'full' if full else 'quick'}` in {sum(s.seconds for s in sections) / 60:.1f} minutes "
        f"on {machine['processor']}, {machine['cores']} cores, {machine['system']}; {machine['compiler']}; {versions}.",
        "",
        "Figures are medians of repeats, with the least and the greatest beside them. Every experiment checks itself while it runs: "
        "windows hold what it claims, and contenders give the same results; else it is an error and has no figures here. "
        f"{len(unsteady)} of {len(cells)} cells moved by more than {_UNSTEADY} times between repeats. "
        "What was tried and rejected: performance.md.",
        "",
        *_losses(sections, found),
        *_held(found),
    ]
    for section in sections:
        lines += _figure(section, full)
    if left_out:
        lines += ["## Left out", "", f"Of a quick report: {', '.join(left_out)}. Run them by name, or `sash bench report --full`.", ""]
    return "\n".join(lines)


def _losses(sections: list[Section], found: list[Finding]) -> list[str]:
    lines = ["## Where we lose", ""]
    lines += [f"- **{section.name} failed**: {section.error}" for section in sections if section.error]
    lines += [f"- {f.claim}: **not held**: {f.figures}. {f.why or 'The cause is not known.'}" for f in found if not f.held]
    return [*(lines if len(lines) > 2 else [*lines, "Nowhere, in this run."]), ""]


def _held(found: list[Finding]) -> list[str]:
    rows = [f"| {finding.claim} | {'yes' if finding.held else '**no**'} | {finding.figures} |" for finding in found]
    return ["## What is claimed, and whether it held", "", "| claim | held | figures |", "|---|---|---|", *rows, ""]


def _figure(section: Section, full: bool) -> list[str]:
    what = EXPERIMENTS[section.name].help
    shorter = {} if full else _SHORTER.get(section.name) or {}
    command = f"sash bench {section.name}" + ("" if full else " --quick") + "".join(f" --{key} {value}" for key, value in shorter.items())
    lines = [f"## {section.name}", "", f"{what[0].upper()}{what[1:]}. `{command}`, {section.seconds:.0f} s.", ""]
    if section.error:
        return [*lines, f"Failed: {section.error}", ""]
    return [*lines, f"![{section.name}](benchmarks/{section.name}.png)", "", "```", section.table, "```", ""]
