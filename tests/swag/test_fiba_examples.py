"""The papers' worked examples: trees drawn in their figures, node by node, with their partials."""

from __future__ import annotations

from typing import Any

import pytest

from sash import agg
from sash.swag import Fiba, Window

# Times are ten times the papers', so that helpers fit between them; letters are values, combined by concatenation.
strings = agg.define(lift=lambda x: x, combine=lambda a, b: a + b, identity="", name="strings")


def letter(time: int) -> str:
    return chr(ord("a") + time // 10 - 1)


def insert(window: Window, *times: float) -> None:
    for t in times:
        window.insert(letter(int(t * 10)) if t == int(t) else "?", int(t * 10))


def evict(window: Window, *times: float) -> None:
    for t in times:
        assert window.evict(int(t * 10))


def shape(window: Window) -> Any:
    """The keys of each node, children after it; a leaf is a string of its letters."""
    nodes = iter(window._nodes())

    def read() -> Any:
        level, _, times, _ = next(nodes)
        own = "".join(letter(t) for t in times)
        return own if level == 0 else [own, *(read() for _ in range(len(times) + 1))]

    return read()


def partials(window: Window) -> dict[str, str]:
    """The partial of each node, by the letters of its keys."""
    return {"".join(letter(t) for t in times): partial for _, _, times, partial in window._nodes()}


def spent(window: Window) -> int:
    return window._counts()["restructured"]


def state_a() -> Window:
    """Figure 3 (A). In order, leaves get two entries and inner nodes two; then the helpers leave."""
    window = Fiba(strings, min_arity=2)
    insert(window, 1, 2, 3, 4, 4.5, 5, 6, 6.5, 7, 8, 8.5, 9, 10, 11, 12, 13, 13.5, 15, 17, 19, 20, 21)
    evict(window, 4.5, 6.5, 8.5, 13.5)
    window.check()
    return window


def test_state_a_stores_the_partials_of_its_figure():
    window = state_a()
    #                          [ g    o ]
    #            .----------------'|'----------------.
    #        [ c  e ]          [ i  l ]            [ t ]
    #       .---'|'---.       .---'|'---.         .--'--.
    #    [ab]   [d]   [f]   [h]  [jk]  [m]      [qs]   [u]
    assert shape(window) == ["go", ["ce", "ab", "d", "f"], ["il", "h", "jk", "m"], ["t", "qs", "u"]]
    stored = partials(window)
    assert stored["go"] == "ghijklmo"  # inner: neither first nor last child
    assert stored["il"] == "hijklm"  # up
    assert stored["ce"] == "cdef"  # left: all but the left finger
    assert stored["ab"] == "abcdef"
    assert stored["t"] == "qst"  # right
    assert stored["u"] == "qstu"
    assert window.query() == "abcdefghijklmoqstu"


def test_steps_a_to_f():
    window = state_a()
    before = spent(window)

    insert(window, 22)  # A to B: in order, one node changes
    assert shape(window)[3] == ["t", "qs", "uv"]
    assert partials(window)["uv"] == "qstuv"
    assert spent(window) == before

    visited = window._counts()["visited"]
    insert(window, 18)  # B to C: late; from its leaf up to the spine and down to the finger
    assert shape(window)[3] == ["t", "qrs", "uv"]
    stored = partials(window)
    assert (stored["qrs"], stored["t"], stored["uv"]) == ("qrs", "qrst", "qrstuv")
    assert spent(window) == before
    assert window._counts()["visited"] - visited <= 10

    window.evict()  # C to D: the oldest, one node changes
    assert shape(window)[1] == ["ce", "b", "d", "f"]
    assert partials(window)["b"] == "bcdef"
    assert spent(window) == before

    insert(window, 16)  # D to E: a full leaf overflows: a split
    assert shape(window)[3] == ["rt", "pq", "s", "uv"]
    stored = partials(window)
    assert (stored["pq"], stored["s"], stored["rt"], stored["uv"]) == ("pq", "s", "pqrst", "pqrstuv")
    assert spent(window) == before + 1

    evict(window, 2)  # E to F: the finger runs empty: a merge
    assert shape(window)[1] == ["e", "cd", "f"]
    stored = partials(window)
    assert (stored["cd"], stored["e"]) == ("cdef", "ef")
    assert spent(window) == before + 2
    window.check()


def test_step_g_to_h_splits_up_to_the_root_and_grows():
    window = Fiba(strings, min_arity=2)
    insert(window, 1, 2, 5, 6, 6.5, 7, 8, 8.5, 9, 10)
    evict(window, 6.5, 8.5)
    insert(window, 4)
    assert shape(window) == ["egi", "abd", "f", "h", "j"]
    before = spent(window)
    insert(window, 3)
    assert shape(window) == ["g", ["ce", "ab", "d", "f"], ["i", "h", "j"]]
    stored = partials(window)
    assert stored["g"] == "g"
    assert (stored["ce"], stored["ab"]) == ("cdef", "abcdef")
    assert (stored["i"], stored["j"]) == ("hi", "hij")
    assert spent(window) == before + 2
    window.check()


def two_halves(right: int) -> Window:
    """A root of one entry over a node of one entry and one of `right`; all leaves have one entry."""
    window = Fiba(strings, min_arity=2)
    insert(window, 4, 4.5, 5, 5.2, 5.5, 6.5, 7, 7.5, 8, 10, 10.5, 12, 13 if right == 2 else 15)
    if right == 2:
        insert(window, 13.5, 14, 16)
        evict(window, 13.5)
    evict(window, 4.5, 5.5, 7.5, 10.5)
    evict(window, 5.2, 6.5)  # the first half had three leaves: two are merged, and one helper more leaves
    window.check()
    return window


def test_step_i_to_j_merges_and_then_moves():
    window = two_halves(2)
    assert shape(window) == ["h", ["e", "d", "g"], ["ln", "j", "m", "p"]]
    before = spent(window)
    evict(window, 4)  # d: its leaf is merged with g's, then its parent gets an entry from the other half
    assert shape(window) == ["l", ["h", "eg", "j"], ["n", "m", "p"]]
    stored = partials(window)
    assert (stored["l"], stored["h"], stored["eg"]) == ("l", "hj", "eghj")
    assert (stored["n"], stored["p"]) == ("mn", "mnp")
    assert spent(window) == before + 2
    window.check()


def test_step_k_to_l_merges_up_to_the_root_and_shrinks():
    window = two_halves(1)
    assert shape(window) == ["h", ["e", "d", "g"], ["l", "j", "o"]]
    before = spent(window)
    evict(window, 15)  # o: its leaf is merged with j's, its parent with the other half, and the root goes
    assert shape(window) == ["eh", "d", "g", "jl"]
    stored = partials(window)
    assert (stored["eh"], stored["d"], stored["jl"]) == ("egh", "d", "jl")
    assert spent(window) == before + 2
    window.check()


def test_evict_inner_takes_the_neighbour_in_time_as_a_substitute():
    window = state_a()
    evict(window, 12)  # l, whose right child has one entry only: its substitute is the youngest on the left, k
    assert shape(window)[2] == ["ik", "h", "j", "m"]
    assert partials(window)["ik"] == "hijkm"
    window.check()
    insert(window, 14)
    evict(window, 11)  # k, whose right child has two: the oldest on the right, m
    assert shape(window)[2] == ["im", "h", "j", "n"]
    window.check()
    evict(window, 7)  # an entry of the root: the child on the right has spare entries, h comes up
    window.check()
    assert window.query() == "abcdefhijmnoqstu"


@pytest.mark.parametrize(
    ("arity", "entries", "leaves"),
    [
        (4, 2 * 4 + 3 - 1, [4, 5]),  # p = 2 mu + 3 with mu = 4: arities mu + 1 and mu + 2
        (2, 7 * 2 + 2 - 1, [2, 2, 2, 2, 3]),  # p = 7 mu + 2 with mu = 2: four of mu + 1 and one of 2 mu
    ],
)
def test_claim_1_splits_as_the_paper_does(arity, entries, leaves):
    window = Fiba(strings, min_arity=arity)
    window.bulk_insert(["x"] * entries, range(entries))
    assert [len(times) for level, _, times, _ in window._nodes() if level == 0] == leaves
    window.check()


@pytest.mark.parametrize("arity", [2, 4, 8])
def test_claim_1_holds_for_every_number(arity):
    for entries in range(2, 60 * arity):
        window = Fiba(strings, min_arity=arity)
        window.bulk_insert(["x"] * entries, range(entries))
        leaves = [len(times) + 1 for level, _, times, _ in window._nodes() if level == 0]
        if entries + 1 > 2 * arity:
            assert set(leaves[:-1]) == {arity + 1}
            assert arity <= leaves[-1] <= 2 * arity
        window.check()


def test_the_bulk_papers_figure_1():
    # As the first paper's, but with n, p and r; its query is three partials.
    window = state_a()
    insert(window, 14, 18, 22)
    stored = partials(window)
    assert stored["qrs"] == "qrs"
    assert stored["il"] == "hijklmn"
    assert stored["go"] == "ghijklmno"
    assert stored["uv"] == "qrstuv"
    assert window.query() == stored["ab"] + stored["go"] + stored["uv"]
