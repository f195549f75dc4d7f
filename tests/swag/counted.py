"""A window whose work is counted: what the bounds of Fiba and BlockFiba are tested with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.swag import BlockFiba, Window
from tests.oracles import counting_sum


class Counted:
    """A window of n entries, `spread` apart, whose combines, nodes looked at and restructurings count from mark() on."""

    def __init__(self, n: int, make: Callable[[Any], Window] = BlockFiba, spread: int = 1) -> None:
        self.calls = [0]
        self.window = make(counting_sum(self.calls))
        self.window.bulk_insert([1] * n, [i * spread for i in range(n)])
        self.spread, self.next = spread, n * spread
        self.mark()

    def mark(self) -> None:
        self.calls[0] = 0
        self.before = self.window._counts()

    @property
    def combines(self) -> int:
        return self.calls[0]

    @property
    def work(self) -> int:
        return self.calls[0] + self.window._counts()["visited"] - self.before["visited"]

    @property
    def restructured(self) -> int:
        return self.window._counts()["restructured"] - self.before["restructured"]

    def append(self) -> None:
        self.window.insert(1, self.next)
        self.next += self.spread
