"""The demo on the first days of the year: what it reports is computed again, without Spark and without Sash."""

import collections
import datetime as dt
import re

import numpy as np
import pytest

from sash import cli
from sash.demo import command, flights, training

pytestmark = pytest.mark.spark

FIRST = 6_000  # a week


def test_flights_come_in_the_order_they_left():
    table = flights.departures()
    assert table.num_rows == 328_521
    assert round(flights.out_of_order(table), 3) == 0.592
    assert (np.diff(table["left"].to_numpy()) >= np.timedelta64(0)).all()


def test_the_demo_checks_asks_and_draws(shared, tmp_path, capsys):
    rows = flights.departures(FIRST).to_pylist()
    chart = tmp_path / "chart.png"
    assert cli.main(["demo", "--flights", str(FIRST), "--batches", "1", "--out", str(tmp_path / "out"), "--chart", str(chart)]) == 0
    said = capsys.readouterr().out
    assert said.count("stream = batch, row by row: yes") == 3
    assert f"features      {FIRST:,} rows" in said
    assert re.search(r"the same [\d,]+ windows: yes", said)
    assert re.search(rf"Spark's window\(\) +{FIRST:,} flights in ", said)
    assert f"{FIRST // 50:,} labels by rolling(at=)" in said
    assert "then open http://127.0.0.1:8017/" in said

    # windows of an hour, one every 2 minutes: as many as (key, start) pairs that hold a flight
    keys = [(row["origin"], row["carrier"]) for row in rows]
    minutes = [int(row["scheduled"].timestamp()) // 60 for row in rows]
    windows = {(*key, start) for key, minute in zip(keys, minutes, strict=True) for start in range(minute // 2 - 29, minute // 2 + 1)}
    assert f"windows   {len(windows):>9,} of 1 h" in said
    assert f"tiles     {len(set(zip(keys, minutes, strict=True))):>9,} slices" in said

    # the three answers
    morning = [
        row["dep_delay"]
        for row in rows
        if (row["origin"], row["carrier"]) == ("EWR", "UA")
        and dt.datetime(2013, 1, 7, 6, tzinfo=dt.UTC) <= row["scheduled"] < dt.datetime(2013, 1, 7, 12, 30, tzinfo=dt.UTC)
    ]
    assert f"    {sum(morning) / len(morning):.1f} min on average" in said
    days = collections.defaultdict(list)
    for row in rows:
        days[row["scheduled"].date()].append(row["dep_delay"])
    last = max(days)  # cut off by --flights: not a whole day
    worst = max((day for day in days if dt.date(2013, 1, 1) < day < last), key=lambda day: sum(days[day]) / len(days[day]))
    assert f"    {worst}: {sum(days[worst]) / len(days[worst]):.1f} min on average" in said
    led = collections.defaultdict(list)
    for key, row in zip(keys, rows, strict=True):
        if worst - dt.timedelta(days=3) <= row["scheduled"].date() <= worst:
            led[key].append(row["dep_delay"])
    means = {key: sum(v) / len(v) for key, v in led.items()}
    named = [
        f"{carrier} from {origin} {means[origin, carrier]:.1f} min" for origin, carrier in sorted(means, key=means.get, reverse=True)[:3]
    ]
    assert ", ".join(named) in said
    assert len(re.findall(r"\d ms$", said, re.M)) >= 3
    assert chart.read_bytes()[:4] == b"\x89PNG"
    assert chart.stat().st_size > 50_000


@pytest.mark.parametrize(("done", "code"), [({}, 0), (None, 1)])
def test_the_exit_code_says_whether_all_rows_were_equal(monkeypatch, tmp_path, done, code):
    class Session:
        def stop(self):
            pass

    monkeypatch.setattr("sash.spark.session", lambda *names, **conf: Session())
    monkeypatch.setattr(command, "check", lambda *given: done)
    monkeypatch.setattr(command, "race", lambda *given: {})
    monkeypatch.setattr("sash.demo.questions.answers", lambda path: [])
    monkeypatch.setattr("sash.demo.chart.draw", lambda *given: None)
    assert cli.main(["demo", "--flights", "10", "--chart", str(tmp_path / "chart.png")]) == code


def test_a_training_set_has_what_was_known_before_each_label():
    table = flights.departures(FIRST)
    rows = table.to_pylist()
    last = rows[(FIRST - 1) // 50 * 50]
    before = [
        row["dep_delay"]
        for row in rows
        if (row["origin"], row["carrier"]) == (last["origin"], last["carrier"])
        and last["scheduled"] - dt.timedelta(hours=3) <= row["scheduled"] < last["scheduled"]
    ]
    said = training.training_set(table)[-1].split()
    assert said[4] == str(len(before))
    assert said[5] == (f"{sum(before) / len(before):.1f}" if before else "-")
