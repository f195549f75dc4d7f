"""Tiles from a stream into a tile store: a segment per micro-batch, written once however often Spark runs the batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from sash.errors import DefinitionError
from sash.wheel import TileStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def tile_sink(store: TileStore, checkpoint: str, retention: Any = None) -> Callable[[DataFrame, int], None]:
    """Give the function for foreachBatch that writes the result of tiles() to a store.

    `checkpoint` is the query's: it holds the query's id and, before a batch runs, the watermark that the batch brings. The slices
    of a micro-batch pass through the driver. With `retention`, slices that long before the watermark are dropped.

    >>> tiles(df, ...).writeStream.foreachBatch(tile_sink(store, "cp")).option("checkpointLocation", "cp").start()  # doctest: +SKIP
    """

    def write(df: DataFrame, batch: int) -> None:
        spark = df.sparkSession
        query = json.loads(_text(spark, f"{checkpoint}/metadata"))["id"]
        # The offset log: a version, then what Spark noted of the batch, then an offset per source.
        noted = json.loads(_text(spark, f"{checkpoint}/offsets/{batch}").splitlines()[1])
        store.write(df.toArrow(), query=query, batch=batch, watermark=int(noted["batchWatermarkMs"]) * 1000)
        if retention is not None:
            store.expire(retention, exactly=False)

    return write


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
