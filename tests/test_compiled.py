"""define(..., compiled=True): the same answers as in Python, and never stale ones."""

from __future__ import annotations

import math
import pickle
import random
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import sash
from sash import agg
from sash.swag import BlockFiba, Daba, DabaLite, Fiba, FlatFit, MonotonicDeque, Recalc, SubtractOnEvict, TwoStacksLite
from tests.oracles import close

pytest.importorskip("numba", reason="compiled=True needs numba, which is an extra")


def lift(x):
    return (x, 1, x, 1)


def combine(a, b):
    s, n = a[0] + b[0], a[1] + b[1]
    if a[2] > b[2]:
        return (s, n, a[2], a[3])
    if b[2] > a[2]:
        return (s, n, b[2], b[3])
    return (s, n, a[2], a[3] + b[3])


def positive(x):
    assert x > 0
    return x


def refused(p):
    if p < 0:
        raise ValueError(p)
    return p


def summary(compiled, identity=(0.0, 0, -math.inf, 0), **more):
    """Sum, count, max and maxcount in one."""
    return agg.define(lift=lift, combine=combine, identity=identity, name="summary", compiled=compiled, **more)


@pytest.mark.parametrize("window", [DabaLite, Fiba, BlockFiba, Recalc])
@pytest.mark.parametrize("kind", ["int", "float", "mixed"])
def test_the_same_as_in_python(window, kind):
    rng = random.Random(kind)
    fast, slow = window(summary(True)), window(summary(False))
    for t in range(200):
        x = rng.choice([rng.randrange(9), None]) if kind == "int" or (kind == "mixed" and t < 50) else rng.uniform(0, 9)
        for w in (fast, slow):
            w.insert(x, t)
            if t % 3 == 0 and t > 30:
                w.evict()
        assert close(fast.query(), slow.query())
    assert fast.dtype == ("int64" if kind == "int" else "float64")
    assert isinstance(fast.query(), tuple)
    assert close(type(fast).from_bytes(fast.to_bytes(), summary(True)).query(), fast.query())


def sequence(compiled, fields):
    """A hash of all items in their order, so that one that is lost, doubled or moved shows; up to 4 fields are words, more are erased."""
    rest = (0,) * (fields - 2)

    def lift(x):
        return (31, x, *rest)

    def combine(a, b):
        return (a[0] * b[0] % 1_000_003, (a[1] * b[0] + b[1]) % 1_000_003, *rest)

    return agg.define(lift=lift, combine=combine, identity=(1, 0, *rest), name="sequence", compiled=compiled)


@pytest.mark.parametrize("fields", [2, 4, 5])
@pytest.mark.parametrize("window", [TwoStacksLite, Daba, DabaLite, FlatFit, Fiba, BlockFiba], ids=lambda w: w.__name__)
def test_no_item_is_lost_doubled_or_moved(window, fields):
    rng = random.Random(fields)
    fast, slow = window(sequence(True, fields), dtype="int64"), window(sequence(False, fields))
    late = window in (Fiba, BlockFiba)
    now = 0
    for _ in range(60):
        times = [now + t for t in range(rng.randrange(1, 30))]
        items = [rng.choice([rng.randrange(99), None]) for _ in times]
        for w in (fast, slow):
            w.bulk_insert(items, times)
        now = times[-1] + 1
        at, x = rng.randrange(now) if late else now, rng.randrange(99)
        until = now - rng.randrange(90)
        for w in (fast, slow):
            w.insert(x, at)
            w.bulk_evict(until)
            if len(w):
                w.evict()
        now += 1
        assert fast.query() == slow.query()
        if late:
            fast.check()
            assert fast.query(now - 40, now - 9) == slow.query(now - 40, now - 9)
    assert window.from_bytes(fast.to_bytes(), fast.aggregation).query() == fast.query()


def test_inverse_and_selective_have_their_algorithms():
    def make(combine, **more):
        return agg.define(lift=lambda x: x, combine=combine, compiled=True, **more)

    total = SubtractOnEvict(make(lambda a, b: a + b, identity=0, inverse=lambda w, o: w - o))
    best = MonotonicDeque(make(lambda a, b: b if b > a else a, identity=-math.inf, selective=True))
    for w, expected in ((total, 9), (best, 7.0)):
        w.bulk_insert([5, 7, 2])
        w.evict()
        assert w.query() == expected


def test_a_stored_partial_is_its_fields_and_no_more():
    w = DabaLite(sequence(True, 2))
    w.insert(5)
    assert w._state()[5] == struct.pack("<6q", 31, 5, 1, 0, 1, 0)  # the item, and two partials of nothing


def test_lower_may_give_a_number_a_truth_or_none():
    def make(lower):
        return agg.define(
            lift=lambda x: (x, 1), combine=lambda a, b: (a[0] + b[0], a[1] + b[1]), lower=lower, identity=(0, 0), compiled=True
        )

    mean, big = DabaLite(make(lambda p: p[0] / p[1] if p[1] else None)), DabaLite(make(lambda p: p[0] > 3))
    assert mean.query() is None
    assert big.query() is False
    for w in (mean, big):
        w.bulk_insert([1, 2, 6])
    assert (mean.query(), big.query()) == (3.0, True)
    assert sash.slide([1, 2, 6], agg=mean.aggregation, size=2).tolist() == [1.0, 1.5, 4.0]
    assert sash.slide([1, 2, 6], agg=big.aggregation, size=2).tolist() == [False, False, True]


def test_a_number_as_partial_and_the_type_of_a_slide():
    total = agg.define(lift=lambda x: x, combine=lambda a, b: a + b, identity=0, inverse=lambda w, o: w - o, compiled=True)
    assert sash.slide([1, 2, 3], agg=total, size=2).dtype == np.int64
    assert sash.slide([1, 2, 3], agg=total, size=2).tolist() == [1, 3, 5]
    assert sash.slide([1.5, 2, 3], agg=total, size=2).tolist() == [1.5, 3.5, 5.0]
    w = DabaLite(total)
    w.insert(2**62)
    w.insert(0.5)  # promotes
    assert w.query() == 2.0**62 + 0.5


def test_in_a_struct_with_others():
    w = DabaLite(agg.struct(mine=summary(True), total=agg.sum()))
    w.bulk_insert([1.0, 5.0, 5.0])
    assert w.query() == {"mine": (11.0, 3, 5.0, 2), "total": 11.0}


def test_pickles_by_its_arguments():
    again = pickle.loads(pickle.dumps(summary(True)))
    w = DabaLite(again)
    w.bulk_insert([2, 2])
    assert again == summary(True)
    assert w.query() == (4.0, 2, 2.0, 2)


FACTOR = 1


def scaled(x):
    return x * FACTOR


def test_a_changed_constant_is_never_stale(monkeypatch):
    for factor in (1, 10, 1):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        a = agg.define(lift=scaled, combine=lambda a, b: a + b, identity=0, compiled=True)
        w = DabaLite(a)
        w.bulk_insert([1, 2])
        assert w.query() == 3 * factor
        monkeypatch.setitem(globals(), "FACTOR", 100)
        w = DabaLite(a)
        w.bulk_insert([1, 2])
        assert w.query() == 300


def test_a_changed_constant_is_never_stale_in_another_process(tmp_path):
    code = """
    from sash import agg
    from sash.swag import DabaLite
    FACTOR = {}
    def scaled(x): return x * FACTOR
    def added(a, b): return a + b
    w = DabaLite(agg.define(lift=scaled, combine=added, identity=0, name="scaled", compiled=True))
    w.bulk_insert([1, 2])
    print(w.query())
    """
    module = tmp_path / "scaled.py"
    for factor in (1, 10):
        module.write_text(textwrap.dedent(code).format(factor))
        done = subprocess.run([sys.executable, module], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(3 * factor)


def test_bytes_of_another_constant_are_refused(monkeypatch):
    def make():
        return agg.define(lift=scaled, combine=lambda a, b: a + b, identity=0, name="scaled", compiled=True)

    w = DabaLite(make())
    w.insert(1)
    stored = w.to_bytes()
    assert DabaLite.from_bytes(stored, make()).query() == 1
    monkeypatch.setitem(globals(), "FACTOR", 2)
    with pytest.raises(ValueError, match="definition"):
        DabaLite.from_bytes(stored, make())


def test_closures_are_told_apart():
    def times(factor):
        return agg.define(lift=lambda x: x * factor, combine=lambda a, b: a + b, identity=0, compiled=True)

    for factor in (2, 3, 2):
        w = DabaLite(times(factor))
        w.insert(5)
        assert w.query() == 5 * factor


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"identity": ()}, "can't be compiled. compiled=True takes a number or a flat tuple"),
        ({"identity": [0]}, "takes a number or a flat tuple"),
        ({"identity": "x"}, "takes a number or a flat tuple"),
        ({"combine": lambda a, b: (a, b)}, "combine gives a tuple of 2, and identity=0 is a number. A compiled partial keeps one size"),
        ({"lift": lambda x: (x, 1)}, "lift gives a tuple of 2"),
        ({"lift": lambda x: str(x)}, "lift"),
        ({"lift": lambda x: undefined_name(x)}, "lift can't be compiled for"),  # noqa: F821
        ({"lift": positive}, "lift may raise, and nothing could catch that in the core"),
        ({"lower": refused}, "lower may raise"),
    ],
)
def test_what_can_not_be_compiled_says_why(arguments, message):
    arguments = {"lift": lambda x: x, "combine": lambda a, b: a + b, "identity": 0, **arguments}
    with pytest.raises(TypeError, match=message.replace("(", r"\(").replace(")", r"\)")):
        DabaLite(agg.define(compiled=True, **arguments))


def test_a_lift_that_takes_the_time_stays_in_python():
    a = agg.define(lift=lambda x, t: x * t, combine=lambda a, b: a + b, identity=0, compiled=True)
    w = DabaLite(a)
    w.insert(2, 1.5)
    assert w.query() == 3.0


def test_text_goes_through_python():
    w = DabaLite(agg.define(lift=lambda x: 1, combine=lambda a, b: a + b, identity=0, compiled=True))
    w.insert("x")
    assert (w.dtype, w.query()) == ("object", 1)


def test_a_missing_package_names_its_extra():
    code = "import sys; sys.modules['numba'] = None\nfrom sash import agg\nagg.define(lift=abs, combine=max, identity=0, compiled=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "sash[numba]"' in done.stderr
