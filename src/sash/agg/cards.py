"""A card per aggregation, from the definitions themselves: the source of docs/aggregations.md.

``python -m sash.agg.cards > docs/aggregations.md`` writes the page; a test holds it current.
"""

from __future__ import annotations

import inspect
from typing import Any, Final, NamedTuple

from sash import agg
from sash.agg.base import Aggregation

__all__ = ["page"]


class Card(NamedTuple):
    """What the code can't say of itself."""

    family: str
    example: str
    partial: str
    cost: str = "O(1)"
    error: str = "exact"
    nan: str = "propagates"


_SUM, _MAX, _ENDS, _RANK, _SKETCH = "Sum-like", "Max-like", "Ordered", "Median-like", "Sketches"
_LARGEST, _COUNTED = "is the largest value", "is an item"

CARDS: Final[tuple[Card, ...]] = (
    Card(_SUM, "count()", "1 integer", nan=_COUNTED),
    Card(_SUM, "sum()", "1 number; 128 bits for integers"),
    Card(_SUM, "mean()", "sum and count"),
    Card(_SUM, "geomean()", "sum of logarithms, counts of items, zeros and negatives"),
    Card(_SUM, "product()", "product of the non-zeros, counts of zeros and items"),
    Card(_SUM, "var()", "count, mean and sums of powers of deviations up to 4"),
    Card(_SUM, "std()", "as var"),
    Card(_SUM, "skew()", "as var"),
    Card(_SUM, "kurtosis()", "as var"),
    Card(_SUM, "linreg()", "count, two means, three sums of products"),
    Card(_SUM, "histogram([0, 10, 20])", "1 count per bin", "O(bins)", nan="is in no bin"),
    Card(_SUM, "any()", "counts of true items and of all", nan="is true"),
    Card(_SUM, "all()", "counts of true items and of all", nan="is true"),
    Card(_SUM, "bit_and()", "1 integer", nan="is refused"),
    Card(_SUM, "bit_or()", "1 integer", nan="is refused"),
    Card(_SUM, "naive_bayes()", "counts of labels, and of their features' values", "O(size of the model)", nan=_COUNTED),
    Card(_MAX, "min()", "1 item", nan=_LARGEST),
    Card(_MAX, "max()", "1 item", nan=_LARGEST),
    Card(_MAX, "minmax()", "2 items", nan=_LARGEST),
    Card(_MAX, "relvar()", "2 items", nan="gives NaN"),
    Card(_MAX, "argmin()", "1 item and its time", nan=_LARGEST),
    Card(_MAX, "argmax()", "1 item and its time", nan=_LARGEST),
    Card(_MAX, "mincount()", "1 item and a count", nan=_LARGEST),
    Card(_MAX, "maxcount()", "1 item and a count", nan=_LARGEST),
    Card(_MAX, "top_k(3)", "up to k items, sorted", "O(k)", nan=_LARGEST),
    Card(_MAX, "bottom_k(3)", "up to k items, sorted", "O(k)", nan=_LARGEST),
    Card(_MAX, "m4()", "4 items and their times", nan=_LARGEST),
    Card(_ENDS, "first()", "1 item", nan=_COUNTED),
    Card(_ENDS, "last()", "1 item", nan=_COUNTED),
    Card(_ENDS, "first_k(3)", "up to k items", "O(k)", nan=_COUNTED),
    Card(_ENDS, "last_k(3)", "up to k items", "O(k)", nan=_COUNTED),
    Card(_ENDS, "ith_youngest(2)", "up to i items", "O(i)", nan=_COUNTED),
    Card(_ENDS, "collect()", "all items", "O(n)", nan=_COUNTED),
    Card(_ENDS, "concat()", "all text", "O(n)", nan="is refused"),
    Card(_RANK, "median()", "all items, sorted", "O(n)", nan=_LARGEST),
    Card(_RANK, "quantile(0.9)", "all items, sorted", "O(n)", nan=_LARGEST),
    Card(_RANK, "ith_smallest(2)", "all items, sorted", "O(n)", nan=_LARGEST),
    Card(_RANK, "distinct()", "the different items", "O(n)", nan="is one of the items"),
    Card(_SKETCH, "approx_distinct()", "48 items, then up to 4 KB", "O(size)", "standard error 1.6%", "is one of the items"),
    Card(_SKETCH, "approx_quantile(0.9)", "48 items, then about 5 KB", "O(size)", "rank within 1.33%, 99% of the time", "is left out"),
    Card(_SKETCH, "frequent_items()", "48 items, then up to 768 counters", "O(size)", "counts within 0.34% of all items", _COUNTED),
    Card(_SKETCH, "count_min()", "48 items, then 11 KB", "O(size)", "at most 1% of all items too high, 99% of the time", _COUNTED),
    Card(_SKETCH, "bloom()", "4,096 bits", "O(bits)", "2.2% wrongly present at 500 items; never wrongly absent", _COUNTED),
)

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
    for family in (_SUM, _MAX, _ENDS, _RANK, _SKETCH):
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
