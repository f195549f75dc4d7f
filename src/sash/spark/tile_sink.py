"""Tiles from Spark into a tile store: the executors that hold the slices put them, the driver puts the manifest.

Only the names and sizes of files reach the driver. A batch is written once, however often Spark runs it: what a task that failed
left behind is deleted by a later change of the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlparse

from sash.errors import DefinitionError
from sash.time import timestamp
from sash.wheel import TileStore
from sash.wheel.tile_changes import Part, Shape
from sash.wheel.tile_open import write_open

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


_FOREVER: Final = 2**63 - 1
TOLD: Final = "sash.emit"  # in the metadata of slice_end: how the tiles are told


def tile_sink(store: TileStore, checkpoint: str, retention: Any = None, *, provisional: bool = False) -> Callable[[DataFrame, int], None]:
    """Give the function for foreachBatch that writes the result of tiles() to a store.

    `checkpoint` is the query's: it holds the query's id and, before a batch runs, the watermark that the batch brings. Every
    executor must reach the store's path. With `retention`, slices that long before the watermark are dropped. With `provisional`,
    for tiles(..., emit="update") in output mode update, slices that are not final yet are published beside the tiles; then all
    slices pass through the driver.

    >>> minutes = tiles(stream, time="at", key="zone", grain="1m", watermark="10m", aggs=aggs)           # doctest: +SKIP
    >>> writer = minutes.writeStream.foreachBatch(tile_sink(store, "cp"))                              # doctest: +SKIP
    >>> writer.option("checkpointLocation", "cp").trigger(availableNow=True).start().awaitTermination()  # doctest: +SKIP
    """

    def write(df: DataFrame, batch: int) -> None:
        spark = df.sparkSession
        query = json.loads(_text(spark, f"{checkpoint}/metadata"))["id"]
        # The offset log: a version, then what Spark noted of the batch, then an offset per source.
        noted = json.loads(_text(spark, f"{checkpoint}/offsets/{batch}").splitlines()[1])
        upto = int(noted["batchWatermarkMs"]) * 1000
        _check_told(df, provisional)
        if not store.awaits(query, batch):  # the batch is there; Spark still has to run it, for its state to move on
            df.write.format("noop").mode("overwrite").save()
        elif provisional:
            write_open(store, df.toArrow(), query=query, batch=batch, watermark=upto)
        else:
            store.commit(put_slices(df, store, store.shape(), batch, upto), query=query, batch=batch, watermark=upto)
        if retention is not None:
            store.expire(retention, exactly=False)

    return write


def _check_told(df: DataFrame, provisional: bool) -> None:
    """Refuse tiles that are told in another way than the sink needs."""
    told = df.schema["slice_end"].metadata.get(TOLD) if "slice_end" in df.columns else None
    if provisional and told != "update":
        raise DefinitionError(
            'provisional=True needs tiles as they stand. Define them so: tiles(..., emit="update"), output mode "update".'
        )
    if not provisional and told == "update":
        raise DefinitionError('tiles(..., emit="update") tells slices that are not final. Pass provisional=True, or leave emit out.')


def write_history(store: TileStore, df: DataFrame, *, until: Any) -> bool:
    """Add the slices that tiles() made of a batch DataFrame to a store, as store.write_history() does, by the executors.

    >>> past = tiles(df, time="at", key="zone", grain="1m", aggs=aggs)              # doctest: +SKIP
    >>> write_history(store, past, until="2024-01-02")                              # doctest: +SKIP
    True
    """
    upto = timestamp(until)
    store.refresh()
    if store.watermark is not None and upto <= store.watermark:
        return False
    return store.write_history(put_slices(df, store, store.shape(), 0, upto), until=upto)


def write_stretch(store: TileStore, df: DataFrame, *, start: int | None, end: int | None) -> int:
    """Put the slices that tiles() made of a batch DataFrame in the place of those of [start, end), as store.replace(), by the executors."""
    store.refresh()
    store.check_stretch(start, end)
    parts = put_slices(df, store, store.shape().anew(), 0, _FOREVER if end is None else end)
    return store.replace(parts, start=start, end=end)


def put_slices(df: DataFrame, store: TileStore, shape: Shape, batch: int, upto: int) -> list[Part]:
    """Let each task put its slices; one key's are in one task."""
    path = str(store.path)
    rows = df.mapInArrow(_putter(path, shape, batch, upto), "part string").collect()
    return [Part.read(row["part"]) for row in rows]


def _putter(path: str, shape: Shape, batch: int, upto: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def put(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from sash.wheel.tile_files import files_of

        held = [rows for rows in batches if rows.num_rows]
        if held:
            part = shape.write(files_of(path), pa.Table.from_batches(held), batch, upto)
            yield pa.RecordBatch.from_pydict({"part": [part.text()]})

    return put


def _text(spark: SparkSession, path: str) -> str:
    if (local := local_path(path)) is not None:
        return local.read_text()
    return "\n".join(row["value"] for row in spark.read.text(path).collect())


def local_path(path: str) -> Path | None:
    """The path on this machine, None where it has a scheme of another file system."""
    parsed = urlparse(path)
    if parsed.scheme not in ("", "file"):
        return None
    if parsed.netloc:
        raise DefinitionError(f"{path!r} names a host. Write file:///path, with three slashes, or a plain path.")
    return Path(unquote(parsed.path) if parsed.scheme else path)
