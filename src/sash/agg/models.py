"""Small models that are trained by combining: linreg histogram naive_bayes."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

from sash.agg.arguments import Where, column_and, plain
from sash.agg.base import Aggregation, ItemType, Traits
from sash.agg.card import AN_ITEM, SUM_LIKE, card

__all__ = ["histogram", "linreg", "naive_bayes"]


class LinReg(NamedTuple):
    """The result of ``linreg``: value = intercept + slope x time."""

    slope: float
    intercept: float
    r2: float


# n, the means of time and value, and the sums of squares and products of the deviations from them.
Line = tuple[int, float, float, float, float, float]


def _lift_line(x: Any, t: Any) -> Line:
    if t is None:
        raise ValueError("linreg fits a line against time, and this item has none. Pass times.")
    return (1, float(t), float(x), 0.0, 0.0, 0.0)


def _combine_line(a: Line, b: Line) -> Line:
    if a[0] == 0 or b[0] == 0:
        return b if a[0] == 0 else a
    n = a[0] + b[0]
    dt, dx, part = b[1] - a[1], b[2] - a[2], b[0] / n
    weight = a[0] * part
    return (
        n,
        a[1] + dt * part,
        a[2] + dx * part,
        a[3] + b[3] + dt * dt * weight,
        a[4] + b[4] + dt * dx * weight,
        a[5] + b[5] + dx * dx * weight,
    )


def _inverse_line(whole: Line, oldest: Line) -> Line:
    n = whole[0] - oldest[0]
    if oldest[0] == 0 or n == 0:
        return whole if oldest[0] == 0 else (0, 0.0, 0.0, 0.0, 0.0, 0.0)
    part = oldest[0] / n
    t, x = whole[1] + (whole[1] - oldest[1]) * part, whole[2] + (whole[2] - oldest[2]) * part
    dt, dx, weight = t - oldest[1], x - oldest[2], oldest[0] * n / whole[0]
    return (
        n,
        t,
        x,
        whole[3] - oldest[3] - dt * dt * weight,
        whole[4] - oldest[4] - dt * dx * weight,
        whole[5] - oldest[5] - dx * dx * weight,
    )


def _lower_line(p: Line) -> LinReg | None:
    n, t, x, tt, tx, xx = p
    if n < 2 or tt == 0:
        return None
    slope = tx / tt
    return LinReg(slope, x - slope * t, tx * tx / (tt * xx) if xx else 1.0)


@card(SUM_LIKE, "count, two means, three sums of products")
def linreg(column: str | None = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Fit a line against time; None below two different times. A flat line has r2 = 1, as in Spark.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.linreg()); w.bulk_insert([1.0, 3.0, 5.0], times=[0, 10, 20]); w.query()
    LinReg(slope=0.2, intercept=1.0, r2=1.0)
    """
    zero, traits = (0, 0.0, 0.0, 0.0, 0.0, 0.0), Traits(commutative=True)
    return Aggregation("linreg", zero, _lift_line, _combine_line, _lower_line, _inverse_line, traits, column, where, dtype, reads_time=True)


@card(SUM_LIKE, "1 count per bin", example="[0, 10, 20]", cost="O(bins)", nan="is in no bin")
def histogram(column: Any = None, edges: Any = None, *, where: Where = None, dtype: ItemType | None = None) -> Aggregation:
    """Count the items between edges, by NumPy's rule: each bin holds its lower edge, the last one both; others are left out.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.histogram([0, 10, 20])); w.bulk_insert([0, 5, 10, 20, 21]); w.query()
    [2, 2]
    """
    column, edges = column_and(column, edges)
    if edges is None:
        raise TypeError("histogram needs edges. Pass at least two, e.g. histogram([0, 10, 20]).")
    bounds = tuple(plain(edge) for edge in edges)
    if len(bounds) < 2 or not all(a <= b for a, b in itertools.pairwise(bounds)):
        raise ValueError(f"edges={edges!r} make no bins. histogram takes at least two edges that do not decrease.")
    bins = len(bounds) - 1
    zero = (0,) * bins

    def lift(x: Any, t: Any) -> tuple[int, ...]:
        x = plain(x)
        at = -1 if x != x else bins - 1 if x == bounds[-1] else bisect.bisect_right(bounds, x) - 1
        return zero if not 0 <= at < bins else (*zero[:at], 1, *zero[at + 1 :])

    def combine(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(operator.add, a, b))

    def inverse(whole: tuple[int, ...], oldest: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(operator.sub, whole, oldest))

    return Aggregation(
        "histogram",
        zero,
        lift,
        combine,
        list,
        inverse,
        Traits(commutative=True),
        column,
        where,
        dtype,
        params=(("edges", bounds),),
        exact_inverse=True,
        counts=True,
    )


# (label,) to how many items have it; (label, feature, value) to how many of those have that value.
Model = Mapping[tuple[Any, ...], int]


def _features(features: Any, of: Any) -> list[tuple[Any, Any]]:
    if isinstance(features, Mapping):
        return [(name, plain(value)) for name, value in features.items() if value is not None]
    if isinstance(features, str) or not hasattr(features, "__iter__"):
        raise TypeError(f"{of!r} has no features. Give them as a mapping or a sequence, e.g. {{'colour': 'red'}}.")
    return [(place, plain(value)) for place, value in enumerate(features) if value is not None]


def _add(a: Model, b: Model, sign: int) -> Model:
    if not b:
        return a
    out = dict(a)
    for key, count in b.items():
        total = out.get(key, 0) + sign * count
        if total:
            out[key] = total
        else:
            out.pop(key, None)
    return out


def _predict(model: Model, features: Any, smoothing: float) -> Any:
    wanted = _features(features, features)
    labels = {key[0]: count for key, count in model.items() if len(key) == 1}
    values: dict[Any, set[Any]] = {}
    for key in model:
        if len(key) == 3:
            values.setdefault(key[1], set()).add(key[2])
    total = sum(labels.values())
    best, best_score = None, -math.inf
    for label in sorted(labels, key=lambda each: (-labels[each], repr(each))):  # equal scores: the more frequent, then by name
        score = math.log(labels[label] / total)
        for name, value in wanted:
            kinds = len(values.get(name, ())) + (value not in values.get(name, ()))
            chance = (model.get((label, name, value), 0) + smoothing) / (labels[label] + smoothing * kinds)
            score += math.log(chance) if chance > 0 else -math.inf
        if score > best_score or best is None:
            best, best_score = label, score
    return best


@card(SUM_LIKE, "counts of labels, and of their features' values", cost="O(size of the model)", nan=AN_ITEM)
def naive_bayes(
    column: str | None = None,
    *,
    label: str | None = None,
    features: Any = None,
    smoothing: float = 1.0,
    where: Where = None,
) -> Aggregation:
    """Train a naive Bayes classifier of categories by combining; ``query(arg=features)`` gives the likeliest label.

    Items are pairs (features, label), the features a mapping or a sequence; or records, with the column that is the
    ``label`` and, if not all others, those that are ``features``. Without arg the answer is how often each label occurred.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.naive_bayes(label="play"))
    >>> w.bulk_insert([{"sky": "sun", "wind": "weak", "play": "yes"}, {"sky": "rain", "wind": "strong", "play": "no"},
    ...                {"sky": "sun", "wind": "strong", "play": "yes"}])
    >>> w.query(arg={"sky": "rain", "wind": "strong"}), w.query()
    ('no', {'yes': 2, 'no': 1})
    """
    if isinstance(smoothing, bool) or not isinstance(smoothing, int | float) or not smoothing >= 0:
        raise ValueError(f"smoothing={smoothing!r} is not a pseudo-count. Use a number from 0 on; 1 is Laplace's rule.")
    chosen = None if features is None else tuple([features] if isinstance(features, str) else features)

    def lift(item: Any, t: Any) -> Model:
        if label is not None:
            if not isinstance(item, Mapping) or label not in item:
                raise TypeError(f"{item!r} is not a record with the column {label!r}. Pass mappings that have it.")
            names = chosen if chosen is not None else tuple(name for name in item if name != label)
            given, kind = {name: item[name] for name in names}, plain(item[label])
        else:
            if not isinstance(item, tuple | list) or len(item) != 2:
                raise TypeError(f"{item!r} is not a pair. naive_bayes takes (features, label), or records with label= their column.")
            given, kind = item[0], plain(item[1])
        if kind is None:
            return {}
        try:
            return {(kind,): 1, **{(kind, name, value): 1 for name, value in _features(given, item)}}
        except TypeError as error:
            if "hash" not in str(error):
                raise
            raise TypeError(f"{item!r} has a feature that can't be hashed. Use numbers, text and tuples.") from None

    def lower(p: Model, arg: Any = None) -> Any:
        if not p:
            return None
        return {key[0]: count for key, count in p.items() if len(key) == 1} if arg is None else _predict(p, arg, smoothing)

    params: tuple[tuple[str, Any], ...] = (("label", label), ("features", chosen), ("smoothing", smoothing))
    return Aggregation(
        "naive_bayes",
        {},
        lift,
        lambda a, b: _add(a, b, 1) if a else b,
        lower,
        lambda whole, oldest: _add(whole, oldest, -1),
        Traits(commutative=True, size_preserving=False, parametric=True),
        column,
        where,
        "object",
        params=tuple((k, v) for k, v in params if v is not None),
        exact_inverse=True,
    )
