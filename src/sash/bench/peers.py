"""What users run today: each peer's way to aggregate sliding windows over arrays.

A function per peer takes a race and its data and gives a Contender, or None where the peer has no such aggregation. A
peer whose cost grows with the window runs on fewer items; what counts is items per second.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

__all__ = ["PEERS", "QUANTILE", "TOP", "Contender", "Data", "Race", "spread_of"]

Array = np.ndarray[Any, Any]
QUANTILE: Final = 0.9
TOP: Final = 5
_WORK: Final = 100_000_000  # items times window that a peer without a sliding form may touch
_CALLS: Final = 2_000_000  # items times window that goes through Python functions


@dataclasses.dataclass(frozen=True)
class Race:
    """One line of a table: an aggregation over windows of one kind and size."""

    experiment: str
    agg: str
    by: str  # "count" or "time"
    window: int
    size: int
    keys: int = 1


class Contender(NamedTuple):
    """A call that gives one result per item, for the first so many items."""

    run: Callable[[], Any]
    items: int
    first: int = 0  # it computes no results before this one


class Data(NamedTuple):
    """The columns of a race; one item per unit of time."""

    values: Array
    times: Array
    keys: Array


def spread_of(window: Array) -> Any:
    """Give the race's user-defined function: the greatest less the least."""
    return window.max() - window.min()


def _short(race: Race, cost: int) -> int:
    """Say how many items take at most so much work, the window's cost each."""
    return int(min(race.size, race.window + max(1000, _WORK // max(cost, 1))))


def _few(race: Race) -> int:
    return min(race.size, race.window + max(200, _CALLS // race.window))


def _pandas(race: Race, data: Data) -> Contender | None:
    import pandas as pd

    if race.experiment == "key":
        frame = pd.DataFrame({"x": data.values, "k": data.keys}, index=pd.to_datetime(data.times, unit="s"))
        order = np.argsort(data.keys, kind="stable")

        def keyed() -> Array:
            groups = frame.groupby("k", sort=True)["x"]
            rolling = groups.rolling(race.window, min_periods=1) if race.by == "count" else groups.rolling(f"{race.window}s")
            out = np.empty(race.size)
            out[order] = getattr(rolling, race.agg)().to_numpy()
            return out

        return Contender(keyed, race.size)
    calls = race.agg in ("distinct", "top_k", "udf")  # of a Python function, for full windows only
    items = _few(race) if calls else race.size
    rolling = _rolling(race, data, items, race.window if calls else 1)
    if race.agg == "quantile":
        return Contender(lambda: rolling.quantile(QUANTILE).to_numpy(), items)
    if race.agg == "distinct":
        return Contender(lambda: rolling.apply(lambda x: len(np.unique(x)), raw=True).to_numpy(), items, race.window - 1)
    if race.agg == "top_k":
        return Contender(lambda: _top_of_each(rolling, race.window), items, race.window - 1)
    if race.agg == "udf":
        return Contender(lambda: rolling.apply(spread_of, raw=True).to_numpy(), items, race.window - 1)
    return Contender(lambda: getattr(rolling, race.agg)().to_numpy(), items)


def _rolling(race: Race, data: Data, items: int, least: int) -> Any:
    import pandas as pd

    if race.by == "count":
        return pd.Series(data.values[:items]).rolling(race.window, min_periods=least)
    series = pd.Series(data.values[:items], index=pd.to_datetime(data.times[:items], unit="s"))
    return series.rolling(f"{race.window}s", min_periods=least)


def _top_of_each(rolling: Any, window: int) -> list[list[float]]:
    """List the largest items of each full window; apply() gives numbers only, so the lists are put aside."""
    found: list[list[float]] = [[]] * (window - 1)

    def put_aside(x: Array) -> float:
        found.append(np.sort(np.partition(x, -TOP)[-TOP:])[::-1].tolist())
        return 0.0

    rolling.apply(put_aside, raw=True)
    return found


def _pandas_numba(race: Race, data: Data) -> Contender | None:
    if race.agg != "udf" or not importlib.util.find_spec("numba"):
        return None
    items = _short(race, race.window)
    rolling = _rolling(race, data, items, race.window)
    return Contender(lambda: rolling.apply(spread_of, raw=True, engine="numba").to_numpy(), items, race.window - 1)


def _polars(race: Race, data: Data) -> Contender | None:
    import polars as pl

    if race.agg == "top_k" or (race.agg == "udf" and race.by == "time"):
        return None
    if race.agg == "udf":
        items = _few(race)
        column = pl.Series("x", data.values[:items])
        return Contender(lambda: column.rolling_map(spread_of, race.window).to_numpy(), items, race.window - 1)
    if race.agg == "distinct":
        items = _few(race)
        counted = pl.DataFrame({"x": data.values[:items], "t": data.times[:items]}).rolling("t", period=f"{race.window}i")
        return Contender(lambda: counted.agg(pl.col("x").n_unique())["x"].to_numpy(), items)
    frame = pl.DataFrame({"x": data.values, "t": data.times, "k": data.keys})
    extra: dict[str, Any] = {"quantile": QUANTILE, "interpolation": "linear"} if race.agg == "quantile" else {}
    if race.by == "count":
        call = getattr(pl.col("x"), f"rolling_{race.agg}")(window_size=race.window, min_samples=1, **extra)
    else:
        call = getattr(pl.col("x"), f"rolling_{race.agg}_by")("t", window_size=f"{race.window}i", **extra)
    if race.experiment == "key":
        call = call.over("k")
    return Contender(lambda: frame.select(call)["x"].to_numpy(), race.size)


def _duckdb(race: Race, data: Data) -> Contender | None:
    import duckdb

    if race.agg == "udf":
        return None
    calls = {
        "std": "stddev_samp(x)",
        "mean": "avg(x)",
        "quantile": f"quantile_cont(x, {QUANTILE})",
        "distinct": "count(DISTINCT x)",
        "top_k": f"max(x, {TOP})",
    }
    items = race.size
    frame = "ROWS" if race.by == "count" else "RANGE"
    part = "PARTITION BY k " if race.experiment == "key" else ""
    over = f"OVER ({part}ORDER BY t {frame} BETWEEN {race.window - 1} PRECEDING AND CURRENT ROW)"
    connection = duckdb.connect()
    connection.execute(f"SET threads = {2 if race.experiment == 'key' else 1}")
    columns = {"x": data.values[:items], "t": data.times[:items], "k": data.keys[:items]}
    connection.register("given", columns)
    connection.execute("CREATE TABLE items AS SELECT * FROM given")
    order = " ORDER BY t" if race.experiment == "key" else ""  # others come out in order as they are
    query = f"SELECT {calls.get(race.agg, race.agg + '(x)')} {over} AS y FROM items{order}"
    return Contender(lambda: connection.execute(query).fetchnumpy()["y"], items)


def _moving(library: str) -> Callable[[Race, Data], Contender | None]:
    """Make the peer of bottleneck or numbagg, which have the same names; windows by count only."""

    def peer(race: Race, data: Data) -> Contender | None:
        module = importlib.import_module(library)
        move = getattr(module, f"move_{race.agg}", None)
        if move is None or race.by != "count" or race.experiment == "key" or (library == "numbagg" and race.agg == "quantile"):
            return None
        extra = {"ddof": 1} if library == "bottleneck" and race.agg == "std" else {}
        if race.agg == "median" and race.window > 10_000:
            return None  # minutes
        return Contender(lambda: move(data.values, window=race.window, min_count=1, **extra), race.size)

    return peer


def _numpy(race: Race, data: Data) -> Contender | None:
    """Prefix sums where there are, else every window by itself."""
    if race.experiment == "key":
        return None
    x, w = data.values, race.window
    if race.agg in ("sum", "mean", "std"):
        starts = np.arange(race.size) - w + 1 if race.by == "count" else None
        return Contender(
            lambda: _prefix(race.agg, x, np.searchsorted(data.times, data.times - w, "right") if starts is None else starts), race.size
        )
    items = _short(race, 10 * w)
    if race.by == "time" or items < 2 * w:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(x[:items], w)
    padded = np.full(w - 1, np.nan)
    calls: dict[str, Callable[[], Array]] = {
        "min": lambda: windows.min(axis=1),
        "max": lambda: windows.max(axis=1),
        "median": lambda: np.median(windows, axis=1),
        "quantile": lambda: np.quantile(windows, QUANTILE, axis=1),
        "distinct": lambda: 1 + np.count_nonzero(np.diff(np.sort(windows, axis=1), axis=1), axis=1),
        "udf": lambda: windows.max(axis=1) - windows.min(axis=1),
    }
    call = calls.get(race.agg)
    return None if call is None else Contender(lambda: np.concatenate([padded, call()]), items, w - 1)


def _prefix(name: str, x: Array, starts: Array) -> Array:
    """Give sums of windows from a start to each item as differences of prefix sums."""
    starts = np.maximum(starts, 0)

    def totals(values: Array) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        return sums[1:] - sums[starts]  # type: ignore[no-any-return]

    counts = np.arange(1, len(x) + 1) - starts
    if name == "sum":
        return totals(x)
    if name == "mean":
        return totals(x) / counts
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation: Array = np.sqrt((totals(x * x) - totals(x) ** 2 / counts) / (counts - 1))
        return deviation


# Peers by name: the package that must be there, and how it races.
PEERS: Final[dict[str, tuple[str, Callable[[Race, Data], Contender | None]]]] = {
    "pandas": ("pandas", _pandas),
    "pandas+numba": ("pandas", _pandas_numba),
    "polars": ("polars", _polars),
    "duckdb": ("duckdb", _duckdb),
    "bottleneck": ("bottleneck", _moving("bottleneck")),
    "numbagg": ("numbagg", _moving("numbagg")),
    "numpy": ("numpy", _numpy),
}
