"""Counters of a running query, from the metrics that Spark observes and reports."""

from __future__ import annotations

import datetime as dt
import time
from collections import deque
from typing import Any, Final

from sash.time import MICROS, timestamp

COUNTED: Final = ("rows", "null_times", "ahead", "seen", "late", "unparsed")  # of a batch
HELD: Final = ("keys", "slices")  # after a batch
NAMES = (*COUNTED, *HELD)
_KEPT: Final = 120  # batches whose length is remembered


def metrics(progress: Any) -> dict[str, int]:
    """Add up what Sash counted in one micro-batch: pass `query.lastProgress`, or one of `query.recentProgress`.

    `rows` came in, `null_times` had no time, `ahead` were refused by max_ahead, `seen` were before history_until, `late` were behind the
    watermark, `unparsed` had a value that a pipeline could not take apart; `keys` and `slices` are held as state after the batch.

    >>> from types import SimpleNamespace
    >>> from pyspark.sql import Row
    >>> progress = SimpleNamespace(observedMetrics={"sash.windows": Row(rows=400, late=3)})      # of a running query
    >>> counted = metrics(progress)
    >>> counted["rows"], counted["late"], counted["ahead"]
    (400, 3, 0)
    """
    found = dict.fromkeys(NAMES, 0)
    for name, row in progress.observedMetrics.items():
        if name.startswith("sash."):
            for counter, value in row.asDict().items():
                found[counter] += value or 0
    return found


class Figures:
    """What one streaming query has done since it was first seen, from Spark's progress reports."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.active = True
        self.batches = self.input_rows = 0
        self.counted = dict.fromkeys(COUNTED, 0)
        self.held = dict.fromkeys(HELD, 0)
        self.state_bytes = 0
        self.watermark: int | None = None  # in microseconds
        self.rate = 0.0  # rows per second of the last batch
        self.seconds: deque[float] = deque(maxlen=_KEPT)  # of the last batches
        self.total_seconds = 0.0
        self._seen = -1

    def take(self, progress: Any) -> bool:
        """Add one report; False if it was added before."""
        if progress.batchId <= self._seen:
            return False
        self._seen = progress.batchId
        counted = metrics(progress)
        self.batches += 1
        self.input_rows += progress.numInputRows
        for name in COUNTED:
            self.counted[name] += counted[name]
        if progress.stateOperators:
            self.held = {name: counted[name] for name in HELD}
            self.state_bytes = sum(operator.memoryUsedBytes for operator in progress.stateOperators)
        self.rate = float(progress.processedRowsPerSecond or 0)
        self.seconds.append(progress.durationMs.get("triggerExecution", 0) / 1e3)
        self.total_seconds += self.seconds[-1]
        watermark = progress.eventTime.get("watermark")
        if watermark and not watermark.startswith("1970-01-01T00:00:00"):  # where Spark's stands before the first row
            self.watermark = timestamp(dt.datetime.fromisoformat(watermark))
        return True

    @property
    def lag(self) -> float | None:
        """How many seconds the watermark is behind the clock; None before there is one."""
        return None if self.watermark is None else time.time() - self.watermark / MICROS["s"]

    def snapshot(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "query": self.name,
            "active": self.active,
            "batches": self.batches,
            "rows_per_second": round(self.rate, 1),
            **self.counted,
            "rows": self.counted["rows"] or self.input_rows,
            **self.held,
            "state_bytes": self.state_bytes,
            "watermark_us": self.watermark,
            "lag_seconds": None if self.lag is None else round(self.lag, 1),
            "batch_seconds": [round(seconds, 3) for seconds in self.seconds],
        }
