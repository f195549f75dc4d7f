"""Keyed wheels beside brute force: any keys, any order, all that a wheel can be asked."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sash import agg
from sash.wheel import BeyondWatermark, KeyedWheels, NotRetained
from tests.oracles import close, free_monoid
from tests.wheel.draws import some_range, some_time, some_value
from tests.wheel.oracle import BruteWheel, coverable

AGGREGATIONS = {
    "sum": agg.sum,
    "mean": agg.mean,
    "max": agg.max,
    "first": agg.first,
    "collect": agg.collect,
    "free": free_monoid,
    "struct": lambda: agg.struct(n=agg.count(), top=agg.max()),
}
KEYS: list[Any] = ["a", "b", "", 0, 1, -5, None, ("a", 1), (None, "b"), ("a",), 2.5, True, b"a"]


class KeyedMachine(RuleBasedStateMachine):
    @initialize(data=st.data())
    def build(self, data: st.DataObject) -> None:
        draw = data.draw
        self.name = draw(st.sampled_from(sorted(AGGREGATIONS)))
        self.aggregation = AGGREGATIONS[self.name]()
        self.floats = self.name in ("sum", "max", "mean") and draw(st.booleans())
        self.grain = draw(st.sampled_from([1, 2, 60]))
        self.start = self.grain * draw(st.one_of(st.integers(-40, 40), st.sampled_from([-(10**6), 10**9 + 1])))
        sizes, size = [self.grain], self.grain
        for ratio in draw(st.lists(st.integers(2, 5), max_size=3)):
            size *= ratio
            sizes.append(size)
        kept = st.one_of(st.just("keep"), st.sampled_from(["keep", "drop"]), st.integers(1, 9))
        self.keeps = draw(st.booleans())
        self.options: dict[str, Any] = {
            "grain": self.grain,
            "levels": tuple(sizes[1:]),
            "retention": "keep" if self.keeps else {size: draw(kept) for size in sizes},
            "write_ahead": draw(st.integers(1, 12)),
            "_few": draw(st.sampled_from([0, 1, 3, 64])),
        }
        self.keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique_by=lambda key: (type(key), key)))
        self.wheels = KeyedWheels(self.aggregation, self.start, **self.options)
        self.all, self.brute = self.brutes()

    def brutes(self) -> tuple[BruteWheel, dict[Any, BruteWheel]]:
        return BruteWheel(self.aggregation, self.start, self.grain), {}

    def known(self, key: Any) -> BruteWheel:
        """The brute force of a key, which is known from now on."""
        if self.name_of(key) not in self.brute:
            self.brute[self.name_of(key)] = one = BruteWheel(self.aggregation, self.start, self.grain)
            one.watermark = self.all.watermark
        return self.brute[self.name_of(key)]

    @staticmethod
    def name_of(key: Any) -> Any:
        return (type(key).__name__, key)  # 1 and True are one key of a dict

    def add(self, key: Any, value: Any, time: int) -> bool:
        if not self.all.insert(value, time):
            return False
        return self.known(key).insert(value, time)

    def key(self, data: st.DataObject) -> Any:
        return data.draw(st.sampled_from(self.keys))

    def value(self, data: st.DataObject) -> Any:
        return some_value(data, self.name, self.floats)

    def time(self, data: st.DataObject) -> int:
        return some_time(data, self.all)

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        key, value, time = self.key(data), self.value(data), self.time(data)
        assert self.wheels.insert(key, value, time) == self.add(key, value, time)

    @rule(data=st.data(), n=st.integers(0, 60))
    def insert_many(self, data: st.DataObject, n: int) -> None:
        rows = [(self.key(data), self.value(data), self.time(data)) for _ in range(n)]
        late = sum(not self.add(*row) for row in rows)
        assert (
            self.wheels.insert_many([k for k, _, _ in rows], [v for _, v, _ in rows], np.array([t for _, _, t in rows], np.int64)) == late
        )

    @precondition(lambda self: self.name in ("sum", "max", "first", "mean"))
    @rule(data=st.data(), n=st.integers(0, 20))
    def insert_slices(self, data: st.DataObject, n: int) -> None:
        rows = [(self.key(data), self.value(data), self.time(data) // self.grain * self.grain) for _ in range(n)]
        late = 0
        for key, value, time in rows:
            if time < self.all.now * self.grain:
                late += 1
                self.all.late += 1
            else:  # also in the part of the open grain that is late for items
                for brute in (self.all, self.known(key)):
                    brute.items.setdefault(time // self.grain, []).append((value, time))
        values: Any = [v for _, v, _ in rows]
        if self.name == "mean":
            values = {"sum": values, "count": [int(v is not None) for v in values]}
        assert self.wheels.insert_slices([k for k, _, _ in rows], [t for _, _, t in rows], values) == late

    @rule(grains=st.one_of(st.integers(-1, 12), st.integers(0, 200)), inside=st.integers(0, 59))
    def advance(self, grains: int, inside: int) -> None:
        to = self.all.watermark + grains * self.grain + inside % self.grain
        self.wheels.advance_to(to)
        for brute in (self.all, *self.brute.values()):
            brute.advance_to(to)

    def refused(self, error: ValueError, a: int, b: int) -> None:
        brute = self.all
        if isinstance(error, BeyondWatermark):
            assert b > brute.now
        elif isinstance(error, NotRetained):
            levels = [(size, lo, hi) for size, lo, hi, *_ in self.wheels._core._levels()]
            assert a < brute.first_tick or not coverable(levels, self.grain, a, b)
        else:
            assert a > b

    @rule(data=st.data())
    def query(self, data: st.DataObject) -> None:
        for _ in range(5):
            a, b = some_range(data, self.all)
            key = data.draw(st.sampled_from([*self.keys, "nobody"]))
            try:
                found = self.wheels.query(key, a * self.grain, b * self.grain)
                together = self.wheels.query_all(a * self.grain, b * self.grain)
            except ValueError as error:
                self.refused(error, a, b)
                continue
            assert self.all.first_tick <= a <= b <= self.all.now
            brute = self.brute.get(self.name_of(key))
            expected = self.aggregation.lower(self.aggregation.identity()) if brute is None else brute.value(a, b)
            assert close(found, expected), (found, expected, self.wheels.explain(a * self.grain, b * self.grain, key))
            assert close(together, self.all.value(a, b))

    @rule(data=st.data(), n=st.integers(0, 3))
    def query_each_and_top(self, data: st.DataObject, n: int) -> None:
        a, b = some_range(data, self.all)
        try:
            keys, values = self.wheels.query_each(a * self.grain, b * self.grain)
        except ValueError as error:
            return self.refused(error, a, b)
        expected = {name: brute.value(a, b) for name, brute in self.brute.items() if brute.any(a, b)}
        assert [self.name_of(key) for key in keys] == list(expected)
        assert all(close(f, e) for f, e in zip(values, expected.values(), strict=True))
        if self.name in ("sum", "max", "mean", "first"):
            ranked = sorted(((k, v) for k, v in zip(keys, values, strict=True) if v is not None), key=lambda row: row[1], reverse=True)
            assert self.wheels.top(n, a * self.grain, b * self.grain) == ranked[:n]

    @rule(data=st.data())
    def landmark_and_interval(self, data: st.DataObject) -> None:
        key = self.key(data)
        brute = self.brute.get(self.name_of(key)) or BruteWheel(self.aggregation)
        first, now = self.all.first_tick, self.all.now
        assert close(self.wheels.landmark(key), brute.value(first, now))
        assert close(self.wheels.landmark_all(), self.all.value(first, now))
        d = data.draw(st.integers(0, max(0, min(12, now - first))))
        try:
            assert close(self.wheels.interval(key, d * self.grain), brute.value(now - d, now))
        except NotRetained as error:
            self.refused(error, now - d, now)

    @rule(data=st.data(), every=st.integers(1, 7), back=st.integers(0, 20))
    def group_by(self, data: st.DataObject, every: int, back: int) -> None:
        key = self.key(data)
        brute = self.brute.get(self.name_of(key)) or BruteWheel(self.aggregation)
        b = self.all.now
        a = max(self.all.first_tick, b - back)
        try:
            found = self.wheels.group_by(key, a * self.grain, b * self.grain, every * self.grain)
            together = self.wheels.group_by_all(a * self.grain, b * self.grain, every * self.grain)
        except NotRetained:
            return
        starts = list(range(a, b, every))
        assert [s for s, _ in found] == [s for s, _ in together] == [s * self.grain for s in starts]
        for s, (_, mine), (_, ours) in zip(starts, found, together, strict=True):
            assert close(mine, brute.value(s, min(s + every, b)))
            assert close(ours, self.all.value(s, min(s + every, b)))

    @rule(how=st.sampled_from(["pickle", "copy", "bytes"]))
    def go_on_with_a_copy(self, how: str) -> None:
        if how == "bytes" and self.name != "free":
            self.wheels = KeyedWheels.from_bytes(self.wheels.to_bytes(), self.aggregation)
        else:
            self.wheels = copy.copy(self.wheels) if how == "copy" or self.name == "free" else pickle.loads(pickle.dumps(self.wheels))

    @precondition(lambda self: self.keeps)
    @rule(data=st.data(), n=st.integers(0, 20), back=st.integers(0, 50), ahead=st.integers(0, 60))
    def merge(self, data: st.DataObject, n: int, back: int, ahead: int) -> None:
        start = self.start - back * self.grain
        other = KeyedWheels(self.aggregation, start, **self.options, dtype="object" if self.wheels.dtype == "object" else None)
        rows = [(self.key(data), self.value(data), start + data.draw(st.integers(0, 120)) * self.grain) for _ in range(n)]
        if self.floats and n:
            rows[0] = (rows[0][0], 0.25, rows[0][2])
        if n and self.wheels.dtype == "int64" and self.floats:
            self.insert_float()
        other.insert_many([k for k, _, _ in rows], [v for _, v, _ in rows], [t for _, _, t in rows])
        other.advance_to(start + ahead * self.grain)
        self.wheels.merge(other)
        for key, value, time in rows:
            for brute in (self.all, self.known(key)):
                brute.items.setdefault(time // self.grain, []).append((value, time))
        self.start = min(self.start, start)
        for brute in (self.all, *self.brute.values()):
            brute.start = self.start
            brute.watermark = min(brute.watermark, start + ahead * self.grain)

    def insert_float(self) -> None:
        """Makes these wheels hold floats, as the others will."""
        key, time = self.keys[0], self.all.watermark
        assert self.wheels.insert(key, 0.25, time)
        assert self.add(key, 0.25, time)

    @invariant()
    def counts(self) -> None:
        if not hasattr(self, "wheels"):
            return
        assert self.wheels.late == self.all.late
        assert self.wheels.watermark == self.all.watermark
        assert [self.name_of(key) for key in self.wheels] == list(self.brute)
        assert len(self.wheels) == len(self.brute)
        self.wheels.check()


TestKeyedMachine = KeyedMachine.TestCase
TestKeyedMachine.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@pytest.mark.stress
def test_many_more_examples_of_the_machine():
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(KeyedMachine, settings=settings(TestKeyedMachine.settings, max_examples=1500, stateful_step_count=40))
