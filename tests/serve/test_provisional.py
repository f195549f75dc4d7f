"""What is not final yet, over HTTP and from the shell: added where it is asked for, and said so."""

import json

import pytest

from sash import cli
from sash.wheel import TileStore
from sash.wheel.tile_open import write_open
from tests.serve.streams import MINUTE, T0, ZONES, empty, slices
from tests.serve.test_answers import fares, mean, near, stamp


@pytest.fixture
def store(tmp_path):
    """An hour of tiles, and ten minutes more that are not final."""
    made = empty(tmp_path / "trips")
    made.write(slices(ZONES, 0, 60), query="q", batch=0, watermark=T0 + 60 * MINUTE, open=slices(ZONES, 60, 70))
    return made


def test_look_backs_reach_to_the_last_row_where_asked(store, ask):
    client = ask(store)
    asked = {"key": ["soho", "harlem"], "agg": "trips,fare", "back": ["5m", "30m"]}
    final = client.get("/api/stores/trips/lookback", **asked).json()
    assert (final["at"], "provisional" in final) == (stamp(60), False)
    found = client.get("/api/stores/trips/lookback", **asked, provisional="true").json()
    assert (found["at"], found["complete_to"]) == (stamp(70), stamp(60))
    assert found["provisional"] == {"from": stamp(60), "to": stamp(70), "batch": 0}
    for row, before in zip(found["rows"], final["rows"], strict=True):
        for text, minutes in (("5m", 5), ("30m", 30)):
            fresh, old = (fares([row["zone"]], end - minutes, end) for end in (70, 60))
            assert (row[f"trips_{text}"], row[f"fare_{text}"]) == (len(fresh), near(mean(fresh)))
            assert (before[f"trips_{text}"], before[f"fare_{text}"]) == (len(old), near(mean(old)))


def test_ranges_and_the_largest_keys_with_what_is_not_final(store, ask):
    client = ask(store)
    found = client.get("/api/stores/trips/range", agg="trips", step="30m", provisional="true").json()
    assert [row["trips"] for row in found["rows"]] == [len(fares(ZONES, a, b)) for a, b in ((0, 30), (30, 60), (60, 70))]
    assert (found["to"], found["complete_to"]) == (stamp(70), stamp(60))
    top = client.get("/api/stores/trips/top", agg="trips", provisional="true", n=20, **{"from": stamp(50)}).json()
    assert {row["zone"]: row["trips"] for row in top["rows"]} == {z: len(fares([z], 50, 70)) for z in ZONES if fares([z], 50, 70)}
    facts = client.get("/api/stores/trips").json()
    assert facts["provisional"] == {"to": stamp(70), "batch": 0}


def test_each_batch_replaces_what_was_open(store, ask):
    client = ask(store)
    client.get("/api/stores/trips/lookback", key="soho", agg="trips", back="1h", provisional="true")
    store.write(slices(ZONES, 60, 65), query="q", batch=1, watermark=T0 + 65 * MINUTE, open=slices(ZONES, 65, 90))
    found = client.get("/api/stores/trips/lookback", key="soho", agg="trips", back="1h", provisional="true").json()
    assert found["rows"][0]["trips_1h"] == len(fares(["soho"], 30, 90))
    assert found["provisional"] == {"from": stamp(65), "to": stamp(90), "batch": 1}
    store.write(slices(ZONES, 65, 90), query="q", batch=2, watermark=T0 + 90 * MINUTE)  # nothing open is told
    found = client.get("/api/stores/trips/lookback", key="soho", agg="trips", back="1h", provisional="true").json()
    assert (found["rows"][0]["trips_1h"], "provisional" in found) == (len(fares(["soho"], 30, 90)), False)


def test_a_stream_that_has_nothing_final_yet_can_be_asked_for_what_is_open(tmp_path, ask):
    store = empty(tmp_path / "new")
    write_open(store, slices(ZONES, 0, 5).append_column("slice_end", _ends(5)), query="q", batch=0, watermark=0)
    client = ask(store)
    assert client.get("/api/stores/new/range").status == 409
    found = client.get("/api/stores/new/range", agg="trips", provisional="true").json()
    assert found["rows"][0]["trips"] == len(fares(ZONES, 0, 5))


def _ends(minutes):
    import pyarrow as pa

    starts = slices(ZONES, 0, minutes)["slice_start"].cast(pa.int64())
    return pa.compute.add(starts, MINUTE).cast(pa.timestamp("us", "UTC"))


def test_the_shell_adds_what_is_not_final_and_says_so(store, capsys):
    def asked(*options):
        assert cli.main(["query", str(store.path), "--agg", "trips", "--format", "json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    assert asked()["rows"] == [{"trips": len(fares(ZONES, 0, 60))}]
    found = asked("--provisional")
    assert found["rows"] == [{"trips": len(fares(ZONES, 0, 70))}]
    assert found["notes"] == ["provisional from 2024-01-01 01:00 to 2024-01-01 01:10: not final, it may still change"]
    assert asked("--provisional", "--to", "2024-01-01 00:30")["notes"] == ["nothing of it is provisional"]
    TileStore(store.path).write(slices(ZONES, 60, 70), query="q", batch=1, watermark=T0 + 70 * MINUTE)
    assert asked("--provisional")["notes"] == ["the stream publishes nothing that is provisional now"]
