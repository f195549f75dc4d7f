"""The experiments on Spark, by name: each in a session of its own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sash.bench.experiments import EXPERIMENTS, Finding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["findings", "measure", "plot", "table"]

Cells = list[dict[str, Any]]
_NAMES = {  # of contenders, as they are read outside a table
    "spark": "Spark's own window()",
    "spark rocksdb": "Spark's own window() on RocksDB",
    "spark hdfs": "Spark's own window() on HDFS-backed state",
    "two steps": "Spark's slices, windowed again",
    "two steps, windows": "Spark's slices, windowed again",
    "two steps, frames": "Spark's slices, and frames over them (no windows between slices)",
    "segment tree": "Spark's frames with the segment tree",
    "default": "Spark's frames",
}


def measure(name: str, options: argparse.Namespace) -> Cells:
    """Run an experiment."""
    from sash.spark import session

    # Contenders that are too slow are stopped in the middle of a micro-batch, which Spark would call errors for pages.
    spark = session("sash bench", **{"spark.driver.memory": "3g", "spark.log.level": "OFF"})
    try:
        return _MEASURES[name](spark, options)
    finally:
        spark.stop()


def table(name: str, cells: Cells) -> str:
    """Lay cells out as text."""
    from sash.bench import spark_batch, spark_live, spark_papers, spark_steady, spark_stream

    if name == "spark-live":
        return spark_steady.table(cells)
    if name in ("spark-ooo", "spark-bulk"):
        return spark_papers.table(name, cells)
    if name in ("spark-windows", "spark-keys"):
        return spark_stream.table(cells)
    return spark_live.latency_table(cells) if name == "spark-latency" else spark_batch.table(cells)


def plot(name: str, cells: Cells, figure: Any) -> None:
    """Draw the rows/s of every contender as marks with their figures, a line per cell; seconds of latency as bars."""
    if name in ("spark-ooo", "spark-bulk"):
        from sash.bench import spark_papers

        return spark_papers.plot(name, cells, figure)
    axes = figure.subplots()
    axes.set_title(f"{name}: {EXPERIMENTS[name].help}", fontsize=11)
    if name == "spark-live":
        from sash.bench import spark_steady

        return spark_steady.plot(cells, axes)
    if name == "spark-latency":
        axes.bar([cell["contender"] for cell in cells], [cell["p99"] for cell in cells], label="p99")
        axes.bar([cell["contender"] for cell in cells], [cell["p50"] for cell in cells], label="p50")
        axes.set_ylabel("seconds from event to answer")
    else:
        names = list(dict.fromkeys(contender for cell in cells for contender in cell["rates"]))
        for i, contender in enumerate(names):
            there = [(j, cell["rates"][contender]["median"]) for j, cell in enumerate(cells) if contender in cell["rates"]]
            axes.plot([rate for _, rate in there], [j for j, _ in there], "osDv^"[i % 5], markersize=8, label=contender)
            for j, rate in there:
                axes.annotate(f"{rate:,.0f}", (rate, j), xytext=(0, 9), textcoords="offset points", ha="center", fontsize=8)
        axes.set(xscale="log", yticks=range(len(cells)), yticklabels=[_setting(cell) for cell in cells], ylim=(len(cells) - 0.5, -0.5))
        axes.margins(x=0.12)
        figure.set_size_inches(9, 1.6 + 0.7 * len(cells))
        axes.set_xlabel("input rows/s (log scale)")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _setting(cell: dict[str, Any]) -> str:
    shape = f"{cell['range']}/{cell['slide']} s" if "range" in cell else f"3600/{cell['slide']} s" if "slide" in cell else "look-backs"
    return f"{shape}, {cell['keys']:,} keys"


def findings(name: str, cells: Cells) -> list[Finding]:
    """Check what the papers say of Flink, on Spark; and that no contender is faster than we are."""
    from sash.bench import spark_papers, spark_steady

    if name in ("spark-ooo", "spark-bulk"):
        return spark_papers.findings(name, cells)
    if name == "spark-live":
        return spark_steady.findings(cells)
    out = []
    for contender in dict.fromkeys(contender for cell in cells for contender in cell.get("ratios", {})):
        raced = [cell for cell in cells if contender in cell["ratios"]]
        lost = [cell for cell in raced if cell["ratios"][contender] < 1]
        ratios = [cell["ratios"][contender] for cell in raced]
        figures = f"{min(ratios):.1f} times" if len(ratios) == 1 else f"{min(ratios):.1f} to {max(ratios):.1f} times"
        if lost:
            figures += "; " + ", ".join(f"{cell['ratios'][contender]:.2f} times ({_setting(cell)})" for cell in lost)
        claim = f"{name}: at least as fast as {_NAMES.get(contender, contender)}"
        out.append(Finding(claim, not lost, figures, _cause(contender, lost)))
    return out


def _cause(contender: str, lost: Cells) -> str:
    if lost and all(cell.get("slide") == cell.get("range", 3600) for cell in lost):
        return "Windows that do not overlap share no work: leave those to Spark."
    if contender.startswith("two steps"):
        return "It shares the slices' work as well. What is left are fixed costs of a run, and ours include Python workers."
    return ""


def _papers(spark: SparkSession, options: argparse.Namespace) -> Cells:
    from sash.bench.spark_papers import measure_figure

    return measure_figure(spark, options)


def _windows(spark: SparkSession, options: argparse.Namespace) -> Cells:
    from sash.bench.spark_stream import races, run_races

    return run_races(spark, races(options.quick, options.keys, options.ratio))


def _batch(spark: SparkSession, options: argparse.Namespace) -> Cells:
    from sash.bench.spark_batch import batch_races, run_batch_race

    return [run_batch_race(spark, race, options.repeats or 3) for race in batch_races(options.quick, options.keys, options.ratio)]


def _rolling(spark: SparkSession, options: argparse.Namespace) -> Cells:
    from sash.bench.spark_batch import ROWS, run_rolling_race

    return [run_rolling_race(spark, options.size or (ROWS // 8 if options.quick else ROWS), options.repeats or 3)]


def _latency(spark: SparkSession, options: argparse.Namespace) -> Cells:
    from sash.bench.spark_live import latency

    return latency(spark, options.keys or 100, 15.0 if options.quick else 40.0)


def _keys(spark: SparkSession, options: argparse.Namespace) -> Cells:
    from sash.bench.spark_live import million_keys

    return [million_keys(spark, options.keys or 1_000_000, 4 if options.quick else 8)]


def _steady(spark: SparkSession, options: argparse.Namespace) -> Cells:
    from sash.bench.spark_steady import steady

    return steady(spark, options.quick, options.keys, options.rows)


_MEASURES = {
    "spark-live": _steady,
    "spark-ooo": _papers,
    "spark-bulk": _papers,
    "spark-windows": _windows,
    "spark-batch": _batch,
    "spark-rolling": _rolling,
    "spark-latency": _latency,
    "spark-keys": _keys,
}
