"""A card per aggregation, from the definitions themselves: the source of docs/aggregations.md.

``python -m sash.agg.cards > docs/aggregations.md`` writes the page; a test holds it current.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

from sash import agg
from sash.agg.base import Aggregation
from sash.agg.card import CARDS, MAX_LIKE, MEDIAN_LIKE, ORDERED, SKETCH, SUM_LIKE, Card

__all__ = ["CARDS", "page"]


_HEAD: Final = """# Aggregations

What `sash.agg` offers, one row per aggregation. This page is made from the definitions: `python -m sash.agg.cards`.

*Partial* is what a window stores per entry. *Cost* is that of one combine. *Traits*: i invertible, c commutative, s selective
(combine returns one of its arguments), z size-preserving, p parametric (`query(arg=...)`). *Native*: runs in the core without
Python on int64 and float64 items; anything else runs its Python definition. *Empty* is the result of a window without values.

A null (None) is an entry that counts in `len(window)` and in no value; the column *NaN* says what becomes of NaN. Integers are
exact: a result that does not fit int64 is an OverflowError, and the window stays usable. Every aggregation takes the column of a
record as its first argument, and `where=`.
"""

_TAIL: Final = """
## Median-like aggregations are cheaper than their partials say

Their partial is every item, sorted, so that they work in any window, ranges of `Fiba` included, at O(n) a combine. For numbers use
`swag.OrderStatistics` (insert, evict and select in O(log n), any order of times), which `sash.window` picks by itself, or `slide()`,
which ranks whole stretches of the array at once and finds each result by a few steps from the last one. `top_k` and `bottom_k` take
that path of `slide()` too.

## Aggregations of your own

`agg.define(lift=, combine=, identity=, ...)` takes Python callables. With `compiled=True` (extra `numba`) they become machine code
that windows and slides run without Python: the identity is a number or a flat tuple of numbers, a partial keeps its size, integers
wrap at 64 bits, and x / 0 is inf or NaN. What the callables refer to is part of what is compiled: after a constant changed, the
next window is compiled anew. Only a `lift` that takes the time stays in Python.
"""


def _made(card: Card) -> Aggregation:
    made: Aggregation = eval(f"agg.{card.example}", {"agg": agg})
    return made


def _traits(a: Aggregation) -> str:
    known = (("i", a.invertible), ("c", a.commutative), ("s", a.selective), ("z", a.size_preserving), ("p", a.parametric))
    return " ".join(letter for letter, has in known if has) or "–"


def _summary(name: str) -> str:
    factory: Any = getattr(agg, name)
    return (inspect.getdoc(factory) or "").splitlines()[0].replace("``", "`")


def page() -> str:
    """Write the page."""
    lines = [_HEAD]
    for family in (SUM_LIKE, MAX_LIKE, ORDERED, MEDIAN_LIKE, SKETCH):
        lines += [f"## {family}", "", "| aggregation | what it does | partial | cost | traits | result | empty | NaN | native |"]
        lines.append("|---" * 9 + "|")
        for card in CARDS:
            if card.family != family:
                continue
            a = _made(card)
            native = "yes" if a.kernel("int64") is not None else "–"
            lines.append(
                f"| `{card.example}` | {_summary(a.name)} | {card.partial} | {card.cost} | {_traits(a)} | {card.error} "
                f"| `{a.lower(a.identity())!r}` | {card.nan} | {native} |"
            )
        lines.append("")
    return "\n".join(lines).rstrip() + "\n" + _TAIL


if __name__ == "__main__":
    print(page(), end="")
