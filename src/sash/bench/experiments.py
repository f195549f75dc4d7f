"""The one list of experiments: name, where it is, what it shows, which options it takes.

A module of experiments has these functions, each given the experiment's name first:

    measure(name, options) -> list of cells: dicts of plain values, the setting and what was measured
    table(name, cells) -> the cells as text, one line each
    plot(name, cells, figure) -> None: draw onto a matplotlib figure
    findings(name, cells) -> list of Finding: what the papers claim, and whether it held   (may be left out)

`measure` raises AssertionError when contenders disagree or a window does not hold what the cell claims.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
from types import ModuleType
from typing import Any, Final, NamedTuple

__all__ = ["EXPERIMENTS", "OPTIONS", "Experiment", "Finding", "module_of", "refuse_stray"]


class Experiment(NamedTuple):
    """One name of `sash bench`."""

    module: str
    help: str
    takes: tuple[str, ...]  # names in OPTIONS; any other one given is an error


@dataclasses.dataclass(frozen=True)
class Finding:
    """A claim checked on the cells of a run."""

    claim: str
    held: bool
    figures: str
    why: str = ""  # where it is known not to hold


# What every experiment takes beside its own: --quick, --json, --plot, --repeats.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "algorithm": {"metavar": "NAME", "help": "one cell instead of the figure: a class name in snake_case, e.g. daba_lite"},
    "agg": {"metavar": "NAME", "help": "the aggregation, e.g. sum"},
    "size": {"type": int, "metavar": "N", "help": "entries in the window; in races, items in the array"},
    "distance": {"type": int, "metavar": "D", "help": "how many places late an insert is"},
    "delays": {"choices": ["fixed", "scattered"], "help": "every insert at the distance, or at random up to it"},
    "bulk": {"type": int, "metavar": "M", "help": "items per bulk"},
    "min_arity": {"type": int, "metavar": "A", "help": "of fiba and b_tree: 2, 4, 8 or 16"},
    "rounds": {"type": int, "metavar": "R", "help": "rounds per repeat"},
    "window": {"type": int, "metavar": "W", "help": "in races: items per window"},
    "data": {"metavar": "FOLDER", "help": "where the streams of citibike are (default: ../shared/data)"},
    "period": {"metavar": "P", "help": "of windows by time, e.g. 10m"},
    "form": {"metavar": "NAME", "help": "which of an experiment's contenders: see its table"},
    "keys": {"type": int, "metavar": "K", "help": "in races: how many keys"},
    "ratio": {"type": int, "metavar": "R", "help": "on Spark: range / slide, one of those raced"},
    "by": {"choices": ["count", "time"], "help": "in races: windows by count or by time"},
    "rows": {"type": int, "metavar": "N", "help": "rows of a micro-batch"},
    "lateness": {"type": int, "metavar": "M", "help": "minutes by which a tenth of the rows is late at most"},
}

_CELL: Final = ("algorithm", "agg", "size", "rounds", "min_arity")
_STREAM: Final = ("algorithm", "agg", "period", "rounds", "min_arity")
_SHAPE: Final = ("algorithm", "size", "window", "rounds", "form")
_BULK: Final = ("size", "bulk", "rounds", "min_arity", "form")
_SPARK: Final = "sash.bench.spark_races"
_RACE: Final = ("agg", "size", "window", "by")
_WHEEL: Final = ("rounds", "form")
_PEERS: Final = "against pandas, Polars, DuckDB, bottleneck, numbagg and NumPy"

EXPERIMENTS: Final[dict[str, Experiment]] = {
    "fifo": Experiment("sash.bench.figures", "throughput in order, by window size (DABA fig. 10, FiBA fig. 13)", _CELL),
    "dynamic": Experiment("sash.bench.figures", "throughput of windows that grow and shrink (DABA fig. 11)", _CELL),
    "latency": Experiment("sash.bench.figures", "nanoseconds of single rounds (DABA fig. 9, FiBA fig. 12)", (*_CELL, "distance")),
    "ooo": Experiment("sash.bench.figures", "throughput by distance, fixed and scattered (FiBA fig. 11)", (*_CELL, "distance", "delays")),
    "bulk-evict": Experiment(
        "sash.bench.figures", "throughput of bulk evictions, by bulk size (bulk FiBA fig. 7, 11)", (*_CELL, "distance", "bulk")
    ),
    "bulk": Experiment(
        "sash.bench.figures", "throughput of bulk evictions and insertions (bulk FiBA fig. 8-9, 12-14)", (*_CELL, "distance", "bulk")
    ),
    "debs12": Experiment("sash.bench.streams", "windows by time over sensor readings (DABA fig. 12)", _STREAM),
    "citibike": Experiment(
        "sash.bench.streams", "windows by time over late bicycle trips (FiBA fig. 15, bulk FiBA fig. 15-16)", (*_STREAM, "data")
    ),
    "sharing": Experiment("sash.bench.shapes", "two windows of one stream: one tree or two (FiBA fig. 14)", _SHAPE),
    "coarse": Experiment("sash.bench.shapes", "windows asked every g items, with slices and without (FiBA fig. 18)", _SHAPE),
    "freelist": Experiment("sash.bench.shapes", "bulk evictions with and without the deferred free list (bulk FiBA fig. 10)", _BULK),
    "memory": Experiment("sash.bench.memory", "bytes per entry, by algorithm and size", ("algorithm", "size", "min_arity", "by")),
    "tiles": Experiment(
        "sash.bench.tiles", "a tile store of 50 million slices: one key opened, any range asked, the shell's wait", ("keys",)
    ),
    "index": Experiment(
        "sash.bench.index", "COUNT and SUM over random seconds of a month of taxi trips, against DuckDB and Spark on the table", ()
    ),
    "serve": Experiment("sash.bench.serve", "look-backs of random keys over HTTP: one client, then sixteen", ("keys",)),
    "wheel-stream": Experiment("sash.bench.wheels", "wheels under a watermark, with windows, against FiBA (µWheel fig. 5-8)", _WHEEL),
    "wheel-query": Experiment("sash.bench.wheels", "ranges of days of seconds, against trees and DuckDB (µWheel fig. 9-11)", _WHEEL),
    "wheel-space": Experiment("sash.bench.wheels", "memory of days of seconds", ("form",)),
    "wheel-keys": Experiment("sash.bench.wheels", "20 million rows of 100,000 keys into keyed wheels", (*_WHEEL, "keys")),
    "slide": Experiment("sash.bench.races", f"slide() over arrays {_PEERS}", _RACE),
    "median": Experiment("sash.bench.races", f"rolling medians {_PEERS}", _RACE),
    "quantile": Experiment("sash.bench.races", f"rolling quantiles {_PEERS}", _RACE),
    "distinct": Experiment("sash.bench.races", f"distinct values {_PEERS}", _RACE),
    "top-k": Experiment("sash.bench.races", "the five largest of a window, against DuckDB and pandas", _RACE),
    "udf": Experiment("sash.bench.races", f"a user's function, compiled, {_PEERS}", _RACE),
    "key": Experiment("sash.bench.races", "slide() by key on all cores, against pandas, Polars and DuckDB", (*_RACE, "keys")),
    "live": Experiment(
        "sash.bench.live", "what a steady micro-batch costs the engine, by range / slide", ("form", "keys", "ratio", "rows", "lateness")
    ),
    "spark-live": Experiment(_SPARK, "steady micro-batches of a minute after a filled hour and a filled day", ("keys", "rows")),
    "frames": Experiment("sash.bench.frames", "rolling() of frames by key, against Polars, pandas and DuckDB", ("size", "keys")),
    "features": Experiment(
        "sash.bench.features", "rolling(at=labels), against DuckDB, Polars and, on Spark, a range join", ("size", "keys")
    ),
    "spark-ooo": Experiment(_SPARK, "streaming windows() by how late rows are, against Spark's own (FiBA fig. 16, there on Flink)", ()),
    "spark-bulk": Experiment(_SPARK, "streaming windows() by how many rows leave at once (bulk FiBA fig. 17, there on Flink)", ()),
    "spark-windows": Experiment(_SPARK, "streaming windows() against Spark's window(), and two steps of it", ("keys", "ratio")),
    "spark-batch": Experiment(_SPARK, "batch windows() against Spark's window(), and two steps of it", ("keys", "ratio")),
    "spark-rolling": Experiment(_SPARK, "batch rolling() against Spark's frames, with the segment tree and without", ("size",)),
    "spark-latency": Experiment(_SPARK, "from event to answer at 10,000 rows/s, beside Spark's own", ("keys",)),
    "spark-tiles": Experiment(
        "sash.bench.spark_tiles",
        "ten million slices of one micro-batch into a tile store: by the executors, and through the driver",
        ("rows",),
    ),
    "spark-keys": Experiment(_SPARK, "a stream of a million keys, and its memory", ("keys",)),
}


def module_of(name: str) -> ModuleType:
    """Import an experiment's module: only the one that runs."""
    return importlib.import_module(EXPERIMENTS[name].module)


def refuse_stray(name: str, options: argparse.Namespace) -> None:
    """Raise ValueError for an option that the experiment would ignore: it would measure something else than asked."""
    takes = EXPERIMENTS[name].takes
    stray = [option for option in OPTIONS if option not in takes and getattr(options, option, None) is not None]
    if stray:
        known = ", ".join("--" + option.replace("_", "-") for option in takes) or "no options of its own"
        raise ValueError(f"{name} takes no --{stray[0].replace('_', '-')}. It takes {known}.")
