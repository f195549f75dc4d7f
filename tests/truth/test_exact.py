"""exact=True: the same bits in any order, cut, merge, algorithm, wheel, tile and engine, and those of math.fsum."""

import copy
import itertools
import math
import pickle
import random
import struct
from fractions import Fraction

import numpy as np
import pytest

from sash import agg, slide, swag
from sash.wheel import KeyedWheels, Wheel
from tests.truth.classes import IN_ORDER, TREES

ALGORITHMS = ("SubtractOnEvict", *IN_ORDER, *TREES)
KINDS = {"sum": agg.sum, "mean": agg.mean, "var": agg.var, "std": agg.std}


def bits(x):
    return struct.pack("<d", x) if isinstance(x, float) else x


def drawn(seed, n):
    """Floats of all sizes, that nearly cancel."""
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        kind = rng.randrange(5)
        if kind == 0 and out:
            out.append(-rng.choice(out))
        elif kind == 1:
            out.append(rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 150))
        elif kind == 2:
            out.append(rng.uniform(-1, 1) * 1e-310)
        else:
            out.append(rng.gauss(0, 1) * 10.0 ** rng.randint(-8, 8))
    return out


def wanted(name, items):
    """What exact arithmetic gives, rounded once."""
    if name == "sum":
        return math.fsum(items)
    if name == "mean":
        return math.fsum(items) / len(items)
    exact = [Fraction(x) for x in items]
    squares = sum(Fraction(int(x * x * 2**1074), 2**1074) for x in exact)  # cut off below the smallest float
    n = len(items)
    variance = max(n * squares - sum(exact) ** 2, Fraction(0)) / (n * (n - 1))
    found = variance.numerator / variance.denominator
    return found if name == "var" else math.sqrt(found)


@pytest.mark.parametrize("name", KINDS)
def test_the_same_bits_over_permutations_cuts_merges_and_algorithms_and_those_of_fsum(name):
    a = KINDS[name](exact=True)
    rng = random.Random(5)
    for seed in range(8):
        items = drawn(seed, 60)
        true = bits(wanted(name, items))
        for trial in range(125):
            order = rng.sample(items, len(items))
            cuts = [0, *sorted(rng.sample(range(1, len(items)), rng.randint(0, 6))), len(items)]
            window = getattr(swag, ALGORITHMS[trial % len(ALGORITHMS)])(a)
            for first, last in itertools.pairwise(cuts):
                if rng.random() < 0.5:
                    window.bulk_insert(np.array(order[first:last]), np.arange(first, last))
                else:
                    for i in range(first, last):
                        window.insert(order[i], i)
            assert bits(window.query()) == true, (seed, trial)
        partials = [a.lift(x) for x in items]
        while len(partials) > 1:
            i = rng.randrange(len(partials) - 1)
            partials[i : i + 2] = [a.combine(partials[i], partials[i + 1])]
        assert bits(a.lower(partials[0])) == true
        halves = [swag.Fiba(a) for _ in range(2)]
        for i, x in enumerate(items):
            halves[rng.random() < 0.5].insert(x, i)
        halves[0].merge(halves[1])
        for window in (
            halves[0],
            copy.copy(halves[0]),
            pickle.loads(pickle.dumps(halves[0])),
            swag.Fiba.from_bytes(halves[0].to_bytes(), a),
        ):
            assert bits(window.query()) == true


@pytest.mark.parametrize("name", KINDS)
def test_windows_that_slide_keep_the_bits_of_their_own_items(name):
    a = KINDS[name](exact=True)
    items = drawn(3, 300)
    windows = [getattr(swag, algorithm)(a) for algorithm in ALGORITHMS]
    slid = slide(np.array(items), agg=a, size=20)
    objects = slide(np.array(items, object), agg=a, size=20)
    for i, x in enumerate(items):
        inside = items[max(0, i - 19) : i + 1]
        true = wanted(name, inside) if len(inside) > 1 or name in ("sum", "mean") else None
        for window in windows:
            window.insert(x, i)
            if len(window) > 20:
                window.evict()
            assert bits(window.query()) == bits(true)
        assert bits(float(slid[i])) == bits(math.nan if true is None else true)
        assert objects[i] is true or bits(float(objects[i])) == bits(math.nan if true is None else true)


@pytest.mark.parametrize("name", KINDS)
def test_wheels_give_the_same_bits_whatever_levels_they_read(name):
    a = KINDS[name](exact=True)
    items = drawn(11, 400)
    order = random.Random(1).sample(range(400), 400)
    wheel, keyed = Wheel(a, grain=1, levels=(5, 20, 100)), KeyedWheels(a, grain=1, levels=(5, 20, 100))
    other = Wheel(a, grain=1, levels=(5, 20, 100))
    for i in order:
        (wheel if i % 2 else other).insert(items[i], i)
        keyed.insert(i % 3, items[i], i)
    for w in (wheel, other, keyed):
        w.advance_to(400)
    wheel.merge(other)
    for start, end in ((0, 400), (3, 251), (7, 9), (100, 300)):
        assert bits(wheel.query(start, end)) == bits(wanted(name, items[start:end]))
        assert bits(keyed.query_all(start, end)) == bits(wanted(name, items[start:end]))
    third = [x for i, x in enumerate(items) if i % 3 == 1]
    assert bits(keyed.landmark(1)) == bits(wanted(name, third))
    assert bits(KeyedWheels.from_bytes(keyed.to_bytes(), a).landmark(1)) == bits(wanted(name, third))


def test_integers_and_floats_mix_without_rounding():
    a = agg.sum(exact=True)
    items = [2**53 + 1, 0.5, -(2**53), 1.5, 2**62, -(2**62)]
    for order in ([0, 1, 2, 3, 4, 5], [1, 0, 2, 5, 4, 3], [3, 4, 0, 5, 2, 1]):
        for make in (swag.DabaLite, swag.Fiba, swag.Recalc):
            window = make(a)
            for at, i in enumerate(order):
                window.insert(items[i], at)
            assert window.query() == 3.0
    window = swag.DabaLite(a)
    window.bulk_insert([1, 2])
    assert window.query() == 3
    assert isinstance(window.query(), int)
    window.bulk_insert([2**62, 2**62])
    with pytest.raises(OverflowError):
        window.query()


@pytest.mark.parametrize("dtype", ["float64", "object"])
def test_infinite_items_nan_and_the_ends_of_the_range(dtype):
    inf, nan, most = math.inf, math.nan, 1.7976931348623157e308

    def of(make, items):
        window = swag.DabaLite(make(exact=True, dtype=dtype))
        window.bulk_insert(items)
        return window.query()

    assert of(agg.sum, [inf, 1.0]) == inf
    assert of(agg.sum, [-inf, 1.0]) == -inf
    assert math.isnan(of(agg.sum, [inf, -inf]))
    assert math.isnan(of(agg.sum, [nan, 1.0]))
    assert of(agg.sum, [most, most]) == inf
    assert of(agg.sum, [most, most, -most]) == most
    assert of(agg.mean, [most, most]) == most
    assert math.isnan(of(agg.var, [1.0, inf]))
    assert of(agg.var, [1.0, most]) == inf
    assert of(agg.var, [1e9, 1e9 + 1]) == 0.5
    assert of(agg.var, [1.0]) is None
    assert of(agg.mean, []) is None
    assert of(agg.sum, [5e-324, 5e-324]) == 1e-323
    assert of(agg.sum, [-0.0]) == 0.0
    window = swag.SubtractOnEvict(agg.sum(exact=True))
    window.bulk_insert([nan, inf, 1e300, 2.0])
    for _ in range(3):
        window.evict()
    assert window.query() == 2.0


def test_exact_and_plain_are_two_definitions():
    for make in KINDS.values():
        assert make(exact=True) != make()
        assert make(exact=True).fingerprint() != make().fingerprint()
        assert pickle.loads(pickle.dumps(make("v", exact=True))) == make("v", exact=True)
        assert make(exact=False).fingerprint() == make().fingerprint()


def test_items_that_are_no_floats_are_refused_with_a_word():
    window = swag.DabaLite(agg.sum(exact=True))
    with pytest.raises(TypeError, match="exact"):
        window.insert("x")


@pytest.mark.parametrize("name", KINDS)
def test_the_engine_gives_the_same_bits_however_rows_are_cut_into_batches(name):
    pa = pytest.importorskip("pyarrow")
    from sash.engine import Bucket, Query, Slicer, Windows

    rng = random.Random(2)
    items = drawn(21, 400)
    keys = [rng.randrange(3) for _ in items]
    times = [rng.randrange(0, 1_000) for _ in items]
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.float64())])
    query = Query(schema, "t", ("k",), (("x", KINDS[name]("v", exact=True)),), windows=Windows(100, 50))
    found = []
    for cut in (1, 7, 100, 400):
        bucket, slicer = Bucket(query), Slicer(query, 1)
        for at in range(0, len(items), cut):
            batch = pa.record_batch([pa.array(c[at : at + cut]) for c in (keys, times, items)], schema=schema)
            for packed in slicer.pack(batch):
                bucket.add(packed.blob)
        out = bucket.advance(10_000)
        found.append(sorted((r["k"], r["window_start"], bits(r["x"])) for b in out for r in b.to_pylist()))
    assert all(rows == found[0] for rows in found)
    first = found[0][0]
    inside = [v for k, t, v in zip(keys, times, items, strict=True) if k == first[0] and first[1] <= t < first[1] + 100]
    assert first[2] == bits(wanted(name, inside) if len(inside) > 1 or name in ("sum", "mean") else None)
