"""A training set of the flights: features as of each label, without Spark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sash import agg
from sash.frames import rolling

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["training_set"]

EVERY = 50  # a label for one flight in so many
LATE = 60  # minutes: what the model is to foresee


def training_set(flights: pa.Table) -> list[str]:
    """Give every fiftieth flight the delays of its airline and airport before its schedule, and tell what came out."""
    import numpy as np
    import pyarrow as pa

    asked = flights.take(np.arange(0, flights.num_rows, EVERY))
    late = pa.array(asked["dep_delay"].to_numpy() >= LATE)
    labels = pa.table({"origin": asked["origin"], "carrier": asked["carrier"], "asked": asked["scheduled"], "an_hour_late": late})
    known = flights.select(["scheduled", "origin", "carrier", "dep_delay"])
    aggs = {"flights": agg.count(), "delay": agg.mean("dep_delay")}
    begun = time.perf_counter()
    made = rolling(known, time="scheduled", key=["origin", "carrier"], lookbacks=["3h", "7d"], aggs=aggs, at=labels, at_time="asked")
    seconds = time.perf_counter() - begun
    lines = [f"  {made.num_rows:,} labels by rolling(at=) over {known.num_rows:,} flights in {seconds:.2f} s, on this machine alone"]
    heads = ["asked", "origin", "carrier", "flights_3h", "delay_3h", "flights_7d", "delay_7d", "an_hour_late"]
    rows = made.slice(max(made.num_rows - 3, 0)).to_pylist()
    cells = [[_cell(row[name]) for name in heads] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    return lines + ["  " + "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)) for row in (heads, *cells)]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return "-" if value is None else str(value).removesuffix("+00:00").removesuffix(":00") if hasattr(value, "year") else str(value)
