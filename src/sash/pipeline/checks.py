"""What would go wrong only while a pipeline runs, found before it starts: paths, stores, checkpoints, types at a sink."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException
from pyspark.sql import types as T

from sash import codec
from sash.engine import check_change
from sash.errors import CheckpointMismatch, DefinitionError
from sash.pipeline.columns import KeyErrors
from sash.pipeline.document import FILES, LETTERS, Pipeline, Section
from sash.pipeline.ends import Sink
from sash.pipeline.failures import first_line
from sash.pipeline.replacing import STREAM_LOG, Stretch, hidden
from sash.spark.started import query_of
from sash.spark.state import stored_meta
from sash.spark.tile_sink import local_path
from sash.wheel import TileStore
from sash.wheel.errors import TileStoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["of_batch_folder", "of_checkpoint", "of_places", "of_sink", "of_store", "of_stream_folder"]

_PLAIN: Final = (T.NumericType, T.StringType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)


def of_places(pipeline: Pipeline) -> list[tuple[int, str]]:
    """Find paths that can't be written."""
    places: list[tuple[tuple[str | int, ...], str | None]] = [(("checkpoint",), pipeline.checkpoint)]
    for section in pipeline.sections:
        if section.sink is not None:
            places += [((*section.sink.place, "path"), section.sink.path), ((*section.sink.place, "batch_path"), section.sink.batch_path)]
        else:
            places.append(((*section.place, "path"), section.store))
    if pipeline.source.dead_letters is not None:
        places.append((("source", LETTERS, "path"), pipeline.source.dead_letters.path))
    said = [(pipeline.line(place), _unwritable(path)) for place, path in places if path is not None]
    return [(line, why) for line, why in said if why is not None]


def _unwritable(path: str) -> str | None:
    """Why a folder can't be written; None where it can, or where it is not on this machine."""
    try:
        local = local_path(path)
    except DefinitionError as error:
        return str(error)
    if local is None:
        return None
    there = next(parent for parent in (local, *local.parents) if parent.exists())
    if not there.is_dir():
        return f"{path} can't be written: {there} is a file. Give a folder, or a path where none is yet."
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{path} can't be written: {there} is not this user's to write. Give another folder, or allow it."
    return None


def of_sink(spark: SparkSession, df: DataFrame, sink: Sink) -> None:
    """Refuse columns that a format can't hold, by writing none of them."""
    if sink.format not in FILES:
        return
    if sink.format == "text" and [field.dataType for field in df.schema.fields] != [T.StringType()]:
        said = f"a sink of text files takes one column of text, and there are {', '.join(df.columns)}. "
        raise KeyErrors([("format", said + 'Make one: select = ["to_json(struct(*)) as value"].')])
    if all(isinstance(field.dataType, _PLAIN) for field in df.schema.fields):
        return
    with tempfile.TemporaryDirectory(prefix="sash-check-") as folder:
        for field in df.schema.fields:
            try:
                spark.createDataFrame([], T.StructType([field])).write.format(sink.format).save(f"{folder}/{field.name.encode().hex()}")
            except AnalysisException as error:
                said = f"{sink.format} files can't hold the column {field.name}, {field.dataType.simpleString()}: {first_line(error)} "
                raise KeyErrors([("format", said + f'Use another format, or select = ["to_json({field.name}) as ...", ...].')]) from None


def of_stream_folder(sink: Sink) -> None:
    """Refuse to let a stream write where batches have written: its log would hide their files from Spark."""
    local = local_path(sink.path) if sink.format in FILES and sink.path is not None else None
    if local is None or not local.is_dir() or (local / STREAM_LOG).exists():
        return
    if any(Stretch.of_name(path.name) for path in local.iterdir()):
        said = f"{sink.path} has files of sash run --batch, which the log of a stream would hide. "
        raise KeyErrors([("path", said + 'Give batches a folder of their own: batch_path = "...", and move their files there.')])


def of_batch_folder(sink: Sink) -> None:
    """Refuse to let a batch write where a stream does: nobody would see it."""
    path = sink.batch_path or sink.path
    local = local_path(path) if sink.format in FILES and path is not None else None
    if local is not None and (local / STREAM_LOG).exists():
        raise KeyErrors([("path", hidden(str(path)))])


def of_store(section: Section, checkpoint: str) -> None:
    """Refuse a store of another definition, or one that another query writes; nothing is made or changed."""
    asked = section.asked
    assert section.store is not None
    try:
        store = TileStore.found(section.store, aggs=asked["aggs"], grain=asked["grain"], key=asked["key"])
    except TileStoreError as error:
        raise KeyErrors([("path", str(error))]) from error
    local = local_path(checkpoint)
    if store is None or local is None or store.query is None or store.writer_is_free:
        return
    query = _query_id(local)
    if query != store.query:
        which = f"{checkpoint} is of the query {query}" if query else f"{checkpoint} begins a new one"
        raise DefinitionError(
            f"path={section.store} is written by the query {store.query}, and {which}. A store has one writer: "
            "use another folder, or go on from the checkpoint that this one was written with, or release() it first."
        )


def _query_id(checkpoint: Path) -> str | None:
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except (OSError, ValueError, KeyError):
        return None


def of_checkpoint(spark: SparkSession, result: DataFrame, checkpoint: str) -> None:
    """Refuse the checkpoint of a definition that this one can't go on from: without new rows, Spark would tell nothing."""
    local, query = local_path(checkpoint), query_of(result)
    if query is None or local is None or not any((local / "commits").glob("[0-9]*")):
        return
    stored = stored_meta(spark, str(local))
    meta = None if stored is None else codec.decode(codec.unseal("bucket", None, stored))
    if meta is not None and meta["definition"] != query.definition:
        try:
            check_change(query, meta)
        except ValueError as error:
            raise CheckpointMismatch(f"{checkpoint}: {error}") from None
