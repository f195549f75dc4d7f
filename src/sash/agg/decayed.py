"""Means in which old items count less: ewma."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sash.agg.arguments import Where
from sash.agg.base import Aggregation, ItemType, Native, Traits
from sash.agg.card import SUM_LIKE, card
from sash.agg.forms import Result
from sash.time import Duration, duration, duration_text

__all__ = ["ewma"]

Decayed = tuple[float, float, Any]  # the weighted sum, the weight, the time of the newest item; a weight of 0 is nothing


@card(SUM_LIKE, "weighted sum, weight, time of the newest item", example='half_life="1h"')
def ewma(
    column: str | None = None, half_life: Duration | None = None, *, where: Where = None, dtype: ItemType | None = None
) -> Aggregation:
    """Average the items with weights that halve with every ``half_life`` of age; the newest item has weight 1.

    The order of arrival does not matter, since a partial carries the time of its newest item. An int is in the unit of the times.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.ewma(half_life=10)); w.bulk_insert([0.0, 8.0, 4.0], times=[0, 10, 20])
    >>> w.query()                                    # (0 / 4 + 8 / 2 + 4) / (1 / 4 + 1 / 2 + 1)
    4.571428571428571
    """
    if half_life is None:
        raise TypeError("ewma needs half_life. Pass it, e.g. ewma(half_life='1h').")
    length = duration(half_life)
    if length <= 0:
        raise ValueError(f"half_life={half_life!r} is too short. Use a duration above zero, e.g. '1h'.")
    if isinstance(half_life, int | np.integer) and not isinstance(half_life, np.timedelta64):
        return _ewma(column, length, length, where, dtype)
    made = _ewma(column, duration_text(length), length, where, dtype)
    return made.replace(in_unit=lambda micros: _ewma(column, duration_text(length), length / micros, where, dtype))


def _ewma(column: str | None, named: int | str, half_life: float, where: Where, dtype: ItemType | None) -> Aggregation:
    def lift(x: Any, t: Any) -> Decayed:
        if t is None:
            raise ValueError("ewma weighs items by their age, and this item has no time. Pass times.")
        return (float(x), 1.0, t)

    def combine(a: Decayed, b: Decayed) -> Decayed:
        if a[1] == 0 or b[1] == 0:
            return b if a[1] == 0 else a
        newer, older = (a, b) if a[2] > b[2] else (b, a)
        left = math.exp2(-(newer[2] - older[2]) / half_life)
        if left == 0:  # an infinity of no weight would be NaN
            return newer
        return (newer[0] + left * older[0], newer[1] + left * older[1], newer[2])

    def native(item_type: ItemType) -> Native | None:
        return None if item_type == "object" else Native("ewma", (half_life,), ("mean",), None)

    return Aggregation(
        "ewma",
        (0.0, 0.0, 0),
        lift,
        combine,
        lambda p: p[0] / p[1] if p[1] else None,
        None,
        Traits(commutative=True),
        column,
        where,
        dtype,
        params=(("half_life", named),),
        natives=native,
        reads_time=True,
        result=Result("real"),
    )
