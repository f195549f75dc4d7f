"""Bytes, pickles and copies of windows, all from one state: the bodies of methods that the core declares."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from sash import codec
from sash._core import Window, register_hooks
from sash.agg.base import Aggregation

__all__ = ["from_bytes", "to_bytes"]

W = TypeVar("W", bound=Window)


def to_bytes(window: Window) -> bytes:
    """Store the window as bytes, in the codec's envelope with the fingerprint of its aggregation.

    >>> from sash import agg
    >>> from sash.swag import DabaLite
    >>> w = DabaLite(agg.sum()); w.bulk_insert([1, 2, 3])
    >>> DabaLite.from_bytes(w.to_bytes(), agg.sum()).query()
    6
    """
    payload = codec.encode((window._options, window._state()))
    return codec.seal(f"window {type(window).__name__}", window.aggregation.fingerprint(), payload)


def from_bytes(cls: type[W], data: bytes, aggregation: Aggregation) -> W:
    """Read a window that ``to_bytes`` stored; ValueError for damaged bytes or another definition's."""
    payload = codec.unseal(f"window {cls.__name__}", aggregation.fingerprint(), data)
    with codec.refusing():
        options, state = codec.decode(payload)
        if cls.__name__ == "Reordered":  # a delay of 0 was once left out
            options = {"max_delay": 0, **options}
        window = cls(aggregation, **options)
        window._restore(state)
    return window


def _reduce(window: Window) -> tuple[Any, ...]:
    return (_rebuild, (type(window), window.aggregation, window._options, window._state()))


def _rebuild(cls: type[W], aggregation: Aggregation, options: dict[str, Any], state: tuple[Any, ...]) -> W:
    window = cls(aggregation, **options)
    window._restore(state)
    return window


def _copy(window: W) -> W:
    return _rebuild(type(window), window.aggregation, window._options, window._state())


def _deepcopy(window: W, memo: dict[int, Any]) -> W:
    return _rebuild(type(window), window.aggregation, window._options, copy.deepcopy(window._state(), memo))


register_hooks(to_bytes=to_bytes, from_bytes=from_bytes, reduce=_reduce, copy=_copy, deepcopy=_deepcopy)
