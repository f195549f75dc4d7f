"""The core's table of algorithms, as Python reads it. Nothing here lists them: an algorithm's entry is in its file of src/core/bindings."""

from __future__ import annotations

import re
from typing import Final

from sash._core import Algorithm, algorithms

__all__ = ["ALGORITHMS", "contenders", "needs_of", "ordering_of", "snake_case", "table"]

ALGORITHMS: Final = {entry.name: entry for entry in algorithms()}


def snake_case(name: str) -> str:
    """Write the name of a class as slide() and ``sash bench`` take it.

    >>> snake_case("TwoStacksLite"), snake_case("BInt")
    ('two_stacks_lite', 'b_int')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def ordering_of(entry: Algorithm) -> str:
    """Say in which order items may come."""
    return "in order" if entry.in_order else "at most max_delay late" if entry.needs_delay else "any order"


def needs_of(entry: Algorithm) -> str:
    """Say what an aggregation must have."""
    wanted = (("inverse", entry.needs_inverse), ("selective", entry.needs_selective), ("median-like", entry.needs_median_like))
    return next((word for word, needed in wanted if needed), "monoid" if entry.needs_associative else "nothing")


def contenders(experiment: str, *, any_monoid: bool = False, in_order: bool | None = None) -> tuple[str, ...]:
    """Name the algorithms that are in an experiment of ``sash bench``, in snake case; all, or those that need no more than a monoid.

    >>> contenders("bulk", in_order=True)
    ('two_stacks_lite', 'daba_lite', 'amta')
    """
    entries = [entry for entry in ALGORITHMS.values() if experiment in entry.benches.split()]
    return tuple(
        snake_case(entry.name)
        for entry in entries
        if (not any_monoid or needs_of(entry) == "monoid") and (in_order is None or entry.in_order == in_order)
    )


def table(papers: bool = False) -> str:
    """Write the table of algorithms of the README, or with its papers that of docs/windows.md.

    ``python -c "from sash.swag import algorithms; print(algorithms.table())"`` prints it.
    """
    heads = ["class", "ordering", "needs", "time, in combines", "space, in partials", *(["from"] if papers else [])]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for entry in ALGORITHMS.values():
        ordering = ordering_of(entry) + (", ranges" if entry.ranges else "")
        cells = [f"`{entry.name}`", ordering, needs_of(entry), entry.time, entry.space, *([entry.paper] if papers else [])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
