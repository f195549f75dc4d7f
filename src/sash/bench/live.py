"""What a micro-batch costs the engine alone, whatever it holds: steady micro-batches of a minute after a filled range."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sash import agg
from sash.bench.experiments import Finding
from sash.bench.machine import say
from sash.bench.plots import lines
from sash.bench.tables import columns

if TYPE_CHECKING:
    import pyarrow as pa

    from sash.engine import Bucket, Query

__all__ = ["findings", "measure", "plot", "table"]

Cells = list[dict[str, Any]]

MINUTE: Final = 60_000_000
RATIOS: Final = (10, 60, 360, 1_440)  # minutes of range, at a slide of one
SHARE: Final = 0.1  # of the rows are late
WARM: Final = 4  # micro-batches that do not count: in one of them the live form is made
SEVERAL: Final = (60, 360, 1_440)
AGGS: Final = (("n", agg.count()), ("s", agg.sum("v")), ("hi", agg.max("v")))


def _minutes(first: int, count: int, options: argparse.Namespace, rng: np.random.Generator) -> pa.RecordBatch:
    """The rows of some minutes, of which some are late by up to the lateness."""
    import pyarrow as pa

    n = options.rows * count
    times = np.sort(rng.integers(first * MINUTE, (first + count) * MINUTE, n))
    late = rng.random(n) < SHARE
    times[late] -= rng.integers(0, max(1, options.lateness) * MINUTE, int(late.sum()))
    values = [pa.array(rng.integers(0, options.keys, n)), pa.array(times), pa.array(rng.integers(0, 1_000, n))]
    return pa.record_batch(values, schema=pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())]))


def _query(form: str, ratio: int) -> Query:
    import pyarrow as pa

    from sash.engine import Query, Rolling, Windows

    schema = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])
    if form.startswith("windows"):
        aggs = AGGS[1:2] if form == "windows of sum" else AGGS
        return Query(schema, "t", ("k",), aggs, windows=Windows(ratio * MINUTE, MINUTE))
    periods = SEVERAL if form == "3 look-backs" else (ratio,)
    return Query(schema, "t", ("k",), AGGS, rolling=Rolling(tuple((f"{p}m", p * MINUTE) for p in periods)))


def _fill(bucket: Bucket, ratio: int, options: argparse.Namespace, rng: np.random.Generator) -> int:
    """Bring in a whole range in large micro-batches; gives the minute after it."""
    from sash.engine import Slicer

    slicer = Slicer(bucket.query, 1)
    minutes = int(ratio + options.lateness + 2)
    step = max(1, 2_000_000 // options.rows)
    for first in range(0, minutes, step):
        count = min(step, minutes - first)
        for packed in slicer.pack(_minutes(first, count, options, rng)):
            bucket.add(packed.blob)
        bucket.advance((first + count - options.lateness) * MINUTE)
    bucket.commit()
    return minutes


def _steady(form: str, ratio: int, options: argparse.Namespace) -> dict[str, Any]:
    from sash.engine import Bucket, Slicer

    rng = np.random.default_rng(7)
    query = _query(form, ratio)
    bucket, slicer = Bucket(query), Slicer(query, 1)
    minute = _fill(bucket, ratio, options, rng)
    cpu, wall, counted, out = [], [], [], 0
    for i in range(WARM + options.batches):
        batch = _minutes(minute + i, 1, options, rng)
        before = _counters(bucket)
        began = time.process_time(), time.perf_counter()
        for packed in slicer.pack(batch):
            bucket.add(packed.blob)
        given = bucket.advance((minute + i + 1 - options.lateness) * MINUTE)
        bucket.commit()
        spent = time.process_time() - began[0], time.perf_counter() - began[1]
        if i < WARM:
            continue
        cpu.append(1e3 * spent[0])
        wall.append(1e3 * spent[1])
        counted.append([now - then for now, then in zip(_counters(bucket), before, strict=True)])
        out += sum(b.num_rows for b in given)
    live = bucket._live
    if live is None:
        raise AssertionError(f"{form} at {ratio}: the state is in columns, not live.")
    expected = options.keys if form.startswith("windows") else options.rows
    if not 0.9 * expected <= out / options.batches <= 1.1 * expected:
        raise AssertionError(f"{form} at {ratio}: {out / options.batches:,.0f} rows came out of a micro-batch, not about {expected:,}.")
    visited, combines = (statistics.median(column) for column in zip(*counted, strict=True))
    held = live.core.bytes()
    return {
        "form": form,
        "ratio": ratio,
        "keys": options.keys,
        "rows": options.rows,
        "lateness": options.lateness,
        "cpu_ms": statistics.median(cpu),
        "wall_ms": statistics.median(wall),
        "least_ms": min(cpu),
        "greatest_ms": max(cpu),
        "visited": visited,
        "combines": combines,
        "rows_out": out / options.batches,
        "entries": len(live),
        "bytes": held,
        "bytes_per_entry": held / len(live),
        "column_bytes_per_entry": _column_bytes(bucket) / len(live) if len(live) < 4_000_000 else None,
    }


def _counters(bucket: Bucket) -> tuple[int, int]:
    live = bucket._live
    return (0, 0) if live is None else (live.core.visited, live.core.combines)


def _column_bytes(bucket: Bucket) -> int:
    run = bucket._whole()
    return int(run.times.nbytes + run.starts.nbytes + run.keys.memory() + sum(column.memory() for column in run.columns))


def _settings(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    ratios = (options.ratio,) if options.ratio else RATIOS[:3] if options.quick else RATIOS
    for form in (options.form,) if options.form else ("windows", "look-back"):
        for ratio in ratios:
            yield form, ratio
    if not options.form and not options.ratio and not options.quick:
        yield "3 look-backs", max(SEVERAL)


def measure(_: str, options: argparse.Namespace) -> Cells:
    """Measure micro-batches: 2,000 keys, 20,000 rows of a minute, 10 % late by up to ten minutes, unless told otherwise."""
    options = argparse.Namespace(**vars(options))
    options.keys, options.rows = options.keys or 2_000, options.rows or 20_000
    options.lateness = 10 if options.lateness is None else options.lateness
    options.batches = 6 if options.quick else 15
    cells = []
    for form, ratio in _settings(options):
        cells.append(_steady(form, ratio, options))
        say(f"{form:14} range/slide {ratio:5}  {cells[-1]['cpu_ms']:.1f} ms  {cells[-1]['entries']:,} entries")
    return cells


def table(_: str, cells: Cells) -> str:
    """Lay out what a micro-batch took."""
    head = ["form", "range/slide", "entries", "cpu ms", "least", "greatest", "wall ms", "visited", "combines", "rows out", "bytes/entry"]
    names = [
        "form",
        "ratio",
        "entries",
        "cpu_ms",
        "least_ms",
        "greatest_ms",
        "wall_ms",
        "visited",
        "combines",
        "rows_out",
        "bytes_per_entry",
    ]
    return columns(head, [[cell[name] for name in names] for cell in cells])


def plot(_: str, cells: Cells, figure: Any) -> None:
    """Draw the milliseconds over range/slide."""
    axes = figure.subplots()
    lines(axes, cells, "ratio", "cpu_ms", lambda cell: cell["form"], scale=1.0)
    axes.set(xlabel="range / slide", ylabel="ms of processor time per micro-batch", title="A micro-batch costs what changed")


def findings(_: str, cells: Cells) -> list[Finding]:
    """What holds whatever the range is."""
    found = []
    for form in dict.fromkeys(cell["form"] for cell in cells):
        by_ratio = {cell["ratio"]: cell for cell in cells if cell["form"] == form}
        if 60 in by_ratio and max(by_ratio) > 60:
            long, short = by_ratio[max(by_ratio)], by_ratio[60]
            times = long["cpu_ms"] / short["cpu_ms"]
            claim = f"live {form}: a micro-batch at range/slide {max(by_ratio):,} takes at most 1.6 times one at 60"
            found.append(Finding(claim, times <= 1.6, f"{long['cpu_ms']:.1f} to {short['cpu_ms']:.1f} ms, {times:.2f} times"))
    return found
