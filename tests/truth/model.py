"""A plain model of what counts, written from docs/semantics.md and docs/aggregations.md alone: lists, loops and Python's numbers.

Nothing of Sash is used here but the names of its aggregations. An item is (time, value); a null value is None. Results are what a
caller should see: None where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

Item = tuple[Any, Any]
LIMIT = 2**63


def is_nan(x: Any) -> bool:
    return isinstance(x, float) and math.isnan(x)


def key(x: Any) -> Any:
    """NaN is the largest value."""
    return (is_nan(x), 0 if is_nan(x) else x)


def number(x: Any) -> Any:
    return int(x) if isinstance(x, bool) else x


def held(items: list[Item]) -> list[Item]:
    """The items that have a value, in order of time, equal times in order of arrival."""
    return sorted(((t, number(v)) for t, v in items if v is not None), key=lambda item: item[0])


def total(values: list[Any]) -> Any:
    if any(isinstance(v, float) for v in values):
        finite = [v for v in values if not (isinstance(v, float) and not math.isfinite(v))]
        special = [v for v in values if isinstance(v, float) and not math.isfinite(v)]
        return sum(special) if special else math.fsum(map(float, finite))
    out = sum(values[1:], values[0]) if values else 0
    if isinstance(out, int) and not -LIMIT <= out < LIMIT:
        raise OverflowError(out)
    return out


def _mean(values: list[Any]) -> Any:
    if not values:
        return None
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        return total([float(v) for v in values])
    return float(sum(map(Fraction, values)) / len(values))


def _var(values: list[Any]) -> Any:
    if len(values) < 2:
        return None
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        return math.nan
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    return float(sum((v - mean) ** 2 for v in exact) / (len(exact) - 1))


def _std(values: list[Any]) -> Any:
    variance = _var(values)
    return None if variance is None else math.sqrt(variance) if variance == variance else math.nan


def _median(values: list[Any]) -> Any:
    ranked = sorted(values, key=key)
    n = len(ranked)
    if n == 0:
        return None
    if is_nan(ranked[n // 2]):
        return math.nan
    return float(ranked[n // 2]) if n % 2 else float((Fraction(ranked[n // 2 - 1]) + Fraction(ranked[n // 2])) / 2)


def _extreme(items: list[Item], largest: bool) -> Item | None:
    best: Item | None = None
    for item in items:  # the oldest of equal ones stays
        if best is None or (key(item[1]) > key(best[1]) if largest else key(item[1]) < key(best[1])):
            best = item
    return best


def _time_of(largest: bool) -> Callable[[list[Item]], Any]:
    def found(items: list[Item]) -> Any:
        best = _extreme(items, largest)
        return None if best is None else best[0]

    return found


def _value_of(largest: bool) -> Callable[[list[Item]], Any]:
    def found(items: list[Item]) -> Any:
        best = _extreme(items, largest)
        return None if best is None else best[1]

    return found


def _m4(items: list[Item]) -> Any:
    if not items:
        return None
    corners = items[0], _extreme(items, False), _extreme(items, True), items[-1]
    return [(t, v) for t, v in corners]


def _slope(items: list[Item]) -> Any:
    if len({t for t, _ in items}) < 2:
        return None
    xs, ys = [Fraction(t) for t, _ in items], [Fraction(v) for _, v in items]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return float(sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sum((x - mx) ** 2 for x in xs))


def _distinct(values: list[Any]) -> int:
    return len({v for v in values if not is_nan(v)}) + any(map(is_nan, values))


def _values(f: Callable[[list[Any]], Any]) -> Callable[[list[Item]], Any]:
    return lambda items: f([v for _, v in items])


# By the name of an aggregation; top_k and the like have k = 2.
RESULTS: dict[str, Callable[[list[Item]], Any]] = {
    "count": len,
    "sum": _values(total),
    "mean": _values(_mean),
    "var": _values(_var),
    "std": _values(_std),
    "min": _value_of(False),
    "max": _value_of(True),
    "argmin": _time_of(False),
    "argmax": _time_of(True),
    "first": _values(lambda vs: vs[0] if vs else None),
    "last": _values(lambda vs: vs[-1] if vs else None),
    "collect": _values(list),
    "median": _values(_median),
    "distinct": _values(_distinct),
    "top_k": _values(lambda vs: sorted(vs, key=key, reverse=True)[:2]),
    "bottom_k": _values(lambda vs: sorted(vs, key=key)[:2]),
    "first_k": _values(lambda vs: vs[:2]),
    "last_k": _values(lambda vs: vs[-2:]),
    "ith_smallest": _values(lambda vs: sorted(vs, key=key)[1] if len(vs) > 1 else None),
    "ith_youngest": _values(lambda vs: vs[-2] if len(vs) > 1 else None),
    "maxcount": _values(lambda vs: sum(key(v) == max(map(key, vs)) for v in vs) if vs else None),
    "m4": _m4,
    "linreg": _slope,
    "concat": _values(lambda vs: "".join(vs) if vs else None),
}


def result(name: str, items: list[Item]) -> Any:
    """What an aggregation gives of these items."""
    return RESULTS[name](held(items))


# --- which items count


def within(items: list[Item], start: Any, end: Any) -> list[Item]:
    """Items of [start, end], as windows ask for."""
    return [(t, v) for t, v in items if start <= t <= end]


def left_in(items: list[Item], start: Any, closed: str) -> list[Item]:
    """Items that a window from ``start`` on still holds."""
    return [(t, v) for t, v in items if t > start or (closed in ("left", "both") and t == start)]


def slide_by_count(items: list[Item], size: int) -> list[list[Item]]:
    return [items[max(0, i + 1 - size) : i + 1] for i in range(len(items))]


def slide_by_time(items: list[Item], period: Any, closed: str) -> list[list[Item]]:
    out = []
    for t, _ in items:
        start, end = exactly(t) - exactly(period), t
        out.append([(s, v) for s, v in left_in(items, start, closed) if s < end or (closed in ("right", "both") and s == end)])
    return out


def slide_by_arrival(items: list[Item], period: Any, closed: str) -> list[list[Item]]:
    out, kept = [], []
    newest = None
    for t, v in items:
        newest = t if newest is None else max(newest, t)
        kept = left_in([*kept, (t, v)], exactly(newest) - exactly(period), closed)
        out.append([(s, x) for s, x in kept if s < newest or closed in ("right", "both")])
    return out


def exactly(t: Any) -> Any:
    return t if isinstance(t, float) and math.isinf(t) else Fraction(t) if isinstance(t, float) else t


def same(got: Any, want: Any, tolerance: float = 1e-9) -> bool:
    """Whether a result is what the model says: integers, times and text exactly, floats nearly, NaN is NaN."""
    if want is None or got is None:
        return got is None and want is None
    if isinstance(want, float):
        if not isinstance(got, float | int):
            return False
        if math.isnan(want) or math.isinf(want):
            return got == want or (math.isnan(got) and math.isnan(want))
        return abs(got - want) <= tolerance * (1 + abs(want))
    if isinstance(want, list | tuple):
        return isinstance(got, list | tuple) and len(got) == len(want) and all(same(g, w) for g, w in zip(got, want, strict=True))
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(same(got[k], want[k]) for k in want)
    nothing = want == 0 and isinstance(want, int)  # a sum of no floats is 0.0
    return bool(got == want) and (nothing or isinstance(got, float) <= isinstance(want, float))
