"""Answers over HTTP equal brute force over the rows, and say up to when they are complete."""

import datetime as dt
import itertools
import shutil

import pytest

from sash import agg
from sash.wheel import TileStore
from tests.serve.streams import AGGS, MINUTE, T0, ZONES, empty, pa, slices, value, written

DAY = 1440


def fares(zones, first, last):
    return [fare for zone in zones for minute in range(max(first, 0), last) for fare in value(zone, minute)]


def mean(found):
    return sum(found) / len(found) if found else None


def stamp(minute):
    return (dt.datetime(2024, 1, 1) + dt.timedelta(minutes=minute)).isoformat() + "Z"


def near(found):
    return found if found is None else pytest.approx(found, rel=1e-12)


def test_look_backs_of_keys_equal_brute_force(client):
    found = client.get(
        "/api/stores/trips/lookback", key=["soho", "harlem"], agg=["trips", "fare"], back=["30m", "6h"], explain="true"
    ).json()
    assert (found["at"], found["watermark"], found["complete_to"]) == (stamp(DAY), stamp(DAY), stamp(DAY))
    for row, zone in zip(found["rows"], ["soho", "harlem"], strict=True):
        assert row["zone"] == zone
        for text, minutes in (("30m", 30), ("6h", 360)):
            rows = fares([zone], DAY - minutes, DAY)
            assert row[f"trips_{text}"] == len(rows)
            assert row[f"fare_{text}"] == near(mean(rows))
    assert found["combines"] > 0


@pytest.mark.parametrize("minute", [0, 1, 61, 700, 1439, 1440])
def test_look_backs_up_to_a_time_are_what_training_gives_a_label_at_that_time(client, minute):
    # A label at t takes [t - p, t): nothing from t on, so nothing leaks. On the grain both ways agree.
    found = client.get("/api/stores/trips/lookback", key="chelsea", agg="trips,fare", back="1h", at=stamp(minute)).json()
    rows = fares(["chelsea"], minute - 60, minute)
    assert found["at"] == stamp(minute)
    assert found["rows"] == [{"zone": "chelsea", "trips_1h": len(rows), "fare_1h": near(mean(rows))}]


def test_a_time_within_a_slice_is_cut_to_its_start(client):
    within = client.get("/api/stores/trips/lookback", key="soho", back="1h", at="2024-01-01T11:40:59").json()
    assert within["at"] == stamp(700)
    assert within["rows"] == client.get("/api/stores/trips/lookback", key="soho", back="1h", at=stamp(700)).json()["rows"]


def test_a_time_after_the_watermark_is_said_to_be_incomplete(client):
    found = client.get("/api/stores/trips/lookback", key="soho", agg="trips", back="1h", at=stamp(DAY + 30)).json()
    assert found["rows"] == [{"zone": "soho", "trips_1h": len(fares(["soho"], DAY - 30, DAY))}]
    assert found["notes"] == [f"at={stamp(DAY + 30)} is after the watermark: what came after 2024-01-02 00:00 is not complete"]
    now = client.get("/api/stores/trips/lookback", key="soho", agg="trips", back="1h", at="now").json()
    assert now["rows"] == [{"zone": "soho", "trips_1h": 0}]
    assert now["complete_to"] == stamp(DAY)


def test_a_key_that_never_came_has_the_empty_results(client):
    found = client.get("/api/stores/trips/lookback", key="atlantis", back="1h").json()
    assert found["rows"] == [{"zone": "atlantis", "trips_1h": 0, "fare_1h": None, "longest_1h": None, "ends_1h": None}]


@pytest.mark.parametrize(("step", "minutes"), [("1m", 1), ("7m", 7), ("1h", 60)])
def test_a_range_by_steps_equals_brute_force(client, step, minutes):
    first, last = 95, 95 + 20 * minutes
    asked = {"from": stamp(first), "to": stamp(last), "step": step}
    found = client.get("/api/stores/trips/range", key="midtown", agg=["fare", "longest"], **asked).json()
    cuts = [first, *range((T0 // MINUTE + first) // minutes * minutes + minutes - T0 // MINUTE, last, minutes), last]
    expected = []
    for a, b in itertools.pairwise(cuts):
        rows = fares(["midtown"], a, b)
        longest = max(rows) / 3 if rows else None
        expected.append({"zone": "midtown", "time": stamp(a), "fare": near(mean(rows)), "longest": near(longest)})
    assert found["rows"] == expected
    together = client.get("/api/stores/trips/range", agg="trips", **asked).json()
    assert [row["trips"] for row in together["rows"]] == [len(fares(ZONES, a, b)) for a, b in itertools.pairwise(cuts)]


def test_the_step_is_chosen_from_the_points_wanted(client):
    found = {points: client.get("/api/stores/trips/range", agg="trips", step="auto", points=points).json() for points in (1, 30, 100, 2000)}
    assert [one["step"] for one in found.values()] == ["1d", "1h", "15m", "1m"]
    assert {sum(row["trips"] for row in one["rows"]) for one in found.values()} == {len(fares(ZONES, 0, DAY))}


def test_the_largest_keys_equal_brute_force(client):
    found = client.get("/api/stores/trips/top", agg="trips", n=3, **{"from": "6h"}).json()
    expected = sorted(((len(fares([zone], DAY - 360, DAY)), zone) for zone in ZONES), reverse=True)[:3]
    assert [row["trips"] for row in found["rows"]] == [n for n, _ in expected]
    assert found["keys"] == len(ZONES)


def test_a_plan_says_what_an_answer_costs(client):
    found = client.get("/api/stores/trips/plan", agg="trips", **{"from": "6h"}).json()
    assert "<- chosen" in found["plans"][0]["text"]
    assert found["plans"][0]["combines"] == 5  # six hours
    one = client.get("/api/stores/trips/plan", agg="trips", key="soho", **{"from": "6h"}).json()
    assert "of 'soho'" in one["plans"][0]["text"]


def test_arrow_holds_what_json_does(client):
    asked = {"key": ZONES, "agg": ["trips", "fare", "ends"], "step": "1h"}
    rows = client.get("/api/stores/trips/range", **asked).json()["rows"]
    answer = client.get("/api/stores/trips/range", **asked, format="arrow")
    table = pa.ipc.open_stream(answer.body).read_all()
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert table.schema.metadata[b"complete_to"].decode() == stamp(DAY)
    assert table.to_pylist() == rows


def test_a_body_asks_for_many_keys_at_once(client):
    keys = [*ZONES, *(f"nobody-{i}" for i in range(992))]
    found = client.post("/api/stores/trips/lookback", {"key": keys, "agg": ["trips"], "back": ["1h"]}).json()
    assert [row["zone"] for row in found["rows"]] == keys
    assert [row["trips_1h"] for row in found["rows"]] == [len(fares([zone], DAY - 60, DAY)) for zone in ZONES] + [0] * 992


def test_keys_are_listed_by_their_beginning(client):
    assert client.get("/api/stores/trips/keys").json() == {"store": "trips", "keys": sorted(ZONES), "all": 8}
    assert client.get("/api/stores/trips/keys", prefix="so").json()["keys"] == ["soho"]
    assert client.get("/api/stores/trips/keys", n=2, offset=6).json() == {"store": "trips", "keys": ["soho", "tribeca"], "all": 8}


def test_a_stores_facts(client):
    found = client.get("/api/stores").json()["stores"]
    assert found == [client.get("/api/stores/trips").json()]
    assert found[0]["key"] == ["zone"]
    assert (found[0]["grain"], found[0]["levels"]) == ("1m", ["1m", "1h", "1d", "1w"])
    assert found[0]["aggs"]["fare"]["agg"] == "mean"
    assert (found[0]["first"], found[0]["complete_to"]) == (stamp(0), stamp(DAY))


def test_what_is_written_is_in_the_next_answer(ask, tmp_path):
    store = written(tmp_path / "trips", 60)
    client = ask(tmp_path / "trips")
    assert client.get("/api/stores/trips/range", agg="trips").json()["rows"][0]["trips"] == len(fares(ZONES, 0, 60))
    store.write(slices(ZONES, 60, 90), query="q", batch=4, watermark=T0 + 90 * MINUTE)
    found = client.get("/api/stores/trips/range", agg="trips").json()
    assert (found["complete_to"], found["rows"][0]["trips"]) == (stamp(90), len(fares(ZONES, 0, 90)))


def test_a_store_larger_than_the_memory_given_is_read_key_by_key(ask, trips):
    import dataclasses

    from sash.serve.limits import Limits

    client = ask(trips, limits=dataclasses.replace(Limits(), memory=1000))
    found = client.get("/api/stores/trips/lookback", key=["soho", "harlem"], agg="trips", back="6h").json()
    assert [row["trips_6h"] for row in found["rows"]] == [len(fares([zone], DAY - 360, DAY)) for zone in ("soho", "harlem")]
    for _ in range(2):  # the second time from what was kept
        assert client.get("/api/stores/trips/lookback", key="soho", agg="trips", back="6h").json()["rows"] == found["rows"][:1]
    refused = client.get("/api/stores/trips/top", agg="trips")
    assert refused.status == 422
    assert "start the server with more memory" in refused.json()["error"]


def test_an_empty_store_says_so_and_answers_once_there_is_something(ask, tmp_path):
    store = empty(tmp_path / "trips")
    client = ask(tmp_path / "trips")
    assert client.get("/api/stores/trips").json()["watermark"] is None
    answer = client.get("/api/stores/trips/range")
    assert (answer.status, answer.json()) == (
        409,
        {"error": "the store 'trips' has no complete slice yet. Ask again when its stream's watermark has passed one."},
    )
    store.write(slices(ZONES, 0, 5), query="q", batch=0, watermark=T0 + 5 * MINUTE)
    assert client.get("/api/stores/trips/range", agg="trips").json()["rows"][0]["trips"] == len(fares(ZONES, 0, 5))


def test_a_store_that_vanishes_is_said_to_be_gone_and_is_found_again(ask, tmp_path):
    written(tmp_path / "trips", 60)
    client = ask(tmp_path / "trips")
    assert client.get("/api/stores/trips/range", agg="trips").status == 200
    shutil.move(tmp_path / "trips", tmp_path / "elsewhere")
    for path in ("/api/stores/trips", "/api/stores/trips/range", "/api/stores/trips/keys"):
        answer = client.get(path)
        assert (answer.status, answer.json()["error"]) == (404, "the store 'trips' is no longer there. Ask again when it is back.")
    assert client.get("/api/stores").json()["stores"] == [{"store": "trips", "error": answer.json()["error"]}]
    written(tmp_path / "trips", 30, ZONES[:2])  # another one in its place
    assert client.get("/api/stores/trips/range", agg="trips").json()["rows"][0]["trips"] == len(fares(ZONES[:2], 0, 30))


def test_a_damaged_store_is_said_to_be_damaged_without_a_path(ask, tmp_path):
    written(tmp_path / "trips", 60)
    client = ask(tmp_path / "trips")
    manifest = tmp_path / "trips" / "_sash" / "manifest.json"
    manifest.write_text(manifest.read_text()[:100])
    answer = client.get("/api/stores/trips/range")
    assert answer.status == 503
    assert "can't be read" in answer.json()["error"]
    assert str(tmp_path) not in answer.json()["error"]


def test_keys_of_several_columns_and_types(ask, tmp_path):
    store = TileStore.create(tmp_path / "lines", aggs={"n": agg.count()}, grain="1m", key=["zone", "line"])
    starts = pa.array([T0, T0, T0 + MINUTE]).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"zone": ["a,b", None, "c"], "line": pa.array([1, 2, 3], pa.int32()), "slice_start": starts, "n": [5, 6, 7]})
    store.write(table, query="q", batch=0, watermark=T0 + 2 * MINUTE)
    client = ask(tmp_path / "lines")
    assert client.get("/api/stores/lines/range", key='"a,b",1').json()["rows"] == [{"zone": "a,b", "line": 1, "time": stamp(0), "n": 5}]
    found = client.post("/api/stores/lines/range", {"key": [["a,b", 1], [None, 2], ["c", 3]]}).json()
    assert [row["n"] for row in found["rows"]] == [5, 6, 7]
    assert '"a,b",1' in client.get("/api/stores/lines/keys").json()["keys"]


def test_a_store_without_a_key(ask, tmp_path):
    store = TileStore.create(tmp_path / "all", aggs={"n": agg.count()}, grain="1m")
    store.write(
        pa.table({"slice_start": pa.array([T0]).cast(pa.timestamp("us", "UTC")), "n": [3]}), query="q", batch=0, watermark=T0 + MINUTE
    )
    client = ask(tmp_path / "all")
    assert client.get("/api/stores/all/lookback", back="1m").json()["rows"] == [{"n_1m": 3}]
    assert client.get("/api/stores/all/lookback", back="1m", key="a").status == 400


def test_numbers_that_json_has_no_form_for_are_texts(ask, tmp_path):
    store = TileStore.create(tmp_path / "odd", aggs={"s": agg.sum("v")}, grain="1m", key="zone")
    starts = pa.array([T0] * 3).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"zone": ["a", "b", "c"], "slice_start": starts, "s": [float("nan"), float("inf"), -1.5]})
    store.write(table, query="q", batch=0, watermark=T0 + MINUTE)
    found = ask(tmp_path / "odd").get("/api/stores/odd/lookback", key=["a", "b", "c"], back="1m").json()
    assert [row["s_1m"] for row in found["rows"]] == ["NaN", "Infinity", -1.5]


def test_stores_have_names(ask, tmp_path, trips):
    store = TileStore(trips)
    client = ask({"one": trips, "two": str(trips), "three": store})
    assert [one["store"] for one in client.get("/api/stores").json()["stores"]] == ["one", "two", "three"]
    with pytest.raises(ValueError, match="two stores have the name 'trips'"):
        ask([trips, trips])
    with pytest.raises(ValueError, match="can't be the name of a store"):
        ask({"../x": trips})
    assert set(AGGS) == set(client.get("/api/stores/three").json()["aggs"])
