"""Counters of a running query, from the metrics that Spark observes."""

from __future__ import annotations

from typing import Any

NAMES = ("rows", "null_times", "ahead", "late", "keys", "slices")


def metrics(progress: Any) -> dict[str, int]:
    """Add up what Sash counted in one micro-batch: pass `query.lastProgress`, or one of `query.recentProgress`.

    `rows` came in, `null_times` had no time, `ahead` were refused by max_ahead, `late` were behind the watermark; `keys` and
    `slices` are held as state after the batch.
    """
    found = dict.fromkeys(NAMES, 0)
    for name, row in progress.observedMetrics.items():
        if name.startswith("sash."):
            for counter, value in row.asDict().items():
                found[counter] += value or 0
    return found
