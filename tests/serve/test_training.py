"""Features served at a time equal the features that a label at that time is trained with."""

import datetime as dt
import random

import pytest

import sash
from sash import agg
from tests.serve.streams import ZONES, pa, value
from tests.serve.test_answers import DAY, stamp

MIDNIGHT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
BACKS = ["10m", "1h", "6h"]


@pytest.fixture(scope="module")
def events():
    """The rows that the store's tiles are of, each somewhere within its minute."""
    rng = random.Random(5)
    rows = [(zone, minute, fare) for zone in ZONES for minute in range(DAY) for fare in value(zone, minute)]
    at = [MIDNIGHT + dt.timedelta(minutes=minute, microseconds=rng.randrange(60_000_000)) for _, minute, _ in rows]
    return pa.table({"zone": [zone for zone, _, _ in rows], "at": pa.array(at, pa.timestamp("us", "UTC")), "fare": [f for *_, f in rows]})


def test_what_is_served_is_what_rolling_gives_a_label(client, events):
    rng = random.Random(6)
    asked = [(zone, rng.randrange(DAY + 1)) for zone in [*ZONES, "atlantis"] for _ in range(20)]
    times = pa.array([MIDNIGHT + dt.timedelta(minutes=minute) for _, minute in asked], pa.timestamp("us", "UTC"))
    labels = pa.table({"zone": [zone for zone, _ in asked], "at": times})
    aggs = {"trips": agg.count(), "fare": agg.mean("fare")}
    trained = sash.rolling(events, time="at", key="zone", lookbacks=BACKS, aggs=aggs, at=labels).to_pylist()
    assert len(trained) == len(asked)
    for row, (zone, minute) in zip(trained, asked, strict=True):
        served = client.get("/api/stores/trips/lookback", key=zone, agg=["trips", "fare"], back=BACKS, at=stamp(minute)).json()["rows"][0]
        for back in BACKS:
            assert served[f"trips_{back}"] == row[f"trips_{back}"], (zone, minute, back)
            mine, theirs = served[f"fare_{back}"], row[f"fare_{back}"]
            assert mine == (theirs if theirs is None else pytest.approx(theirs, rel=1e-12)), (zone, minute, back)
