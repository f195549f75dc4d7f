"""Windows and wheels beside a plain model, while callables raise at random: every step happens, or does not, or breaks the window.

``soak(seed, seconds)`` runs sequences from the seed on until the time is over, and gives the number of checked steps.
"""

import random
import time

from sash import swag
from sash.errors import BrokenWindow
from sash.wheel import KeyedWheels, Wheel
from tests.truth.classes import IN_ORDER, TREES
from tests.truth.fuse import Fault, Fuse


class RandomFuse(Fuse):
    """Chooses by itself which call raises."""

    def __init__(self, rng):
        super().__init__()
        self.rng = rng

    def set(self, likely=0.3):
        self.kind = self.rng.choice(("lift", "combine", "lower")) if self.rng.random() < likely else None
        self.left = self.rng.randint(1, 12)


def window_run(seed):
    """Run one sequence on a window of a class chosen by the seed; tuples under concatenation show any item lost, doubled or moved."""
    rng = random.Random(seed)
    fuse = RandomFuse(rng)
    name = rng.choice((*IN_ORDER, *TREES))
    keeps = {"ties": "keep"} if name in TREES else {}
    window = getattr(swag, name)(fuse.aggregation(), **keeps)
    model, clock, item, steps = [], 0, 0, 0
    for _ in range(rng.randint(5, 60)):
        fuse.set()
        step = rng.choice(("insert", "insert", "bulk_insert", "evict", "bulk_evict", "query", "items", "clear"))
        wanted = list(model)
        try:
            if step == "insert":
                clock += rng.randint(0, 2)
                wanted.append((clock, item))
                window.insert(item, clock)
                item += 1
            elif step == "bulk_insert":
                rows = []
                for _ in range(rng.randint(0, 9)):
                    clock += rng.randint(0, 2)
                    rows.append((clock, item))
                    item += 1
                wanted += rows
                window.bulk_insert([x for _, x in rows], [t for t, _ in rows])
            elif step == "evict" and model:
                wanted.pop(0)
                window.evict()
            elif step == "bulk_evict":
                cut = clock - rng.randint(-1, 12)
                wanted = [(t, x) for t, x in model if t > cut]
                window.bulk_evict(cut)
            elif step == "query":
                assert window.query() == [x for _, x in model], (seed, name)
            elif step == "items" and name not in ("TwoStacksLite", "DabaLite", "FlatFit"):
                assert window.items() == [(t, [x]) for t, x in model], (seed, name)
            elif step == "clear" and rng.random() < 0.1:
                wanted = []
                window.clear()
        except Fault:
            wanted = model
        fuse.kind = None
        try:
            found = window.query()
        except BrokenWindow:
            window.clear()
            found, wanted = window.query(), []
        assert found == [x for _, x in wanted], (seed, name, step)
        assert len(window) == len(wanted), (seed, name, step)
        assert (window.oldest, window.youngest) == ((wanted[0][0], wanted[-1][0]) if wanted else (None, None)), (seed, name, step)
        window.check()
        model = wanted
        if not model:
            clock += 1
        steps += 1
    return steps


def wheel_run(seed):
    """Run one sequence on a wheel with windows, and on wheels of a few keys."""
    rng = random.Random(seed)
    fuse = RandomFuse(rng)
    keyed = rng.random() < 0.5
    a = fuse.aggregation()
    levels = rng.choice(((), (4,), (3, 12)))

    def fresh(start):
        wheel = (KeyedWheels if keyed else Wheel)(a, grain=1, levels=levels, start=start, write_ahead=rng.choice((4, 64)))
        if not keyed:
            wheel.window(size, slide, name="w")
        return wheel

    slide = rng.randint(1, 3)
    size = slide + rng.randint(0, 4)
    start = 0
    wheel, rows, mark, item, steps = fresh(0), [], 0, 0, 0
    closed, given = 0, []
    for _ in range(rng.randint(5, 40)):
        fuse.set()
        step = rng.choice(("insert", "insert_many", "insert_many", "advance"))
        wanted, after, broken, out = list(rows), mark, False, []
        try:
            if step == "insert":
                t, k = mark + rng.randint(0, 6), rng.randint(0, 2)
                wanted.append((t, k, item))
                wheel.insert(k, item, t) if keyed else wheel.insert(item, t)
                item += 1
            elif step == "insert_many":
                new = [(mark + rng.randint(0, 6), rng.randint(0, 2), item + i) for i in range(rng.randint(0, 8))]
                item += len(new)
                wanted += new
                times, values = [t for t, _, _ in new], [x for _, _, x in new]
                wheel.insert_many([k for _, k, _ in new], values, times) if keyed else wheel.insert_many(values, times)
            else:
                after = mark + rng.randint(0, 7)
                out = wheel.advance_to(after) or []
        except Fault:
            fuse.kind = None
            try:
                moved = wheel.watermark == after and step == "advance"
                if not moved:
                    wanted, after = rows, mark
                elif not keyed:
                    out = wheel.advance_to(after)  # none is lost
            except BrokenWindow:
                broken = True
        fuse.kind = None
        if not broken:
            try:
                assert wheel.watermark == after, (seed, step)
            except BrokenWindow:
                broken = True
        if broken:
            start = mark = mark + 1
            wheel, rows, closed, given = fresh(start), [], start, []
            steps += 1
            continue
        given += out
        rows, mark = wanted, after
        in_order = sorted(rows, key=lambda row: row[0])
        total = [x for t, _, x in in_order if t < mark]
        assert (wheel.landmark_all() if keyed else wheel.landmark()) == total, (seed, step)
        if keyed:
            for k in range(3):
                assert wheel.landmark(k) == [x for t, key, x in in_order if t < mark and key == k], (seed, step, k)
        else:
            first = -(-start // slide) * slide
            due = [(s, [x for t, _, x in in_order if s <= t < s + size]) for s in range(first, mark - size + 1, slide)]
            assert [(r.start, r.value) for r in given] == due, (seed, step)
        wheel.check()
        steps += 1
    assert closed <= mark
    return steps


def soak(seed, seconds):
    """Run until the time is over; the number of checked steps."""
    end, steps = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        steps += window_run(seed) + wheel_run(seed)
        seed += 1
    return steps
