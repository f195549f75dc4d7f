"""The catalogue beyond the everyday: ordered, ranked, median-like, models and sketches, held against brute force."""

from __future__ import annotations

import collections
import itertools
import math
import pickle
import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash import agg, swag
from sash.swag import DabaLite, Fiba, Recalc
from tests.oracles import Brute, close, fold, ordered

CATALOGUE = [
    agg.first_k(3),
    agg.last_k(3),
    agg.ith_youngest(2),
    agg.top_k(3),
    agg.bottom_k(3),
    agg.m4(),
    agg.median(),
    agg.quantile(0.3),
    agg.quantile(0.9, interpolation="floor"),
    agg.ith_smallest(2),
    agg.distinct(),
    agg.linreg(),
    agg.histogram([-2, 0, 2.5, 4]),
    agg.bloom(),
    agg.approx_distinct(),
    agg.approx_quantile(0.5),
    agg.frequent_items(),
    agg.count_min(),
]
EMPTY = {"first_k": [], "last_k": [], "top_k": [], "bottom_k": [], "frequent_items": [], "distinct": 0, "approx_distinct": 0}
numbers = st.one_of(st.integers(-4, 4), st.sampled_from([0.0, -0.0, 0.5, 2.5, math.nan, math.inf, -math.inf]), st.floats(-1e3, 1e3))
finite = st.one_of(st.integers(-4, 4), st.floats(-1e3, 1e3))


def name_of(a):
    return a.name


def items_for(a):
    return finite if a.name == "linreg" else numbers


def brute(a, values, times):
    """Compute the result of a catalogue aggregation from all items, by other means than its definition."""
    params = dict(a.params)
    pairs = [(v, t) for v, t in zip(values, times, strict=True) if v is not None]
    values = [v for v, _ in pairs]
    n = len(values)
    match a.name:
        case "first_k":
            return values[: params["k"]]
        case "last_k":
            return values[-params["k"] :]
        case "ith_youngest":
            return values[-params["i"]] if n >= params["i"] else None
        case "top_k":
            return ordered(values)[::-1][: params["k"]]
        case "bottom_k":
            return ordered(values)[: params["k"]]
        case "m4":
            if not n:
                return None
            low = min(pairs, key=lambda p: (p[0] != p[0], 0 if p[0] != p[0] else p[0]))
            high = max(pairs, key=lambda p: (p[0] != p[0], 0 if p[0] != p[0] else p[0]))
            return tuple((p[1], p[0]) for p in (pairs[0], low, high, pairs[-1]))
        case "median" | "quantile":
            if not n:
                return None
            q, rule = params.get("q", 0.5), params.get("interpolation", "linear")
            if rule == "floor":
                return ordered(values)[min(int(n * q), n - 1)]
            v, s = (n - 1) * q, ordered(values)
            low, high = s[math.floor(v)], s[math.ceil(v)]
            return float(low) if low == high or v == math.floor(v) else low * (1 - v % 1) + high * (v % 1)
        case "ith_smallest":
            return ordered(values)[params["i"] - 1] if n >= params["i"] else None
        case "distinct":
            return len({v for v in values if v == v}) + any(v != v for v in values)
        case "histogram":
            return np.histogram([v for v in values if v == v], params["edges"])[0].tolist()
        case "linreg":
            xs = [float(t) for _, t in pairs]
            if len(set(xs)) < 2:
                return None
            mx, my = math.fsum(xs) / n, math.fsum(values) / n
            xx = math.fsum((x - mx) ** 2 for x in xs)
            xy = math.fsum((x - mx) * (y - my) for x, y in zip(xs, values, strict=True))
            yy = math.fsum((y - my) ** 2 for y in values)
            return (xy / xx, my - xy / xx * mx, xy * xy / (xx * yy) if yy else 1.0)
        case _:
            return None


def agrees(a, found, values, times):
    if a.name == "bloom":
        return all(fold(a, values, times) == found for _ in (1,))
    if not a.exact:
        present = [v for v in values if v is not None]
        match a.name:
            case "approx_distinct":
                return found == len({v for v in present if v == v}) + any(v != v for v in present)
            case "count_min":
                return found == (len(present) or None)
            case "frequent_items":
                return sum(count for _, count in found) == len(present)
            case "approx_quantile":
                rest = [v for v in present if v == v]
                return found is None if not rest else found in rest
    return close(found, brute(a, values, times), 1e-6)


@pytest.mark.parametrize("a", CATALOGUE, ids=name_of)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_monoid_laws(a, data):
    parts = st.lists(items_for(a), max_size=3)
    at = itertools.count()

    def partial():
        p = a.identity()
        for x in data.draw(parts):
            p = a.combine(p, a.lift(x, next(at)))
        return p

    x, y, z = partial(), partial(), partial()
    e = a.identity()
    assert repr(a.combine(e, x)) == repr(x)
    assert repr(a.combine(x, e)) == repr(x)
    left, right = a.combine(a.combine(x, y), z), a.combine(x, a.combine(y, z))
    assert close(a.lower(left), a.lower(right), 1e-6)
    if a.commutative and a.name != "linreg":
        assert close(a.lower(a.combine(x, y)), a.lower(a.combine(y, x)), 1e-6)
    if a.invertible:
        assert close(a.inverse(a.combine(x, y), x), y, 1e-4)


@pytest.mark.parametrize("a", CATALOGUE, ids=name_of)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_in_order_windows_agree_with_brute_force(a, data):
    windows = [Recalc(a), DabaLite(a)]
    held = collections.deque()
    for t, step in enumerate(data.draw(st.lists(st.one_of(items_for(a), st.none(), st.just("evict")), max_size=14))):
        if step == "evict":
            if held:
                held.popleft()
                for w in windows:
                    w.evict()
        else:
            held.append((step, t))
            for w in windows:
                w.insert(step, t)
        for w in windows:
            assert agrees(a, w.query(), [v for v, _ in held], [t for _, t in held]), (w, held)


@pytest.mark.parametrize("a", CATALOGUE, ids=name_of)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_out_of_order_windows_and_ranges_agree_with_brute_force(a, seed):
    rng = random.Random(seed)
    w, held = Fiba(a), Brute("combine")
    for _ in range(40):
        t, v = rng.randrange(60), rng.choice([rng.randrange(-4, 5), rng.uniform(-9, 9), None])
        w.insert(v, t)
        held.insert(v, t)
        if rng.random() < 0.2:
            held.bulk_evict(t - 30)
            w.bulk_evict(t - 30)
        start = rng.randrange(60)
        end = start + rng.randrange(30)
        every = [(v, t) for t, vs in held.entries for v in vs]
        some = [(v, t) for v, t in every if start <= t <= end]
        assert agrees(a, w.query(), [v for v, _ in every], [t for _, t in every])
        assert agrees(a, w.query(start, end), [v for v, _ in some], [t for _, t in some])


@pytest.mark.parametrize("a", CATALOGUE, ids=name_of)
def test_empty_windows_and_windows_of_nulls_have_the_empty_result(a):
    expected = [0, 0, 0] if a.name == "histogram" else EMPTY.get(a.name)
    for w in (DabaLite(a), Recalc(a)):
        assert w.query() == expected
        w.insert(None, 1)
        w.insert(None, 2)
        assert w.query() == expected
        assert len(w) == 2


@pytest.mark.parametrize("a", [*CATALOGUE, agg.naive_bayes(smoothing=0.5)], ids=name_of)
def test_definitions_pickle_and_windows_are_stored(a):
    again = pickle.loads(pickle.dumps(a))
    assert again == a
    assert again.fingerprint() == a.fingerprint()
    items = [(("x", 1), "yes"), (("y", 2), "no")] if a.name == "naive_bayes" else [3, 1.5, 3]
    w = Fiba(a)
    for t, item in enumerate(items):
        w.insert(item, t)
    loaded = Fiba.from_bytes(w.to_bytes(), a)
    assert loaded.query() == w.query()
    loaded.insert(items[0], 9)
    assert len(loaded) == len(items) + 1


def test_parameters_are_part_of_the_fingerprint():
    prints = [a.fingerprint() for a in (agg.top_k(2), agg.top_k(3), agg.quantile(0.1), agg.quantile(0.1, interpolation="lower"))]
    prints += [agg.histogram([0, 1]).fingerprint(), agg.histogram([0, 2]).fingerprint(), agg.bloom().fingerprint()]
    prints += [agg.bloom(bits=64).fingerprint(), agg.top_k("fare", 2).fingerprint()]
    assert len(set(prints)) == len(prints)


def test_the_column_may_stand_first_or_second():
    assert agg.top_k("fare", 3) == agg.top_k(3, "fare") == agg.top_k("fare", k=3)
    assert agg.quantile("fare", q=0.5) == agg.quantile(0.5, "fare") == agg.quantile("fare", 0.5)
    w = DabaLite(agg.top_k("fare", 1))
    w.bulk_insert([{"fare": 3}, {"fare": 9}])
    assert w.query() == [9]
    w = DabaLite(agg.median("fare", where=lambda row: row["fare"] > 3))
    w.bulk_insert([{"fare": 3}, {"fare": 9}, {"fare": 5}])
    assert w.query() == 7.0


@pytest.mark.parametrize("rule", [r for r in __import__("sash.agg.ranks", fromlist=["x"]).INTERPOLATIONS if r != "floor"])
def test_quantiles_follow_numpys_rules(rule):
    rng = random.Random(rule)
    for n in [1, 2, 3, 4, 5, 7, 8, 10, 16]:
        items = [rng.uniform(-9, 9) for _ in range(n)]
        for q in [0, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.55, 0.75, 0.9, 1]:
            a = agg.quantile(q, interpolation=rule)
            assert close(fold(a, items), float(np.quantile(items, q, method=rule)), 1e-9), (n, q)


def test_floor_is_the_tutorials_rule():
    for n in range(1, 9):
        assert fold(agg.quantile(0.5, interpolation="floor"), list(range(n))) == n // 2


def test_ties_go_to_the_oldest():
    # 2 and 2.0 are equal, and can be told apart
    for w in (Recalc(agg.top_k(2)), DabaLite(agg.top_k(2))):
        for x in (1, 2, 2.0, 2):
            w.insert(x)
        assert repr(w.query()) == "[2, 2.0]"
        w.evict()
        w.evict()
        assert repr(w.query()) == "[2.0, 2]"
    w = DabaLite(agg.m4())
    w.bulk_insert([1, 5, 5, 1], times=[1, 2, 3, 4])
    assert (w.query().min.time, w.query().max.time) == (1, 2)


IN_ORDER = ["Recalc", "TwoStacks", "TwoStacksLite", "Daba", "DabaLite", "FlatFit", "FlatFat", "BInt", "Amta"]


@pytest.mark.parametrize("algorithm", [*IN_ORDER, "BTree", "Fiba", "BlockFiba"])
def test_ties_go_to_the_oldest_in_every_algorithm(algorithm):
    make = getattr(swag, algorithm)
    rng = random.Random(algorithm)
    windows = [make(a) for a in (agg.top_k(3), agg.bottom_k(3), agg.m4(), agg.argmin(), agg.argmax())]
    held = collections.deque()
    for t in range(40):
        x = rng.choice([1, 1.0, 2, 2.0])  # equal, and to be told apart
        held.append((t, x))
        for w in windows:
            w.insert(x, t)
            if len(held) > 6:
                w.evict()
        if len(held) > 6:
            held.popleft()
        top, bottom, corners, least, most = (w.query() for w in windows)
        items = [x for _, x in held]
        assert repr(top) == repr(sorted(items, reverse=True)[:3])  # stable: the older first
        assert repr(bottom) == repr(sorted(items)[:3])
        low, high = min(held, key=lambda p: p[1]), max(held, key=lambda p: p[1])
        assert repr([tuple(c) for c in corners]) == repr([held[0], low, high, held[-1]])
        assert (least, most) == (low[0], high[0])


def test_nan_is_the_largest_and_leaves_with_its_item():
    nan = math.nan
    for a, expected, after in [
        (agg.top_k(2), [nan, 3.0], [3.0, 1.0]),
        (agg.bottom_k(5), [1.0, 3.0, nan], [1.0, 3.0]),
        (agg.quantile(1.0, interpolation="lower"), nan, 3.0),
        (agg.median(), 3.0, 2.0),
        (agg.distinct(), 3, 2),
    ]:
        w = DabaLite(a)
        w.bulk_insert([nan, 1.0, 3.0])
        assert close(w.query(), expected), a
        w.evict()
        assert close(w.query(), after), a


def test_parametric_lower():
    w = DabaLite(agg.quantile(0.5))
    w.bulk_insert([1, 2, 3, 4, 5])
    assert [w.query(arg=q) for q in (0, 0.25, 1)] == [1.0, 2.0, 5.0]
    w = DabaLite(agg.ith_smallest(1))
    w.bulk_insert([5, 3, 4])
    assert [w.query(), w.query(arg=2), w.query(arg=3), w.query(arg=4)] == [3, 4, 5, None]
    w = DabaLite(agg.ith_youngest(3))
    w.bulk_insert([5, 3, 4])
    assert [w.query(arg=i) for i in (1, 2, 3)] == [4, 3, 5]
    with pytest.raises(ValueError, match=r"arg=4 is not kept.*Define it with i=4"):
        w.query(arg=4)
    with pytest.raises(TypeError, match="takes no arg"):
        DabaLite(agg.top_k(1)).query(arg=1)


def test_median_like_take_anything_that_has_an_order():
    w = DabaLite(agg.quantile(0.5, interpolation="lower"))
    w.bulk_insert(["pear", "apple", "fig"])
    assert w.query() == "fig"
    w = DabaLite(agg.median())
    w.bulk_insert(["pear", "apple"])
    with pytest.raises(TypeError, match=r"nothing between 'apple' and 'pear'.*interpolation='lower'"):
        w.query()


def test_naive_bayes_predicts_what_its_counts_say():
    rng = random.Random(5)
    items = [((rng.choice("ab"), rng.choice("xyz")), rng.choice(["yes", "no", "maybe"])) for _ in range(60)]
    a = agg.naive_bayes()
    for w in (Recalc(a), DabaLite(a)):
        w.bulk_insert(items)
        for _ in range(20):
            w.evict()
        held = items[20:]
        labels = collections.Counter(label for _, label in held)
        assert w.query() == labels
        for features in itertools.product("ab", "xyz"):
            score = {}
            for label, n in labels.items():
                score[label] = n / len(held)
                for place, kinds in ((0, 2), (1, 3)):
                    hits = sum(1 for f, own in held if own == label and f[place] == features[place])
                    score[label] *= (hits + 1) / (n + kinds)
            assert score[w.query(arg=features)] == pytest.approx(max(score.values()))
    assert DabaLite(a).query(arg=("a", "x")) is None
    p, q = a.lift(items[0]), a.lift(items[1])
    assert a.inverse(a.combine(p, q), p) == q


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: agg.quantile(1.5), ValueError, r"q=1\.5 is not a quantile.*from 0 to 1"),
        (lambda: agg.quantile(-0.1), ValueError, "from 0 to 1"),
        (lambda: agg.quantile(), TypeError, "needs q"),
        (lambda: agg.quantile(0.5, interpolation="cubic"), ValueError, "'cubic' is not known. Use one of: linear"),
        (lambda: agg.approx_quantile(2), ValueError, "from 0 to 1"),
        (lambda: agg.top_k(0), ValueError, "k=0 is not a count"),
        (lambda: agg.bottom_k(1.5), ValueError, r"k=1\.5 is not a count"),
        (lambda: agg.first_k(-1), ValueError, "k=-1 is not a count"),
        (lambda: agg.last_k(True), ValueError, "k=True is not a count"),
        (lambda: agg.top_k(), TypeError, "needs k"),
        (lambda: agg.ith_youngest(0), ValueError, "i=0 is not a count"),
        (lambda: agg.ith_smallest(0), ValueError, "i=0 is not a count"),
        (lambda: agg.histogram([1]), ValueError, "at least two edges"),
        (lambda: agg.histogram([1, 0]), ValueError, "do not decrease"),
        (lambda: agg.bloom(bits=0), ValueError, "bits=0 is too small"),
        (lambda: agg.approx_distinct(lg_k=3), ValueError, "lg_k=3 is out of range"),
        (lambda: agg.count_min(error=2), ValueError, "error=2 is not a fraction"),
        (lambda: agg.naive_bayes(smoothing=-1), ValueError, "smoothing=-1"),
        (lambda: DabaLite(agg.median()).insert({}), TypeError, r"\{\} has no order"),
        (lambda: DabaLite(agg.distinct()).insert([1]), TypeError, r"\[1\] can't be hashed.*tuple"),
        (lambda: DabaLite(agg.approx_quantile(0.5)).insert("x"), TypeError, "'x' is not a number"),
        (lambda: DabaLite(agg.bloom()).insert(object()), TypeError, "can't be hashed"),
        (lambda: DabaLite(agg.naive_bayes()).insert(3), TypeError, "3 is not a pair"),
        (lambda: DabaLite(agg.median()).query(arg=3), ValueError, "arg=3 is not a quantile"),
    ],
)
def test_bad_input_names_the_value_and_the_fix(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_items_that_can_not_be_compared_are_refused_where_they_meet():
    w = Recalc(agg.median())
    w.insert(1)
    w.insert("x")
    with pytest.raises(TypeError, match=r"1 and 'x' can't be compared.*of one kind"):
        w.query()
    w.evict()
    assert len(w) == 1


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(ImportError, match=r'pip install "sash\[sketches\]"'):
        agg.approx_distinct()
