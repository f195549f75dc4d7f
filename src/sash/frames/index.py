"""An index over a table that is there: a tile store of its rows, brought up to date as the table grows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sash.agg import Aggregation
from sash.errors import DefinitionError, missing_extra
from sash.frames.api import tiles
from sash.time import timestamp_text

if TYPE_CHECKING:
    from sash.wheel import TileStore

__all__ = ["open_table", "update_index"]


def update_index(store: TileStore, table: ds.Dataset, at: str, until: int | None = None, name: str = "") -> int:
    """Take in the rows of a table since the index was last brought up to date; how many they were.

    A table grows at the end of its time. Where rows before the index's watermark have come or gone since, it is refused: the index
    would answer as if they had not.
    """
    grain, done = store.grain, store.watermark
    times = pc.field(at)
    kind = table.schema.field(at).type
    if done is not None:
        noted = store.index_of or {}
        seen, held = noted.get("rows"), table.count_rows(filter=times < _stamp(done, kind))
        if noted.get("time") != at or seen != held:
            raise DefinitionError(
                f"{name or 'the table'} has {held:,} rows before {timestamp_text(done)} by {at}, and {store.path} was made of "
                f"{seen or 0:,} by {noted.get('time')}: it is no index of this table any more. Delete {store.path} and run this again."
            )
    if until is None:
        newest = _last(table, at)
        until = None if newest is None else newest // grain * grain
    if until is None or (done is not None and until <= done):
        return 0
    until -= until % grain
    wanted = times < _stamp(until, kind)
    if done is not None:
        wanted &= times >= _stamp(done, kind)
    columns = list(dict.fromkeys([at, *store.key, *(name for a in store.aggs.values() for name in _columns(a))]))
    rows = table.to_table(columns=columns, filter=wanted)
    total = rows.num_rows + ((store.index_of or {}).get("rows", 0) if done is not None else 0)
    made = tiles(rows, time=at, grain=f"{grain}us", aggs=store.aggs, key=list(store.key) or None)
    store.write_history(made, until=until, of={"name": str(name), "time": at, "rows": total})
    return int(rows.num_rows)


def open_table(path: str) -> ds.Dataset:
    """Open a table: Parquet by Arrow, Delta and Iceberg by their packages."""
    local = Path(path)
    if (local / "_delta_log").is_dir():
        try:
            from deltalake import DeltaTable
        except ImportError:
            raise missing_extra("deltalake", "lake") from None
        return DeltaTable(path).to_pyarrow_dataset()
    if (local / "metadata").is_dir() and (found := sorted((local / "metadata").glob("*.metadata.json"))):
        try:
            from pyiceberg.table import StaticTable
        except ImportError:
            raise missing_extra("pyiceberg", "lake") from None
        return ds.dataset(StaticTable.from_metadata(str(found[-1])).scan().to_arrow())
    try:
        return ds.dataset(path, format="parquet", partitioning="hive")
    except (OSError, pa.ArrowException, TypeError) as error:
        raise DefinitionError(
            f"{path} can't be read as a table: {error}. Give a Parquet file or folder, a Delta or an Iceberg table."
        ) from None


def _columns(a: Aggregation) -> list[str]:
    """The columns that an aggregation reads."""
    if a.parts:
        return [name for _, part in a.parts for name in _columns(part)]
    of = dict(a.params).get("of")
    return [name for name in (a.column, a.where, of) if isinstance(name, str)]


def _last(table: ds.Dataset, at: str) -> int | None:
    """The last time in a table, in microseconds."""
    newest = None
    for batch in table.scanner(columns=[at]).to_batches():
        found = pc.max(
            batch.column(0).cast(pa.timestamp("us", getattr(batch.column(0).type, "tz", None)), safe=False).cast(pa.int64())
        ).as_py()
        if found is not None and (newest is None or found > newest):
            newest = found
    return newest


def _stamp(time: int, kind: pa.DataType) -> pa.Scalar:
    if not pa.types.is_timestamp(kind):
        raise DefinitionError(f"the time column is {kind}, not a timestamp. Cast it in the table, or index another column.")
    return pa.scalar(time, pa.int64()).cast(pa.timestamp("us", kind.tz)).cast(kind)
