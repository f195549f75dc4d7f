"""The worked traces of the DABA paper: figures 1, 3, 5, 7 (maxcount) and 2, 4, 6, 8 (any aggregation).

The figures show every slot after every step. A slot changes only by a combine, so a trace is told here by the combines
of each step: (left, right) in letters, oldest first. A window starts at step (A), empty; items are a, b, c, ...
"""

from __future__ import annotations

import pytest

from sash import agg, swag
from tests.swag.in_order import name_of

FIGURES = [swag.TwoStacks, swag.TwoStacksLite, swag.Daba, swag.DabaLite]


class Trace:
    """A window over letters that writes down its combines."""

    def __init__(self, algorithm):
        self.seen = []

        def combine(a, b):
            self.seen.append((a, b))
            return a + b

        self.window = algorithm(agg.define(lift=lambda x: x, combine=combine, identity=""))
        self.values = []

    def step(self, operation):
        """Insert a letter, or evict if there is none; give the combines."""
        self.seen.clear()
        if operation == "evict":
            self.window.evict()
            del self.values[0]
        else:
            self.window.insert(operation)
            self.values.append(operation)
        combines = list(self.seen)
        self.window.check(self.values)
        return combines

    def query(self):
        self.seen.clear()
        result = self.window.query()
        assert len(self.seen) == 1
        return result


def run(algorithm, expected):
    trace = Trace(algorithm)
    for step, (operation, combines) in enumerate(expected):
        assert trace.step(operation) == combines, f"step {'ABCDEFGHIJKLMNOP'[step]}, {operation}"
        assert trace.query() == "".join(trace.values)
    return trace


# Figures 2 and 4: seven inserts pay for the flip at (H); then the front stack gives its items away for nothing.
TWO_STACKS = [
    ("a", [("", "a")]),
    ("b", [("a", "b")]),
    ("c", [("ab", "c")]),
    ("d", [("abc", "d")]),
    ("e", [("abcd", "e")]),
    ("f", [("abcde", "f")]),
    ("g", [("abcdef", "g")]),
    ("evict", [("f", "g"), ("e", "fg"), ("d", "efg"), ("c", "defg"), ("b", "cdefg"), ("a", "bcdefg")]),
    ("evict", []),
    ("h", [("", "h")]),
    ("i", [("h", "i")]),
    ("j", [("hi", "j")]),
]


@pytest.mark.parametrize("algorithm", [swag.TwoStacks, swag.TwoStacksLite], ids=name_of)
def test_two_stacks_figures_2_and_4(algorithm):
    trace = run(algorithm, TWO_STACKS)
    trace.seen.clear()
    trace.window.query()
    assert trace.seen == [("cdefg", "hij")]  # front stack, back stack


# Figure 6. From (B): flip and shrink, shift. From (D): flip and shrink, shrink, shift, shift. From (H): flip and shrink,
# shrink, shrink, shift, shift, shift. A shrink is the left list's front with R and A, and R's last value with A.
DABA = [
    ("a", [("", "a")]),  # (A) singleton
    ("b", [("", "b"), ("a", "b")]),  # (B) flip, shrink
    ("c", [("", "c")]),  # (C) shift
    ("d", [("c", "d"), ("ab", "cd")]),  # (D) flip, shrink
    ("e", [("", "e"), ("b", "c"), ("bc", "d"), ("c", "d")]),  # (E) shrink
    ("f", [("e", "f")]),  # (F) shift
    ("g", [("ef", "g")]),  # (G) shift
    ("evict", [("bcd", "efg")]),  # (H) flip, shrink
    ("evict", [("cd", "ef"), ("cdef", "g"), ("f", "g")]),  # (I) shrink
    ("h", [("", "h"), ("d", "e"), ("de", "fg"), ("e", "fg")]),  # (J) shrink
    ("i", [("h", "i")]),  # (K) shift
    ("j", [("hi", "j")]),  # (L) shift
    ("k", [("hij", "k")]),  # (M) shift
    ("l", [("hijk", "l"), ("cdefg", "hijkl")]),  # (N) flip, shrink
]


def test_daba_figure_6():
    run(swag.Daba, DABA)


# Figure 8: the same steps, with the combination of R and A at hand, so one combine less per shrink.
DABA_LITE = [
    ("a", [("", "a")]),
    ("b", [("", "b"), ("a", "b")]),
    ("c", [("", "c")]),
    ("d", [("c", "d"), ("ab", "cd")]),
    ("e", [("", "e"), ("b", "cd"), ("c", "d")]),
    ("f", [("e", "f")]),
    ("g", [("ef", "g")]),
    ("evict", [("bcd", "efg")]),
    ("evict", [("cd", "efg"), ("f", "g")]),
    ("h", [("", "h"), ("d", "efg"), ("e", "fg")]),
    ("i", [("h", "i")]),
    ("j", [("hi", "j")]),
    ("k", [("hij", "k")]),
    ("l", [("hijk", "l"), ("cdefg", "hijkl")]),
]


def test_daba_lite_figure_8():
    run(swag.DabaLite, DABA_LITE)


@pytest.mark.parametrize("algorithm", FIGURES, ids=name_of)
def test_maxcount_figures_1_3_5_7(algorithm):
    window = algorithm(agg.maxcount())
    for value in [4, 5, 3, 4, 0, 4, 4]:
        window.insert(value)
    seen = [window.query()]  #                     4 5 3 4 0 4 4      5, once
    for operation in [None, None, 2, 6, 6]:
        window.evict() if operation is None else window.insert(operation)
        seen.append(window.query())
    #              5 3 4 0 4 4    3 4 0 4 4    ... 2    ... 2 6    ... 2 6 6
    assert seen == [1, 1, 3, 3, 1, 2]
