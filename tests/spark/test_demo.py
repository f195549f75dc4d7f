"""The demo on a week of flights."""

import numpy as np
import pytest

from sash import cli, demo

pytestmark = pytest.mark.spark


def test_flights_come_in_the_order_they_left():
    flights = demo.departures()
    assert flights.num_rows == 328_521
    assert round(demo.out_of_order(flights), 3) == 0.592
    assert (np.diff(flights["left"].to_numpy()) >= np.timedelta64(0)).all()


def test_the_demo_proves_that_stream_equals_batch(spark, tmp_path, capsys):
    assert demo.check(spark, demo.departures(3_000), tmp_path, batches=2)
    said = capsys.readouterr().out
    assert said.count("stream = batch, row by row: yes") == 2
    assert "features      3,000 rows" in said


@pytest.mark.parametrize(("equal", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_all_rows_were_equal(monkeypatch, equal, code):
    class Session:
        def stop(self):
            pass

    monkeypatch.setattr("sash.spark.session", lambda *names, **conf: Session())
    monkeypatch.setattr(demo, "check", lambda *given: equal)
    assert cli.main(["demo", "--flights", "10"]) == code
