"""The figures as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sash.bench.figures import FIGURES
from sash.errors import missing_extra

__all__ = ["plot"]

_VARIED: Final = {
    "fifo": ("size", "entries in the window"),
    "dynamic": ("size", "largest window"),
    "ooo": ("distance", "distance d"),
    "bulk": ("bulk", "items per bulk m"),
    "bulk-evict": ("bulk", "items per bulk m"),
}


def plot(experiment: str, results: list[dict[str, Any]], file: Path) -> None:
    """Draw an experiment: a line per algorithm, or for races a bar per peer."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise missing_extra("matplotlib", "bench") from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5.5), layout="constrained")
    if experiment == "slide":
        _bars(axes, results)
    elif experiment == "latency":
        _latencies(axes, results)
    else:
        _lines(axes, experiment, results)
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def _lines(axes: Any, experiment: str, results: list[dict[str, Any]]) -> None:
    name, label = _VARIED[experiment]
    kinds = [(a, g, d) for a, g, d in dict.fromkeys((r["algorithm"], r["agg"], r["delays"]) for r in results)]
    for algorithm, aggregation, delays in kinds:
        if aggregation != "sum":
            continue
        chosen = [r for r in results if (r["algorithm"], r["agg"], r["delays"]) == (algorithm, aggregation, delays)]
        chosen = [r for r in chosen if name == "distance" or r["distance"] == 0]
        text = algorithm if delays == "fixed" else f"{algorithm}, scattered"
        style = "-" if delays == "fixed" else "--"
        axes.plot([max(r[name], 1) for r in chosen], [r["throughput"] / 1e6 for r in chosen], style, marker="o", label=text)
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel="million items per second", title=f"{experiment}: {FIGURES[experiment][0]}")
    axes.legend(fontsize=8, ncols=2)


def _latencies(axes: Any, results: list[dict[str, Any]]) -> None:
    for r in results:
        axes.plot(list(r["ticks"]), list(r["ticks"].values()), marker="o", label=r["algorithm"])
    axes.set(yscale="log", ylabel="cycles per round", title=f"latency: {FIGURES['latency'][0]}")
    axes.legend(fontsize=8)


def _bars(axes: Any, results: list[dict[str, Any]]) -> None:
    peers = sorted({peer for r in results for peer in r["ratios"]})
    names = [f"{r['agg']} by {r['by']}, {r['window']:,}" for r in results]
    height = 0.8 / max(len(peers), 1)
    for i, peer in enumerate(peers):
        axes.barh([j + i * height for j in range(len(results))], [r["ratios"].get(peer, 0) for r in results], height, label=peer)
    axes.axvline(1, color="black", linewidth=1)
    axes.set(
        yticks=[j + 0.4 for j in range(len(results))],
        yticklabels=names,
        xlabel="times faster than the peer (1: equal)",
        title="slide() against its peers",
    )
    axes.tick_params(axis="y", labelsize=7)
    axes.legend()
