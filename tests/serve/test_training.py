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


@pytest.mark.parametrize("hop", ["", "/1m"])
def test_what_is_served_is_what_rolling_gives_a_label_at_the_stores_grain(client, events, hop):
    import pyarrow.compute as pc

    rng = random.Random(6)
    # Some time within a minute. The server cuts it to the grain; a training set cuts it as docs/serve.md says.
    asked = [(zone, rng.randrange(DAY), rng.randrange(60)) for zone in [*ZONES, "atlantis"] for _ in range(20)]
    times = pa.array([MIDNIGHT + dt.timedelta(minutes=m, seconds=s) for _, m, s in asked], pa.timestamp("us", "UTC"))
    cut = pc.floor_temporal(times, unit="minute")
    labels = pa.table({"zone": [zone for zone, *_ in asked], "at": cut})
    aggs = {"trips": agg.count(), "fare": agg.mean("fare")}
    backs = [back + hop for back in BACKS]
    trained = sash.rolling(events, time="at", key="zone", lookbacks=backs, aggs=aggs, at=labels).to_pylist()
    assert len(trained) == len(asked)
    for row, (zone, minute, second) in zip(trained, asked, strict=True):
        at = stamp(minute).replace(":00Z", f":{second:02d}Z")
        served = client.get("/api/stores/trips/lookback", key=zone, agg=["trips", "fare"], back=BACKS, at=at).json()["rows"][0]
        for back in BACKS:
            assert served[f"trips_{back}"] == row[f"trips_{back}"], (zone, minute, back)
            mine, theirs = served[f"fare_{back}"], row[f"fare_{back}"]
            assert mine == (theirs if theirs is None else pytest.approx(theirs, rel=1e-12)), (zone, minute, back)
