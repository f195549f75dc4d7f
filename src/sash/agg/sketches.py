"""Estimates in bounded space, by Apache DataSketches: approx_distinct approx_quantile frequent_items count_min.

A partial is plain data that is never changed: up to 48 items as a tuple, then the bytes of a sketch. The package is
imported when the first sketch is made.
"""

from __future__ import annotations

import functools
import importlib.util
import struct
from collections.abc import Callable
from typing import Any, Final

from sash import codec
from sash.agg.arguments import Where, column_and, plain
from sash.agg.base import INT64_MAX, INT64_MIN, Aggregation, Traits
from sash.agg.card import AN_ITEM, SKETCH, card
from sash.agg.forms import CODEC, Blob, Result
from sash.agg.kll import Kll
from sash.agg.ranks import _fraction
from sash.errors import missing_extra

__all__ = ["approx_distinct", "approx_quantile", "count_min", "frequent_items"]

Partial = tuple[Any, ...] | bytes
_SMALL: Final = 48  # below it a tuple is smaller than any sketch, and joined 50 times as fast


@functools.cache
def _package() -> Any:
    import datasketches

    return datasketches


def _hashable(x: Any) -> int | float | str:
    """Give an item as what a sketch hashes: 1 and 1.0 are one item; what is neither number nor text by its encoding."""
    x = plain(x)
    if isinstance(x, str):
        return x
    if isinstance(x, float):
        return int(x) if x.is_integer() and INT64_MIN <= x <= INT64_MAX else x
    if isinstance(x, int) and INT64_MIN <= x <= INT64_MAX:
        return x
    try:
        return "\0" + codec.encode(x).decode("latin-1")
    except TypeError:
        raise TypeError(f"{x!r} can't be sketched. Use numbers, text, dates, bytes or tuples of them.") from None


def _text(x: Any) -> str:
    """Give an item as text that it can be made of again."""
    x = plain(x)
    try:
        return codec.encode(x).decode("latin-1")
    except TypeError:
        raise TypeError(f"{x!r} can't be sketched. Use numbers, text, dates, bytes or tuples of them.") from None


def _number(x: Any) -> float:
    x = plain(x)
    if not isinstance(x, int | float):
        raise TypeError(f"{x!r} is not a number. approx_quantile takes numbers; quantile takes anything that has an order.")
    return float(x)


class _Sketch:
    """How a kind of sketch is made, filled, joined and stored."""

    def __init__(
        self, empty: Callable[[], Any], load: Callable[[bytes], Any], dump: Callable[[Any], bytes], join: Callable[[Any, Any], Any]
    ) -> None:
        self.empty, self.load, self.dump, self.join = empty, load, dump, join

    def of(self, p: Partial) -> Any:
        """Make a sketch of a partial."""
        if isinstance(p, bytes):
            return self.load(p)
        sketch = self.empty()
        for x in p:
            sketch.update(x)
        return sketch

    def combine(self, a: Partial, b: Partial) -> Partial:
        if not a or not b:
            return a or b
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) + len(b) <= _SMALL:
            return a + b
        if isinstance(a, bytes) and isinstance(b, bytes):
            return self.dump(self.join(self.of(a), self.of(b)))
        sketch, rest = (self.of(b), a) if isinstance(b, bytes) else (self.of(a), b)
        for x in rest:
            sketch.update(x)
        return self.dump(sketch)

    def store(self, p: Partial) -> bytes:
        """Write a partial as the library itself writes a sketch."""
        return p if isinstance(p, bytes) else self.dump(self.of(p))

    def blob(self) -> Blob:
        """Give the bytes of a tile for sketches that Spark's functions store the same way: hll_sketch_agg, kll_sketch_agg_double."""
        return Blob(self.store, bytes)


def _aggregation(
    name: str,
    sketch: _Sketch,
    lift: Callable[[Any], Any],
    lower: Callable[..., Any],
    column: str | None,
    where: Where,
    parametric: bool,
    params: tuple[tuple[str, Any], ...],
    result: Result | None = None,
    blob: Blob = CODEC,
) -> Aggregation:
    if importlib.util.find_spec("datasketches") is None:  # said here, not when the sketch is first needed
        raise missing_extra("datasketches", "sketches")
    traits = Traits(commutative=True, size_preserving=False, parametric=parametric, exact=False)
    return Aggregation(
        name,
        (),
        lambda x, t: (lift(x),),
        sketch.combine,
        lower,
        None,
        traits,
        column,
        where,
        "object",
        params=params,
        result=result,
        blob=blob,
    )


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name}={value!r} is out of range. Use a whole number from {least} to {most}.")
    return value


def _merged(a: Any, b: Any) -> Any:
    a.merge(b)
    return a


@functools.cache
def _hll(lg_k: int) -> _Sketch:
    def join(a: Any, b: Any) -> Any:
        union = _package().hll_union(lg_k)
        union.update(a)
        union.update(b)
        return union.get_result(_package().tgt_hll_type.HLL_8)

    return _Sketch(
        lambda: _package().hll_sketch(lg_k, _package().tgt_hll_type.HLL_8),
        lambda data: _package().hll_sketch.deserialize(data),
        lambda s: bytes(s.serialize_updatable()),
        join,
    )


@functools.cache
def _kll(k: int) -> _Sketch:
    return _Sketch(lambda: Kll(k), Kll.deserialize, Kll.serialize, _merged)


@card(SKETCH, "48 items, then up to 4 KB", cost="O(size)", error="standard error 1.6%", nan="is one of the items")
def approx_distinct(column: str | None = None, *, lg_k: int = 12, where: Where = None) -> Aggregation:
    """Estimate how many different items there are, with HyperLogLog.

    Standard error 1.04 / sqrt(2^lg_k): 1.6% by default, in 4 KB.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.approx_distinct()); w.bulk_insert(["a", "b", "a"]); w.query()
    2
    """
    lg_k = _whole(lg_k, "lg_k", 7, 21)

    sketch = _hll(lg_k)

    def lower(p: Partial) -> int:
        return round(sketch.of(p).get_estimate()) if p else 0

    params = (("lg_k", lg_k),) if lg_k != 12 else ()
    return _aggregation("approx_distinct", sketch, _hashable, lower, column, where, False, params, Result("integer"), sketch.blob())


@card(
    SKETCH,
    "48 items, then about 5 KB",
    example="0.9",
    cost="O(size)",
    error="rank within 1.33%, 99% of the time",
    nan="is left out",
)
def approx_quantile(column: Any = None, q: Any = None, *, k: int = 200, where: Where = None) -> Aggregation:
    """Estimate the quantile q of numbers, with a KLL sketch; ``arg`` asks for another q. NaN is left out.

    The rank of the answer is within 1.33% of q, with 99% confidence, at the default k of 200. The same items combined in the same way
    give the same answer every time; combined in another way, perhaps another one within that error.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.approx_quantile(0.5)); w.bulk_insert([5, 1, 3]); w.query()
    3.0
    """
    column, q = column_and(column, q)
    q = _fraction(q, "q", "approx_quantile")
    k = _whole(k, "k", 8, 65535)

    sketch = _kll(k)

    def lower(p: Partial, arg: Any = None) -> float | None:
        wanted = q if arg is None else _fraction(arg, "arg", "approx_quantile")
        made = _package().kll_doubles_sketch.deserialize(sketch.store(p))
        return None if made.is_empty() else float(made.get_quantile(wanted))

    params = (("q", q), ("k", k)) if k != 200 else (("q", q),)
    return _aggregation("approx_quantile", sketch, _number, lower, column, where, True, params, Result("real"), sketch.blob())


@card(SKETCH, "48 items, then up to 768 counters", cost="O(size)", error="counts within 0.34% of all items", nan=AN_ITEM)
def frequent_items(column: str | None = None, *, lg_max_k: int = 10, where: Where = None) -> Aggregation:
    """List the most frequent items and their estimated counts, most frequent first; ``arg`` asks for that many only.

    No frequent item is missed, and no count is off by more than 3.5 / 2^lg_max_k of all items: 0.34% by default.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.frequent_items()); w.bulk_insert(["a", "b", "a"]); w.query()
    [('a', 2), ('b', 1)]
    """
    lg_max_k = _whole(lg_max_k, "lg_max_k", 3, 24)

    sketch = _Sketch(
        lambda: _package().frequent_strings_sketch(lg_max_k),
        lambda data: _package().frequent_strings_sketch.deserialize(data),
        lambda s: bytes(s.serialize()),
        _merged,
    )

    def lower(p: Partial, arg: Any = None) -> list[tuple[Any, int]]:
        if not p:
            return []
        rows = sketch.of(p).get_frequent_items(_package().frequent_items_error_type.NO_FALSE_NEGATIVES)
        ranked = sorted(((int(row[1]), row[0]) for row in rows), key=lambda row: (-row[0], row[1]))
        most = len(ranked) if arg is None else _whole(arg, "arg", 1, INT64_MAX)
        return [(codec.decode(text.encode("latin-1")), count) for count, text in ranked[:most]]

    params = (("lg_max_k", lg_max_k),) if lg_max_k != 10 else ()
    return _aggregation("frequent_items", sketch, _text, lower, column, where, True, params)


@card(SKETCH, "48 items, then 11 KB", cost="O(size)", error="at most 1% of all items too high, 99% of the time", nan=AN_ITEM)
def count_min(column: str | None = None, *, error: float = 0.01, confidence: float = 0.99, where: Where = None) -> Aggregation:
    """Estimate how often an item occurred, ``query(arg=item)``; without arg, how many items there are.

    Never too low; too high by more than ``error`` of all items with a chance of 1 - ``confidence`` only.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.count_min()); w.bulk_insert(["a", "b", "a"])
    >>> w.query(arg="a"), w.query(arg="z"), w.query()
    (2, 0, 3)
    """
    for name, value in (("error", error), ("confidence", confidence)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
            raise ValueError(f"{name}={value!r} is not a fraction. Use a number between 0 and 1.")

    def empty() -> Any:
        made = _package().count_min_sketch
        return made(made.suggest_num_hashes(confidence), made.suggest_num_buckets(error))

    sketch = _Sketch(empty, lambda data: _package().count_min_sketch.deserialize(data), lambda s: bytes(s.serialize()), _merged)

    def lift(x: Any) -> int | str:
        key = _hashable(x)
        return struct.unpack("<q", struct.pack("<d", key))[0] if isinstance(key, float) else key

    def lower(p: Partial, arg: Any = None) -> int | None:
        if arg is not None:
            return int(sketch.of(p).get_estimate(lift(arg)))
        return int(sketch.of(p).total_weight) if p else None

    params = tuple((k, v) for k, v, usual in (("error", error, 0.01), ("confidence", confidence, 0.99)) if v != usual)
    return _aggregation("count_min", sketch, lift, lower, column, where, True, params)
