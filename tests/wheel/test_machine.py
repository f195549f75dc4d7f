"""A wheel under random operations equals brute force over raw items."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sash import agg
from sash.wheel import BeyondWatermark, Misaligned, NotRetained, Wheel
from tests.oracles import close, free_monoid
from tests.wheel.draws import some_range, some_time, some_value
from tests.wheel.oracle import BruteWheel, coverable

AGGREGATIONS = {
    "sum": agg.sum,
    "mean": agg.mean,
    "max": agg.max,
    "first": agg.first,
    "last": agg.last,
    "argmin": agg.argmin,
    "collect": agg.collect,
    "free": free_monoid,
    "struct": lambda: agg.struct(n=agg.count(), top=agg.max()),
}


class WheelMachine(RuleBasedStateMachine):
    @initialize(data=st.data())
    def build(self, data: st.DataObject) -> None:
        draw = data.draw
        self.name = draw(st.sampled_from(sorted(AGGREGATIONS)))
        self.aggregation = AGGREGATIONS[self.name]()
        self.floats = self.name in ("sum", "max", "mean") and draw(st.booleans())
        self.grain = draw(st.sampled_from([1, 2, 7, 60]))
        start = self.grain * draw(st.one_of(st.integers(-40, 40), st.sampled_from([-(10**6), 10**9 + 1])))
        sizes, size = [self.grain], self.grain
        for ratio in draw(st.lists(st.integers(2, 5), max_size=3)):
            size *= ratio
            sizes.append(size)
        self.sizes = sizes
        exact = self.name in ("sum", "mean") and not self.floats
        keep = st.one_of(st.just("keep"), st.sampled_from(["keep", "drop"]), st.integers(1, 9))
        self.options: dict[str, Any] = {
            "grain": self.grain,
            "levels": tuple(sizes[1:]),
            "retention": {size: draw(keep) for size in sizes},
            "layout": {size: draw(st.sampled_from(["plain", "prefix"])) if exact else "plain" for size in sizes},
            "write_ahead": draw(st.integers(1, 12)),
            "hints": draw(st.sampled_from(["auto", "none", "simd"])),
            "simd_threshold": draw(st.one_of(st.none(), st.integers(0, 20))),
            "_chunk": draw(st.sampled_from([1, 2, 8])),
        }
        self.wheel = Wheel(self.aggregation, start, **self.options)
        self.brute = BruteWheel(self.aggregation, start, self.grain)
        self.readers: list[tuple[Any, BruteWheel]] = []

    def value(self, data: st.DataObject) -> Any:
        return some_value(data, self.name, self.floats)

    def time(self, data: st.DataObject) -> int:
        return some_time(data, self.brute)

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        value, time = self.value(data), self.time(data)
        assert self.wheel.insert(value, time) == self.brute.insert(value, time)

    @rule(data=st.data(), n=st.integers(0, 25))
    def insert_many(self, data: st.DataObject, n: int) -> None:
        pairs = [(self.value(data), self.time(data)) for _ in range(n)]
        late = sum(not self.brute.insert(value, time) for value, time in pairs)
        assert self.wheel.insert_many([v for v, _ in pairs], np.array([t for _, t in pairs], np.int64)) == late

    @rule(grains=st.one_of(st.integers(-1, 12), st.integers(0, 200)), inside=st.integers(0, 59), empty=st.booleans())
    def advance(self, grains: int, inside: int, empty: bool) -> None:
        to = self.brute.watermark + grains * self.grain + inside % self.grain
        expected = self.brute.advance_to(to, empty)
        found = self.wheel.advance_to(to, empty=empty)
        assert [r[:3] for r in found] == [r[:3] for r in expected]
        assert all(close(f[3], e[3]) for f, e in zip(found, expected, strict=True)), (found, expected)

    @precondition(lambda self: len(self.brute.windows) < 3)
    @rule(range=st.integers(1, 30), slide=st.integers(1, 30), offset=st.integers(-20, 20))
    def install(self, range: int, slide: int, offset: int) -> None:
        slide = min(slide, range)
        name = self.wheel.window(range * self.grain, slide * self.grain, offset * self.grain, name=f"w{len(self.brute.windows)}")
        self.brute.install(name, range, slide, offset)

    @precondition(lambda self: len(self.brute.windows) < 3)
    @rule(gap=st.integers(1, 12))
    def install_session(self, gap: int) -> None:
        name = self.wheel.window(session=gap * self.grain, name=f"w{len(self.brute.windows)}")
        self.brute.install_session(name, gap)

    def ask(self, wheel: Any, brute: BruteWheel, a: int, b: int) -> None:
        try:
            found = wheel.query(a * self.grain, b * self.grain)
        except BeyondWatermark:
            assert b > brute.now
        except NotRetained:
            levels = [(size, lo, hi) for size, lo, hi, *_ in wheel._levels()]
            assert a < brute.first_tick or not coverable(levels, self.grain, a, b)
        except ValueError:
            assert a > b
        else:
            assert brute.first_tick <= a <= b <= brute.now
            assert close(found, brute.value(a, b)), (found, brute.value(a, b), wheel.explain(a * self.grain, b * self.grain))

    @rule(data=st.data())
    def query(self, data: st.DataObject) -> None:
        for _ in range(5):
            self.ask(self.wheel, self.brute, *some_range(data, self.brute))

    @rule(data=st.data())
    def landmark_and_interval(self, data: st.DataObject) -> None:
        brute = self.brute
        assert close(self.wheel.landmark(), brute.value(brute.first_tick, brute.now))
        d = data.draw(st.integers(0, max(0, min(12, brute.now - brute.first_tick))))
        try:
            assert close(self.wheel.interval(d * self.grain), brute.value(brute.now - d, brute.now))
        except NotRetained:
            levels = [(size, lo, hi) for size, lo, hi, *_ in self.wheel._levels()]
            assert not coverable(levels, self.grain, brute.now - d, brute.now)

    @rule(data=st.data(), every=st.integers(1, 7), buckets=st.integers(0, 5), rest=st.integers(0, 6))
    def group_by(self, data: st.DataObject, every: int, buckets: int, rest: int) -> None:
        b = self.brute.now
        a = max(self.brute.first_tick, b - every * buckets - rest)
        try:
            found = self.wheel.group_by(a * self.grain, b * self.grain, every * self.grain)
        except NotRetained:
            return
        starts = list(range(a, b, every))
        assert [s for s, _ in found] == [s * self.grain for s in starts]
        for (_, value), s in zip(found, starts, strict=True):
            assert close(value, self.brute.value(s, min(s + every, b)))

    @rule(data=st.data())
    def query_many(self, data: st.DataObject) -> None:
        pairs = [some_range(data, self.brute) for _ in range(4)]
        pairs = [(a, b) for a, b in pairs if self.brute.first_tick <= a <= b <= self.brute.now]
        starts, ends = ([p[i] * self.grain for p in pairs] for i in (0, 1))
        try:
            found = self.wheel.query_many(starts, ends)
        except NotRetained:
            return
        for value, (a, b) in zip(found.tolist(), pairs, strict=True):
            expected = self.brute.value(a, b)
            assert (expected is None and (value is None or value != value)) or close(value, expected)

    @rule(off=st.integers(1, 59))
    def misaligned(self, off: int) -> None:
        if off % self.grain:
            try:
                self.wheel.query(self.brute.start, self.brute.start + off)
                raise AssertionError("a misaligned range was answered")
            except Misaligned:
                pass

    @rule()
    def stored(self) -> None:
        self.wheel = Wheel.from_bytes(self.wheel.to_bytes(), self.aggregation)

    @precondition(lambda self: self.name not in ("free",))
    @rule()
    def pickled(self) -> None:
        self.wheel = pickle.loads(pickle.dumps(self.wheel))

    @rule()
    def pin(self) -> None:
        reader = self.wheel.reader()
        assert reader.watermark == self.brute.watermark
        self.readers = [*self.readers[-2:], (reader, copy.deepcopy(self.brute))]

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def readers_stay_at_their_watermark(self, data: st.DataObject) -> None:
        for reader, brute in self.readers:
            assert reader.watermark == brute.watermark
            assert close(reader.landmark(), brute.value(brute.first_tick, brute.now))
            self.ask(reader, brute, *some_range(data, brute))

    @rule(data=st.data(), behind=st.integers(-6, 6), starts_at=st.integers(0, 30))
    def merge(self, data: st.DataObject, behind: int, starts_at: int) -> None:
        start = self.brute.start + starts_at * self.grain
        other = Wheel(self.aggregation, start, **{**self.options, "retention": "keep"})
        theirs = BruteWheel(self.aggregation, start, self.grain)
        for _ in range(data.draw(st.integers(0, 8))):
            value = self.value(data)
            time = max(start, self.brute.watermark + data.draw(st.integers(-15, 15)) * self.grain)
            assert other.insert(value, time) == theirs.insert(value, time)
        to = self.brute.watermark + behind * self.grain
        other.advance_to(to)
        theirs.advance_to(to)
        try:
            self.wheel.merge(other)
        except NotRetained:
            return
        except ValueError:
            assert self.wheel.dtype != other.dtype
            return
        self.brute.merge(theirs)

    @invariant()
    def invariants_hold(self) -> None:
        if not hasattr(self, "wheel"):
            return
        self.wheel.check()
        assert (self.wheel.watermark, self.wheel.start, self.wheel.late) == (self.brute.watermark, self.brute.start, self.brute.late)


TestWheelMachine = WheelMachine.TestCase
TestWheelMachine.settings = settings(
    max_examples=200, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
