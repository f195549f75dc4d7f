"""Every in-order algorithm in lockstep with Recalc under the free monoid, with check() after every step."""

from __future__ import annotations

import copy
import pickle
import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sash import swag
from tests.swag.in_order import ALL, ITEMS, RANGES, name_of, seeing

STEPS = st.integers(0, 3)  # between times: equal ones are common
VALUES = st.one_of(st.integers(0, 99), st.none())


class InOrderMachine(RuleBasedStateMachine):
    algorithm: type[swag.Window] = swag.Recalc

    @initialize(timed=st.booleans())
    def start(self, timed):
        self.window, self.recalc = self.algorithm(seeing(self.algorithm)), swag.Recalc(seeing(self.algorithm))
        self.timed, self.now = timed, 0
        self.values = []

    def times(self, steps):
        times = []
        for step in steps:
            self.now += step
            times.append(self.now)
        return times

    def both(self, call):
        results = [call(self.window), call(self.recalc)]
        assert results[0] == results[1]
        return results[0]

    @rule(value=VALUES, step=STEPS)
    def insert(self, value, step):
        time = self.times([step])[0] if self.timed else None
        self.both(lambda w: w.insert(value, time))
        self.values.append(value)

    @rule(rows=st.lists(st.tuples(VALUES, STEPS), max_size=40))
    def bulk_insert(self, rows):
        values = [value for value, _ in rows]
        times = self.times([step for _, step in rows]) if self.timed else None
        self.both(lambda w: w.bulk_insert(values, times))
        self.values += values

    @precondition(lambda self: self.values)
    @rule(times=st.integers(1, 12))
    def evict(self, times):
        for _ in range(min(times, len(self.values))):
            self.both(lambda w: w.evict())
            del self.values[0]

    @rule(back=st.integers(-2, 30))
    def bulk_evict(self, back):
        youngest = self.recalc.youngest
        if youngest is not None:
            self.both(lambda w: w.bulk_evict(youngest - back))
            self.values = self.values[len(self.values) - len(self.recalc) :]

    @rule()
    def query(self):
        self.both(lambda w: w.query())

    @precondition(lambda self: self.values)
    @rule(data=st.data())
    def query_a_range(self, data):
        first, last = self.recalc.oldest, self.recalc.youngest
        start = data.draw(st.integers(first - 2, last + 2))
        end = data.draw(st.integers(start, last + 2))
        if self.algorithm in RANGES:
            self.both(lambda w: w.query(start, end))
        elif self.algorithm is swag.FlatFit:
            self.both(lambda w: w.query(start, max(start, last)))

    @rule()
    def clear(self):
        self.both(lambda w: w.clear())
        self.values.clear()

    @rule(how=st.sampled_from(["pickle", "copy", "deepcopy", "bytes"]))
    def replace_by_its_copy(self, how):
        old = self.window
        if how == "pickle":
            self.window = pickle.loads(pickle.dumps(old))
        elif how == "bytes":
            self.window = self.algorithm.from_bytes(old.to_bytes(), seeing(self.algorithm))
        else:
            self.window = getattr(copy, how)(old)
        before = old.query()
        if self.values:  # what happens to the copy does not happen to the original
            self.window.evict()
            self.window.clear()
        assert old.query() == before
        self.window = copy.copy(old)

    @invariant()
    def holds_what_recalc_holds(self):
        if not hasattr(self, "window"):
            return
        self.window.check(self.values)
        self.window.check()
        assert len(self.window) == len(self.recalc) == len(self.values)
        assert (self.window.oldest, self.window.youngest) == (self.recalc.oldest, self.recalc.youngest)
        if self.algorithm in ITEMS:
            assert self.window.items() == self.recalc.items()


def machine(algorithm):
    made = type(f"{algorithm.__name__}Machine", (InOrderMachine,), {"algorithm": algorithm})
    case = made.TestCase
    case.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
    return case


for _algorithm in ALL:
    globals()[f"Test{_algorithm.__name__}"] = machine(_algorithm)


@pytest.mark.parametrize("algorithm", ALL, ids=name_of)
@pytest.mark.parametrize("seed", [1, 2])
def test_long_walks_through_growth_and_shrinking(algorithm, seed):
    # Windows grow to some hundreds and shrink to nothing, over and over: chunks, rings and trees come and go.
    rng = random.Random(seed)
    aggregation = seeing(algorithm)
    window, recalc, values = algorithm(aggregation), swag.Recalc(aggregation), []
    target = 0
    for step in range(3000):
        if len(values) == target:
            target = rng.choice([0, 1, 2, 15, 16, 17, 33, 130, 300])
        if len(values) < target:
            window.insert(step)
            recalc.insert(step)
            values.append(step)
        elif values:
            window.evict()
            recalc.evict()
            del values[0]
        if step % 7 == 0:
            assert window.query() == recalc.query()
        if step % 29 == 0:
            window.check(values)
        if step % 501 == 0:
            window = pickle.loads(pickle.dumps(window))
    assert window.query() == recalc.query()
