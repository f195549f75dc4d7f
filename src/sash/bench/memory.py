"""Bytes per entry: what the allocator gave out for a window of sums."""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

from sash import _bench
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.machine import say
from sash.bench.tables import columns
from sash.swag.algorithms import contenders

__all__ = ["findings", "measure", "plot", "table"]

_ALGORITHMS: Final = contenders("fifo", any_monoid=True)
_HAVE_TIMES: Final = contenders("fifo", in_order=False)
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
                filled, slid = _bench.memory(algorithm, size, by == "time", options.min_arity or 0)
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
    """Draw bytes per entry as bars, a panel per size, without times and with: many algorithms take the same."""
    sizes = sorted({cell["size"] for cell in cells})[-3:]
    figure.set_size_inches(4.2 * len(sizes) + 1, 5)
    figure.suptitle(f"{name}: {EXPERIMENTS[name].help} (8-byte partials)")
    for axes, size in zip(figure.subplots(1, len(sizes), sharey=True, squeeze=False).flat, sizes, strict=True):
        for by, shift, text in (("count", -0.2, "without times"), ("time", 0.2, "with 8-byte times")):
            some = [cell for cell in cells if cell["size"] == size and cell["by"] == by]
            places = [list(dict.fromkeys(c["algorithm"] for c in cells)).index(cell["algorithm"]) + shift for cell in some]
            axes.bar_label(axes.barh(places, [cell["slid"] for cell in some], 0.4, label=text), fmt="%.0f", fontsize=7)
        names = list(dict.fromkeys(cell["algorithm"] for cell in cells))
        axes.set(yticks=range(len(names)), yticklabels=names, xlabel="bytes per entry", title=f"n = {size:,}")
        axes.legend(fontsize=7)
    axes.invert_yaxis()


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check the partials that the DABA paper states: the Lite forms keep one per entry, the full ones two."""
    largest = max(c["size"] for c in cells)
    by = {c["algorithm"]: c["slid"] for c in cells if c["by"] == "count" and c["size"] == largest}
    if not {"daba", "daba_lite", "two_stacks", "two_stacks_lite"} <= set(by):
        return []
    held = by["daba_lite"] < 1.3 * 8 and by["two_stacks_lite"] < 1.3 * 8 and by["daba"] > 1.7 * by["daba_lite"]
    why = ", ".join(f"{a} {by[a]:.1f}" for a in ("two_stacks_lite", "daba_lite", "two_stacks", "daba"))
    return [Finding("memory: the Lite forms keep one partial (8 bytes) per entry, the full ones two", held, f"bytes per entry: {why}")]
