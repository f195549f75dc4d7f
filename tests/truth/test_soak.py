"""A slice of every net of the soak, and what the soak does when one of them finds something."""

import queue
import time

import pytest

from tests.truth import soak


@pytest.mark.parametrize("name", [name for name in soak.NETS if name not in ("table", "fuzz", "files")])  # those have tests of their own
def test_a_turn_of_every_net_finds_nothing(name):
    assert soak.turn(name, 7, 0.3) > 0


def test_a_net_that_finds_something_is_told_with_its_seed(monkeypatch):
    def wrong(name, seed, seconds):
        raise AssertionError("7 is not 8")

    monkeypatch.setattr(soak, "turn", wrong)
    told = queue.SimpleQueue()
    soak._work(0, 3, ["table"], time.time() + 60, told)
    begins, found = told.get(), told.get()
    assert begins[1:4] == ("begins", "table", found[3])
    assert "7 is not 8" in found[1]
    assert told.empty()


def test_a_process_that_dies_fails_the_soak():
    said = []
    assert soak.soak(0.5, 3, ["no such net"], 1, said.append) is None
    assert "WRONG" in said[-1]
    assert "ended with 1" in said[-1]
