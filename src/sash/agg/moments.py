"""Moments about the mean, combined by stable formulas: var std skew kurtosis.

The partial is (n, mean, M2, M3, M4), Mk the sum of the k-th powers of the deviations from the mean. Sums of squares are
never subtracted, so 1e9 .. 1e9+3 has standard deviation 1.29, not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sash.agg.base import Aggregation, ItemType, Native, Traits
from sash.agg.card import SUM_LIKE, card
from sash.agg.exact import exact_moment
from sash.agg.forms import Result

__all__ = ["kurtosis", "skew", "std", "var"]

Where = Callable[[Any], bool] | str | None
Moments = tuple[int, float, float, float, float]


def _lift(x: Any, t: Any) -> Moments:
    x = float(x)
    none = 0.0 if math.isfinite(x) else math.nan  # an infinite item has no deviation from a mean, whatever the order
    return (1, x, none, none, none)


def _combine(a: Moments, b: Moments) -> Moments:
    na, ma, a2, a3, a4 = a
    nb, mb, b2, b3, b4 = b
    if na == 0:
        return b
    if nb == 0:
        return a
    n = na + nb
    d = mb - ma
    r = d / n
    return (
        n,
        ma + r * nb if math.isfinite(d) else ma * (na / n) + mb * (nb / n),
        a2 + b2 + d * r * na * nb,
        a3 + b3 + d * r * r * na * nb * (na - nb) + 3 * r * (na * b2 - nb * a2),
        a4
        + b4
        + d * r * r * r * na * nb * (na * na - na * nb + nb * nb)
        + 6 * r * r * (na * na * b2 + nb * nb * a2)
        + 4 * r * (na * b3 - nb * a3),
    )


def _inverse(whole: Moments, oldest: Moments) -> Moments:
    n, m, w2, w3, w4 = whole
    na, ma, a2, a3, a4 = oldest
    nb = n - na
    if nb == 0:
        return (0, 0.0, 0.0, 0.0, 0.0)
    if na == 0:
        return whole
    mb = m + (m - ma) * na / nb
    d = mb - ma
    r = d / n
    b2 = w2 - a2 - d * r * na * nb
    b3 = w3 - a3 - d * r * r * na * nb * (na - nb) - 3 * r * (na * b2 - nb * a2)
    b4 = (
        w4
        - a4
        - d * r * r * r * na * nb * (na * na - na * nb + nb * nb)
        - 6 * r * r * (na * na * b2 + nb * nb * a2)
        - 4 * r * (na * b3 - nb * a3)
    )
    return (nb, mb, b2, b3, b4)


def _var(p: Moments) -> float | None:
    return max(p[2], 0.0) / (p[0] - 1) if p[0] >= 2 else None


def _std(p: Moments) -> float | None:
    variance = _var(p)
    return None if variance is None else math.sqrt(variance)


def _skew(p: Moments) -> float | None:
    n, _, m2, m3, _ = p
    if n < 3:
        return None
    if not math.isfinite(m2):
        return math.nan
    scale = math.pow(m2, 1.5) if m2 > 0 else 0.0  # may vanish where m2 does not
    return n * math.sqrt(n - 1) / (n - 2) * m3 / scale if scale else math.nan


def _kurtosis(p: Moments) -> float | None:
    n, _, m2, _, m4 = p
    if n < 4:
        return None
    if not math.isfinite(m2):
        return math.nan
    scale = m2 * m2
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * m4 / scale - 3 * (n - 1)) if scale else math.nan


def _moment(name: str, lower: Callable[[Moments], float | None], column: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    def native(item_type: ItemType) -> Native | None:
        return None if item_type == "object" else Native("moments", (), (name,), None)

    zero, traits, kind = (0, 0.0, 0.0, 0.0, 0.0), Traits(commutative=True), Result("real")
    return Aggregation(name, zero, _lift, _combine, lower, _inverse, traits, column, where, dtype, natives=native, result=kind)


@card(SUM_LIKE, "count, mean and sums of powers of deviations up to 4")
def var(column: str | None = None, *, exact: bool = False, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the sample variance (ddof=1); None below two items.

    >>> from sash import slide, agg
    >>> slide([1.0, 3.0, 7.0], agg=agg.var(), size=2)
    array([nan,  2.,  8.])

    With ``exact=True`` it is of the exact sums of items and squares, rounded once: the same bits in any order. Cost: 568 bytes per
    partial instead of 40.
    """
    if exact:
        return exact_moment("var", column, where, dtype)
    return _moment("var", _var, column, where, dtype)


@card(SUM_LIKE, "as var")
def std(column: str | None = None, *, exact: bool = False, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the sample standard deviation (ddof=1); None below two items.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.std()); w.bulk_insert([1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3]); round(w.query(), 2)
    1.29

    With ``exact=True`` it is the root of the exact variance: the same bits in any order.
    """
    if exact:
        return exact_moment("std", column, where, dtype)
    return _moment("std", _std, column, where, dtype)


@card(SUM_LIKE, "as var")
def skew(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the adjusted sample skewness, as pandas does; None below three items.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.skew()); w.bulk_insert([1, 2, 6]); round(w.query(), 4)
    1.4579
    """
    return _moment("skew", _skew, column, where, dtype)


@card(SUM_LIKE, "as var")
def kurtosis(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Give the adjusted sample excess kurtosis, as pandas does; None below four items.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.kurtosis()); w.bulk_insert([1, 2, 3, 9]); round(w.query(), 4)
    3.0144
    """
    return _moment("kurtosis", _kurtosis, column, where, dtype)
