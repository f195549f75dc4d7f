"""Aggregations made of others, and of callables: struct and define."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from typing import Any

from sash.agg.base import Aggregation, ItemType, Traits
from sash.agg.compiled import compiler

__all__ = ["define", "struct"]


def struct(**parts: Aggregation) -> Aggregation:
    """Compute several aggregations at once; lowers to a dict.

    Each part takes its own column of a record; parts without a column take the whole item.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.struct(total=agg.sum("fare"), longest=agg.max("km")))
    >>> w.insert({"fare": 9, "km": 3.5}); w.insert({"fare": 5, "km": None}); w.query()
    {'total': 14, 'longest': 3.5}
    """
    if not parts:
        raise ValueError("struct() has no parts. Name at least one, e.g. struct(total=sum(), high=max()).")
    for name, part in parts.items():
        if not isinstance(part, Aggregation):
            raise TypeError(f"{name}={part!r} is not an aggregation. Use one of sash.agg, e.g. {name}=agg.sum().")
    named, inner = tuple(parts), tuple(parts.values())

    def lift(x: Any, t: Any) -> tuple[Any, ...]:
        return tuple(part.lift(x, t) for part in inner)

    def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(part.combine_function(x, y) for part, x, y in zip(inner, a, b, strict=True))

    def lower(p: tuple[Any, ...]) -> dict[str, Any]:
        return {name: part.lower_function(x) for name, part, x in zip(named, inner, p, strict=True)}

    def inverse(whole: tuple[Any, ...], oldest: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(part.inverse(x, y) for part, x, y in zip(inner, whole, oldest, strict=True))

    def every(trait: str) -> bool:
        return builtins.all(getattr(part, trait) for part in inner)

    traits = Traits(
        commutative=every("commutative"), associative=every("associative"), size_preserving=every("size_preserving"), exact=every("exact")
    )
    return Aggregation(
        "struct",
        tuple(part.zero for part in inner),
        lift,
        combine,
        lower,
        inverse if every("invertible") else None,
        traits,
        parts=tuple(parts.items()),
        exact_inverse=every("exact_inverse"),
        counts=every("counts"),
        reads_time=builtins.any(part.reads_time for part in inner),
    )


def _takes_time(lift: Callable[..., Any]) -> bool:
    code = getattr(lift, "__code__", None)
    defaults = getattr(lift, "__defaults__", None) or ()
    bound = 1 if inspect.ismethod(lift) else 0
    return code is not None and code.co_argcount - len(defaults) - bound == 2


def define(
    *,
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[..., Any] | None = None,
    identity: Any,
    inverse: Callable[[Any, Any], Any] | None = None,
    commutative: bool = False,
    associative: bool = True,
    selective: bool = False,
    name: str | None = None,
    dtype: ItemType | None = None,
    compiled: bool = False,
    column: str | None = None,
    where: Callable[[Any], bool] | str | None = None,
) -> Aggregation:
    """Make an aggregation of callables; ``identity`` is a value and is never changed.

    ``lift`` takes the item, or the item and its time. ``compiled=True`` has numba turn the callables into machine code that
    windows and slides of numbers run without Python; the identity is then a number or a flat tuple of numbers, and a
    ``lift`` that takes the time stays in Python. Integers wrap at 64 bits there, and x / 0 is inf or NaN.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> longest = agg.define(lift=lambda x: x, combine=lambda a, b: b if len(b) > len(a) else a, identity="", name="longest")
    >>> w = DabaLite(longest); w.bulk_insert(["ab", "abcd", "c"]); w.query()
    'abcd'
    """
    for argument, value in (("lift", lift), ("combine", combine), ("lower", lower), ("inverse", inverse)):
        if not callable(value) and not (value is None and argument in ("lower", "inverse")):
            raise TypeError(f"{argument}={value!r} is not callable. Pass a function.")
    run_time = compiler(lift, combine, lower, inverse, identity) if compiled and not _takes_time(lift) else None
    source = {
        "lift": lift,
        "combine": combine,
        "lower": lower,
        "identity": identity,
        "inverse": inverse,
        "commutative": commutative,
        "associative": associative,
        "selective": selective,
        "name": name,
        "dtype": dtype,
        "compiled": compiled,
        "column": column,
        "where": where,
    }
    return Aggregation(
        name or str(getattr(combine, "__name__", "define")),
        identity,
        lift if _takes_time(lift) else (lambda x, t: lift(x)),
        combine,
        lower or (lambda p: p),
        inverse,
        Traits(commutative=commutative, associative=associative, selective=selective),
        column,
        where,
        dtype if compiled else "object",
        run_time=run_time,
        callables=True,
        reads_time=_takes_time(lift),
        named=name is not None,
        source=source,
    )
