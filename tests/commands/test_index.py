"""`sash index`: an index of a table answers as the table itself, also as it grows."""

import datetime as dt
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash import cli
from sash.wheel import TileStore

T0 = dt.datetime(2023, 1, 1)
AGGS = ["--aggs", "n=count", "fare=sum(fare)", "far=max(km)"]


def trips(seed, start, count, hours=24):
    rng = random.Random(seed)
    at = sorted(T0 + dt.timedelta(hours=start, seconds=rng.randrange(hours * 3600)) for _ in range(count))
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("us")),
            "zone": [rng.choice("abc") for _ in at],
            "fare": [rng.randrange(100) for _ in at],
            "km": [rng.random() for _ in at],
        }
    )


def run(capsys, *arguments):
    code = cli.main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys, store, *options):
    code, out, err = run(capsys, "query", store, "--format", "json", *options)
    assert (code, err) == (0, "")
    return json.loads(out)["rows"]


def expected(rows, zone=None):
    chosen = [r for r in rows if zone in (None, r["zone"])]
    return {"n": len(chosen), "fare": sum(r["fare"] for r in chosen), "far": max(r["km"] for r in chosen)}


def test_an_index_answers_as_the_table_and_follows_it(capsys, tmp_path):
    table = tmp_path / "trips"
    table.mkdir()
    first, second = trips(1, 0, 3000), trips(2, 24, 2000)
    pq.write_table(first, table / "1.parquet")
    index = ("index", table, "--time", "at", "--key", "zone", *AGGS, "--grain", "1s")
    code, out, _ = run(capsys, *index)
    assert code == 0
    assert "sash query" in out
    store = tmp_path / "trips.tiles"
    upto = TileStore(store).watermark
    cut = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=upto)
    assert answer(capsys, store) == [expected([r for r in first.to_pylist() if r["at"] < cut])]
    assert run(capsys, *index)[1].startswith("0 rows into")  # nothing new

    pq.write_table(second, table / "2.parquet")
    assert run(capsys, *index, "--until", "2023-01-03")[0] == 0
    everything = [*first.to_pylist(), *second.to_pylist()]
    assert answer(capsys, store) == [expected(everything)]
    assert answer(capsys, store, "--key", "b")[0] == {"zone": "b", **expected(everything, "b")}
    hour = [r for r in everything if T0 + dt.timedelta(hours=30) <= r["at"] < T0 + dt.timedelta(hours=31, seconds=7)]
    assert answer(capsys, store, "--from", "2023-01-02 06:00", "--to", "2023-01-02 07:00:07") == [expected(hour)]


def test_a_table_that_changed_before_the_watermark_is_refused(capsys, tmp_path):
    table = tmp_path / "trips"
    table.mkdir()
    pq.write_table(trips(1, 0, 500), table / "1.parquet")
    index = ("index", table, "--time", "at", *AGGS)
    assert run(capsys, *index)[0] == 0
    pq.write_table(trips(9, 1, 10, 2), table / "late.parquet")
    code, _, err = run(capsys, *index)
    assert code == 1
    assert "it is no index of this table any more" in err


def test_a_delta_table_is_indexed(capsys, tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="the extra lake is not installed")
    rows = trips(1, 0, 500)
    deltalake.write_deltalake(str(tmp_path / "trips"), rows)
    assert run(capsys, "index", tmp_path / "trips", "--time", "at", *AGGS, "--until", "2023-01-02", "--to", tmp_path / "s")[0] == 0
    assert answer(capsys, tmp_path / "s") == [expected(rows.to_pylist())]
    deltalake.write_deltalake(str(tmp_path / "trips"), trips(2, 24, 300), mode="append")
    assert run(capsys, "index", tmp_path / "trips", "--time", "at", *AGGS, "--until", "2023-01-03", "--to", tmp_path / "s")[0] == 0
    assert answer(capsys, tmp_path / "s")[0]["n"] == 800


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--time", "when", *AGGS], "has no column 'when'"),
        (["--time", "fare", *AGGS], "not a timestamp"),
        (["--time", "at", "--aggs", "sum(fare)"], "has no name"),
        (["--time", "at", "--aggs", "x=avg(fare)"], "not an aggregation"),
        (["--time", "at", *AGGS, "--grain", "soon"], "--grain"),
    ],
)
def test_what_is_asked_wrongly_is_one_line_and_makes_nothing(capsys, tmp_path, options, says):
    pq.write_table(trips(1, 0, 50), tmp_path / "t.parquet")
    code, _, err = run(capsys, "index", tmp_path / "t.parquet", *options)
    assert code == 1
    assert says in err
    assert err.count("\n") == 1


def test_what_is_no_table_is_refused(capsys, tmp_path):
    code, _, err = run(capsys, "index", tmp_path / "nowhere", "--time", "at", *AGGS)
    assert code == 1
    assert "can't be read as a table" in err
