"""The arguments of slide(), read and checked."""

from __future__ import annotations

import copy
from typing import Any, Final, Literal

import numpy as np

from sash import time as times_
from sash.agg.base import Aggregation, Native
from sash.agg.sums import count
from sash.arrays.keys import key_columns, numbered, starts_of, together
from sash.containers import sized
from sash.errors import OutOfOrderError
from sash.swag.columns import Items

__all__ = ["CLOSED", "NEVER_EMPTY", "Plan", "check_order", "items_of", "ranked_dtype", "with_none"]

Array = np.ndarray[Any, Any]
CLOSED: Final = ("right", "left", "both", "neither")
NEVER_EMPTY: Final = ("right", "both")  # the item itself is in its window


class Plan:
    """The arguments of slide(), read and checked."""

    def __init__(
        self,
        values: Any,
        agg: Aggregation,
        size: Any,
        times: Any,
        period: Any,
        by: Any,
        order: str,
        closed: str,
        algorithm: str,
        at: Any = None,
        at_by: Any = None,
        skipna: bool = False,
    ) -> None:
        if not isinstance(agg, Aggregation):
            raise TypeError(f"agg={agg!r} is not an aggregation. Pass one of sash.agg, e.g. agg=agg.sum().")
        if (size is None) == (period is None):
            raise ValueError("a window is by count or by time. Pass either size=, or times= and period=.")
        if period is not None and times is None:
            raise ValueError("period= needs the times of the items. Pass times=, one per value.")
        if closed not in CLOSED:
            raise ValueError(f"closed={closed!r} is not known. Use 'right', 'left', 'both' or 'neither'.")
        if order not in ("time", "arrival"):
            raise ValueError(f"order={order!r} is not known. Use 'time' or 'arrival'.")
        if order == "arrival" and period is None:
            raise ValueError("order='arrival' follows time. Pass times= and period=, or leave order out for windows by count.")
        if size is not None:
            if closed != "right" and at is None:
                raise ValueError(f"closed={closed!r} is about times. Leave it out for windows by count.")
            if isinstance(size, bool) or not isinstance(size, int | np.integer):
                raise TypeError(f"size={size!r} is not a count. Use a whole number of items.")
            if size < 1:
                raise ValueError(f"size={size} is too small. A window holds at least 1 item.")
        self.aggregation, self.order, self.closed, self.algorithm = agg, order, closed, algorithm
        self.items = Items(values)
        self.count = self.items.count
        self.size = int(size) if size is not None else 0
        self.times = None if times is None else times_.timestamps(times)
        for name, other in (("times", self.times), *(("by", keys) for keys in key_columns(by))):
            if other is not None and len(other) != self.count:
                raise ValueError(f"there are {self.count} values but {len(other)} {name}. Pass one per value.")
        self.period: int | float = 0
        if period is not None:
            assert self.times is not None
            floats = self.times.dtype.kind == "f"
            self.period = float(times_.stretch(period)) if floats else times_.duration(period)
            if not self.period > 0:
                raise ValueError(f"period={period!r} is too short. A window reaches back by more than 0.")
        self.skipna, self.given = skipna, self.items.values
        self.points: int | None = None  # how many times are asked for
        self.numbers = None if agg.parts else self.items.numbers(agg)
        if skipna and self.numbers is not None:
            self.numbers = self._skip_nan(*self.numbers)
        if at is not None:
            self._ask_at(at, by, at_by)
        elif at_by is not None:
            raise ValueError("at_by= has the keys of the times at=, which is missing. Add it, or leave out at_by.")
        else:
            self.codes = None if by is None else numbered(by)
        self.native: Native | None = None
        if self.numbers is not None and agg.dtype != "object" and algorithm == "auto":
            if agg.dtype == "float64":
                self.numbers = (self.numbers[0].astype(np.float64, copy=False), self.numbers[1])
            native = agg.kernel("int64" if self.numbers[0].dtype.kind == "i" else "float64")
            truth = native is not None and (self.gives("truth") or _gives(native, "truth"))
            floats_by_arrival = order == "arrival" and self.times is not None and self.times.dtype.kind == "f"
            times_lost = agg.reads_time and self.times is not None and self.times.dtype.kind == "f"
            if native is not None and len(native.lowers) == 1 and not truth and not floats_by_arrival and not times_lost:
                self.native = native
        self.ranked = (
            self.numbers is not None and agg.rank is not None and agg.dtype != "object" and algorithm == "auto" and order == "time"
        )

    def _skip_nan(self, array: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """The numbers with NaN among the nulls; for a count, of the column that it counts."""
        counted = array if self.aggregation.looks_at_items else self.items.counted(self.aggregation)
        if counted is None or counted.dtype.kind != "f" or not (missing := np.isnan(counted)).any():
            return array, mask
        array = np.where(missing, 0.0, array) if counted is array else array
        return array, missing.astype(np.uint8) if mask is None else mask | missing

    def _ask_at(self, at: Any, by: Any, at_by: Any) -> None:
        """Put the times that are asked for behind those of the items, as items that are null."""
        if self.times is None or self.size or self.order == "arrival":
            raise ValueError("at= asks for windows by time, whatever the order of arrival. Pass times= and period=, and no order.")
        if (by is None) != (at_by is None):
            raise ValueError("by= and at_by= go together: the keys of the items, and those of the times at=. Pass both, or neither.")
        self.given = sized(at, "a column of times")
        asked = times_.timestamps(self.given)
        for keys in key_columns(at_by):
            if len(keys) != len(asked):
                raise ValueError(f"there are {len(asked)} times at= but {len(keys)} at_by. Pass one per time.")
        if asked.dtype != self.times.dtype and len(asked):
            exact = asked.astype(self.times.dtype)
            if (exact != asked).any():
                raise ValueError(f"at= has {asked.dtype} times and times= {self.times.dtype}, which does not hold them. Use one type.")
            asked = exact
        self.codes = np.zeros(self.count + len(asked), np.int64) if by is None else numbered(by, at_by)
        mine = self.codes[: self.count]
        order = together(mine) if self.count else np.zeros(0, np.int64)
        check_order(self.times[order], starts_of(mine[order]))
        if self.numbers is not None:
            array, mask = self.numbers
            mask = np.zeros(self.count, np.uint8) if mask is None else mask
            self.numbers = np.append(array, np.zeros(len(asked), array.dtype)), np.append(mask, np.ones(len(asked), np.uint8))
        self.times = np.append(self.times, asked.astype(self.times.dtype))
        self.points = len(asked)
        self.count += len(asked)

    def counting(self, nulls: Array | None = None) -> Plan:
        """The same windows, of the number of items that are not null, or not in ``nulls``."""
        plan = copy.copy(self)
        plan.aggregation, plan.ranked, plan.algorithm, plan.native = count(), False, "auto", count().kernel("int64")
        if nulls is None:
            nulls = self.numbers[1] if self.numbers is not None else np.array([item is None for item in items_of(self)], np.uint8)
        plan.numbers = np.zeros(self.count, np.int64), nulls
        return plan

    def gives(self, *kinds: str) -> bool:
        """Whether a result is of one of these kinds; of callables only their code tells."""
        return self.aggregation.result is not None and self.aggregation.result.kind in kinds

    def never_empty(self) -> bool:
        assert self.numbers is not None
        return self.numbers[1] is None and (self.size > 0 or self.closed in NEVER_EMPTY)

    def dtype(self) -> Any:
        """The type of native results: from the aggregation, the input type and ``closed`` alone."""
        assert self.native is not None
        assert self.numbers is not None
        integers = self.integral()
        a_number = not self.aggregation.callables and self.aggregation.empty is not None  # of an empty window, too
        return np.int64 if integers and (a_number or self.never_empty()) else np.float64

    def integral(self) -> bool:
        """Whether a result, where there is one, is an integer."""
        if self.numbers is None:
            return False
        of_integers = self.numbers[0].dtype.kind == "i"
        if self.ranked:
            rank = self.aggregation.rank
            assert rank is not None
            return not rank.lists and (rank.integral or (rank.picks and of_integers))
        if self.native is None:
            return False
        return self.gives("integer", "time") or (of_integers and self.gives("sum", "value")) or _gives(self.native, "integer")

    def empty_result(self) -> Array:
        return np.empty(0, self.dtype() if self.native is not None else ranked_dtype(self) or object if self.ranked else object)


def _gives(native: Native, kind: Literal["integer", "truth"]) -> bool:
    """Whether a compiled function has one result, of this kind; its code is the last of the kernel's numbers."""
    return native.kernel == "compiled" and (native.params[-1] == 0 if kind == "integer" else native.params[-1] % 4 == 2)


def ranked_dtype(plan: Plan) -> Any:
    """The type of results by rank, None for lists."""
    assert plan.numbers is not None
    rank = plan.aggregation.rank
    assert rank is not None
    if rank.lists:
        return None
    if rank.integral:
        return np.int64
    return np.int64 if rank.picks and plan.numbers[0].dtype.kind == "i" and plan.never_empty() else np.float64


def check_order(keys: Array, starts: Array) -> None:
    late = np.flatnonzero(keys[1:] < keys[:-1]) + 1
    late = late[~np.isin(late, starts)] if len(starts) > 2 else late
    if late.size:
        at = int(late[0])
        raise OutOfOrderError(
            f"time {keys[at]} follows {keys[at - 1]}. order='time' needs times that do not decrease (within a key); "
            "sort the items, or use order='arrival'."
        )


def items_of(plan: Plan) -> list[Any]:
    if plan.numbers is not None and plan.aggregation.where is None:
        array, mask = plan.numbers
        return array.tolist() if mask is None else [None if null else x for x, null in zip(array.tolist(), mask, strict=True)]
    items = plan.items.objects(plan.aggregation)
    if plan.skipna:
        items = [_none_for_nan(item) for item in items]
    return items + [None] * (plan.points or 0)


def _none_for_nan(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _none_for_nan(x) for name, x in item.items()}
    return None if isinstance(item, float) and item != item else item


def with_none(integers: Array, gone: Array) -> Array:
    """Python's integers, None where there is none."""
    out = integers.astype(object)
    out[gone != 0] = None
    return out
