"""Polars lazy frames: the definition is checked at once, on the types; the rows are read when the result is collected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["lazily"]


def lazily(lazy: Any, run: Callable[[Any], Any]) -> Any:
    """A lazy frame that runs a function of an eager one when it is collected; the types of its result are those for no rows."""
    import polars as pl

    schema = run(pl.DataFrame(schema=lazy.collect_schema())).schema
    return lazy.map_batches(run, predicate_pushdown=False, projection_pushdown=False, slice_pushdown=False, schema=schema)
