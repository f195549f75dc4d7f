"""Bytes per entry: what the allocator gave out for a window of sums."""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

from sash import _core
from sash.bench import plots
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.machine import say
from sash.bench.tables import columns

__all__ = ["findings", "measure", "plot", "table"]

_ALGORITHMS: Final = ("two_stacks_lite", "daba_lite", "two_stacks", "daba", "flat_fit", "amta", "b_int", "flat_fat", "fiba", "block_fiba")
_HAVE_TIMES: Final = ("fiba", "block_fiba")
_MOST: Final = 80  # bytes per entry that any of them takes while it grows


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Fill a window, slide it, and count the bytes per entry; sizes go up to what memory allows."""
    room = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    sizes = [1 << 10, 1 << 16, 1 << 22] if options.quick else [1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26, 10**9]
    if options.size:
        sizes = [options.size]
    elif not options.quick:
        sizes = [size for size in sizes if size * _MOST < room]
    if max(sizes) * 8 > room:
        raise ValueError(f"a window of {max(sizes):,} entries needs more than the {room >> 20:,} MiB that are free.")
    out = []
    for algorithm in [options.algorithm] if options.algorithm else _ALGORITHMS:
        forms = [options.by] if options.by else ["time"] if algorithm in _HAVE_TIMES else ["count", "time"]
        if algorithm in _HAVE_TIMES and forms == ["count"]:
            raise ValueError(f"{algorithm} keeps its times: it has no form by count.")
        for by in forms:
            for size in sizes:
                filled, slid = _core.bench_memory(algorithm, size, by == "time", options.min_arity or 0)
                out.append(
                    {
                        "experiment": name,
                        "algorithm": algorithm,
                        "by": by,
                        "size": size,
                        "window_size": size,
                        "filled": filled,
                        "slid": slid,
                    }
                )
            say(f"memory    {algorithm:16} by {by:5}  " + "  ".join(f"{c['size']:,}: {c['slid']:.1f}" for c in out[-len(sizes) :]))
    return out


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the cells out as text: bytes per entry after filling and after sliding, a line per algorithm and size."""
    head = ["algorithm", "times", "entries", "bytes/entry filled", "after sliding"]
    return columns(head, [[c["algorithm"], "kept" if c["by"] == "time" else "no", c["size"], c["filled"], c["slid"]] for c in cells])


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw bytes per entry by size, without times and with."""
    panels = figure.subplots(1, 2, sharey=True)
    figure.suptitle(f"{name}: {EXPERIMENTS[name].help}")
    for axes, by, text in zip(panels, ("count", "time"), ("without times", "with 8-byte times"), strict=True):
        plots.lines(axes, [c for c in cells if c["by"] == by], "size", "slid", lambda c: c["algorithm"], 1.0)
        axes.set(xlabel=f"entries, {text}", yscale="linear", ylim=(0, None), ylabel="bytes per entry (8-byte partial)")


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check the partials that the DABA paper states: the Lite forms keep one per entry, the full ones two."""
    largest = max(c["size"] for c in cells)
    by = {c["algorithm"]: c["slid"] for c in cells if c["by"] == "count" and c["size"] == largest}
    if not {"daba", "daba_lite", "two_stacks", "two_stacks_lite"} <= set(by):
        return []
    held = by["daba_lite"] < 1.3 * 8 and by["two_stacks_lite"] < 1.3 * 8 and by["daba"] > 1.7 * by["daba_lite"]
    why = ", ".join(f"{a} {by[a]:.1f}" for a in ("two_stacks_lite", "daba_lite", "two_stacks", "daba"))
    return [Finding("memory: the Lite forms keep one partial (8 bytes) per entry, the full ones two", held, f"bytes per entry: {why}")]
