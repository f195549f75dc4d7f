"""The state machine of the out-of-order windows: lockstep with a sorted list, under the free monoid, checked after every step.

Times come in order, slightly late, far late, equal and in bursts at one place; entries leave from the front, from
anywhere and in bulk. A subclass says which window is meant::

    class Machine(OutOfOrder):
        make = staticmethod(lambda a: Fiba(a, min_arity=2))

    TestMachine = Machine.TestCase
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sash.swag import Window
from tests.oracles import Brute, free_monoid

QUICK = settings(max_examples=25, stateful_step_count=40, deadline=None)

shares = st.floats(0, 1)  # a place in the window, as a share of it


class OutOfOrder(RuleBasedStateMachine):
    ties = "combine"

    @staticmethod
    def make(aggregation: Any) -> Window:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.aggregation = free_monoid()
        self.window = self.make(self.aggregation)
        self.brute = Brute(self.ties)
        self.now = 0
        self.serial = 0

    def insert(self, time: int) -> None:
        self.serial += 1
        self.now = max(self.now, time)
        self.window.insert(self.serial, time)
        self.brute.insert(self.serial, time)

    def time_at(self, share: float) -> int:
        times = self.brute.times()
        return times[min(len(times) - 1, int(share * len(times)))] if times else self.now

    # --- in

    @rule(steps=st.lists(st.integers(1, 9), min_size=1, max_size=30))
    def insert_in_order(self, steps: list[int]) -> None:
        for step in steps:
            self.insert(self.now + step)

    @rule(lags=st.lists(st.integers(0, 12), min_size=1, max_size=10))
    def insert_slightly_late(self, lags: list[int]) -> None:
        for lag in lags:
            self.insert(self.now - lag)

    @rule(share=shares, shift=st.integers(-1, 1))
    def insert_far_late(self, share: float, shift: int) -> None:
        self.insert(self.time_at(share) + shift)

    @rule(steps=st.lists(st.integers(0, 2), min_size=1, max_size=5))
    def insert_before_the_oldest(self, steps: list[int]) -> None:
        for step in steps:
            self.insert(self.time_at(0) - step)

    @rule(share=shares, steps=st.lists(st.integers(-1, 2), min_size=3, max_size=25), between=st.booleans())
    def insert_again_and_again_at_one_place(self, share: float, steps: list[int], between: bool) -> None:
        time = self.time_at(share)
        for step in steps:
            time += step
            self.insert(time)
            if between:  # the oldest leave and the newest come meanwhile
                self.insert(self.now + 1)
                self.evict_oldest(1)

    @rule(share=shares, shift=st.integers(-30, 3), steps=st.lists(st.integers(0, 6), max_size=60), stride=st.sampled_from([0, 1, 7]))
    def bulk_insert(self, share: float, shift: int, steps: list[int], stride: int) -> None:
        time = self.time_at(share) + shift
        times, values = [], []
        for step in steps:
            time += step * stride
            self.serial += 1
            times.append(time)
            values.append(self.serial)
            self.brute.insert(self.serial, time)
        self.window.bulk_insert(values, times)
        self.now = max([self.now, *times])

    @rule(offsets=st.lists(st.integers(-40, 10), max_size=20, unique=True))
    def merge(self, offsets: list[int]) -> None:
        other = self.make(self.aggregation)
        for time in sorted(self.now + offset for offset in offsets):
            self.serial += 1
            other.insert(self.serial, time)
            self.brute.insert(self.serial, time)
            self.now = max(self.now, time)
        self.window.merge(other)

    # --- out

    @rule(many=st.integers(1, 20))
    def evict_oldest(self, many: int) -> None:
        for _ in range(min(many, len(self.brute))):
            self.window.evict()
            self.brute.evict()

    @rule(share=shares, shift=st.sampled_from([0, 0, 0, 1]))
    def evict_anywhere(self, share: float, shift: int) -> None:
        time = self.time_at(share) + shift
        assert self.window.evict(time) == self.brute.evict(time)

    @rule(share=shares, many=st.integers(2, 15))
    def evict_a_stretch(self, share: float, many: int) -> None:
        times = self.brute.times()
        at = int(share * len(times))
        for time in times[at : at + many]:
            assert self.window.evict(time)
            self.brute.evict(time)

    @rule(share=shares, shift=st.integers(-1, 1))
    def bulk_evict(self, share: float, shift: int) -> None:
        time = self.time_at(share) + shift
        self.window.bulk_evict(time)
        self.brute.bulk_evict(time)

    @precondition(lambda self: len(self.brute) > 40)
    @rule()
    def bulk_evict_all(self) -> None:
        self.window.bulk_evict(self.now)
        self.brute.bulk_evict(self.now)

    @precondition(lambda self: len(self.brute) > 40)
    @rule()
    def clear(self) -> None:
        self.window.clear()
        self.brute = Brute(self.ties)

    # --- looking

    @rule(a=shares, b=shares, shift=st.integers(-1, 1))
    def query_a_range(self, a: float, b: float, shift: int) -> None:
        start, end = sorted([self.time_at(a) + shift, self.time_at(b)])
        assert self.window.query(start, end) == tuple(self.brute.values(start, end))

    @rule(ranges=st.lists(st.tuples(shares, shares), min_size=1, max_size=5), to_the_end=st.booleans())
    def query_many(self, ranges: list[tuple[float, float]], to_the_end: bool) -> None:
        pairs = [sorted([self.time_at(a), self.time_at(b)]) for a, b in ranges]
        if to_the_end:
            pairs = [[start, self.now + 1] for start, _ in pairs]
        found = self.window.query_many([start for start, _ in pairs], [end for _, end in pairs])
        assert list(found) == [tuple(self.brute.values(start, end)) for start, end in pairs]

    @rule(how=st.sampled_from(["bytes", "copy", "deepcopy"]))
    def store_and_load(self, how: str) -> None:
        if how == "bytes":
            self.window = type(self.window).from_bytes(self.window.to_bytes(), self.aggregation)
        else:
            self.window = copy.copy(self.window) if how == "copy" else copy.deepcopy(self.window)

    @invariant()
    def in_lockstep(self) -> None:
        self.window.check()
        times = self.brute.times()
        assert len(self.window) == len(times)
        assert (self.window.oldest, self.window.youngest) == ((times[0], times[-1]) if times else (None, None))
        assert self.window.query() == tuple(self.brute.values())
        assert self.window.items() == [(t, tuple(vs)) for t, vs in self.brute.entries]
