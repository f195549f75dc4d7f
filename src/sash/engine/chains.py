"""Python partials in the live form: one object per entry, for all aggregations of a query that have no kernel.

An object is a tuple with a part per such aggregation: a slot of its column, as ``objects.py`` has them. Where the order of
items matters, a part is a chain, since what is cut off and what is added may have the time of what is there:

    | items of its first time |  all between, folded  | items of its last time |
"""

from __future__ import annotations

from typing import Any

from sash.engine.objects import Item, ObjectColumn, Slot
from sash.engine.run import BEFORE_ALL

__all__ = ["Chains"]

Row = tuple[Any, ...]


class Group:
    """The items of one entry, in any order; folded once, when they are asked for."""

    __slots__ = ("_folded", "_newest", "items", "time")

    def __init__(self, time: int, items: list[Item]) -> None:
        self.time, self.items = time, items
        self._folded: Slot = None
        self._newest: int | None = None

    def fold(self, column: ObjectColumn) -> Slot:
        """Give their partial."""
        if self._folded is None:
            self._folded = column.fold(self.items)
        return self._folded

    def take_in(self, column: ObjectColumn, items: list[Item]) -> None:
        """Add items; if they are younger than all that are here, that is a combine for each of them, else all are folded again."""
        if self._newest is None:
            self._newest = max(item[0] for item in self.items)
        oldest, newest = min(item[0] for item in items), max(item[0] for item in items)
        folded = column.join(self.fold(column), column.fold(items)) if oldest > self._newest else None
        self._folded, self._newest = folded, max(newest, self._newest)
        self.items += items


class Chain:
    """The items of one time, or of several: those between the first and the last time are folded."""

    __slots__ = ("first", "last", "middle")

    def __init__(self, first: Group, middle: Slot = None, last: Group | None = None) -> None:
        self.first, self.middle, self.last = first, middle, last

    def join(self, column: ObjectColumn, other: Chain) -> Chain:
        """Give both as one: this is the older one, but its last time may be the other's first."""
        join = column.join
        end, begin = self.last or self.first, other.first
        if end.time == begin.time:
            both = Group(end.time, end.items + begin.items)
            if self.last is None:
                return Chain(both, other.middle, other.last)
            if other.last is None:
                return Chain(self.first, self.middle, both)
            between = both.fold(column)
        elif self.last is None:
            if other.last is None:
                return Chain(self.first, None, begin)
            return Chain(self.first, join(begin.fold(column), other.middle), other.last)
        elif other.last is None:
            return Chain(self.first, join(self.middle, end.fold(column)), begin)
        else:
            between = join(end.fold(column), begin.fold(column))
        return Chain(self.first, join(join(self.middle, between), other.middle), other.last)

    def fold(self, column: ObjectColumn) -> Slot:
        """Give the partial of all."""
        whole = column.join(self.first.fold(column), self.middle)
        return whole if self.last is None else column.join(whole, self.last.fold(column))


class Chains:
    """The object columns of a query, entry by entry."""

    def __init__(self, columns: list[ObjectColumn]) -> None:
        self.columns = columns

    def rows(self, columns: list[ObjectColumn], times: list[int]) -> list[Row]:
        """Give the objects of the entries of a run."""
        parts: list[list[Any]] = [
            [None if slot is None else Chain(Group(time, slot)) for time, slot in zip(times, column.slots, strict=True)]
            if column.ordered
            else column.slots
            for column in columns
        ]
        return list(zip(*parts, strict=True))

    def combine(self, older: Row, younger: Row) -> Row:
        """Combine two of them; of one time, they are one entry."""
        return tuple(
            b if a is None else a if b is None else a.join(column, b) if column.ordered else column.join(a, b)
            for column, a, b in zip(self.columns, older, younger, strict=True)
        )

    def move(self, to: Row | None, row: Row, time: int) -> Row:
        """Bring the object of an entry to another time: that of its hop, or of the past, which goes on with all that it takes in."""
        if to is None:
            to = (None,) * len(self.columns)
        return tuple(self._moved(*each, time) for each in zip(self.columns, to, row, strict=True))

    def _moved(self, column: ObjectColumn, to: Any, part: Any, time: int) -> Any:
        if part is None or not column.ordered:
            return to if part is None else column.join(to, part)
        if to is None:
            return Chain(Group(time, list(part.first.items)))
        assert time == BEFORE_ALL, "only the past takes in what others do not hold"
        to.first.take_in(column, part.first.items)
        return to

    def columns_of(self, rows: list[Row]) -> list[ObjectColumn]:
        """Give the entries of these objects as columns."""
        slots = zip(*rows, strict=True) if rows else ((),) * len(self.columns)
        return [
            ObjectColumn(
                column.aggregation, [None if part is None else part.first.items for part in each] if column.ordered else list(each)
            )
            for column, each in zip(self.columns, slots, strict=True)
        ]

    def results(self, rows: list[Row | None]) -> list[list[Any]]:
        """Lower answers, column by column."""
        out = []
        for i, column in enumerate(self.columns):
            parts = [None if row is None else row[i] for row in rows]
            out.append([column.lower(None if part is None else part.fold(column) if column.ordered else part) for part in parts])
        return out
