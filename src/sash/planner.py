"""Choose the algorithm from traits and needs, and explain why."""

from __future__ import annotations

import dataclasses
from typing import Any

from sash import _core, swag
from sash.agg.base import Aggregation
from sash.swag.algorithms import ALGORITHMS, needs_of, ordering_of
from sash.time import stretch

__all__ = ["explain", "window"]


@dataclasses.dataclass(frozen=True)
class Needs:
    """What the caller asked of a window."""

    in_order: bool
    worst_case: bool
    ranges: bool
    bulk: bool
    max_delay: int | float | None


def _objection(entry: _core.Algorithm, a: Aggregation, n: Needs) -> str | None:
    """Say why an algorithm is not the one to take, None if it is.

    Algorithms are tried in the order of their preference, which among those in order is that of measured rounds per second
    (`sash bench fifo`): SubtractOnEvict and TwoStacksLite are ahead of DabaLite on average, DabaLite is ahead of all in the worst
    round. MonotonicDeque is behind TwoStacksLite at native speed, since its inner loop branches on the data; for Python callables
    it saves combines.
    """
    if not entry.needs_associative:
        return entry.drawback if a.associative else None
    if entry.needs_median_like and not a.median_like:
        return "only for median-like aggregations"
    if entry.needs_delay and n.max_delay is None:
        return "no max_delay was given"
    if n.ranges and not entry.ranges:
        return "keeps no ranges" if entry.needs_delay else "answers for the whole window only"
    if entry.needs_median_like:
        return "takes numbers only" if a.dtype == "object" else None
    if entry.needs_delay:
        return "takes items one at a time" if n.bulk else None if n.worst_case else entry.drawback
    if entry.in_order and (not n.in_order or n.max_delay is not None):
        return "needs items in order"
    if entry.in_order and n.bulk:
        return "evicts one by one"
    if entry.needs_inverse:
        return "has no inverse" if not a.invertible else None if a.inverts_exactly(a.dtype) else entry.drawback
    if entry.needs_selective and not a.selective:
        return "not selective"
    if entry.spike is not None and n.worst_case:
        return entry.spike
    return None if a.callables else entry.drawback


def window(
    aggregation: Aggregation,
    *,
    in_order: bool = True,
    worst_case: bool = False,
    ranges: bool = False,
    bulk: bool = False,
    max_delay: Any = None,
) -> _core.Window:
    """Pick the best algorithm for an aggregation and what is needed of the window.

    ``worst_case``: no single call may be slow. ``ranges``: ``query(start, end)``. ``bulk``: many items at once.
    ``max_delay``: items come out of order, but at most this late. ``explain()`` of the result tells the choice.

    >>> from sash import agg, window
    >>> type(window(agg.max())).__name__, type(window(agg.max(), worst_case=True)).__name__
    ('TwoStacksLite', 'DabaLite')
    >>> type(window(agg.max(), in_order=False)).__name__
    'BlockFiba'
    """
    if not isinstance(aggregation, Aggregation):
        raise TypeError(f"{aggregation!r} is not an aggregation. Pass one of sash.agg, e.g. window(agg.sum()).")
    needs = Needs(in_order, worst_case, ranges, bulk, None if max_delay is None else stretch(max_delay))
    if not aggregation.associative and (ranges or not in_order or max_delay is not None):
        takers = " and ".join(entry.name for entry in ALGORITHMS.values() if not entry.needs_associative)
        raise TypeError(f"{aggregation.name} is not associative, so only {takers} takes it, in order. Leave the other needs out.")
    rejected: list[tuple[str, str]] = []
    for entry in sorted((entry for entry in ALGORITHMS.values() if entry.preference), key=lambda entry: entry.preference):
        reason = _objection(entry, aggregation, needs)
        if reason is None:
            options: dict[str, Any] = {"max_delay": needs.max_delay} if entry.needs_delay else {}
            if entry.needs_inverse and not aggregation.counts:
                options = {"integers_only": True}  # they were promised; floats would be rounded by subtracting them
            chosen: Any = getattr(swag, entry.name)(aggregation, **options)
            chosen._plan = _plan_text(aggregation, needs, entry, rejected)
            made: _core.Window = chosen
            return made
        rejected.append((entry.name, reason))
    raise AssertionError("the last of the list takes everything")


def _plan_text(aggregation: Aggregation, needs: Needs, chosen: _core.Algorithm, rejected: list[tuple[str, str]]) -> str:
    asked = [
        "in order"
        if needs.in_order and needs.max_delay is None
        else "any order"
        if needs.max_delay is None
        else f"at most {needs.max_delay} late",
        *(word for word, wanted in (("worst case", needs.worst_case), ("ranges", needs.ranges), ("bulk", needs.bulk)) if wanted),
    ]
    lines = [f"{aggregation.name}, {', '.join(asked)}: {chosen.name}"]
    lines.append(f"  {chosen.name:16} {chosen.time}; {chosen.space} partials   <- chosen")
    lines += [f"  {name:16} {reason}" for name, reason in rejected]
    return "\n".join(lines)


def explain(window: _core.Window) -> str:
    """Say which algorithm runs a window, at what cost, and why not another.

    >>> from sash import agg, window
    >>> print(window(agg.max(), worst_case=True).explain().splitlines()[0])
    max, in order, worst case: DabaLite
    """
    plan = getattr(window, "_plan", None)
    entry = window.algorithm
    facts = f"  {ordering_of(entry)}; needs {needs_of(entry)}; {entry.time}; {entry.space} partials; {entry.paper}"
    holds = f"  holds {len(window):,} entries of {window.dtype} items"
    return "\n".join([plan if plan is not None else f"{window.aggregation.name}: {entry.name}, named by the caller", facts, holds])


_core.register_hooks(explain=explain)
