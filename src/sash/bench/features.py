"""A race in one run: look-backs at the times of labels, rolling(at=), against what users write today; totals compared.

Ninety days of events in order of time, by key, and labels at random times, a tenth as many: three look-backs by three aggregations,
[t - period, t). Frames are in memory before the clock starts. Joins make a row of every pair of label and event, so they run in a race
of their own at a tenth of the size, as does Spark: its size is said in the row.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from sash import agg
from sash.bench import plots
from sash.bench.experiments import EXPERIMENTS, Finding
from sash.bench.frames import Totals, ahead_of_all, laid_out, timed, total
from sash.bench.machine import say, spread

__all__ = ["findings", "measure", "plot", "table"]

LOOKBACKS: Final = {"1h": 3600, "1d": 86400, "7d": 604800}
AGGS: Final = {"n": "count(v)", "s": "sum(v)", "hi": "max(v)"}
_SPAN: Final = 90 * 86_400_000_000  # microseconds
_SMALLER: Final = 10
Race = tuple[Callable[[], Any], Callable[[Any], Totals]]


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the race of one pass over all, then that of the joins."""
    events = options.size or (300_000 if options.quick else 10_000_000)
    keys, repeats = options.keys or 10_000, options.repeats or 3
    small = max(events // _SMALLER, 20_000)
    cells = [_race(name, events, keys, repeats, PASSES), _race(name, small, max(1, keys * small // events), repeats, JOINS)]
    if not options.quick:
        cells.append(_race(name, small, max(1, keys * small // events), repeats, SPARK))
    return [cell for cell in cells if cell["ratios"]]


def _race(name: str, events: int, keys: int, repeats: int, contenders: dict[str, tuple[str, Callable[..., Race]]]) -> dict[str, Any]:
    random = np.random.default_rng(1)
    labels = events // 10
    rows = {
        "key": random.integers(0, keys, events),
        "stamp": np.sort(random.integers(0, _SPAN, events)).view("M8[us]"),
        "v": random.normal(size=events),
    }
    asked = {
        "id": np.arange(labels),
        "key": random.integers(0, keys, labels),
        "stamp": random.integers(0, _SPAN, labels).view("M8[us]"),
    }
    expected: Totals | None = None
    rates = {}
    for contender, (package, make) in contenders.items():
        if not importlib.util.find_spec(package):
            continue
        run, totals = make(rows, asked)
        seconds, found = timed(run, totals, repeats)
        if expected is None:
            expected = found
        wrong = [column for column, value in found.items() if not np.isclose(value, expected[column], rtol=1e-6)]
        if wrong:
            raise AssertionError(f"{contender} and sash disagree on {wrong[0]}: {found[wrong[0]]}, not {expected[wrong[0]]}.")
        rates[contender] = spread([labels / s for s in seconds])
        say(f"{name:9} {contender:16} {events:11,} events {labels:10,} labels {keys:7,} keys {min(seconds):8.2f} s")
    ours = rates.pop(next(iter(rates)))
    return {
        "experiment": name,
        "size": events,
        "labels": labels,
        "keys": keys,
        "where": next(iter(contenders)),
        "throughput": ours["median"],
        "spread": ours,
        "rates": rates,
        "ratios": {peer: ours["median"] / theirs["median"] for peer, theirs in rates.items()},
        "ratio_spread": {peer: [ours["least"] / t["greatest"], ours["greatest"] / t["least"]] for peer, t in rates.items()},
    }


def _columns() -> list[str]:
    return [f"{name}_{label}" for name in AGGS for label in LOOKBACKS]


def _defined() -> dict[str, Any]:
    aggs = {"n": agg.count("v"), "s": agg.sum("v"), "hi": agg.max("v")}
    return {"time": "stamp", "key": "key", "lookbacks": list(LOOKBACKS), "aggs": aggs}


def _arrow_totals(out: Any) -> Totals:
    return {column: total(out.column(column)) for column in _columns()}


def _sash(rows: dict[str, Any], asked: dict[str, Any]) -> Race:
    import pyarrow as pa

    from sash.frames import rolling

    events, labels = pa.table(rows), pa.table(asked)
    return lambda: rolling(events, at=labels, **_defined()), _arrow_totals


def _duckdb(rows: dict[str, Any], asked: dict[str, Any]) -> Any:
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    for name, data in (("events", rows), ("labels", asked)):
        connection.register("given", pa.table(data))
        connection.execute(f"create table {name} as select * from given")
    return connection


def _duckdb_frames(rows: dict[str, Any], asked: dict[str, Any]) -> Race:
    """Labels as rows among the events, RANGE frames over both: one pass, as the expert writes it."""
    connection = _duckdb(rows, asked)
    selected = ", ".join(f"{sql} over w{label} as {name}_{label}" for name, sql in AGGS.items() for label in LOOKBACKS)
    frames = ", ".join(
        f"w{label} as (partition by key order by stamp range between interval {s} second preceding and interval 1 microsecond preceding)"
        for label, s in LOOKBACKS.items()
    )
    both = "select null as id, key, stamp, v from events union all select id, key, stamp, null from labels"
    sql = f"select * from (select *, {selected} from ({both}) window {frames}) where id is not null"
    return lambda: connection.sql(sql).to_arrow_table(), _arrow_totals


def _duckdb_join(rows: dict[str, Any], asked: dict[str, Any]) -> Race:
    """A range join over the longest look-back, the shorter ones as filters of it."""
    connection = _duckdb(rows, asked)
    selected = ", ".join(
        f"{sql} filter (where e.stamp >= l.stamp - interval {s} second) as {name}_{label}"
        for name, sql in AGGS.items()
        for label, s in LOOKBACKS.items()
    )
    longest = max(LOOKBACKS.values())
    on = f"l.key = e.key and e.stamp < l.stamp and e.stamp >= l.stamp - interval {longest} second"
    sql = f"select l.id, {selected} from labels l left join events e on {on} group by l.id"
    return lambda: connection.sql(sql).to_arrow_table(), _arrow_totals


def _polars_totals(out: Any) -> Totals:
    return {column: float(out[column].sum() or 0) for column in _columns()}


def _polars_over(rows: dict[str, Any], asked: dict[str, Any]) -> Race:
    """Labels as rows among the events, and rolling_*_by over both: one pass."""
    import polars as pl

    events, labels = pl.DataFrame(rows), pl.DataFrame(asked)

    def run() -> Any:
        both = pl.concat([events.with_columns(one=pl.lit(1.0)), labels], how="diagonal").sort("stamp")
        made = [
            getattr(pl.col("one" if name == "n" else "v"), f"rolling_{'max' if name == 'hi' else 'sum'}_by")("stamp", label, closed="left")
            .over("key")
            .alias(f"{name}_{label}")
            for name in AGGS
            for label in LOOKBACKS
        ]
        return both.with_columns(made).filter(pl.col("id").is_not_null())

    return run, _polars_totals


def _polars_join(rows: dict[str, Any], asked: dict[str, Any]) -> Race:
    import polars as pl

    events, labels = pl.DataFrame(rows).rename({"stamp": "was", "key": "of"}), pl.DataFrame(asked)
    longest = max(LOOKBACKS.values())

    def run() -> Any:
        since = pl.col("stamp") - pl.duration(seconds=longest)
        pairs = labels.with_columns(since=since).join_where(
            events, pl.col("key") == pl.col("of"), pl.col("was") < pl.col("stamp"), pl.col("was") >= pl.col("since")
        )
        each = []
        for label, s in LOOKBACKS.items():
            v = pl.col("v").filter(pl.col("was") >= pl.col("stamp") - pl.duration(seconds=s))
            each += [v.len().alias(f"n_{label}"), v.sum().alias(f"s_{label}"), v.max().alias(f"hi_{label}")]
        return labels.join(pairs.group_by("id").agg(each), on="id", how="left")

    return run, _polars_totals


def _spark_frames(rows: dict[str, Any], asked: dict[str, Any]) -> tuple[Any, Any]:
    import pandas as pd

    from sash.spark import session

    spark = session("sash bench")
    made = []
    for name, data in (("events", rows), ("labels", asked)):
        df = spark.createDataFrame(pd.DataFrame({**data, "stamp": pd.DatetimeIndex(data["stamp"], tz="UTC")})).cache()
        df.count()
        df.createOrReplaceTempView(name)
        made.append(df)
    return made[0], made[1]


def _spark_totals(out: Any) -> Totals:
    return {column: float(value or 0) for column, value in zip(_columns(), out, strict=True)}


def _summed(df: Any) -> Any:
    return df.selectExpr(*(f"sum({column}) as {column}" for column in _columns())).first()


def _spark_sash(rows: dict[str, Any], asked: dict[str, Any]) -> Race:
    from sash.spark import rolling

    events, labels = _spark_frames(rows, asked)
    return lambda: _summed(rolling(events, at=labels, **_defined())), _spark_totals


def _spark_join(rows: dict[str, Any], asked: dict[str, Any]) -> Race:
    events, _ = _spark_frames(rows, asked)
    selected = ", ".join(
        f"{sql} filter (where e.stamp >= l.stamp - interval {s} seconds) as {name}_{label}"
        for name, sql in AGGS.items()
        for label, s in LOOKBACKS.items()
    )
    on = f"l.key = e.key and e.stamp < l.stamp and e.stamp >= l.stamp - interval {max(LOOKBACKS.values())} seconds"
    sql = f"select l.id, {selected} from labels l left join events e on {on} group by l.id"
    return lambda: _summed(events.sparkSession.sql(sql)), _spark_totals


# Who runs, by the package it needs; the first of each race is the one that the others are compared with.
PASSES: Final = {"sash": ("pyarrow", _sash), "duckdb frames": ("duckdb", _duckdb_frames), "polars over": ("polars", _polars_over)}
JOINS: Final = {"sash": ("pyarrow", _sash), "duckdb join": ("duckdb", _duckdb_join), "polars join": ("polars", _polars_join)}
SPARK: Final = {"sash.spark": ("pyspark", _spark_sash), "spark join": ("pyspark", _spark_join)}


def _label(cell: dict[str, Any]) -> str:
    return f"{cell['where']}: {cell['size']:,} events, {cell['labels']:,} labels, {cell['keys']:,} keys"


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the races out as text."""
    return laid_out(cells, _label, "k labels/s", 1e3)


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw a row per race, a mark per peer."""
    plots.ratios(figure, cells, _label, f"{name}: {EXPERIMENTS[name].help}")


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check that no peer is faster in any race."""
    claim = "features: three look-backs by three aggregations at the times of labels, faster than passes and joins"
    return ahead_of_all(claim, cells, _label)
