"""Figures for Prometheus: of requests, of stores, of streaming queries; the dashboard asks for those that there are."""

import json
import pathlib
import re
import time
import types

import pytest

from tests.serve.streams import MINUTE, T0, ZONES, empty

ROOT = pathlib.Path(__file__).parents[2]


def scraped(client):
    from prometheus_client.parser import text_string_to_metric_families

    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    found = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            found[sample.name, *sorted(sample.labels.items())] = sample.value
    return found


def test_requests_are_counted_by_route_and_status(client):
    for _ in range(3):
        client.get("/api/stores/trips/range", agg="trips")
    client.get("/api/stores/trips/range", agg="nope")
    client.get("/nowhere")
    found = scraped(client)
    assert found["sash_requests_total", ("route", "range"), ("status", "200")] == 3
    assert found["sash_requests_total", ("route", "range"), ("status", "400")] == 1
    assert found["sash_requests_total", ("route", "none"), ("status", "404")] == 1
    assert found["sash_request_seconds_count", ("route", "range")] == 4


def test_stores_tell_their_watermark_slices_and_memory(ask, trips, tmp_path):
    client = ask({"trips": trips, "new": empty(tmp_path / "new")})
    client.get("/api/stores/trips/top", agg="trips")
    found = scraped(client)
    at = (T0 + 1440 * MINUTE) / 1e6
    assert found["sash_store_watermark_seconds", ("store", "trips")] == at
    assert found["sash_store_lag_seconds", ("store", "trips")] == pytest.approx(time.time() - at, abs=60)
    assert found["sash_store_slices", ("store", "trips")] > len(ZONES) * 100
    assert found["sash_store_wheel_bytes", ("store", "trips")] > 0
    assert found["sash_store_up", ("store", "new")] == 1
    assert ("sash_store_watermark_seconds", ("store", "new")) not in found


@pytest.fixture
def queries():
    """The figures of two queries, from reports made up here."""
    pytest.importorskip("pyspark", reason="the extra 'spark' is not installed")
    from sash.spark.listener import listen

    class Streams:
        def addListener(self, listener):
            self.listener = listener

        def removeListener(self, listener):
            self.listener = None

    streams = Streams()
    metrics = listen(types.SimpleNamespace(streams=streams))

    def report(query, batch, rows, late=0):
        observed = {"sash.tiles.1.in": types.SimpleNamespace(asDict=lambda: {"rows": rows, "null_times": 2})}
        observed["sash.tiles.1.out"] = types.SimpleNamespace(asDict=lambda: {"late": late, "keys": 3, "slices": 40})
        progress = types.SimpleNamespace(
            id=query, name=query, batchId=batch, observedMetrics=observed, numInputRows=rows, processedRowsPerSecond=rows / 0.5,
            durationMs={"triggerExecution": 500}, stateOperators=[types.SimpleNamespace(memoryUsedBytes=1_500)],
            eventTime={"watermark": "2024-01-01T00:10:00.000Z"},
        )  # fmt: skip
        streams.listener.onQueryProgress(types.SimpleNamespace(progress=progress))

    streams.listener.onQueryStarted(types.SimpleNamespace(id="tiles", name="tiles"))
    report("tiles", 0, 100)
    report("tiles", 1, 50, late=4)
    report("tiles", 1, 50, late=4)  # Spark tells a report again
    report("hourly", 0, 70)
    streams.listener.onQueryTerminated(types.SimpleNamespace(id="hourly"))
    return metrics


def test_figures_of_queries_add_up(queries, ask, trips):
    tiles, hourly = queries.snapshot()
    assert (tiles["rows"], tiles["late"], tiles["null_times"], tiles["batches"], tiles["keys"], tiles["slices"]) == (150, 4, 4, 2, 3, 40)
    assert (tiles["active"], hourly["active"]) == (True, False)
    assert tiles["batch_seconds"] == [0.5, 0.5]
    client = ask(trips, pipelines=queries)
    assert client.get("/api/pipelines").json()["pipelines"][0]["state_bytes"] == 1500
    found = scraped(client)
    assert found["sash_rows_total", ("query", "tiles")] == 150
    assert found["sash_late_rows_total", ("query", "tiles")] == 4
    assert found["sash_null_times_total", ("query", "tiles")] == 4
    assert found["sash_state_bytes", ("query", "hourly")] == 1500
    assert found["sash_batch_seconds_sum", ("query", "tiles")] == 1.0
    assert found["sash_watermark_seconds", ("query", "tiles")] == 1704067800
    assert found["sash_lag_seconds", ("query", "tiles")] == pytest.approx(time.time() - 1704067800, abs=60)
    assert found["sash_active", ("query", "hourly")] == 0


def test_the_dashboard_asks_for_metrics_that_there_are(queries, ask, trips):
    client = ask(trips, pipelines=queries)
    client.get("/api/stores/trips/range")
    exposed = client.get("/metrics").body.decode()
    known = set(re.findall(r"^# TYPE (\w+)", exposed, re.M)) | {name for name, *_ in scraped(client)}
    board = json.loads((ROOT / "docs" / "grafana.json").read_text())
    asked = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"\bsash_\w+", target["expr"])}
    asked |= {name for one in board["templating"]["list"] for name in re.findall(r"\bsash_\w+", json.dumps(one["query"]))}
    assert len(asked) > 15
    assert asked <= known, asked - known
