"""A race in one run: rolling() on a frame against the same frame's own rolling windows, and DuckDB's; totals compared.

Ten days of rows in order of time, by key; three look-backs by four aggregations: twelve columns. Frames are in memory before the
clock starts, and results are of the contender's own kind.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from sash import agg
from sash.bench import plots
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.machine import say, spread
from sash.bench.tables import columns

__all__ = ["Totals", "ahead_of_all", "findings", "laid_out", "measure", "plot", "table", "timed", "total"]

LOOKBACKS: Final = {"10m": 600, "1h": 3600, "1d": 86400}
AGGS: Final = ("count", "sum", "mean", "max")
_SPAN: Final = 10 * 86_400_000_000  # microseconds
_PATIENCE: Final = 20.0  # seconds: what takes longer is run once

Totals = dict[str, float]


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the races that the options select."""
    rows = options.size or (300_000 if options.quick else 10_000_000)
    return [_race(name, rows, keys, options.repeats or 3) for keys in ((options.keys,) if options.keys else (1, 500, 100_000))]


def _race(name: str, rows: int, keys: int, repeats: int) -> dict[str, Any]:
    random = np.random.default_rng(1)
    data = {
        "stamp": (np.arange(rows) * (_SPAN // rows)).view("datetime64[us]"),
        "key": random.integers(0, keys, rows),
        "v": random.normal(size=rows),
    }
    expected: Totals | None = None
    rates = {}
    for contender, (package, make) in CONTENDERS.items():
        if not importlib.util.find_spec(package):
            continue
        run, totals = make(data)
        seconds, found = timed(run, totals, repeats)
        if expected is None:
            expected = found
        wrong = [column for column, value in found.items() if not np.isclose(value, expected[column], rtol=1e-6)]
        if wrong:
            raise AssertionError(f"{contender} and sash disagree on {wrong[0]} of {rows:,} rows, {keys:,} keys.")
        rates[contender] = spread([rows / s for s in seconds])
        say(f"{name:9} {contender:16} {keys:9,} keys {min(seconds):8.2f} s")
    ours = rates.pop("sash")
    return {
        "experiment": name,
        "size": rows,
        "keys": keys,
        "throughput": ours["median"],
        "spread": ours,
        "rates": rates,
        "ratios": {peer: ours["median"] / theirs["median"] for peer, theirs in rates.items()},
        "ratio_spread": {peer: [ours["least"] / t["greatest"], ours["greatest"] / t["least"]] for peer, t in rates.items()},
    }


def timed(run: Callable[[], Any], totals: Callable[[Any], Totals], repeats: int) -> tuple[list[float], Totals]:
    """Time a contender after one run that does not count, unless that run was long; the totals of its result."""
    start = time.perf_counter()
    result = run()
    seconds = [time.perf_counter() - start]
    found = totals(result)
    del result
    if seconds[0] < _PATIENCE:
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
    return seconds, found


def _sash(data: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], Totals]]:
    import pyarrow as pa

    from sash.frames import rolling

    frame = pa.table(data)
    aggs = {name: agg.count() if name == "count" else getattr(agg, name)("v") for name in AGGS}
    return (
        lambda: rolling(frame, time="stamp", key="key", lookbacks=list(LOOKBACKS), aggs=aggs),
        lambda out: {column: total(out.column(column)) for column in _columns()},
    )


def _columns() -> list[str]:
    return [f"{name}_{label}" for name in AGGS for label in LOOKBACKS]


def total(column: Any) -> float:
    """Add up an Arrow column, nothing as 0."""
    return float(np.nansum(column.to_numpy().astype(float)))


def _polars_rolling(data: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], Totals]]:
    import polars as pl

    frame = pl.DataFrame(data)

    def run() -> dict[str, Any]:
        v = pl.col("v")
        each = {"count": pl.len().alias("count"), "sum": v.sum().alias("sum"), "mean": v.mean().alias("mean"), "max": v.max().alias("max")}
        rolled = {label: frame.rolling("stamp", period=label, group_by="key").agg(*each.values()) for label in LOOKBACKS}
        return {f"{name}_{label}": out[name] for label, out in rolled.items() for name in AGGS}

    return run, lambda out: {
        column: float(out[column].cast(pl.Float64).sum()) for column in _columns()
    }  # counts are 32 bits, their sum too


def _polars_over(data: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], Totals]]:
    import polars as pl

    frame = pl.DataFrame(data).with_columns(one=pl.lit(1.0))
    made = [
        getattr(pl.col("one" if name == "count" else "v"), f"rolling_{'sum' if name == 'count' else name}_by")("stamp", label)
        .over("key")
        .alias(f"{name}_{label}")
        for name in AGGS
        for label in LOOKBACKS
    ]
    return lambda: frame.with_columns(made), lambda out: {column: float(out[column].sum()) for column in _columns()}


def _pandas(data: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], Totals]]:
    import pandas as pd

    frame = pd.DataFrame(data)

    def run() -> dict[str, Any]:
        rolled = {label: frame.groupby("key").rolling(f"{s}s", on="stamp")["v"].agg(list(AGGS)) for label, s in LOOKBACKS.items()}
        return {f"{name}_{label}": out[name] for label, out in rolled.items() for name in AGGS}

    return run, lambda out: {column: float(out[column].sum()) for column in _columns()}


def _duckdb(data: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], Totals]]:
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    frame = pa.table(data)
    connection.register("frame", frame)
    connection.execute("create table events as select * from frame")
    functions = {"count": "count(*)", "sum": "sum(v)", "mean": "avg(v)", "max": "max(v)"}
    selected = ", ".join(f"{functions[name]} over w{label} as {name}_{label}" for name in AGGS for label in LOOKBACKS)
    frames = ", ".join(
        f"w{label} as (partition by key order by stamp range between interval '{s * 1_000_000 - 1} microseconds' preceding and current row)"
        for label, s in LOOKBACKS.items()
    )
    sql = f"select *, {selected} from events window {frames}"
    return lambda: connection.sql(sql).to_arrow_table(), lambda out: {column: total(out.column(column)) for column in _columns()}


# Who runs, by the package it needs; the first is the one that the others are compared with.
CONTENDERS: Final[dict[str, tuple[str, Callable[[dict[str, Any]], tuple[Callable[[], Any], Callable[[Any], Totals]]]]]] = {
    "sash": ("pyarrow", _sash),
    "polars rolling": ("polars", _polars_rolling),
    "polars over": ("polars", _polars_over),
    "pandas": ("pandas", _pandas),
    "duckdb": ("duckdb", _duckdb),
}


def _label(cell: dict[str, Any]) -> str:
    return f"{cell['size']:,} rows, {cell['keys']:,} keys"


def laid_out(cells: list[dict[str, Any]], label: Callable[[dict[str, Any]], str], unit: str, scale: float) -> str:
    """Lay races out as text: how many times faster than each peer, the closest first."""
    rows = []
    for cell in cells:
        ratios = sorted(cell["ratios"].items(), key=lambda item: item[1])
        rows.append([label(cell), cell["throughput"] / scale, "  ".join(f"{peer} {ratio:.2f}" for peer, ratio in ratios)])
    return columns(["race", unit, "times faster than"], rows)


def ahead_of_all(claim: str, cells: list[dict[str, Any]], label: Callable[[dict[str, Any]], str]) -> list[Finding]:
    """Check that no peer is faster in any race."""
    raced = [(ratio, peer, cell) for cell in cells for peer, ratio in cell["ratios"].items()]
    lost = [f"{label(cell)}: {ratio:.2f} times {peer}" for ratio, peer, cell in raced if ratio < 1]
    if lost or not raced:
        return [Finding(claim, False, "; ".join(lost) or "no peer is installed")]
    ratio, peer, cell = min(raced, key=lambda found: found[0])
    return [Finding(claim, True, f"closest: {ratio:.2f} times {peer} ({label(cell)})")]


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the races out as text."""
    return laid_out(cells, _label, "M rows/s", 1e6)


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw a row per race, a mark per peer."""
    plots.ratios(figure, cells, _label, f"{name}: {EXPERIMENTS[name].help}")


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check that no peer is faster in any cell."""
    return ahead_of_all("frames: three look-backs by four aggregations, faster than each frame's own", cells, _label)
