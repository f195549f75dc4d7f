"""The card of an aggregation: what its code can't say of itself, stated at its factory.

``sash.agg.cards`` writes docs/aggregations.md of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

__all__ = ["AN_ITEM", "CARDS", "LARGEST", "MAX_LIKE", "MEDIAN_LIKE", "ORDERED", "SKETCH", "SUM_LIKE", "Card", "card"]

SUM_LIKE, MAX_LIKE, ORDERED, MEDIAN_LIKE, SKETCH = "Sum-like", "Max-like", "Ordered", "Median-like", "Sketches"
LARGEST, AN_ITEM = "is the largest value", "is an item"

Factory = TypeVar("Factory", bound=Callable[..., Any])


class Card(NamedTuple):
    """One row of the page of aggregations."""

    family: str
    example: str
    partial: str
    cost: str
    error: str
    nan: str


CARDS: Final[list[Card]] = []


def card(
    family: str, partial: str, *, example: str = "", cost: str = "O(1)", error: str = "exact", nan: str = "propagates"
) -> Callable[[Factory], Factory]:
    """Put a factory on the page; ``example`` is what it must be called with."""

    def put(factory: Factory) -> Factory:
        CARDS.append(Card(family, f"{factory.__name__}({example})", partial, cost, error, nan))
        return factory

    return put
