"""Wheels against what could serve instead: streams under a watermark, questions about history, memory."""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, Final

import numpy as np

from sash import _bench, agg
from sash.bench.experiments import Finding
from sash.bench.machine import nanoseconds_per_tick, pinned, say, spread
from sash.bench.plots import marks
from sash.bench.tables import columns, rate
from sash.wheel import KeyedWheels, Wheel

__all__ = ["findings", "measure", "plot", "table"]

Cells = list[dict[str, Any]]
DAY: Final = 86_400
SLIDE: Final = 10  # seconds
CONTENDERS: Final = {
    "wheel-stream": ("wheel", "fiba", "fiba_slide"),
    "wheel-query": ("wheel", "wheel_inverse", "wheel_prefix", "fiba", "flat_fat", "b_tree"),
    "wheel-space": ("wheel", "wheel_prefix", "fiba", "flat_fat", "b_tree"),
    "wheel-keys": ("in order", "late", "any order", "text"),
}


def measure(name: str, options: argparse.Namespace) -> Cells:
    """Run an experiment, or those of its contenders that --form names."""
    contenders = CONTENDERS[name] if options.form is None else (options.form,)
    if name == "wheel-stream":
        return _streams(contenders, options)
    if name == "wheel-keys":
        return _keyed(contenders, options)
    return _queries(contenders, options) if name == "wheel-query" else _space(contenders, options)


# --- streams: sum of int64, 100 events per second of stream time, a watermark every 100 events


def _streams(contenders: tuple[str, ...], options: argparse.Namespace) -> Cells:
    events = options.rounds or (2_000_000 if options.quick else 10_000_000)
    repeats = options.repeats or 3
    settings = [(ratio, ahead, late) for ratio in (0, 3, 300) for ahead in ((64,) if options.quick else (64, 512)) for late in (0.0, 0.45)]
    cells: Cells = []
    for ratio, ahead, late in settings:
        sums = set()
        for contender in contenders:
            if ratio == 0 and contender != "wheel":
                continue
            setting = (contender, events, late, ahead, ratio * SLIDE, SLIDE)
            with pinned():
                runs = [_bench.wheel_stream(*setting, False) for _ in range(repeats)]
                counted = _bench.wheel_stream(*(contender, min(events, 200_000)), *setting[2:], True)
            sums |= {run["sum"] for run in runs}
            rates = spread([events / run["laps"][0] for run in runs])
            cell = {
                "experiment": "wheel-stream",
                "contender": contender,
                "range_per_slide": ratio,
                "write_ahead": ahead,
                "late": late,
                "events": events,
                "throughput": rates["median"],
                "spread": rates,
                "combines_per_event": counted["combines"] / min(events, 200_000),
            }
            windows = "no windows" if ratio == 0 else f"range/slide {ratio:>3}"
            say(f"wheel-stream {contender:11} {windows:16} write ahead {ahead:>3} late {late:4.0%} {rates['median'] / 1e6:8.1f} M events/s")
            cells.append(cell)
        if len(sums) > 1:
            raise AssertionError(f"the contenders disagree at range/slide {ratio}: {sums}.")
    return cells


# --- questions: one event per second of one and of seven days


def _queries(contenders: tuple[str, ...], options: argparse.Namespace) -> Cells:
    queries = options.rounds or (5_000 if options.quick else 50_000)
    cells: Cells = []
    for days in (1, 7):
        for aligned in ("seconds", "minutes", "landmark"):
            sums = set()
            for contender in contenders:
                if aligned == "landmark" and contender.startswith("wheel_"):
                    continue
                with pinned():
                    run = _bench.wheel_query(contender, aligned, days * DAY, queries, options.repeats or 3, False)
                    counted = _bench.wheel_query(contender, aligned, days * DAY, min(queries, 2_000), 1, True)
                sums.add(run["sum"])
                ns = run["ticks"] * nanoseconds_per_tick()
                cells.append(_asked(contender, days, aligned, queries, ns, counted["combines"] / min(queries, 2_000)))
            if len(sums) > 1:
                raise AssertionError(f"the contenders disagree over {days} days of {aligned}: {sums}.")
        if options.form is None:
            cells += _from_python(days, queries) + _duckdb(days, min(queries, 200))
    return cells


def _asked(contender: str, days: int, aligned: str, queries: int, ns: Any, combines: float | None) -> dict[str, Any]:
    p50, p95 = (float(p) for p in np.percentile(ns, [50, 95]))
    say(f"wheel-query  {contender:20} {days} days {aligned:9} p50 {p50:10,.0f} ns  p95 {p95:10,.0f} ns")
    cell = {"experiment": "wheel-query", "contender": contender, "days": days, "aligned": aligned, "queries": queries}
    return {**cell, "ns": {"p50": p50, "p95": p95}, "combines": combines}


def _ranges(days: int, n: int, unit: int) -> tuple[Any, Any]:
    ends = np.sort(np.random.default_rng(11).integers(0, days * DAY // unit + 1, (n, 2)), axis=1) * unit
    return ends[:, 0], ends[:, 1]


def _history(days: int, layout: str) -> Wheel:
    wheel = Wheel(agg.sum(), unit="s", layout=layout)  # type: ignore[arg-type]
    wheel.insert_many(np.arange(days * DAY) % 101 + 1, np.arange(days * DAY))
    wheel.advance_to(days * DAY)
    return wheel


def _from_python(days: int, n: int) -> Cells:
    """The same questions from Python: one call each, and all in one call."""
    out = []
    for layout in ("plain", "prefix"):
        wheel = _history(days, layout)
        starts, ends = _ranges(days, n, 1)
        pairs = list(zip(starts.tolist(), ends.tolist(), strict=True))
        times = []
        for start, end in pairs:
            begun = time.perf_counter_ns()
            wheel.query(start, end)
            times.append(time.perf_counter_ns() - begun)
        out.append(_asked(f"{layout}, Python", days, "seconds", n, np.array(times), None))
        begun = time.perf_counter_ns()
        found = wheel.query_many(starts, ends)
        spent = time.perf_counter_ns() - begun
        if found.tolist()[:1000] != [wheel.query(a, b) for a, b in pairs[:1000]]:
            raise AssertionError("query_many and query disagree.")
        out.append(_asked(f"{layout}, query_many", days, "seconds", n, np.full(1, spent / n), None))
    return out


def _duckdb(days: int, n: int) -> Cells:
    try:
        import duckdb
    except ImportError:
        return []
    seconds = np.arange(days * DAY)
    values = seconds % 101 + 1
    base = duckdb.connect()
    base.execute("create table history as select unnest($1) as t, unnest($2) as v", [seconds.tolist(), values.tolist()])
    sums = np.concatenate([[0], np.cumsum(values)])
    times = []
    for start, end in zip(*(side.tolist() for side in _ranges(days, n, 1)), strict=True):
        begun = time.perf_counter_ns()
        row = base.execute("select coalesce(sum(v), 0) from history where t >= ? and t < ?", [start, end]).fetchone()
        times.append(time.perf_counter_ns() - begun)
        if row is None or int(row[0]) != int(sums[end] - sums[start]):
            raise AssertionError(f"DuckDB disagrees over [{start}, {end}).")
    return [_asked("DuckDB", days, "seconds", n, np.array(times), None)]


# --- memory: what is allocated for a history of seconds


def _space(contenders: tuple[str, ...], options: argparse.Namespace) -> Cells:
    cells = []
    for days in (1, 7):
        for contender in contenders:
            run = _bench.wheel_query(contender, "seconds", days * DAY, 1, 1, False)
            cells.append({"experiment": "wheel-space", "contender": contender, "agg": "sum_int", "days": days, "bytes": run["bytes"]})
        if options.form is None:
            for layout in ("plain", "prefix"):
                wheel = Wheel(agg.sum(), unit="s", layout=layout, dtype="float64")  # type: ignore[arg-type]
                wheel.insert_many(np.ones(days * DAY), np.arange(days * DAY))
                wheel.advance_to(days * DAY)
                cells.append(
                    {"experiment": "wheel-space", "contender": f"wheel, {layout}", "agg": "sum", "days": days, "bytes": wheel.nbytes}
                )
        for cell in cells[-len(contenders) - 2 :]:
            say(f"wheel-space  {cell['contender']:16} {cell['agg']:8} {days} days {cell['bytes'] / 2**20:8.2f} MiB")
    return cells


# --- many keys: one batch of rows over a day of minutes


def _keyed(contenders: tuple[str, ...], options: argparse.Namespace) -> Cells:
    """In time order; 45 % of the rows up to ten minutes late; in no order; in time order with text for keys."""
    rows = options.rounds or (2_000_000 if options.quick else 20_000_000)
    keys = options.keys or max(1, rows // 200)
    rng = np.random.default_rng(1)
    ids, values = rng.integers(0, keys, rows), rng.integers(0, 1000, rows)
    scattered = rng.integers(0, DAY, rows)
    ordered = np.sort(scattered)
    cells = []
    for contender in contenders:
        column: Any = ids
        if contender == "text":
            import pyarrow as pa

            column = pa.array([f"key-{i:07d}" for i in range(keys)]).take(pa.array(ids))
        times = {"any order": scattered, "late": np.maximum(ordered - (rng.random(rows) < 0.45) * rng.integers(0, 600, rows), 0)}
        found = []
        for _ in range(options.repeats or 1):
            wheels = KeyedWheels(agg.sum(), unit="s", grain="1m")
            begun = time.perf_counter()
            wheels.insert_many(column, values, times.get(contender, ordered))
            wheels.advance_to(DAY)
            found.append(rows / (time.perf_counter() - begun))
            if wheels.landmark_all() != int(values.sum()) or sum(wheels.query_each(0, DAY)[1]) != int(values.sum()):
                raise AssertionError(f"rows were lost ({contender}).")
        rates = spread(found)
        say(f"wheel-keys   {contender:10} {rates['median'] / 1e6:8.2f} M rows/s  {wheels.memory / 2**20:8.1f} MiB")
        cell = {"experiment": "wheel-keys", "contender": contender, "rows": rows, "keys": len(wheels), "bytes": wheels.memory}
        cells.append({**cell, "throughput": rates["median"], "spread": rates})
    return cells


# --- shown


def table(name: str, cells: Cells) -> str:
    """Lay the cells out as text, one line each."""
    if name == "wheel-stream":
        head = ["contender", "range/slide", "write ahead", "late", "M events/s", "least", "greatest", "combines"]
        rows = [
            [c["contender"], c["range_per_slide"], c["write_ahead"], f"{c['late']:.0%}", *rate(c), c["combines_per_event"]] for c in cells
        ]
        return columns(head, rows)
    if name == "wheel-query":
        head = ["contender", "days", "aligned to", "p50 ns", "p95 ns", "combines"]
        return columns(head, [[c["contender"], c["days"], c["aligned"], c["ns"]["p50"], c["ns"]["p95"], c["combines"]] for c in cells])
    if name == "wheel-keys":
        head = ["rows come", "rows", "keys", "M rows/s", "least", "greatest", "MiB"]
        return columns(head, [[c["contender"], c["rows"], c["keys"], *rate(c), c["bytes"] / 2**20] for c in cells])
    head = ["contender", "aggregation", "days", "MiB", "bytes/second"]
    return columns(head, [[c["contender"], c["agg"], c["days"], c["bytes"] / 2**20, c["bytes"] / (c["days"] * DAY)] for c in cells])


def plot(name: str, cells: Cells, figure: Any) -> None:
    """Draw a mark per cell."""
    axes = figure.subplots()
    if name == "wheel-stream":
        label = [f"{c['contender']}, {c['range_per_slide']}, {c['write_ahead']}, {c['late']:.0%}" for c in cells]
        values, text = [c["throughput"] / 1e6 for c in cells], "million events per second, by range/slide, write ahead, late"
    elif name == "wheel-query":
        label = [f"{c['contender']}, {c['days']} days, {c['aligned']}" for c in cells]
        values, text = [c["ns"]["p50"] for c in cells], "median nanoseconds per range"
    elif name == "wheel-keys":
        label = [c["contender"] for c in cells]
        values, text = [c["throughput"] / 1e6 for c in cells], f"million rows per second, {cells[0]['keys']:,} keys"
    else:
        label = [f"{c['contender']}, {c['agg']}, {c['days']} days" for c in cells]
        values, text = [c["bytes"] / 2**20 for c in cells], "MiB of a history of seconds"
    figure.set_size_inches(9, max(3.0, 1.4 + 0.2 * len(cells)))
    marks(axes, label, values)
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xlabel=text)


def findings(name: str, cells: Cells) -> list[Finding]:
    """Check what the µWheel paper says, and what is promised here."""
    checks = {"wheel-stream": _stream_findings, "wheel-query": _query_findings, "wheel-space": _space_findings, "wheel-keys": _key_findings}
    return checks[name](cells)


def _stream_findings(cells: Cells) -> list[Finding]:
    out = []
    for ratio in sorted({c["range_per_slide"] for c in cells} - {0}):
        rates: dict[str, list[float]] = {}
        for c in cells:
            if c["range_per_slide"] == ratio:
                rates.setdefault(c["contender"], []).append(c["throughput"] / 1e6)
        if "wheel" in rates and len(rates) > 1:
            held = all(min(rates["wheel"]) > max(other) for who, other in rates.items() if who != "wheel")
            why = ", ".join(f"{who} {statistics.median(found):.0f} M events/s" for who, found in rates.items())
            out.append(Finding(f"wheel-stream: a wheel outruns FiBA at either grain (range/slide {ratio})", held, why))
    return out


LIMITS: Final = {("wheel", "seconds"): 700, ("wheel", "minutes"): 400, ("wheel_prefix", "seconds"): 150, ("wheel", "landmark"): 25}


def _query_findings(cells: Cells) -> list[Finding]:
    by = {(c["contender"], c["aligned"]): c for c in cells if c["days"] == 7}
    out = [
        Finding(
            f"wheel-query: {who}, ranges of seven days aligned to {aligned}, p50 within {limit} ns",
            by[who, aligned]["ns"]["p50"] <= limit,
            f"{by[who, aligned]['ns']['p50']:,.0f} ns",
        )
        for (who, aligned), limit in LIMITS.items()
        if (who, aligned) in by
    ]
    for who in ("fiba", "flat_fat", "b_tree"):
        if (who, "seconds") in by and ("wheel_prefix", "seconds") in by:
            ours, theirs = by["wheel_prefix", "seconds"]["ns"]["p50"], by[who, "seconds"]["ns"]["p50"]
            out.append(Finding(f"wheel-query: prefixes answer before {who}", ours < theirs, f"{ours:,.0f} ns, {theirs:,.0f} ns"))
    return out


def _space_findings(cells: Cells) -> list[Finding]:
    found = [c for c in cells if c["contender"] == "wheel, plain" and c["days"] == 7]
    return [
        Finding("wheel-space: seven days of seconds of a float64 sum in 5.0 MiB", c["bytes"] <= 5 * 2**20, f"{c['bytes'] / 2**20:.2f} MiB")
        for c in found
    ]


def _key_findings(cells: Cells) -> list[Finding]:
    out = [
        Finding(
            f"wheel-keys: 5 million rows/s ({c['contender']})",
            c["throughput"] >= 5e6,
            f"{c['throughput'] / 1e6:.1f} M rows/s of {c['rows']:,}",
        )
        for c in cells
    ]
    most = max(c["bytes"] for c in cells)
    return [*out, Finding("wheel-keys: less than a gibibyte", most < 2**30, f"{most / 2**20:,.0f} MiB, {cells[0]['keys']:,} keys")]
