"""A query that is started on a checkpoint which its definition can't go on from is refused at once, not with its first rows.

Spark asks a stateful operator for nothing before there are rows, and has no hook that may refuse a start. So the DataFrame that a
stream is planned as has a writer whose `start` compares the checkpoint with the definition, and stops the query if they do not fit. A
DataFrame made of it (by select, filter, ...) has Spark's own writer again: its query is refused with the first micro-batch.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming import DataStreamWriter

from sash import codec
from sash.engine import Query, check_change
from sash.errors import CheckpointMismatch
from sash.spark.state import stored_meta
from sash.spark.tile_sink import local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLANNED: Final = "sash.planned"  # in the metadata of a result column: which of the queries planned here it is of
_FILE: Final = "sash.definition"  # in a checkpoint on a local disk: the fingerprint of the definition last started, to look no further
_MOST: Final = 1_000
_queries: OrderedDict[str, Query] = OrderedDict()


def planned(query: Query, name: str) -> dict[str, str]:
    """Remember a query until it is started; gives what its result carries along to be found again."""
    _queries[name] = query
    while len(_queries) > _MOST:
        _queries.popitem(last=False)
    return {_PLANNED: name}


def refusing(df: DataFrame) -> DataFrame:
    """The same DataFrame, with a writer that refuses a checkpoint of another definition; over Spark Connect as it is."""
    return Refusing(df._jdf, df.sparkSession) if isinstance(df, ClassicDataFrame) else df


class Refusing(ClassicDataFrame):  # type: ignore[misc]
    """A DataFrame with results of a stream."""

    @property
    def writeStream(self) -> RefusingWriter:
        """Spark's writer, which looks at the checkpoint when it starts."""
        return RefusingWriter(self)


class RefusingWriter(DataStreamWriter):  # type: ignore[misc]
    """Spark's writer; a query on a checkpoint that its definition can't go on from does not start."""

    def start(self, *args: Any, **options: Any) -> Any:
        """Start the query; CheckpointMismatch names what the checkpoint lacks."""
        return self._checked(super().start(*args, **options))

    def toTable(self, *args: Any, **options: Any) -> Any:
        """Start the query into a table; CheckpointMismatch names what the checkpoint lacks."""
        return self._checked(super().toTable(*args, **options))

    def _checked(self, running: Any) -> Any:
        query = query_of(self._df)
        if query is not None:
            try:
                _check(query, running, self._spark)
            except CheckpointMismatch:
                running.stop()
                raise
        return running


def query_of(df: DataFrame) -> Query | None:
    """The one query that a DataFrame's results are of; None if there is none, or more than one."""
    found = {field.metadata[_PLANNED] for field in df.schema.fields if _PLANNED in (field.metadata or {})}
    return _queries.get(found.pop()) if len(found) == 1 else None


def _stored(spark: Any, checkpoint: str, folder: Path | None) -> bytes | None:
    if folder is None or quote(str(folder)) == str(folder):
        return stored_meta(spark, checkpoint if folder is None else str(folder))
    # Spark's reader of states looks for a path with a space under its name as a URI, and finds nothing there.
    with tempfile.TemporaryDirectory(prefix="sash-") as plain:
        link = Path(plain) / "checkpoint"
        link.symlink_to(folder.absolute())
        return stored_meta(spark, str(link))


def _check(query: Query, running: Any, spark: Any) -> None:
    checkpoint = str(running._jsq.streamingQuery().resolvedCheckpointRoot())
    folder = local_path(checkpoint)
    known = None if folder is None else folder / _FILE
    mine = query.fingerprint().hex()
    if known is not None and known.exists() and known.read_text() == mine:
        return
    new = folder is not None and not any((folder / "commits").glob("*"))
    stored = None if new else _stored(spark, checkpoint, folder)
    if stored is not None:
        meta = codec.decode(codec.unseal("bucket", None, stored))
        if meta["definition"] != query.definition:
            try:
                check_change(query, meta)
            except ValueError as error:
                raise CheckpointMismatch(str(error)) from error
    if known is not None and known.parent.exists():
        known.write_text(mine)
