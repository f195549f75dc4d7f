"""Whatever is passed to a public method, an error says what is wrong in words: never that something could not be cast."""

import datetime as dt
import itertools

import numpy as np
import pytest

from sash import agg, slide, swag, window
from sash.swag import Keyed
from sash.wheel import KeyedWheels, Wheel

HOSTILE = [
    None,
    "x",
    b"x",
    object(),
    [],
    [1, "x"],
    {},
    {"a": 1},
    1.5,
    float("nan"),
    float("inf"),
    True,
    10**20,
    -(10**20),
    2**63,
    -(2**63) - 1,
    2**64,
    1j,
    np.float32(1.5),
    np.array([1.5, 2.5]),
    np.array([2**63], "u8"),
    np.datetime64("NaT"),
    np.timedelta64(1, "M"),
    dt.timedelta(1),
    lambda: 1,
    int,
    (),
    (1, 2),
]
SAID = ("bad_cast", "Unable to cast", "could not be translated", "bad_optional", "std::", "nanobind")


def is_clear(error):
    """An error in words, of a type that says what it is."""
    return (
        not isinstance(error, SystemError)
        and not any(word in str(error) for word in SAID)
        and (str(error) or isinstance(error, MemoryError))
    )


def attempts(make, name, widths, keywords=()):
    """Call a method with every hostile value in every place, the others valid or hostile too."""
    for width in widths:
        for place in range(width):
            for value, rest in itertools.product(HOSTILE, (0, 1)):
                arguments = [rest] * width
                arguments[place] = value
                yield lambda thing, a=arguments: getattr(thing, name)(*a), (name, arguments)
    for keyword in keywords:
        for value in HOSTILE:
            yield lambda thing, k=keyword, v=value: getattr(thing, name)(**{k: v}), (name, keyword, value)


def crossed(make, methods):
    wrong = []
    for name, widths, keywords in methods:
        for call, told in attempts(make, name, widths, keywords):
            thing = make()
            try:
                call(thing)
            except Exception as error:
                if not is_clear(error):
                    wrong.append((told, type(error).__name__, str(error)[:200]))
    assert not wrong, wrong[:10]


WINDOW_METHODS = [
    ("insert", (1, 2), ()),
    ("bulk_insert", (1, 2), ()),
    ("evict", (1,), ()),
    ("bulk_evict", (1,), ()),
    ("query", (1, 2), ("arg",)),
    ("query_many", (2,), ()),
    ("check", (1,), ()),
    ("merge", (1,), ()),
    ("to_bytes", (1,), ()),
    ("_restore", (1,), ()),
]
CLASSES = [name for name in swag.__all__ if name not in ("Window", "Keyed", "Coarse")]


@pytest.mark.parametrize("name", CLASSES)
def test_windows(name):
    made = {"OrderStatistics": agg.ith_smallest(1), "MonotonicDeque": agg.max()}.get(name, agg.sum())
    extra = {"max_delay": 5} if name == "Reordered" else {}

    def make():
        filled = getattr(swag, name)(made, **extra)
        filled.insert(1, 1)
        filled.insert(2, 2)
        return filled

    crossed(make, WINDOW_METHODS)
    crossed(lambda: getattr(swag, name)(made, **extra), [("insert", (1, 2), ()), ("bulk_insert", (2,), ())])


@pytest.mark.parametrize("name", [*CLASSES, "Coarse"])
def test_constructors_of_windows(name):
    made = {"OrderStatistics": agg.median(), "MonotonicDeque": agg.max()}.get(name, agg.sum())
    cls = getattr(swag, name)
    wrong = []
    for keyword in ("aggregation", "dtype", "min_arity", "ties", "max_delay", "grain"):
        for value in HOSTILE:
            arguments = {"aggregation": made, keyword: value}
            try:
                cls(**arguments) if name != "Coarse" else cls(swag.Fiba(agg.sum()), value)
            except Exception as error:
                if not is_clear(error) and "incompatible function arguments" not in str(error):
                    wrong.append((keyword, value, type(error).__name__, str(error)[:120]))
    for value in HOSTILE:
        for call in (lambda v=value: cls.from_bytes(v, made), lambda v=value: cls.from_bytes(b"SASH", v)):
            try:
                call()
            except Exception as error:
                if not is_clear(error):
                    wrong.append((value, type(error).__name__, str(error)[:120]))
    assert not wrong, wrong[:10]


def test_keyed_windows():
    def make():
        keyed = Keyed(lambda: swag.DabaLite(agg.sum()))
        keyed.insert("a", 1, 1)
        return keyed

    crossed(
        make,
        [("insert", (2, 3), ()), ("insert_many", (2, 3), ()), ("query", (1, 3), ("arg",)), ("evict", (1,), ()), ("bulk_evict", (1,), ())],
    )


def test_wheels():
    def make():
        wheel = Wheel(agg.sum(), grain=1, levels=(4,), unit="s")
        wheel.window(2, name="w")
        wheel.insert_many([1, 2, 3], [0, 1, 2])
        wheel.advance_to(3)
        return wheel

    methods = [
        ("insert", (2,), ()),
        ("insert_many", (2,), ()),
        ("window", (1, 2, 3), ("session", "offset", "name")),
        ("query", (2,), ("clamp",)),
        ("query_many", (2,), ()),
        ("landmark", (1,), ("arg",)),
        ("interval", (1,), ()),
        ("explain", (2,), ()),
        ("group_by", (3,), ()),
        ("merge", (1,), ()),
        ("_restore", (1,), ()),
    ]
    crossed(make, methods)
    crossed(make, [("advance_to", (1,), ())])


def test_keyed_wheels():
    def make():
        wheels = KeyedWheels(agg.sum(), grain=1, levels=(4,), unit="s")
        wheels.insert_many(["a", "b", "a"], [1, 2, 3], [0, 1, 2])
        wheels.advance_to(3)
        return wheels

    methods = [
        ("insert", (3,), ()),
        ("insert_many", (3,), ()),
        ("insert_slices", (3,), ()),
        ("query", (3,), ("arg",)),
        ("landmark", (1,), ("arg",)),
        ("interval", (2,), ()),
        ("group_by", (4,), ()),
        ("query_all", (2,), ()),
        ("query_each", (2,), ()),
        ("top", (3,), ()),
        ("explain", (2, 3), ()),
        ("merge", (1,), ()),
    ]
    crossed(make, methods)


def test_constructors_of_wheels():
    wrong = []
    for make in (Wheel, KeyedWheels):
        for keyword in (
            "aggregation",
            "start",
            "unit",
            "grain",
            "levels",
            "retention",
            "layout",
            "write_ahead",
            "dtype",
            "hints",
            "simd_threshold",
        ):
            for value in HOSTILE:
                try:
                    make(**{"aggregation": agg.sum(), keyword: value})
                except Exception as error:
                    if not is_clear(error) and "incompatible function arguments" not in str(error):
                        wrong.append((make.__name__, keyword, value, type(error).__name__, str(error)[:120]))
    assert not wrong, wrong[:10]


def test_slide_and_window():
    wrong = []
    plain = {"values": [1, 2, 3], "agg": agg.sum(), "size": 2}
    timed = {"values": [1, 2, 3], "agg": agg.sum(), "times": [1, 2, 3], "period": 2}
    for base, keyword in itertools.product(
        (plain, timed), ("values", "agg", "size", "times", "period", "by", "order", "closed", "algorithm")
    ):
        for value in HOSTILE:
            try:
                slide(**{**base, keyword: value})
            except Exception as error:
                if not is_clear(error):
                    wrong.append((keyword, value, type(error).__name__, str(error)[:120]))
    for keyword in ("aggregation", "in_order", "worst_case", "ranges", "bulk", "max_delay"):
        for value in HOSTILE:
            try:
                window(**{"aggregation": agg.sum(), keyword: value})
            except Exception as error:
                if not is_clear(error):
                    wrong.append((keyword, value, type(error).__name__, str(error)[:120]))
    assert not wrong, wrong[:10]


def test_arguments_of_queries_that_are_huge():
    tallest = swag.OrderStatistics(agg.ith_smallest(1))
    tallest.bulk_insert([3, 1, 2])
    assert tallest.query(arg=2) == 2
    assert tallest.query(arg=10**20) is None
    assert swag.OrderStatistics(agg.ith_smallest(10**20)).query() is None
    for make in (swag.DabaLite, swag.Fiba):
        ranked = make(agg.ith_smallest(1))
        ranked.insert(3, 1)
        assert ranked.query(arg=10**20) is None
