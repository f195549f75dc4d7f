"""A step happens whole, or not at all, or the window says that it is broken."""

import collections
import contextlib
import copy
import gc
import itertools
import math
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

from sash import agg, swag
from sash.errors import BrokenWindow
from sash.swag import Daba, DabaLite, Fiba, Recalc
from sash.wheel import KeyedWheels, Wheel
from tests.truth.classes import IN_ORDER, TREES
from tests.truth.fuse import Fault, Fuse

ALL = (*IN_ORDER, *TREES)


@pytest.fixture(autouse=True)
def _a_small_heap():
    """The collector looks at what a test made, not at all that was imported: that took most of the time."""
    gc.freeze()
    yield
    gc.unfreeze()


def held(window, fuse):
    fuse.kind = None
    return window.query(), len(window), window.oldest, window.youngest, window.dtype


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("step", ["bulk_insert", "bulk_evict", "insert", "evict"])
@pytest.mark.parametrize("kind", ["lift", "combine"])
def test_a_step_broken_off_by_a_callable_leaves_all_as_it_was_or_the_window_broken(name, timed, step, kind):
    if not timed and name in TREES:
        timed = True
    broken = whole = 0
    for k, before in itertools.product(range(1, 14), (0, 1, 5, 9)):
        fuse = Fuse()
        window = getattr(swag, name)(fuse.aggregation())
        if before:
            window.bulk_insert(list(range(before)), list(range(before)) if timed else None)
        known = held(window, fuse)
        fuse.kind, fuse.left = kind, k
        try:
            if step == "bulk_insert":
                window.bulk_insert([100, 101, 102, 103, 104], [50, 51, 52, 53, 54] if timed else None)
            elif step == "insert":
                window.insert(100, 50 if timed else None)
            elif step == "bulk_evict":
                window.bulk_evict(before - 2)
            elif before:
                window.evict()
        except Fault:
            fuse.kind = None
            try:
                now = held(window, fuse)
            except BrokenWindow:
                broken += 1
                with pytest.raises(BrokenWindow, match="Fault"):
                    window.query()
                for ask in (lambda: len(window), lambda: window.oldest, lambda: window.query(), lambda: window.insert(1, 99)):  # noqa: B023
                    with pytest.raises(BrokenWindow):
                        ask()
                window.clear()
                window.insert(7, 99 if timed else None)
                assert held(window, fuse)[0] == [7]
            else:
                assert now == known, (k, before)
                window.check()
        else:
            whole += 1
            fuse.kind = None
            window.check()
    assert kind != "lift" or not broken, "a lift that raises never breaks a window"
    assert whole


@pytest.mark.parametrize("name", ALL)
def test_a_bulk_with_an_item_that_does_not_fit_changes_nothing(name):
    window = getattr(swag, name)(agg.sum())
    window.bulk_insert([5, 6], [0, 1])
    before = window._state()
    with pytest.raises(TypeError):
        window.bulk_insert([1, 2, "x"], [10, 11, 12])
    assert window._state() == before
    window.bulk_insert([1, 2.5], [10, 11])
    assert window.query() == 14.5


@pytest.mark.parametrize("name", ALL)
def test_text_among_numbers_is_refused_by_a_first_bulk_as_it_is_one_by_one(name):
    for dtype in (None, "int64"):
        window = getattr(swag, name)(agg.sum(dtype=dtype))
        with pytest.raises(TypeError, match="no number"):
            window.bulk_insert([1, 2, "x"], [0.5, 1.5, 2.5])
        assert len(window) == 0
        window.bulk_insert([5, 6], [0, 1])
        assert (window.query(), window.oldest) == (11, 0)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_first_bulk_that_is_broken_off_leaves_the_window_empty(name, k):
    fuse = Fuse()
    window = getattr(swag, name)(fuse.aggregation())
    fuse.kind, fuse.left = "combine", k
    with contextlib.suppress(Fault):
        window.bulk_insert(range(20), [i / 2 for i in range(20)])
    burnt, fuse.kind = fuse.left <= 0, None
    assert window.query() == ([] if burnt else list(range(20)))
    if burnt:
        window.check()
        window.insert(7, 3)  # of integer times, after all
        assert (window.query(), window.oldest) == ([7], 3)


def test_a_failed_first_step_fixes_neither_the_kind_of_time_nor_the_item_type():
    for times in ([1.5, 2.5], None):
        window = DabaLite(agg.sum(dtype="int64"))
        with pytest.raises(TypeError):
            window.bulk_insert([1, "x"], times)
        window.insert(1, 7)  # integer times
        assert window.dtype == "int64"
        assert window.oldest == 7
    fuse = Fuse()
    for first in (lambda w: w.insert("a", 1.5), lambda w: w.bulk_insert(["a", "b"], [1.5, 2.5])):
        window = DabaLite(fuse.aggregation())
        fuse.kind, fuse.left = "lift", 1
        with pytest.raises(Fault):
            first(window)
        fuse.kind = None
        window.insert("z")
        assert window.query() == ["z"]
        assert window.oldest == 0


def test_a_lift_that_raises_takes_a_promotion_back():
    window = Fiba(agg.sum())
    window.bulk_insert([1, 2], [1, 2])
    with pytest.raises(TypeError):
        window.bulk_insert([0.5, "x"], [3, 4])
    assert window.dtype == "int64"
    assert window.query() == 3


def test_merging_breaks_nothing_where_it_is_refused():
    keep, combine = Fiba(agg.sum(), ties="keep"), Fiba(agg.sum())
    keep.insert(1, 1), combine.insert(2, 2)
    with pytest.raises(ValueError, match="ties="):
        combine.merge(keep)
    assert combine.query() == 2
    empty = DabaLite(agg.sum())
    other = DabaLite(agg.sum())
    other.insert(1)
    with pytest.raises((ValueError, TypeError)):
        empty.merge(other)
    empty.insert(1, 1.5)
    assert empty.oldest == 1.5


# --- wheels


def test_an_advance_that_meets_an_overflow_loses_no_result():
    wheel = Wheel(agg.sum(), unit="s")
    wheel.window("1m", name="minute")
    wheel.window("2m", "1m", name="two")
    wheel.insert_many([2**62, 2**62, 1, 5], [0, 1, 60, 130])
    with pytest.raises(OverflowError) as error:
        wheel.advance_to(180)
    assert any("'minute' of [0, 60)" in note for note in error.value.__notes__)
    again = copy.copy(wheel), pickle.loads(pickle.dumps(wheel)), Wheel.from_bytes(wheel.to_bytes(), agg.sum())
    for w in (*again, wheel):
        with pytest.raises(OverflowError):
            w.advance_to(180)
        found = w.advance_to(240, errors="keep")
        assert [(r.name, r.start, r.end) for r in found] == [
            ("minute", 0, 60),
            ("minute", 60, 120),
            ("two", 0, 120),
            ("minute", 120, 180),
            ("two", 60, 180),
            ("minute", 180, 240),
            ("two", 120, 240),
        ]
        assert isinstance(found[0].value, OverflowError)
        assert isinstance(found[2].value, OverflowError)
        assert [r.value for r in found if not isinstance(r.value, OverflowError)] == [1, 5, 6, 0, 5]
        assert w.advance_to(240) == []


@pytest.mark.parametrize("k", range(1, 8))
def test_an_advance_whose_lower_raises_loses_no_result(k):
    fuse = Fuse()
    wheel = Wheel(fuse.aggregation(), grain=1, levels=())
    wheel.window(2, name="w")
    wheel.insert_many(list("abcdefgh"), list(range(8)))
    fuse.kind, fuse.left = "lower", k
    found = []
    try:
        found = wheel.advance_to(8)
    except Fault:
        fuse.kind = None
        found = wheel.advance_to(8)
    assert [(r.start, r.value) for r in found] == [(0, ["a", "b"]), (2, ["c", "d"]), (4, ["e", "f"]), (6, ["g", "h"])]
    assert wheel.advance_to(8) == []


def test_results_that_wait_outlive_a_promotion():
    wheel = Wheel(agg.sum(), grain=1, levels=())
    wheel.window(1, name="w")
    wheel.insert_many([2**63 - 1, 2**63 - 1, 4], [0, 0, 1])
    with pytest.raises(OverflowError):
        wheel.advance_to(2)
    wheel.insert(0.5, 2)
    assert [r.value for r in wheel.advance_to(3)] == [2.0**64, 4.0, 0.5]


def wheel_state(wheel):
    return wheel._state() if isinstance(wheel, Wheel) else wheel._core.state()


@pytest.mark.parametrize("kind", ["lift", "combine"])
@pytest.mark.parametrize("k", range(1, 9))
def test_a_bulk_into_a_wheel_is_whole_or_nothing_or_breaks_it(kind, k):
    fuse = Fuse()
    for make, many in (
        (Wheel, lambda w: w.insert_many(list("abcd"), [1, 1, 2, 1])),
        (KeyedWheels, lambda w: w.insert_many([1, 2, 1, 1], list("abcd"), [1, 1, 2, 1])),
    ):
        wheel = make(fuse.aggregation(), grain=1, levels=())
        before = wheel_state(wheel)
        fuse.kind, fuse.left = kind, k
        try:
            many(wheel)
        except Fault:
            fuse.kind = None
            try:
                assert wheel_state(wheel) == before
                assert make is Wheel or wheel.keys() == []
            except BrokenWindow:
                assert kind == "combine"
        fuse.kind = None


def test_a_bulk_of_items_that_do_not_fit_leaves_a_wheel_as_it_was():
    for make, many in (
        (Wheel, lambda w, values: w.insert_many(values, range(len(values)))),
        (KeyedWheels, lambda w, values: w.insert_many(list("abc")[: len(values)], values, range(len(values)))),
    ):
        wheel = make(agg.sum(), grain=1, levels=())
        assert many(wheel, [5]) == 0
        before = wheel_state(wheel)
        with pytest.raises(TypeError):
            many(wheel, [1, 2.5, "x"])
        assert wheel_state(wheel) == before
        assert wheel.dtype == "int64"


# --- threads, and the garbage collector


def test_every_accessor_is_guarded_while_the_window_is_at_work():
    found = []
    window = None

    def combine(a, b):
        for ask in (
            lambda: len(window),
            lambda: window.oldest,
            lambda: window.youngest,
            lambda: window.query(),
            lambda: window.items(),
            lambda: window.dtype,
            lambda: window.clear(),
            lambda: window.check(),
            lambda: window._counts(),
            lambda: window.to_bytes(),
        ):
            try:
                ask()
            except RuntimeError as error:
                found.append("at work" in str(error))
            else:
                found.append(False)
        return a + b

    for name in ALL:
        window = getattr(swag, name)(agg.define(lift=lambda x: x, combine=combine, identity=0, name="nosy"))
        window.bulk_insert([1, 2, 3], [1, 2, 3])
        window.query()
    assert found
    assert all(found)


def test_every_accessor_of_wheels_is_guarded_while_they_are_at_work():
    found = []

    def nosy(asks):
        def combine(a, b):
            for ask in asks:
                with pytest.raises(RuntimeError, match="at work"):
                    ask()
                found.append(ask)
            return a + b

        return agg.define(lift=lambda x: x, combine=combine, identity=0, name="nosy")

    wheel = Wheel(
        nosy(
            [
                lambda: wheel.late,
                lambda: wheel.nbytes,
                lambda: wheel.slots,
                lambda: wheel.watermark,
                lambda: wheel.start,
                lambda: wheel.landmark(),
            ]
        ),
        grain=1,
        levels=(),
    )
    wheel.insert_many([1, 2], [1, 1])
    keyed = KeyedWheels(
        nosy(
            [
                lambda: keyed.late,
                lambda: keyed.memory,
                lambda: len(keyed),
                lambda: keyed.keys(),
                lambda: 1 in keyed,
                lambda: keyed.watermark,
            ]
        ),
        grain=1,
        levels=(),
    )
    keyed.insert_many([1, 1], [1, 2], [1, 1])
    assert len(found) >= 12


@pytest.mark.parametrize("name", ["DabaLite", "Recalc", "Fiba", "BlockFiba", "OrderStatistics", "FlatFat", "Amta", "SubtractOnEvict"])
def test_another_thread_gets_an_error_or_a_true_answer_and_never_freed_memory(name):
    a = agg.median() if name == "OrderStatistics" else agg.sum(dtype="int64")
    window = getattr(swag, name)(a)
    rows = 20_000
    stop = threading.Event()
    wrong = []

    def ask():
        while not stop.is_set():
            for get in (lambda: window.oldest, lambda: window.youngest, lambda: len(window)):
                try:
                    found = get()
                except RuntimeError:
                    continue
                if found is not None and not 0 <= found <= 10 * rows:
                    wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for i in range(10):
            times = np.arange(i * rows, (i + 1) * rows)
            for _ in range(10_000):
                try:
                    window.bulk_insert(times, times)
                    break
                except RuntimeError:
                    continue
            for _ in range(10_000):
                try:
                    window.bulk_evict(int(times[-1]) - 10)
                    break
                except RuntimeError:
                    continue
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


class Item:
    """Something that may hold the window that it is in."""

    def __lt__(self, other):
        return id(self) < id(other)


def cyclic(make):
    item = Item()
    window = make(agg.collect())
    item.window = window
    return window, item


@pytest.mark.parametrize("name", [*ALL])
def test_a_cycle_through_an_item_is_collected(name):
    window, item = cyclic(getattr(swag, name))
    for i in range(40):
        window.insert(item if i % 3 else Item(), i)
    window.query()
    gone = weakref.ref(item)
    del window, item
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", [*ALL, "SubtractOnEvict", "MonotonicDeque", "OrderStatistics"])
def test_a_cycle_through_a_callable_or_an_attribute_is_collected(name):
    for way in ("callable", "attribute"):
        made = []
        token = Item()

        def lift(x, made=made, token=token):
            return (x, made, token)[0]

        inner = {"inverse": lambda a, b: a, "commutative": True} if name == "SubtractOnEvict" else {}
        a = agg.define(lift=lift, combine=min, identity=10**9, name="c", selective=name == "MonotonicDeque", **inner)
        window = getattr(swag, name)(agg.median(where=lift) if name == "OrderStatistics" else a)
        for i in range(5):
            window.insert(i, i)
        if way == "callable":
            made.append(window)
        else:
            window.me = (window, token)
        gone = weakref.ref(token)
        del window, a, lift, token, made
        gc.collect()
        assert gone() is None, way


@pytest.mark.parametrize("make", [Wheel, KeyedWheels])
def test_cycles_through_wheels_are_collected(make):
    for way in ("item", "callable"):
        item = Item()
        made = []

        def lift(x, made=made, item=item):
            return (x,)

        a = agg.collect() if way == "item" else agg.define(lift=lift, combine=lambda a, b: a + b, identity=(), name="c")
        wheel = make(a, grain=1, levels=(4, 16))
        item.wheel = wheel
        made.append(wheel)
        for t in range(40):
            if make is Wheel:
                wheel.insert(item if way == "item" else t, t)
            else:
                wheel.insert(t % 3, item if way == "item" else t, t)
        wheel.advance_to(30)
        gone = weakref.ref(item)
        del wheel, item, a, lift, made
        gc.collect()
        assert gone() is None, way


def test_a_reader_keeps_what_it_sees_whatever_becomes_of_its_wheel():
    item = Item()
    wheel = Wheel(agg.collect(), grain=1, levels=(4,))
    item.wheel = wheel
    for t in range(20):
        wheel.insert([t, item], t)
    wheel.advance_to(20)
    reader = wheel.reader()
    del wheel
    gc.collect()
    assert [x[0] for x in reader.landmark()] == list(range(20))
    del item, reader
    gc.collect()


def test_what_is_in_use_is_never_cleared_by_the_collector():
    for name in ALL:
        window, item = cyclic(getattr(swag, name))
        for i in range(60):
            window.insert([i, item], i)
            if i % 7 == 0:
                gc.collect()
        window.bulk_evict(9)
        gc.collect()
        assert [x[0] for x in window.query()] == list(range(10, 60))


def test_the_collector_is_told_each_reference_once():
    for name in ALL:
        window = getattr(swag, name)(agg.collect())
        items = [[i] for i in range(30)]
        for i, item in enumerate(items):
            window.insert(item, i)
        visited = [p for p in gc.get_referents(window) if isinstance(p, tuple) and p]
        assert visited
        counts = collections.Counter(map(id, visited))
        for p in visited:  # the list holds it as often as it was visited, this loop and the call once each
            assert sys.getrefcount(p) == 2 * counts[id(p)] + 2, name


def test_an_item_whose_end_calls_its_window_meets_an_error():
    said = []

    class Last:
        def __init__(self, window):
            self.window = window

        def __del__(self):
            try:
                said.append(len(self.window))
            except RuntimeError as error:
                said.append(str(error))

    for name in ("DabaLite", "Recalc", "Fiba"):
        window = getattr(swag, name)(agg.last())
        for i in range(5):
            window.insert(Last(window), i)
        window.bulk_evict(3)
        window.clear()
        assert len(window) == 0
    assert said
    assert all("at work" in word for word in said if isinstance(word, str))


# --- check()


@pytest.mark.parametrize("name", [*ALL, "SubtractOnEvict", "Reordered"])
@pytest.mark.parametrize(
    "make",
    [
        agg.sum,
        agg.mean,
        agg.var,
        agg.kurtosis,
        agg.product,
        agg.geomean,
        lambda **k: agg.linreg("x", "y"),
        lambda **k: agg.struct(a=agg.sum("x"), b=agg.std("x")),
    ],
    ids=["sum", "mean", "var", "kurtosis", "product", "geomean", "linreg", "struct"],
)
@pytest.mark.parametrize("dtype", [None, "object"])
def test_check_never_raises_on_a_healthy_window(name, make, dtype):
    try:
        a = make(dtype=dtype)
        extra = {"max_delay": 3} if name == "Reordered" else {}
        getattr(swag, name)(a, **extra)
    except TypeError:
        return  # the algorithm asks for what the aggregation lacks
    rng = np.random.default_rng(7)
    for scale in (1e-3, 1.0, 1e16, 1e150, 1e308):
        window = getattr(swag, name)(a, **extra)
        for i in range(150):
            x = float(rng.normal()) * (scale if i % 17 == 0 else 1.0)
            if i % 50 == 49:
                x = [math.inf, -math.inf, math.nan][i % 3]
            window.insert({"x": x, "y": 3 * x} if a.name in ("linreg", "struct") else x, i)
            if len(window) > 40:
                window.evict() if i % 2 else window.bulk_evict(window.oldest + 1)
            if i % 5 == 0:
                window.check()


def test_check_still_finds_what_is_wrong():
    window = DabaLite(agg.sum())
    window.bulk_insert([1.0, 2.0, 3.0])
    with pytest.raises(AssertionError):
        window.check([1.0, 2.5, 3.0])
    window = Recalc(agg.mean())
    window.bulk_insert([1.0, 2.0, 3.0])
    with pytest.raises(AssertionError):
        window.check([1.0, 2.0, 3.0001])
    daba = Daba(agg.collect())
    daba.bulk_insert([1, 2, 3])
    with pytest.raises(AssertionError):
        daba.check([1, 2, 4])


# --- infinite items


@pytest.mark.parametrize("name", ["var", "std", "skew", "kurtosis", "mean", "sum", "product", "geomean"])
@pytest.mark.parametrize(
    "items",
    [
        [1, math.inf, 2],
        [math.inf, 1, 2, 3],
        [1, 2, 3, math.inf],
        [math.inf] * 4,
        [math.inf, -math.inf, 1, 2],
        [math.nan, 0.0],
        [0.0, math.nan, 3, 4],
    ],
    ids=str,
)
def test_infinite_items_and_nan_give_the_same_in_every_algorithm_and_in_numpy(name, items):
    from sash import slide

    x = np.array(items, float)
    with np.errstate(all="ignore"):
        n = len(x)
        wanted = {
            "var": lambda: x.var(ddof=1),
            "std": lambda: x.std(ddof=1),
            "skew": lambda: math.nan,
            "kurtosis": lambda: math.nan,
            "mean": x.mean,
            "sum": x.sum,
            "product": x.prod,
            "geomean": lambda: np.exp(np.log(x).mean()),
        }[name]()
        if (name == "skew" and n < 3) or (name == "kurtosis" and n < 4):
            wanted = None
    a = getattr(agg, name)()
    found = {}
    for algorithm in (*ALL, "SubtractOnEvict"):
        window = getattr(swag, algorithm)(a)
        for i, value in enumerate(items):
            window.insert(value, i)
        found[algorithm] = window.query()
        rest = getattr(swag, algorithm)(a, dtype="object")
        rest.bulk_insert(items, list(range(len(items))))
        found[algorithm + " of objects"] = rest.query()
    found["slide"] = slide(x, agg=a, size=len(x))[-1]
    wheel = Wheel(a, grain=1, levels=())
    wheel.insert_many(x, range(len(x)))
    wheel.advance_to(10)
    found["wheel"] = wheel.landmark()
    for where, value in found.items():
        if wanted is None:
            assert value is None or math.isnan(value), (where, value)
        else:
            assert np.array_equal(value, wanted, equal_nan=True), (where, value, wanted)
