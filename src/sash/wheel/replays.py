"""Merges that may come twice: what a source sent under a number counts once."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_new", "remember", "taken_over"]


def is_new(merged: dict[str, int], source: Any, sequence: Any) -> bool:
    """Say whether a delta has not been merged before; without a source, every one is new.

    ``merged`` holds the last number of every source, so memory grows with the sources and not with what they send. A source sends its
    deltas in order: one that is not above the last number was there before.

    >>> is_new({"a": 3}, "a", 3), is_new({"a": 3}, "a", 4), is_new({"a": 3}, "b", 0)
    (False, True, True)
    """
    if source is None and sequence is None:
        return True
    if not isinstance(source, str):
        raise TypeError(f"source={source!r} does not name a source. Use text, and number its deltas with sequence=.")
    if isinstance(sequence, bool) or not isinstance(sequence, int | np.integer):
        raise TypeError(
            f"sequence={sequence!r} is not a number. Number the deltas of source={source!r} in the order in which they are made."
        )
    return source not in merged or int(sequence) > merged[source]


def remember(merged: dict[str, int], source: str | None, sequence: int | None, others: dict[str, int]) -> None:
    """Note a delta that was merged, and what had been merged into it."""
    for name, last in others.items():
        merged[name] = max(last, merged.get(name, last))
    if source is not None and sequence is not None:
        merged[source] = int(sequence)


def taken_over(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """Take the numbers out of stored options, where there are any."""
    merged = options.get("merged", {})
    if not isinstance(merged, dict) or not all(isinstance(s, str) and isinstance(n, int) for s, n in merged.items()):
        raise ValueError("these bytes are damaged: what was merged is no list of sources and numbers.")
    return {name: value for name, value in options.items() if name != "merged"}, dict(merged)
