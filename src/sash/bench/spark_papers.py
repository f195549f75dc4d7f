"""The papers' figures on Flink, on Spark: windows() against Spark's own by how late rows are, and by how many leave at once."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any, Final

from sash.bench import plots
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.spark_stream import SPAN, Race, run_races
from sash.bench.tables import columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["findings", "measure_figure", "plot", "table"]

Cells = list[dict[str, Any]]
_VARIED: Final = {"spark-ooo": ("distance", "rows that a row is late at most"), "spark-bulk": ("bulk", "rows that leave a window at once")}


def _races(name: str, options: argparse.Namespace) -> list[Race]:
    if name == "spark-ooo":
        all_ = [Race(100, 60, 1, disorder=seconds) for seconds in (0, 1, 10, 100)]
    else:
        all_ = [Race(100, 600, slide) for slide in (1, 10, 60, 300)]
    if not options.quick:
        return all_
    return [dataclasses.replace(race, batches=4, limit=25.0) for race in (all_[0], all_[-1])]


def measure_figure(spark: SparkSession, options: argparse.Namespace) -> Cells:
    """Race windows() with Spark's own over each setting."""
    cells = run_races(spark, _races(options.experiment, options), ["sash", "spark hdfs"])
    for cell in cells:
        rate = cell["rows"] * 1_000_000 // SPAN  # rows a second of stream time
        cell.update({"experiment": options.experiment, "distance": cell["disorder"] * rate, "bulk": cell["slide"] * rate})
    return cells


def table(name: str, cells: Cells) -> str:
    """Lay the cells out as text, one line each."""
    field, text = _VARIED[name]
    rows = [[f"{c['range']}/{c['slide']} s", c[field], c["throughput"] / 1e3, c["rates"]["spark hdfs"]["mean"] / 1e3] for c in cells]
    return columns(["range/slide", text, "sash, 1,000 rows/s", "Spark's own"], rows)


def plot(name: str, cells: Cells, figure: Any) -> None:
    """Draw rows per second of both by what is varied."""
    field, text = _VARIED[name]
    axes = figure.subplots()
    axes.set_title(f"{name}: {EXPERIMENTS[name].help}", fontsize=11)
    both = [{field: c[field], "rate": rate["mean"], "who": who} for c in cells for who, rate in c["rates"].items()]
    plots.lines(axes, both, field, "rate", lambda c: str(c["who"]), 1e-3)
    axes.set(xlabel=text, ylabel="thousand rows per second")


def findings(name: str, cells: Cells) -> list[Finding]:
    """Check that the built-in windows fall far behind, and what the distance or the bulk does to ours."""
    field, _ = _VARIED[name]
    ratios = [c["ratios"]["spark hdfs"] for c in cells]
    out = [
        Finding(
            f"{name}: windows() is faster than Spark's own at every {field}",
            min(ratios) > 1,
            f"{min(ratios):.2f} to {max(ratios):.1f} times",
            "With ten windows to a row or fewer, Spark's copies cost no more than the way through Python.",
        )
    ]
    rates = {c[field]: c["throughput"] / 1e3 for c in cells}
    why = ", ".join(f"{rate:,.0f} thousand rows/s at {value:,}" for value, rate in sorted(rates.items()))
    if name == "spark-ooo":
        out.append(Finding("spark-ooo: how late rows are costs windows() little", min(rates.values()) > max(rates.values()) / 2, why))
    else:
        out.append(Finding("spark-bulk: the more rows leave at once, the faster", rates[max(rates)] >= rates[min(rates)], why))
    return out
