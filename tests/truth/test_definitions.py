"""A fingerprint is of what a definition computes: two that differ in one place never share it, nor code compiled for it."""

import enum
import functools
import itertools
import types
from collections import namedtuple

import numpy as np
import pytest

from sash import agg
from sash.errors import Undescribed
from sash.swag import DabaLite, Fiba
from sash.wheel import KeyedWheels, Wheel


class Scale:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * x

    def times(self, x):
        return self.k * x


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * x


class Nested:
    def __init__(self, k):
        self.inner = {"deep": [Scale(k)]}

    def __call__(self, x):
        return self.inner["deep"][0](x)


class Mode(enum.Enum):
    ONE = 1
    TWO = 2


Point = namedtuple("Point", "x y")


def closure(k):
    return lambda x: k * x


def chained(k, inner=None):
    return lambda x: k * (inner(x) if inner else x)


def module_constant(k):
    settings = types.ModuleType("settings")
    settings.K = k
    return lambda x: x * settings.K


def submodule_constant(k):
    settings = types.ModuleType("settings")
    settings.inner = types.ModuleType("settings.inner")
    settings.inner.K = k
    return lambda x: x * settings.inner.K


def object_constant(k):
    settings = types.SimpleNamespace(K=k)
    return lambda x: x * settings.K


def class_constant(k):
    settings = type("Settings", (), {"K": k})
    return lambda x: x * settings.K


def global_helper(k):
    names = {"k": k}
    exec("def helper(x): return k * x\ndef lift(x): return helper(x)", names)
    return names["lift"]


def function_attribute(k):
    def helper(x):
        return x

    helper.k = k
    return lambda x: helper(x) * helper.k


def default(k):
    return lambda x, by=k, more=0: by * x


def keyword_default(k):
    def lift(x, *, by=k):
        return by * x

    return lift


def array(k):
    table = np.zeros(2_000)
    table[1_000] = k
    return lambda x: table[1_000] * x


def array_of_objects(k):
    table = np.array([closure(k), None], dtype=object)
    return lambda x: table[0](x)


def nested_class_method(k):
    class Local:
        def __call__(self, x):
            return k * x

    return Local()


def cached(k):
    @functools.lru_cache
    def lift(x):
        return k * x

    return lift


MAKERS = {
    "closure": closure,
    "closure of a closure": lambda k: chained(2, chained(k)),
    "callable instance": Scale,
    "instance with slots": Slotted,
    "instance within containers": Nested,
    "bound method": lambda k: Scale(k).times,
    "partial": lambda k: functools.partial(lambda k, x: k * x, k),
    "partial by keyword": lambda k: functools.partial(lambda x, k: k * x, k=k),
    "partial of a partial": lambda k: functools.partial(functools.partial(lambda a, k, x: a * k * x, 1), k),
    "attribute of a module": module_constant,
    "attribute of a module's module": submodule_constant,
    "attribute of an object": object_constant,
    "attribute of a class": class_constant,
    "attribute of a function": function_attribute,
    "global of a helper": global_helper,
    "default": default,
    "keyword default": keyword_default,
    "array": array,
    "array of objects": array_of_objects,
    "method in a local class": nested_class_method,
    "cached function": cached,
    "enum member": lambda k: functools.partial(lambda m, x: m.value * x, Mode(min(k, 2))) if k <= 2 else Scale(k),
    "named tuple": lambda k: functools.partial(lambda p, x: p.y * x, Point(0, k)),
    "type of a number": lambda k: functools.partial(lambda k, x: k * x, {2: 2, 3: 2.0, 5: True, 7: np.int8(2), 11: np.float32(2)}[k]),
    "type of a container": lambda k: functools.partial(lambda k, x: x, {2: (1,), 3: [1], 5: {1}, 7: frozenset({1}), 11: {1: 1}}[k]),
    "zero's sign": lambda k: functools.partial(lambda k, x: k * x, {2: 0.0, 3: -0.0, 5: 0, 7: False, 11: None}[k]),
    "dtype of an array": lambda k: functools.partial(
        lambda a, x: a[0] * x, np.array([1], {2: "i1", 3: "i8", 5: "f4", 7: "f8", 11: "u2"}[k])
    ),
    "shape of an array": lambda k: functools.partial(
        lambda a, x: x, np.zeros(12).reshape({2: 12, 3: (3, 4), 5: (4, 3), 7: (2, 6), 11: (6, 2)}[k])
    ),
    "varargs": lambda k: {2: lambda a: a, 3: lambda *a: a, 5: lambda **a: a, 7: lambda a, /: a, 11: lambda *, a=1: a}[k],
    "constant in code": lambda k: {2: lambda x: x + 2, 3: lambda x: x + 3, 5: lambda x: x + 2.0, 7: lambda x: x - 2, 11: lambda x: 2 + x}[
        k
    ],
}
VALUES = (2, 3, 5, 7, 11)


def made(lift):
    return agg.define(lift=lift, combine=lambda a, b: a + b, identity=0, name="made")


@pytest.mark.parametrize("kind", MAKERS)
def test_definitions_that_differ_in_one_place_share_neither_fingerprint_nor_equality(kind):
    some = [made(MAKERS[kind](k)) for k in VALUES]
    again = [made(MAKERS[kind](k)) for k in VALUES]
    assert len({a.fingerprint() for a in some}) == len(VALUES)
    for (i, a), (j, b) in itertools.product(enumerate(some), enumerate(again)):
        assert (a == b) == (i == j), (kind, VALUES[i], VALUES[j])
        assert (a.fingerprint() == b.fingerprint()) == (i == j)
        assert i != j or hash(a) == hash(b)


@pytest.mark.parametrize("kind", MAKERS)
def test_every_callable_of_a_definition_counts(kind):
    plain = {"lift": lambda x: x, "combine": lambda a, b: a, "lower": lambda p: p, "inverse": lambda a, b: a, "where": lambda x: True}
    for argument in plain:
        one, other = (agg.define(**{**plain, argument: MAKERS[kind](k)}, identity=0, name="made") for k in VALUES[:2])
        assert one != other, argument
        assert one.fingerprint() != other.fingerprint(), argument
    assert agg.sum(where=MAKERS[kind](2)) != agg.sum(where=MAKERS[kind](3))
    assert agg.struct(a=made(MAKERS[kind](2))) != agg.struct(a=made(MAKERS[kind](3)))


def test_bytes_are_refused_under_another_definition():
    window = DabaLite(made(Scale(2)))
    window.insert(3)
    with pytest.raises(ValueError, match="another definition"):
        DabaLite.from_bytes(window.to_bytes(), made(Scale(100)))
    assert DabaLite.from_bytes(window.to_bytes(), made(Scale(2))).query() == 6


def undescribed():
    file = open(__file__)  # noqa: SIM115
    module = types.ModuleType("settings")
    yield "an open file", lambda x: file.read(x)
    yield "a generator", functools.partial(lambda g, x: next(g), (i for i in range(9)))
    yield "a module as a value", lambda x: getattr(module, "K", x)
    yield "eval", lambda x: eval("x")
    yield "within an object", Scale(file)
    yield "within a list", functools.partial(lambda v, x: x, [[file]])


@pytest.mark.parametrize(("what", "lift"), list(undescribed()), ids=lambda v: v if isinstance(v, str) else "")
def test_what_cannot_be_written_down_is_refused_for_storage_and_equals_nothing(what, lift):
    a = made(lift)
    assert a != made(lift)
    window, wheel, keyed, tree = DabaLite(a), Wheel(a), KeyedWheels(a), Fiba(a)
    for thing in (window, wheel, keyed, tree):
        with pytest.raises(Undescribed, match=r"\. "):
            thing.to_bytes()
    with pytest.raises(Undescribed):
        DabaLite.from_bytes(b"", a)


def test_recursive_functions_and_objects_that_hold_themselves_are_described():
    def countdown(x):
        return countdown(x - 1) if x > 0 else 0

    loop = Scale(2)
    loop.myself = loop
    for lift in (countdown, loop):
        assert made(lift) == made(lift)
        made(lift).fingerprint()


PLAIN_PRINTS = {  # as stored by earlier versions: of the catalogue, and of plain functions
    "sum": (lambda: agg.sum("fare"), "d015ad4589d8592b2fe63c80ef7ae8fc"),
    "quantile": (lambda: agg.quantile("x", 0.25), "408124c577901b02e1f17dd68d732de9"),
    "struct": (lambda: agg.struct(a=agg.mean("x"), b=agg.top_k(3)), "ba3b5bfe3831933765f5cc914679e483"),
    "histogram": (lambda: agg.histogram([0, 1, 2.5]), "a54a93d46ff404eeba3008792f64b285"),
}


@pytest.mark.parametrize("name", PLAIN_PRINTS)
def test_fingerprints_of_the_catalogue_stay_as_they_were(name):
    make, stored = PLAIN_PRINTS[name]
    assert make().fingerprint().hex() == stored


# --- compiled


def test_tables_that_differ_in_one_place_are_compiled_apart():
    pytest.importorskip("numba")
    table = np.zeros(2_000)
    other = table.copy()
    other[1_000] = 5.0
    for values, wanted in ((table, 0.0), (other, 5.0)):
        a = agg.define(lift=_lookup(values), combine=lambda a, b: a + b, identity=0.0, compiled=True)
        window = DabaLite(a)
        window.insert(1_000)
        assert window.query() == wanted


def _lookup(table):
    return lambda i: table[int(i)]


def test_a_constant_that_changes_is_compiled_anew():
    pytest.importorskip("numba")
    settings = types.ModuleType("settings")
    settings.K = 2
    a = agg.define(lift=lambda x: x * settings.K, combine=lambda a, b: a + b, identity=0, compiled=True)
    for settings.K in (2, 10, 3):
        window = DabaLite(a)
        window.insert(7)
        assert window.query() == 7 * settings.K


def test_helpers_under_njit_compile_and_follow_their_constants():
    numba = pytest.importorskip("numba")
    names = {"k": 2, "njit": numba.njit}
    exec("@njit\ndef inner(x): return x * k\n@njit\ndef helper(x): return inner(x) + 1\ndef lift(x): return helper(x)", names)
    for lift in (names["lift"], names["helper"]):
        a = agg.define(lift=lift, combine=lambda a, b: a + b, identity=0, compiled=True, name="helped")
        prints = set()
        for names["k"] in (2, 9):
            window = DabaLite(a)
            window.insert(5)
            assert window.query() == 5 * names["k"] + 1
            prints.add(a.fingerprint())
        assert len(prints) == 2
