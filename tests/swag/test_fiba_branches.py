"""Fiba and BTree: every named branch is reached, and the tree is right after it."""

from __future__ import annotations

from collections import Counter

import pytest

from sash.swag import BTree, Fiba, Window
from tests.oracles import Brute, free_monoid
from tests.swag.trees import filled, reached, walk

ARITIES = [2, 4, 8, 16]


BRANCHES = {
    "split",
    "height increase",
    "merge",
    "move from the right",
    "move from the left",
    "height decrease",
    "evict inner",
    "bulk evict: everything",
    "bulk evict: stop at a match",
    "bulk evict: move of one",
    "bulk evict: move of several",
    "bulk evict: move from a sibling",
    "bulk evict: move from no sibling",
    "bulk evict: merge into a sibling",
    "bulk evict: merge into no sibling",
    "bulk evict: nothing left of a node",
    "bulk evict: beyond the boundary",
    "bulk evict: make node root",
    "bulk evict: make child root",
    "bulk insert: hit in a leaf",
    "bulk insert: hit in an inner node",
    "bulk insert: repeat in the batch",
    "bulk insert: ride along",
    "bulk insert: recompute only",
    "bulk insert: small",
    "bulk insert: split",
}


def test_every_branch_is_reached():
    seen: Counter[str] = Counter()
    for seed in range(4):
        for arity in (2, 4):
            window = Fiba(free_monoid(), min_arity=arity)
            walk(window, seed, steps=150, most=120)
            seen += reached(window)
    seen += reached(cut_beside_a_cousin(entries=7, stay=2))
    assert set(seen) == BRANCHES


def cut_beside_a_cousin(entries: int, stay: int) -> Window:
    """Bulk evict so that of a leaf, the last below its parent, `stay` entries stay; its neighbour, below another parent, has `entries`."""
    window = Fiba(free_monoid(), min_arity=4)
    for t in range(200):
        window.insert(100 * t, 100 * t)
    nodes = window._nodes()
    parents = [i for i, (level, *_) in enumerate(nodes) if level == 1]
    leaf, cousin = nodes[parents[1] - 1], nodes[parents[1] + 1]
    assert leaf[0] == cousin[0] == 0
    for i in range(entries - len(cousin[2])):
        window.insert(cousin[2][0] + 1 + i, cousin[2][0] + 1 + i)
    before = reached(window)
    cut = leaf[2][-stay] - 1
    window.bulk_evict(cut)
    window.check()
    expected = [t for t in range(0, 20000, 100) if t > cut] + [cousin[2][0] + 1 + i for i in range(entries - len(cousin[2]))]
    assert window.query() == tuple(sorted(expected))
    assert sum((reached(window) - before).values()) > 0
    return window


@pytest.mark.parametrize(
    ("entries", "stay", "branches"),
    [
        (7, 2, {"bulk evict: move from no sibling", "bulk evict: move of one"}),
        (7, 1, {"bulk evict: move from no sibling", "bulk evict: move of several"}),
        (5, 1, {"bulk evict: move from no sibling", "bulk evict: move of several"}),
        (4, 1, {"bulk evict: merge into no sibling", "bulk evict: nothing left of a node"}),
    ],
)
def test_bulk_evict_repairs_a_leaf_from_a_neighbour_that_is_no_sibling(entries, stay, branches):
    assert branches <= set(reached(cut_beside_a_cousin(entries, stay)))


@pytest.mark.parametrize("arity", ARITIES)
@pytest.mark.parametrize("kind", [Fiba, BTree])
def test_bulk_evict_at_every_place_of_a_tree(kind, arity):
    n = 25 * arity
    for t in range(-1, n + 1, 1 + arity // 4):
        window = filled(n, arity, kind)
        window.bulk_evict(t)
        window.check()
        assert window.query() == tuple(range(t + 1, n))
        assert len(window) == max(0, n - t - 1)


@pytest.mark.parametrize("arity", [2, 4])
def test_evict_of_every_entry_of_a_tree_inner_ones_included(arity):
    n = 20 * arity
    for t in range(n):
        window = filled(n, arity)
        assert window.evict(t)
        assert not window.evict(t)
        window.check()
        assert window.query() == tuple(i for i in range(n) if i != t)


@pytest.mark.parametrize("arity", [2, 4])
def test_bulk_insert_of_every_size_at_every_place(arity):
    n = 12 * arity
    for m in (1, 2, arity, 4 * arity, 20 * arity):
        for place in range(-1, n + 1, 3):
            window = Fiba(free_monoid(), min_arity=arity)
            brute = Brute("combine")
            for t in range(n):
                window.insert(t, 100 * t)
                brute.insert(t, 100 * t)
            times = [100 * place + 1 + i for i in range(m)]
            window.bulk_insert([1000 + i for i in range(m)], times)
            for i, t in enumerate(times):
                brute.insert(1000 + i, t)
            window.check()
            assert window.query() == tuple(brute.values())
