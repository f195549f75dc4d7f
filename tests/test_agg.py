"""Aggregations: the monoid laws, the design's rules, and native kernels equal to their Python definitions."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash import agg
from sash.swag import DabaLite, Fiba, Recalc
from tests.oracles import close, fold

NUMERIC = [
    agg.count(),
    agg.sum(),
    agg.mean(),
    agg.geomean(),
    agg.product(),
    agg.var(),
    agg.std(),
    agg.skew(),
    agg.kurtosis(),
    agg.min(),
    agg.max(),
    agg.minmax(),
    agg.relvar(),
    agg.ewma(half_life=3),
    agg.argmin(),
    agg.argmax(),
    agg.mincount(),
    agg.maxcount(),
    agg.first(),
    agg.last(),
    agg.any(),
    agg.all(),
]
INTEGER = [agg.bit_and(), agg.bit_or()]
OBJECT = [agg.collect(), agg.concat(sep="-")]
EXTREMES = [0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63)]
ints = st.one_of(st.integers(-5, 5), st.sampled_from(EXTREMES), st.integers(-(2**63), 2**63 - 1))
small_ints = st.integers(-5, 5)
floats = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 3.0]), st.floats(-1e6, 1e6))
texts = st.text("ab", max_size=2)


def name_of(aggregation):
    return aggregation.name


def items_for(aggregation):
    if aggregation.name == "concat":
        return texts
    if aggregation.name in ("collect", "bit_and", "bit_or"):
        return ints
    if aggregation.name in ("var", "std", "skew", "kurtosis"):
        return small_ints  # a quotient of moments amplifies the rounding of values that nearly agree
    return st.one_of(small_ints, floats)


@pytest.mark.parametrize("a", NUMERIC + INTEGER + OBJECT, ids=name_of)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_monoid_laws(a, data):
    x, y, z = (a.lift(data.draw(items_for(a)), t) for t in range(3))
    e = a.identity()
    assert close(a.combine(e, x), x)
    assert close(a.combine(x, e), x)
    left, right = a.combine(a.combine(x, y), z), a.combine(x, a.combine(y, z))
    assert close(a.lower(left), a.lower(right), 1e-6)
    if a.commutative:
        assert close(a.lower(a.combine(x, y)), a.lower(a.combine(y, x)), 1e-6)
    if a.selective:
        assert any(a.combine(x, y) is p or a.combine(x, y) == p for p in (x, y))
    if a.invertible and a.name != "product":
        assert close(a.inverse(a.combine(x, y), x), y, 1e-6)


@pytest.mark.parametrize("a", [agg.count(), agg.sum(), agg.mean(), agg.any(), agg.all()], ids=name_of)
@given(x=ints, y=ints)
def test_inverse_gives_back_every_bit_of_integers(a, x, y):
    x, y = a.lift(x), a.lift(y)
    assert a.inverse(a.combine(x, y), x) == y


@pytest.mark.parametrize("a", NUMERIC, ids=name_of)
@pytest.mark.parametrize("items", [st.lists(small_ints, max_size=12), st.lists(floats, max_size=12)], ids=["int64", "float64"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_native_kernel_equals_its_python_definition(a, items, data):
    values = data.draw(items if a.name not in ("skew", "kurtosis") else st.lists(small_ints, max_size=12))
    expected = fold(a, values)
    for make in (Recalc, DabaLite, lambda b: Fiba(b)):
        w = make(a)
        w.bulk_insert(values, times=list(range(len(values))))
        assert close(w.query(), expected, 1e-6), (values, w.query(), expected)


@pytest.mark.parametrize("a", [*INTEGER, agg.sum(), agg.min(), agg.max(), agg.first(), agg.minmax()], ids=name_of)
@given(values=st.lists(ints, min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_integers_are_exact_up_to_both_ends_of_int64(a, values):
    w = DabaLite(a)
    w.bulk_insert(values)
    try:
        expected = fold(a, values)
    except OverflowError:
        with pytest.raises(OverflowError, match="does not fit int64"):
            w.query()
    else:
        assert w.query() == expected


def test_a_window_stays_usable_after_an_overflow():
    w = DabaLite(agg.sum())
    w.insert(2**63 - 1)
    w.insert(1)
    with pytest.raises(OverflowError):
        w.query()
    w.evict()
    assert w.query() == 1


@pytest.mark.parametrize(
    ("a", "empty"),
    [(agg.count(), 0), (agg.sum(), 0), (agg.collect(), [])]
    + [(a, None) for a in NUMERIC + INTEGER + [agg.concat()] if a.name not in ("count", "sum")],
    ids=lambda x: getattr(x, "name", ""),
)
def test_empty_results(a, empty):
    assert DabaLite(a).query() == empty
    assert a.lower(a.identity()) == empty
    w = Fiba(a)
    w.insert(None, 3)
    assert len(w) == 1
    assert w.query() == empty
    assert w.query(5, 9) == empty


@pytest.mark.parametrize(
    ("a", "least"), [(agg.var(), 2), (agg.std(), 2), (agg.skew(), 3), (agg.kurtosis(), 4)], ids=lambda x: getattr(x, "name", "")
)
def test_moments_of_too_few_items_are_none(a, least):
    w = DabaLite(a)
    for i in range(least):
        assert w.query() is None
        w.insert(float(i))
    assert w.query() is not None


def test_null_counts_in_len_and_evict_but_not_in_the_value():
    w = DabaLite(agg.sum())
    for x in (1, None, 2):
        w.insert(x)
    assert (len(w), w.query()) == (3, 3)
    w.evict()
    w.evict()
    assert (len(w), w.query()) == (1, 2)


def test_nan_is_largest_in_extremes_and_leaves_with_its_item():
    for a, with_nan in ((agg.max(), math.nan), (agg.min(), 1.0), (agg.sum(), math.nan)):
        w = DabaLite(a)
        w.insert(math.nan)
        w.insert(1.0)
        w.insert(2.0)
        assert close(w.query(), with_nan)
        w.evict()
        assert w.query() == {"max": 2.0, "min": 1.0, "sum": 3.0}[a.name]


def test_standard_deviation_of_large_neighbours_is_not_zero():
    w = DabaLite(agg.std())
    w.bulk_insert([1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3])
    assert w.query() == pytest.approx(1.2909944487358056, rel=1e-12)


def test_mean_of_integers_does_not_truncate():
    w = DabaLite(agg.mean())
    w.bulk_insert([1, 2])
    assert w.query() == 1.5


def test_max_and_argmax_of_negatives_have_a_true_identity():
    w = Fiba(agg.argmax())
    for t, x in enumerate([-7, -3, -9]):
        w.insert(x, t)
    assert w.query() == 1
    m = DabaLite(agg.max())
    m.insert(-4)
    assert m.query() == -4


def test_geomean_recovers_after_a_zero_left():
    a = agg.geomean()
    assert a.lower(a.inverse(a.combine(a.lift(0), a.lift(8)), a.lift(0))) == pytest.approx(8)


@pytest.mark.parametrize("make", [Recalc, DabaLite, Fiba])
def test_ties_of_argmax_go_to_the_oldest_in_every_algorithm(make):
    w = make(agg.argmax())
    w.bulk_insert([5, 7, 7, 1], times=[1, 2, 3, 4])
    assert w.query() == 2


def test_float_promotes_an_integer_window_once():
    for make in (Recalc, DabaLite, Fiba):
        for a in NUMERIC:
            w, plain = make(a), make(a)
            for t, x in enumerate([3, -1, 4]):
                w.insert(x, t)
                plain.insert(float(x), t)
            w.insert(2.5, 3)
            plain.insert(2.5, 3)
            assert w.dtype == "float64" or a.name == "count"
            assert close(w.query(), plain.query()), a
            w.evict()
            plain.evict()
            assert close(w.query(), plain.query()), a


def test_struct_parts_follow_their_own_rules():
    a = agg.struct(n=agg.count("x"), total=agg.sum("x"), high=agg.max("y"), all=agg.collect("y"))
    w = DabaLite(a)
    assert w.query() == {"n": 0, "total": 0, "high": None, "all": []}
    w.insert({"x": 1, "y": 2.5})
    w.insert({"x": None, "y": 7})
    assert w.query() == {"n": 1, "total": 1, "high": 7, "all": [2.5, 7]}


def test_where_filters_by_callable_and_by_column():
    w = DabaLite(agg.sum(where=lambda x: x > 0))
    w.bulk_insert([1, -5, 2])
    assert (w.query(), len(w)) == (3, 3)
    v = DabaLite(agg.sum("x", where="ok"))
    v.bulk_insert({"x": [1, 2, 4], "ok": [True, False, True]})
    assert v.query() == 5


@pytest.mark.parametrize("a", NUMERIC + INTEGER + OBJECT + [agg.struct(a=agg.sum("x"), b=agg.max("y"))], ids=name_of)
def test_aggregations_pickle_and_compare_by_definition(a):
    again = pickle.loads(pickle.dumps(a))
    assert again == a
    assert again.fingerprint() == a.fingerprint()


def test_fingerprints_cover_code_constants_and_globals():
    def make(bonus):
        return agg.define(lift=lambda x: x + bonus, combine=lambda a, b: a + b, identity=0, name="bonus")

    assert make(1).fingerprint() == make(1).fingerprint()
    assert make(1).fingerprint() != make(2).fingerprint()
    assert agg.sum().fingerprint() != agg.sum("x").fingerprint()
    nameless = agg.define(lift=abs, combine=max, identity=0)
    with pytest.raises(ValueError, match="needs a name"):
        nameless.fingerprint()


def test_results_are_plain_python_values():
    for a in NUMERIC:
        w = DabaLite(a)
        w.bulk_insert(np.array([1.5, 2.5, 3.5, 4.5]))
        assert not isinstance(w.query(), np.generic)


def test_aggregations_are_immutable():
    with pytest.raises(AttributeError):
        agg.sum().name = "other"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: agg.define(lift=3, combine=max, identity=0), TypeError, "lift=3"),
        (lambda: agg.struct(), ValueError, "no parts"),
        (lambda: agg.struct(a=3), TypeError, "a=3"),
        (lambda: DabaLite(agg.bit_and()).insert(1.5), TypeError, "integers"),
        (lambda: DabaLite(agg.sum(), dtype="float32"), ValueError, "float32"),
        (lambda: DabaLite(agg.sum()).query(arg=3), TypeError, "no arg"),
        (lambda: DabaLite(agg.concat()).insert(3), TypeError, "not text"),
    ],
)
def test_bad_definitions_name_the_value_and_the_fix(call, error, words):
    with pytest.raises(error, match=words):
        call()
