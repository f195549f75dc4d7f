"""A column of Python partials: what has no kernel, in the same run and with the same verbs as native columns.

Where the order of the items matters, a slice keeps them apart, each with its time and tie, until they are asked for: pieces
of one slice arrive in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sash import codec
from sash.agg import Aggregation
from sash.engine.types import order_key

__all__ = ["Item", "ObjectColumn", "Slot"]

Slot = Any  # None: nothing; in order: a list of items; else a partial in a tuple of one


class Item(NamedTuple):
    time: int
    tie: Any
    value: Any


def _place(item: Item) -> tuple[Any, ...]:
    return (item[0], order_key(item[1]), order_key(item[2]))


def _ties(groups: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """The stretches of more than one entry that are of one group."""
    edges = np.flatnonzero(np.diff(groups, prepend=-1, append=-1))
    return [(a, b) for a, b in pairwise(edges.tolist()) if b - a > 1]


class ObjectColumn:
    """The partials of one aggregation, one per slice of a run."""

    def __init__(self, aggregation: Aggregation, slots: list[Slot] | None = None) -> None:
        self.aggregation = aggregation
        self.ordered = not aggregation.commutative or not aggregation.associative
        self.slots = slots if slots is not None else []

    def __len__(self) -> int:
        return len(self.slots)

    def _like(self, slots: list[Slot]) -> ObjectColumn:
        return ObjectColumn(self.aggregation, slots)

    def _join(self, a: Slot, b: Slot) -> Slot:
        if a is None or b is None:
            return b if a is None else a
        return a + b if self.ordered else (self.aggregation.combine_function(a[0], b[0]),)

    def _one(self, item: Item) -> Slot:
        return (self.aggregation.lift_function(item[2], item[0]),)

    def lift(
        self,
        places: Sequence[int],
        slices: int,
        values: list[Any],
        accepted: Sequence[bool] | None,
        times: list[int],
        ties: list[Any] | None,
    ) -> ObjectColumn:
        """Put rows into slices; a place of -1, a null and a row that is not accepted are left out."""
        slots: list[Slot] = [None] * slices
        for i, place in enumerate(places):
            if place < 0 or values[i] is None or (accepted is not None and not accepted[i]):
                continue
            item = Item(times[i], ties[i] if ties else None, values[i])
            slots[place] = self._join(slots[place], [item] if self.ordered else self._one(item))
        return self._like(slots)

    def gather(self, parts: list[ObjectColumn], places: list[np.ndarray[Any, Any]], slices: int) -> ObjectColumn:
        """Put the slices of several columns into the places of a new run."""
        slots: list[Slot] = [None] * slices
        for part, to in zip(parts, places, strict=True):
            for slot, place in zip(part.slots, to.tolist(), strict=True):
                if place >= 0 and slot is not None:
                    slots[place] = self._join(slots[place], slot)
        return self._like(slots)

    def slide(self, starts: Sequence[int], ends: Sequence[int], groups: np.ndarray[Any, Any] | None, by_rows: bool) -> list[Any]:
        """Give the result of every stretch [start, end); neither end steps back.

        ``groups`` numbers the entries that have one key and one time: within those, order is by tie and value. A
        stretch of rows may cut through such a group, a stretch of time never does.
        """
        slots = self.slots
        if self.ordered:
            slots = [sorted(slot, key=_place) if slot is not None and len(slot) > 1 else slot for slot in slots]
            ties = [] if groups is None else _ties(groups)
            if not self.aggregation.associative or (ties and by_rows):
                return [self.lower(self._fold_sorted(slots[a:b])) for a, b in zip(starts, ends, strict=True)]
            self._sort_ties(slots, ties)
            slots = [None if slot is None else self._fold(slot) for slot in slots]
        return self._two_stacks(slots, starts, ends)

    def _sort_ties(self, slots: list[Slot], ties: list[tuple[int, int]]) -> None:
        for a, b in ties:
            there = [i for i in range(a, b) if slots[i] is not None]
            for i, item in zip(there, sorted((slots[i][0] for i in there), key=_place), strict=True):
                slots[i] = [item]

    def _fold(self, items: list[Item]) -> Slot:
        folded = self._one(items[0])
        for item in items[1:]:
            folded = (self.aggregation.combine_function(folded[0], self._one(item)[0]),)
        return folded

    def _fold_sorted(self, slots: list[Slot]) -> Slot:
        items = sorted((item for slot in slots if slot is not None for item in slot), key=_place)
        if not self.aggregation.associative:
            folded = self.aggregation.zero
            for item in items:
                folded = self.aggregation.combine_function(folded, self._one(item)[0])
            return (folded,) if items else None
        return self._fold(items) if items else None

    # --- partials, one by one

    def fold(self, items: list[Item]) -> Slot:
        """Give the partial of items, which come in any order."""
        return self._fold(sorted(items, key=_place) if len(items) > 1 else items)

    def join(self, a: Slot, b: Slot) -> Slot:
        """Combine two partials, the older one first."""
        return b if a is None else a if b is None else (self.aggregation.combine_function(a[0], b[0]),)

    def lower(self, slot: Slot) -> Any:
        """Give the result that a partial stands for."""
        if slot is None:
            return None if self.aggregation.null_in_frames else self.aggregation.empty
        return self.aggregation.lower_function(slot[0])

    def _two_stacks(self, slots: list[Slot], starts: Sequence[int], ends: Sequence[int]) -> list[Any]:
        join = self.join
        results = []
        turned: list[Slot] = []
        base = turn = end = 0
        back: Slot = None
        for a, b in zip(starts, ends, strict=True):
            if a >= end:
                turn = end = a
                back = None
            elif a > turn:
                turned, base, whole = [None] * (end - a), a, None
                for i in range(end - 1, a - 1, -1):
                    turned[i - a] = whole = join(slots[i], whole)
                turn, back = end, None
            while end < b:
                back = join(back, slots[end])
                end += 1
            results.append(self.lower(join(turned[a - base], back) if a < turn else back))
        return results

    def pack(self, start: int, end: int) -> bytes:
        """Write the slots of [start, end) as plain data."""
        plain = [None if slot is None else [tuple(item) for item in slot] if self.ordered else slot for slot in self.slots[start:end]]
        return codec.encode(plain)

    def unpack(self, data: bytes, n: int) -> ObjectColumn:
        """Read what ``pack`` wrote."""
        plain = codec.decode(data)
        if len(plain) != n:
            raise ValueError("these bytes are damaged: a column is of another length. Store and pass all of them, unchanged.")
        return self._like([None if slot is None else [Item(*item) for item in slot] if self.ordered else slot for slot in plain])
