"""Readers in other threads: each stays at its watermark while one thread writes."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import threading

import numpy as np
import pytest

from sash import agg
from sash.wheel import NotRetained, Reader, Wheel

ROOT = pathlib.Path(__file__).parents[2]


def item(t: int) -> int:
    return (t * 2654435761) % 1001 - 500


@pytest.mark.parametrize("kind", ["sum", "collect"])
def test_every_answer_of_a_reader_is_right_at_the_watermark_it_names(kind):
    ticks = 1500 if kind == "sum" else 400
    w = Wheel(getattr(agg, kind)(), unit="s", levels=(4, 12), retention={1: 100}, _chunk=8)
    values = [item(t) for t in range(ticks)]
    done = threading.Event()
    wrong: list[str] = []
    answers = [0, 0, 0]

    def read(n: int) -> None:
        rng = np.random.default_rng(n)
        while True:
            last = done.is_set()  # look once more after the end
            r = w.reader()
            mark = r.watermark
            for a, b in np.sort(rng.integers(0, mark + 1, (20, 2)), axis=1).tolist():
                try:
                    found = r.query(a, b)
                except NotRetained:
                    continue
                expected = values[a:b] if kind == "collect" else sum(values[a:b])
                answers[n] += 1
                if found != expected or r.watermark != mark:
                    wrong.append(f"[{a}, {b}) at {mark}: {found}, not {expected}")
            if last:
                return

    threads = [threading.Thread(target=read, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for start in range(0, ticks, 7):
        block = np.arange(start, min(start + 7, ticks))[::-1]
        w.insert_many([values[t] for t in block], block)
        w.advance_to(int(block[0]) + 1)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:5]
    assert all(answers)


def test_a_reader_stays_at_its_watermark():
    w = Wheel(agg.sum(), unit="s", retention="drop")
    w.insert_many(np.ones(50, np.int64), np.arange(50))
    w.advance_to(50)
    r = w.reader()
    assert isinstance(r, Reader)
    w.insert_many(np.ones(7200, np.int64), np.arange(50, 7250))
    w.advance_to(7250)
    assert (r.watermark, r.landmark(), r.query(0, 50)) == (50, 50, 50)  # though the wheel has dropped those slots
    with pytest.raises(NotRetained):
        w.query(0, 50)


@pytest.mark.stress
def test_no_data_races():
    if shutil.which("g++") is None:
        pytest.skip("needs a compiler with ThreadSanitizer")
    found = subprocess.run([ROOT / "tests" / "tsan.sh", "3000"], capture_output=True, text=True)
    if "libtsan" in found.stderr and "cannot find" in found.stderr:
        pytest.skip("needs a compiler with ThreadSanitizer")
    assert found.returncode == 0, found.stdout + found.stderr
