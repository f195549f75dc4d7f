"""Choose the algorithm from traits and needs, and explain why."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from sash import _core, swag
from sash.agg.base import Aggregation
from sash.time import duration

__all__ = ["CARDS", "Card", "explain", "window"]


class Card(NamedTuple):
    """What the papers promise of an algorithm."""

    ordering: str
    needs: str
    time: str
    space: str
    paper: str


CARDS: Final = {
    "Recalc": Card("in order", "nothing", "query n - 1 combines", "n", "tutorial-2017"),
    "SubtractOnEvict": Card("in order", "inverse", "1 combine, 1 inverse", "n + 1", "tutorial-2017"),
    "TwoStacks": Card("in order", "monoid", "amortised 1, n at a flip", "2n", "daba-2021, section 3"),
    "TwoStacksLite": Card("in order", "monoid", "amortised 1, n at a flip", "n + 1", "daba-2021, section 4"),
    "Daba": Card("in order", "monoid", "at most 4 per insert, 3 per evict", "2n", "daba-2021, section 5"),
    "DabaLite": Card("in order", "monoid", "at most 3 per insert, 2 per evict", "n + 2", "daba-2021, section 6"),
    "FlatFit": Card("in order", "monoid", "amortised 3, n at a query", "n", "FlatFIT, 2017"),
    "FlatFat": Card("in order", "monoid", "log n", "2n", "Reactive Aggregator, 2015"),
    "BInt": Card("in order", "monoid", "log n per query", "2n", "B-Int, 2004"),
    "Amta": Card("in order", "monoid", "amortised 1, log n at most, any bulk evict log n", "2n", "AMTA, 2019"),
    "MonotonicDeque": Card("in order", "selective", "amortised 1, n at an insert", "at most n", "SlickDeque, 2018"),
    "OrderStatistics": Card("any order", "median-like", "log n", "n", "Hirzel et al., 2016"),
    "BTree": Card("any order", "monoid", "log n", "between n and 2n", "fiba-2019, baseline"),
    "Fiba": Card("any order", "monoid", "log d for an item d places late", "between n and 2n", "fiba-2019, bulk-fiba-2023"),
    "BlockFiba": Card("any order", "monoid", "log d for an item d places late", "about n", "our own layout of FiBA"),
    "Reordered": Card("at most max_delay late", "monoid", "DabaLite's, and one per waiting item", "n + 2", "Srivastava and Widom, 2004"),
}


@dataclasses.dataclass(frozen=True)
class Needs:
    """What the caller asked of a window."""

    in_order: bool
    worst_case: bool
    ranges: bool
    bulk: bool
    max_delay: int | None


Rule = Callable[[Aggregation, Needs], str | None]


def _exact_inverse(aggregation: Aggregation) -> bool:
    return aggregation.inverts_exactly(aggregation.dtype)


# In order of preference; each rule gives the reason against it, or None. The order among the in-order algorithms is
# that of measured rounds per second (`sash bench fifo`): SubtractOnEvict and TwoStacksLite ahead of DabaLite on average,
# DabaLite ahead of all in the worst round; MonotonicDeque behind TwoStacksLite at native speed, since its inner loop
# branches on the data, so it is taken for Python callables only, where it saves combines.
_PREFERENCE: Final[tuple[tuple[str, Rule], ...]] = (
    ("Recalc", lambda a, n: None if not a.associative else "recalculates the whole window at every query"),
    (
        "OrderStatistics",
        lambda a, n: (
            "only for median-like aggregations"
            if not a.median_like
            else "answers for the whole window only"
            if n.ranges
            else "takes numbers only"
            if a.dtype == "object"
            else None
        ),
    ),
    (
        "SubtractOnEvict",
        lambda a, n: (
            _in_order(n)
            or (
                None
                if _exact_inverse(a)
                else "has no inverse"
                if not a.invertible
                else "subtracts: exact on integers only, and none were promised"
            )
        ),
    ),
    (
        "MonotonicDeque",
        lambda a, n: (
            _in_order(n)
            or ("not selective" if not a.selective else None)
            or ("up to n combines at one insert" if n.worst_case else None)
            or (None if a.callables else "slower than TwoStacksLite at native speed")
        ),
    ),
    ("TwoStacksLite", lambda a, n: _in_order(n) or ("up to n combines at a flip" if n.worst_case else None)),
    ("DabaLite", lambda a, n: _in_order(n)),
    (
        "Reordered",
        lambda a, n: (
            "no max_delay was given"
            if n.max_delay is None
            else "keeps no ranges"
            if n.ranges
            else "takes items one at a time"
            if n.bulk
            else None
            if n.worst_case
            else "BlockFiba is faster unless the worst round counts"
        ),
    ),
    ("BlockFiba", lambda a, n: None),
)


def _in_order(needs: Needs) -> str | None:
    if needs.ranges:
        return "answers for the whole window only"
    if not needs.in_order or needs.max_delay is not None:
        return "needs items in order"
    if needs.bulk:
        return "evicts one by one"
    return None


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
    needs = Needs(in_order, worst_case, ranges, bulk, None if max_delay is None else duration(max_delay))
    if not aggregation.associative and (ranges or not in_order or max_delay is not None):
        raise TypeError(f"{aggregation.name} is not associative, so only Recalc takes it, in order. Leave the other needs out.")
    rejected: list[tuple[str, str]] = []
    for name, rule in _PREFERENCE:
        if not hasattr(swag, name):
            continue
        reason = rule(aggregation, needs)
        if reason is None:
            options = {"max_delay": needs.max_delay} if name == "Reordered" else {}
            chosen: Any = getattr(swag, name)(aggregation, **options)
            chosen._plan = _plan_text(aggregation, needs, name, rejected)
            made: _core.Window = chosen
            return made
        rejected.append((name, reason))
    raise AssertionError("the last of the list takes everything")


def _plan_text(aggregation: Aggregation, needs: Needs, chosen: str, rejected: list[tuple[str, str]]) -> str:
    asked = [
        "in order"
        if needs.in_order and needs.max_delay is None
        else "any order"
        if needs.max_delay is None
        else f"at most {needs.max_delay} late",
        *(word for word, wanted in (("worst case", needs.worst_case), ("ranges", needs.ranges), ("bulk", needs.bulk)) if wanted),
    ]
    lines = [f"{aggregation.name}, {', '.join(asked)}: {chosen}"]
    lines.append(f"  {chosen:16} {CARDS[chosen].time}; {CARDS[chosen].space} partials   <- chosen")
    lines += [f"  {name:16} {reason}" for name, reason in rejected]
    return "\n".join(lines)


def explain(window: _core.Window) -> str:
    """Say which algorithm runs a window, at what cost, and why not another.

    >>> from sash import agg, window
    >>> print(window(agg.max(), worst_case=True).explain().splitlines()[0])
    max, in order, worst case: DabaLite
    """
    plan = getattr(window, "_plan", None)
    name = type(window).__name__
    card = CARDS[name]
    facts = f"  {card.ordering}; needs {card.needs}; {card.time}; {card.space} partials; {card.paper}"
    holds = f"  holds {len(window):,} entries of {window.dtype} items"
    return "\n".join([plan if plan is not None else f"{window.aggregation.name}: {name}, named by the caller", facts, holds])


_core.Window.explain = explain  # type: ignore[method-assign, assignment]
