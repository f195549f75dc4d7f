"""sum, mean, var and std of floats without rounding before the end: ``exact=True``.

A sum is kept as an integer, the number of 2^-1074, of which every float is a multiple. Adding integers is exact, so that the
result depends neither on the order of the items nor on how they were cut into windows, slices and batches: the same bits every
time. It is rounded once: a sum is that of ``math.fsum``. The core keeps the integer in 34 words (core/monoids/exact.hpp).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from sash.agg.base import Aggregation, ItemType, Native, Traits, fits_int64
from sash.agg.forms import Result

__all__ = ["exact_moment", "exact_sum"]

Where = Callable[[Any], bool] | str | None
Sums = tuple[int, int, int, int, int, int]  # the total in 2^-1074; items, floats, NaNs, infinities up and down
Moments = tuple[int, int, int, int, int]  # the total and the squares in 2^-1074; items, NaNs and infinities, too large to square
UNIT: Final = 1074


def _finite(x: Any) -> bool:
    if isinstance(x, int | np.integer):
        return True
    if not isinstance(x, float | np.floating):
        raise TypeError(f"{x!r} is not a number that exact=True takes. Use ints and floats, or leave exact out.")
    return math.isfinite(x)


def _scaled(x: Any) -> int:
    if isinstance(x, int | np.integer):
        return int(x) << UNIT
    over, under = float(x).as_integer_ratio()
    return int(over << UNIT) // under


def _rounded(over: int, under: int) -> float:
    try:
        return over / under
    except OverflowError:
        return math.inf if over > 0 else -math.inf


def _add(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _subtract(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _lift_sum(x: Any, t: Any) -> Sums:
    if _finite(x):
        return (_scaled(x), 1, int(isinstance(x, float | np.floating)), 0, 0, 0)
    return (0, 1, 1, int(math.isnan(x)), int(x == math.inf), int(x == -math.inf))


def _sum(p: Sums) -> Any:
    total, _, floats, nans, up, down = p
    if not floats:
        return fits_int64(total >> UNIT)
    if nans or (up and down):
        return math.nan
    return math.inf if up else -math.inf if down else _rounded(total, 1 << UNIT)


def _mean(p: Sums) -> float | None:
    total, n, _, nans, up, down = p
    if not n:
        return None
    if nans or up or down:
        return float(_sum(p))
    found = _rounded(total, 1 << UNIT)
    return found / n if math.isfinite(found) else math.ldexp(_rounded(total, 1 << (UNIT + 64)) / n, 64)


def _lift_moments(x: Any, t: Any) -> Moments:
    if not _finite(x):
        return (0, 0, 1, 1, 0)
    if not isinstance(x, int | np.integer) and math.isinf(float(x) * float(x)):
        return (0, 0, 1, 0, 1)
    total = _scaled(x)
    return (total, total * total >> UNIT, 1, 0, 0)


def _var(p: Moments) -> float | None:
    total, squares, n, strange, large = p
    if n < 2:
        return None
    if strange or large:
        return math.nan if strange else math.inf
    return _rounded(max(n * (squares << UNIT) - total * total, 0), n * (n - 1) << 2 * UNIT)


def _std(p: Moments) -> float | None:
    variance = _var(p)
    return None if variance is None else math.sqrt(variance)


def _made(
    name: str, kernel: str, zero: Any, lift: Any, lower: Any, column: str | None, where: Where, dtype: ItemType | None
) -> Aggregation:
    def native(how: str) -> Callable[[ItemType], Native | None]:
        return lambda item_type: None if item_type == "object" else Native(kernel, (), (how,), None)

    sums = name == "sum"
    return Aggregation(
        name,
        zero,
        lift,
        _add,
        lower,
        _subtract,
        Traits(commutative=True),
        column,
        where,
        dtype,
        params=(("exact", True),),
        natives=native(name),
        in_slices=native("sum_or_none") if sums else None,
        exact_inverse=True,
        null_in_frames=sums,
        result=Result("sum" if sums else "real"),
    )


def exact_sum(name: str, column: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    """Give the sum or the mean."""
    return _made(name, "exact_sum", (0,) * 6, _lift_sum, _sum if name == "sum" else _mean, column, where, dtype)


def exact_moment(name: str, column: str | None, where: Where, dtype: ItemType | None) -> Aggregation:
    """Give the variance or the standard deviation."""
    return _made(name, "exact_moments", (0,) * 5, _lift_moments, _var if name == "var" else _std, column, where, dtype)
