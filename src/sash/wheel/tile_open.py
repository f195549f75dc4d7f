"""Slices of a stream that are not final yet: kept beside the tiles from batch to batch.

tiles(..., emit="update") tells every slice that rows came for, as it stands, and says nothing when the watermark closes one. So what
a batch closes is in what was open before it, or in what it tells; the rest stays open.

    open before | told by the batch, which counts where both have a slice
    ------------+--------------------------------------------------------
       end <= watermark: final, into a segment | end > watermark: open, in the place of what was open before
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sash.wheel.errors import TileStoreError
from sash.wheel.tile_store import TileStore

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["split", "write_open"]


def write_open(store: TileStore, told: pa.Table, *, query: str, batch: int, watermark: int) -> bool:
    """Write a batch: what it closes as tiles, what stays open beside them."""
    store.refresh()
    before = store.open_slices()
    if before is None and store.watermark is not None and store.batch >= 0 and not store.open_known:
        raise TileStoreError(
            f"{store.path} was written without what is open, up to batch {store.batch}: slices that were open then would be lost. "
            "Start provisional tiles with a new store and a new checkpoint."
        )
    final, rest = split(told, before, (*store.key, "slice_start"), watermark)
    return store.write(final, query=query, batch=batch, watermark=watermark, open=rest)


def split(told: pa.Table, before: pa.Table | None, by: tuple[str, ...], watermark: int) -> tuple[pa.Table, pa.Table]:
    """The slices that are final at a watermark, and those that are not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if before is not None:
        told = pa.concat_tables([told, before.select(told.column_names).cast(told.schema)])
        told = told.take(pa.array(_first_of_each(told, by)))
    closed = pc.less_equal(told["slice_end"].cast(pa.timestamp("us", told["slice_end"].type.tz)).cast(pa.int64()), watermark)
    return told.filter(closed), told.filter(pc.invert(closed))


def _first_of_each(table: pa.Table, by: tuple[str, ...]) -> np.ndarray[Any, Any]:
    """The first row of each slice. Two nulls are one key, and so are two NaNs."""
    if not table.num_rows:
        return np.zeros(0, np.int64)
    codes = [table[name].combine_chunks().dictionary_encode("encode") for name in by]
    numbers = np.stack([np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in _chunks(code)]) for code in codes])
    return np.sort(np.unique(numbers, axis=1, return_index=True)[1])


def _chunks(column: Any) -> list[Any]:
    return list(column.chunks) if hasattr(column, "chunks") else [column]
