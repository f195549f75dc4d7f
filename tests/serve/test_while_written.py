"""Answers while a stream writes, merges, compacts and expires: each is the store's at a watermark that it had; none fails."""

import datetime as dt
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sash.serve import app
from sash.serve.limits import Limits
from tests.serve.client import Client
from tests.serve.conftest import FRESH
from tests.serve.streams import ZONES, empty, value
from tests.serve.writer import write

MIDNIGHT = dt.datetime(2024, 1, 1)


def minute(text):
    return (dt.datetime.fromisoformat(text[:-1]) - MIDNIGHT) // dt.timedelta(minutes=1)


class Rows:
    """Brute force, remembered: the trips of a zone and minute."""

    def __init__(self):
        self._counts = {}

    def trips(self, zone, first, last):
        for m in range(first, last):
            if (zone, m) not in self._counts:
                self._counts[zone, m] = value(zone, m)
        return [fare for m in range(first, last) for fare in self._counts[zone, m]]


def question(client, rng):
    """One of several questions; gives what was answered, to be judged when all states are known."""
    zone = rng.choice(ZONES)
    match rng.randrange(3):
        case 0:
            return zone, client.get("/api/stores/trips/lookback", key=zone, agg=["trips", "longest"], back=["10m", "2h"])
        case 1:
            return zone, client.get("/api/stores/trips/range", key=zone, agg="trips", step="1h")
        case _:
            return zone, client.get("/api/stores/trips/top", agg="trips", n=len(ZONES))


def judge(zone, answer, states, rows):
    """Why an answer is of no state that was committed; None where it is of one."""
    if answer.status != 200:
        return f"{answer.status} {answer.body[:300]!r}"
    found = answer.json()
    mark = minute(found["complete_to"])
    kept = states.get(mark)
    if kept is None:
        return f"{found['complete_to']} is no watermark that was committed"

    def right(first):
        first = max(first, 0)
        if "at" in found:
            row = found["rows"][0]
            for text, back in (("10m", 10), ("2h", 120)):
                fares = rows.trips(zone, max(mark - back, first), mark)
                if row[f"trips_{text}"] != len(fares) or row[f"longest_{text}"] != (max(fares) / 3 if fares else None):
                    return False
            return True
        if minute(found["from"]) != first:
            return False
        if "step" in found:
            return sum(row["trips"] for row in found["rows"]) == len(rows.trips(zone, first, mark))
        return {row["zone"]: row["trips"] for row in found["rows"]} == {z: n for z in ZONES if (n := len(rows.trips(z, first, mark)))}

    firsts = {next((m for m in range(k, mark) if any(value(z, m) for z in ZONES)), k) if k == 0 else k for k in kept}
    return None if any(map(right, firsts)) else f"{found} is not the store's at {mark}, kept from {kept}"


def asked_until(done, stores, readers, limits):
    """Ask in several threads until the writer is done; all answers."""
    served, answers, lock = app(stores, limits=limits), [], threading.Lock()

    def read(n):
        rng, mine = random.Random(n), []
        with Client(served) as client:
            while True:
                last = done()
                mine += [question(client, rng) for _ in range(5)]
                if last:
                    break
        with lock:
            answers.extend(mine)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def judged(answers, told):
    states = {}
    for kept, mark in told:
        states.setdefault(mark, set()).add(kept)
    rows = Rows()
    empty_ones = [answer for _, answer in answers if answer.status == 409]  # before the first batch
    wrong = [why for zone, answer in answers if answer.status != 409 and (why := judge(zone, answer, states, rows))]
    assert not wrong, f"{len(wrong)} of {len(answers)}: {wrong[:3]}"
    marks = {answer.json()["complete_to"] for _, answer in answers if answer.status == 200}
    return len(answers) - len(empty_ones), len(marks)


@pytest.mark.parametrize("limits", [FRESH, Limits()], ids=["looks each time", "looks five times a second"])
def test_answers_are_of_a_committed_watermark_while_a_thread_writes(tmp_path, limits):
    empty(tmp_path / "trips")
    told, done = [], threading.Event()

    def work():
        write(tmp_path / "trips", 60, lambda *state: told.append(state))
        done.set()

    writer = threading.Thread(target=work)
    writer.start()
    answers = asked_until(done.is_set, tmp_path / "trips", 3, limits)
    writer.join()
    assert len(told) > 60
    answered, marks = judged(answers, told)
    assert answered >= 15
    assert marks >= 2


@pytest.mark.stress
@pytest.mark.timeout(600)
def test_answers_are_of_a_committed_watermark_while_a_process_writes_for_two_minutes(tmp_path):
    path = tmp_path / "trips"
    empty(path)
    root = Path(__file__).parents[2]
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.serve.writer", str(path), os.environ.get("SASH_SERVE_SECONDS", "120")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
    )
    answers = asked_until(lambda: writer.poll() is not None, path, 4, Limits())
    assert writer.wait() == 0
    told = [tuple(map(int, line.split())) for line in Path(f"{path}.states").read_text().splitlines()]
    answered, marks = judged(answers, told)
    print(f"{answered:,} answers of {marks:,} of {len(told):,} states, all of them right")
    assert marks >= 10
