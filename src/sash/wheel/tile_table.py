"""Tiles as a table: what the slices of a store say, as values, by any step of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sash.agg import Aggregation
from sash.time import duration, duration_text
from sash.wheel.errors import Misaligned, TileStoreError, time_text
from sash.wheel.keyed_wheels import KeyedWheels
from sash.wheel.tile_columns import item_type, partials_of
from sash.wheel.tile_segments import END, START, Array, Slices, key_codes, keys_of, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Steps", "lowered_type", "table_of"]


class Steps:
    """Time cut into steps: of one length, from the epoch on, or of a calendar."""

    def __init__(self, by: Any, grain: int, tz: str | None) -> None:
        self.grain, self.tz, self.length = grain, tz, grain
        if tz is not None:
            from sash.wheel.calendar import calendar_step, zone

            self._step, _ = calendar_step(by), zone(tz)
        elif by is not None:
            self.length = duration(by)
            if self.length < 1 or self.length % grain:
                raise Misaligned(f"by={by!r} is not a multiple of the store's grain, {duration_text(grain)}.")

    def edges(self, start: int, end: int) -> Array:
        """Where steps begin: from the last one at or before start to the first at or after end."""
        if self.tz is None:
            first = start // self.length
            return np.arange(first, max(-(-end // self.length), first) + 1, dtype=np.int64) * self.length
        from sash.wheel.calendar import midnights

        found = np.array(midnights(start, end, self._step, self.tz), np.int64)
        off = found[found % self.grain != 0]
        if len(off):
            raise Misaligned(
                f"midnight in {self.tz} is at {time_text(int(off[0]), 1)}, which is not on the store's grain of "
                f"{duration_text(self.grain)}. Use a store of a finer grain."
            )
        return found


def table_of(
    found: Sequence[Slices], schema: pa.Schema, keys: Sequence[str], aggs: dict[str, Aggregation], steps: Steps, first: int, last: int
) -> pa.Table:
    """One row per key and step that holds a slice, by key, then time. Cost: one combine per slice, all of them in memory."""
    import pyarrow as pa

    tables = [pa.table({str(i): column for i, column in enumerate(slices.keys)}) for slices in found]
    held = pa.concat_tables(tables).rename_columns(list(keys)) if keys and tables else None
    codes, radices = key_codes(held, keys) if held is not None else (np.zeros(len(found), np.int64), [])
    offsets = np.r_[0, np.cumsum([slices.held if keys else 1 for slices in found])]
    times = np.concatenate([np.zeros(0, np.int64), *(slices.times for slices in found)])
    whose = np.concatenate([np.zeros(0, np.int64), *(codes[o + slices.codes] for o, slices in zip(offsets, found, strict=False))])
    edges = steps.edges(first, last) if len(times) else np.zeros(1, np.int64)
    place = np.searchsorted(edges, times, "right") - 1
    groups, of_group = np.unique(whose * len(edges) + place, return_inverse=True)
    at = edges[groups % len(edges)]
    until = np.r_[edges[1:], last][groups % len(edges)]
    stamps = schema.field(START).type
    columns: dict[str, Any] = keys_of(groups // len(edges), keys, radices) if held is not None else {}
    columns = {name: columns.get(name, pa.array([], schema.field(name).type)) for name in keys}
    columns[START] = to_arrow(np.maximum(at, first)).cast(stamps)
    columns[END] = to_arrow(np.minimum(until, last)).cast(stamps)
    for name, a in aggs.items():
        values = _combined(a, [slices.columns[name] for slices in found], of_group, len(groups))
        columns[name] = as_column(values, schema.field(name).type)
    return pa.table(columns)


def _combined(a: Aggregation, columns: Iterable[Any], groups: Array, count: int) -> list[Any]:
    """The value of each group of slices: keys of wheels that have one slot."""
    wheels, at = None, 0
    for column in columns:
        if wheels is None:
            wheels = KeyedWheels(a, unit="us", grain=1, levels=(), dtype=item_type(str(column.type)))
        if len(column):
            here = groups[at : at + len(column)].astype(np.int64)
            wheels.insert_slices(here, np.zeros(len(column), np.int64), partials_of(a, column))
            at += len(column)
    if wheels is None or not count:
        return []
    wheels.advance_to(1)
    keys, values = wheels.query_each(0, 1)
    out: list[Any] = [None] * count
    for key, value in zip(keys, values, strict=True):
        out[key] = value
    return out


def as_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column of a type."""
    import pyarrow as pa
    import pyarrow.types as t

    plain = [_plain(value) for value in values]
    if t.is_timestamp(kind):
        return pa.array(plain, pa.int64()).cast(kind)
    if t.is_date32(kind):
        return pa.array(plain, pa.int32()).cast(kind)
    if t.is_boolean(kind):
        return pa.array([None if value is None else bool(value) for value in plain], kind)
    return pa.array(plain, kind)


def _plain(value: Any) -> Any:
    """A value without named tuples."""
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return value


def lowered_type(a: Aggregation, stored: pa.DataType) -> pa.DataType | None:
    """The type of an aggregation's values, of the type that its partials are stored as; None where only a value tells."""
    import pyarrow as pa

    if a.parts:
        parts = [(name, lowered_type(part, stored.field(name).type)) for name, part in a.parts]
        return None if any(kind is None for _, kind in parts) else pa.struct(parts)
    fixed = {"integer": pa.int64(), "real": pa.float64(), "truth": pa.bool_(), "text": pa.string(), "time": pa.timestamp("us", "UTC")}
    if a.result is None or a.result.kind in fixed:
        return None if a.result is None else fixed[a.result.kind]
    return stored if a.tile is not None and a.result.kind in ("value", "sum", "fields") else None


def shown_type(a: Aggregation, column: Any) -> pa.DataType:
    """The type that the value of some stored partials shows; text where it shows none."""
    import pyarrow as pa

    from sash.engine.tiles import tile_partial

    shown = pa.array([_plain(a.lower(tile_partial(a, value))) for value in column.slice(0, 100).to_pylist()]).type
    return pa.string() if pa.types.is_null(shown) else shown


def check_names(store: Any, names: Iterable[str] | None) -> list[str]:
    """The aggregations that are asked for: all of them where none are named."""
    if isinstance(names, str):
        raise TypeError(f"aggs={names!r} is one name. Pass a list: aggs=[{names!r}].")
    wanted = list(store.aggs) if names is None else list(names)
    for name in wanted:
        if name not in store.aggs:
            raise TileStoreError(f"{store.path} has no aggregation {name!r}. It has {', '.join(store.aggs)}.")
    return wanted
