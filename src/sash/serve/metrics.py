"""Figures for Prometheus: requests, the stores that are served, and the pipelines that run beside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily

from sash.serve.limits import Deadline, Refused
from sash.serve.opened import OpenStore
from sash.time import MICROS

__all__ = ["Metrics"]

_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Metrics:
    """What one application counts and exposes."""

    def __init__(self, stores: Sequence[OpenStore], pipelines: Any = None) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._requests = Counter("sash_requests", "Requests by route and status.", ["route", "status"], registry=self._registry)
        self._seconds = Histogram("sash_request_seconds", "Seconds of a request.", ["route"], registry=self._registry, buckets=_BUCKETS)
        self._of: dict[tuple[str, int], tuple[Any, Any]] = {}  # looked up once
        self._registry.register(_Stores(stores))  # type: ignore[arg-type]
        ProcessCollector(registry=self._registry)
        if pipelines is not None:
            self._registry.register(pipelines)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        found = self._of.get((route, status))
        if found is None:
            found = self._of[route, status] = self._requests.labels(route, str(status)), self._seconds.labels(route)
        requests, latency = found
        requests.inc()
        latency.observe(seconds)

    def text(self) -> bytes:
        """Write all of it as Prometheus reads it."""
        return generate_latest(self._registry)


class _Stores:
    """Reads the figures of the stores when Prometheus asks."""

    def __init__(self, stores: Sequence[OpenStore]) -> None:
        self._stores = stores

    def collect(self) -> Iterator[Any]:
        """Give the metric families."""
        told = {
            "sash_store_up": "Whether the store can be read.",
            "sash_store_watermark_seconds": "Up to where the store is complete, in seconds since the epoch.",
            "sash_store_lag_seconds": "How far the store's watermark is behind the clock.",
            "sash_store_slices": "Slices in the store.",
            "sash_store_wheel_bytes": "Memory of the store's open wheels.",
        }
        families = {name: GaugeMetricFamily(name, about, labels=["store"]) for name, about in told.items()}
        for store in self._stores:
            figures: dict[str, float] = {"sash_store_up": 0, "sash_store_wheel_bytes": store.memory}
            try:
                with store.facts(Deadline(1.0)) as now:
                    figures |= {"sash_store_up": 1, "sash_store_slices": len(now)}
                    if now.watermark is not None:
                        at = now.watermark / MICROS["s"]
                        figures |= {"sash_store_watermark_seconds": at, "sash_store_lag_seconds": time.time() - at}
            except Refused:
                pass
            for name, value in figures.items():
                families[name].add_metric([store.name], value)
        yield from families.values()
