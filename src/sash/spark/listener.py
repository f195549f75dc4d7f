"""Figures of every streaming query of a session, as Spark reports them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from sash.errors import missing_extra
from sash.spark.metrics import Figures
from sash.time import MICROS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Metrics", "listen"]


def listen(spark: SparkSession) -> Metrics:
    """Follow the streaming queries of a session: what each has done, as plain values and for Prometheus.

    It sees the queries that start or report from now on. What it gives is a collector of prometheus-client, and what
    `sash.serve.app(..., pipelines=)` shows.

    >>> figures = listen(spark)                                          # doctest: +SKIP
    >>> figures.snapshot()                                               # doctest: +SKIP
    []
    >>> figures.close()                                                  # doctest: +SKIP
    """
    return Metrics(spark)


class Metrics:
    """The figures of a session's streaming queries."""

    def __init__(self, spark: SparkSession) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, Figures] = {}
        self._listener = _Listener(self)
        self._streams = spark.streams
        self._streams.addListener(self._listener)

    def snapshot(self) -> list[dict[str, Any]]:
        """The figures of every query as plain values, in the order in which the queries were first seen."""
        with self._lock:
            return [figures.snapshot() for figures in self._queries.values()]

    def close(self) -> None:
        """Stop following; the figures stay as they are."""
        self._streams.removeListener(self._listener)

    def take(self, query: str, name: str | None, step: Callable[[Figures], Any]) -> None:
        """Change the figures of a query."""
        with self._lock:
            figures = self._queries.setdefault(query, Figures(name or query))
            step(figures)

    def collect(self) -> Iterator[Any]:
        """Give the metric families of prometheus-client."""
        try:
            from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
        except ImportError:
            raise missing_extra("prometheus-client", "serve") from None
        found = self.snapshot()

        def family(kind: Any, name: str, about: str, value: Callable[[dict[str, Any]], float | None]) -> Any:
            made = kind(f"sash_{name}", about, labels=["query"])
            for one in found:
                if (figure := value(one)) is not None:
                    made.add_metric([one["query"]], figure)
            return made

        for name, about in _COUNTERS.items():
            yield family(CounterMetricFamily, name, about, lambda one, name=name: one.get(name.removesuffix("_rows")))  # type: ignore[misc]
        for name, about in _GAUGES.items():
            yield family(GaugeMetricFamily, name, about, lambda one, name=name: one[name])  # type: ignore[misc]
        yield family(GaugeMetricFamily, "active", "Whether the query runs.", lambda one: float(one["active"]))
        yield family(
            GaugeMetricFamily,
            "watermark_seconds",
            "The query's watermark, in seconds since the epoch.",
            lambda one: None if one["watermark_us"] is None else one["watermark_us"] / MICROS["s"],
        )
        batches = SummaryMetricFamily("sash_batch_seconds", "Seconds of the micro-batches.", labels=["query"])
        with self._lock:
            for figures in self._queries.values():
                batches.add_metric([figures.name], figures.batches, figures.total_seconds)
        yield batches


_COUNTERS = {
    "rows": "Rows that came in.",
    "late_rows": "Rows behind the watermark.",
    "null_times": "Rows without a time.",
    "ahead_rows": "Rows refused by max_ahead.",
    "unparsed_rows": "Rows whose value could not be taken apart.",
    "seen_rows": "Rows that history had counted already.",
}
_GAUGES = {
    "keys": "Keys held as state.",
    "slices": "Slices held as state.",
    "state_bytes": "Memory of the state, as Spark counts it.",
    "rows_per_second": "Rows per second of the last micro-batch.",
    "lag_seconds": "How far the watermark is behind the clock.",
}


class _Listener(StreamingQueryListener):  # type: ignore[misc]
    """Hands Spark's reports on."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def onQueryStarted(self, event: Any) -> None:
        def started(figures: Figures) -> None:
            figures.active = True

        self._metrics.take(str(event.id), event.name, started)

    def onQueryProgress(self, event: Any) -> None:
        progress = event.progress
        self._metrics.take(str(progress.id), progress.name, lambda figures: figures.take(progress))

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        def ended(figures: Figures) -> None:
            figures.active = False

        self._metrics.take(str(event.id), None, ended)
