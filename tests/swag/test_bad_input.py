"""Bad input: an error that names the value, the rule and the fix, and changes nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sash import agg, swag
from sash.errors import BrokenWindow, OutOfOrderError
from tests.swag.in_order import ALL, FREE, RANGES, name_of, seeing

every = pytest.mark.parametrize("algorithm", ALL, ids=name_of)


def filled(algorithm, n=20):
    window = algorithm(seeing(algorithm))
    for i in range(n):
        window.insert(i, 10 * i)
    return window


@every
def test_a_time_older_than_the_youngest(algorithm):
    window = filled(algorithm)
    before = window.query()
    with pytest.raises(OutOfOrderError, match=r"189.*190.*Fiba"):
        window.insert(1, 189)
    with pytest.raises(OutOfOrderError, match="189"):
        window.bulk_insert([1, 2], times=[189, 300])
    assert issubclass(OutOfOrderError, ValueError)
    assert (window.query(), len(window), window.youngest) == (before, 20, 190)
    window.check(list(range(20)))


@every
def test_bulk_times_that_decrease(algorithm):
    window = filled(algorithm)
    with pytest.raises(OutOfOrderError, match=r"200 follows 300.*sort=True"):
        window.bulk_insert([1, 2], times=[300, 200])
    assert len(window) == 20


@every
def test_lengths_that_differ(algorithm):
    window = filled(algorithm)
    with pytest.raises(ValueError, match="3"):
        window.bulk_insert([1, 2, 3], times=[300, 400])
    assert len(window) == 20


@every
def test_times_left_out_and_given(algorithm):
    window = filled(algorithm)
    with pytest.raises(ValueError, match="time"):
        window.insert(1)
    counted = algorithm(seeing(algorithm))
    counted.insert(1)
    with pytest.raises(ValueError, match="time"):
        counted.insert(2, 5)
    assert (len(window), len(counted)) == (20, 1)


@every
@pytest.mark.parametrize("aggregation", [3, None, "sum", agg.sum])
def test_an_aggregation_that_is_none(algorithm, aggregation):
    with pytest.raises(TypeError, match="not an aggregation"):
        algorithm(aggregation)


@pytest.mark.parametrize("algorithm", [a for a in ALL if a is not swag.Recalc], ids=name_of)
def test_an_aggregation_that_is_not_associative(algorithm):
    mean_of_means = agg.define(
        lift=float, combine=lambda a, b: (a + b) / 2, identity=0.0, associative=False, inverse=lambda w, o: 2 * w - o, selective=True
    )
    with pytest.raises(TypeError, match=r"not associative.*Recalc"):
        algorithm(mean_of_means)
    assert swag.Recalc(mean_of_means).query() == 0.0


def test_an_aggregation_without_what_the_algorithm_needs():
    with pytest.raises(TypeError, match=r"max has no inverse.*SubtractOnEvict needs one"):
        swag.SubtractOnEvict(agg.max())
    with pytest.raises(TypeError, match=r"sum is not selective.*MonotonicDeque"):
        swag.MonotonicDeque(agg.sum())


@every
def test_items_of_the_wrong_type(algorithm):
    window = algorithm(agg.max() if algorithm is swag.MonotonicDeque else agg.sum())
    window.insert(1)
    for item in ("2", object(), [3]):
        with pytest.raises(TypeError):
            window.insert(item)
    assert len(window) == 1
    assert window.query() == 1


@every
def test_ranges_where_they_are_not_offered(algorithm):
    window = filled(algorithm)
    if algorithm in RANGES:
        assert window.query(15, 30) == seeing(algorithm).lower((2, 3))
        with pytest.raises(ValueError, match=r"30.*15"):
            window.query(30, 15)
    elif algorithm is swag.FlatFit:
        assert window.query(175, 190) == (18, 19)
        assert window.query(175, 10**6) == (18, 19)
        with pytest.raises(ValueError, match=r"180.*190.*youngest"):
            window.query(10, 180)
    else:
        with pytest.raises(TypeError, match="FlatFat"):
            window.query(15, 30)


@every
def test_evicting_by_time_or_reading_items_where_not_offered(algorithm):
    window = filled(algorithm)
    with pytest.raises(TypeError, match="Fiba"):
        window.evict(50)
    if algorithm in (swag.TwoStacksLite, swag.DabaLite, swag.FlatFit, swag.MonotonicDeque):
        with pytest.raises(TypeError, match="TwoStacks"):
            window.items()
    assert len(window) == 20


class Trouble:
    """The free monoid (the best item, for MonotonicDeque), whose n-th call to come raises."""

    def __init__(self, algorithm):
        self.fuse = -1
        selective = algorithm is swag.MonotonicDeque
        base = seeing(algorithm)

        def watched(f):
            def call(*args):
                if self.fuse == 0:
                    self.fuse = -1
                    raise ZeroDivisionError("boom")
                self.fuse -= self.fuse > 0
                return f(*args)

            return call

        lift = watched(base.lift)
        self.aggregation = agg.define(
            lift=lambda x, t: lift(x, t),
            combine=watched(base.combine),
            inverse=None if selective else watched(base.inverse),
            lower=watched(base.lower),
            identity=base.identity(),
            selective=selective,
        )


@every
def test_a_callable_that_raises_at_any_step(algorithm):
    # Every operation is tried with the first, second, ... call raising. The window is then as it was, or broken until
    # it is cleared, and only a step that touches many partials, or a bulk of several steps, may break it.
    may_break = algorithm in (swag.TwoStacks, swag.TwoStacksLite)
    broken = 0
    for fuse, n, gone in itertools.product(range(9), (0, 1, 2, 3, 7, 8, 13), (0, 3)):
        for operation in ("insert", "evict", "query", "bulk_evict"):
            if operation == "evict" and n == 0:
                continue
            trouble = Trouble(algorithm)
            window, values = algorithm(trouble.aggregation), list(range(100, 100 + n + gone))
            for value in values:
                window.insert(value)
            for _ in range(gone):
                window.evict()
                del values[0]
            trouble.fuse = fuse
            arguments = {"insert": [5], "bulk_evict": [window.youngest if n else 0]}.get(operation, [])
            try:
                getattr(window, operation)(*arguments)
                trouble.fuse = -1
                continue
            except ZeroDivisionError:
                pass
            try:
                assert len(window) == len(values)
                window.check(values)
                window.query()
            except BrokenWindow:
                broken += operation != "bulk_evict"
                assert may_break or operation == "bulk_evict"
                assert operation in ("evict", "bulk_evict")
                with pytest.raises(BrokenWindow, match=r"boom.*clear"):
                    window.insert(1)
                window.clear()
                values = []
            values = values[len(values) - len(window) :]
            window.insert(7)
            window.check([*values, 7])
    assert bool(broken) == may_break


@every
@pytest.mark.parametrize("step", ["lift", "combine", "lower"])
def test_a_callable_that_calls_its_own_window(algorithm, step):
    base = seeing(algorithm)
    caught = []

    def calling(f):
        def call(*args):
            if armed:
                for operation in (window.query, window.evict, lambda: window.insert(1), window.clear):
                    with pytest.raises(RuntimeError, match="at work"):
                        operation()
                caught.append(step)
            return f(*args)

        return call

    lift, combine, lower = base.lift, base.combine, base.lower
    armed = []
    aggregation = agg.define(
        lift=(lambda x, t: calling(lift)(x, t)) if step == "lift" else (lambda x, t: lift(x, t)),
        combine=calling(combine) if step == "combine" else combine,
        lower=calling(lower) if step == "lower" else lower,
        inverse=base.inverse if base.invertible else None,
        identity=base.identity(),
        selective=base.selective,
    )
    window = algorithm(aggregation)
    for i in range(6):
        window.insert(i)
    armed.append(True)
    window.insert(6)
    window.query()
    armed.clear()
    assert caught or (algorithm is swag.SubtractOnEvict and step == "combine")
    window.check(list(range(7)))


@every
def test_damaged_bytes(algorithm):
    window = filled(algorithm)
    data = window.to_bytes()
    for damaged in (b"", data[:-1], data[: len(data) // 2], data[:40] + bytes([data[40] ^ 1]) + data[41:], b"x" * 100):
        with pytest.raises(ValueError):
            algorithm.from_bytes(damaged, seeing(algorithm))
    other = agg.define(lift=lambda x: (x, x), combine=lambda a, b: a + b, identity=(), name="free", selective=True)
    with pytest.raises(ValueError):
        algorithm.from_bytes(data, other)
    wrong = swag.Daba if algorithm is not swag.Daba else swag.TwoStacks
    with pytest.raises(ValueError):
        wrong.from_bytes(data, FREE)


@every
def test_states_that_no_window_can_have(algorithm):
    # Past the checksum: numbers that no window can have are refused, and whatever is believed can be worked with.
    window = filled(algorithm, 12)
    *head, packed, partials = window._state()
    numbers = np.frombuffer(packed, np.int64)
    refused = 0
    for i in range(len(numbers)):
        for value in (-1, -(2**63), 2**62, 5, 0):
            wrong = numbers.copy()
            wrong[i] = value
            fresh = algorithm(seeing(algorithm))
            try:
                fresh._restore((*head, wrong.tobytes(), partials))
            except (ValueError, RuntimeError, IndexError):
                refused += 1
                continue
            fresh.insert(1, 2**63 - 1)
            fresh.query()
            while len(fresh):
                fresh.evict()
            fresh.query()
    assert refused >= 12
