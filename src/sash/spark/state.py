"""The state of a query, read from its checkpoint while it runs or after."""

from __future__ import annotations

import datetime as dt
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from sash import codec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIELDS = struct.Struct("<16sqqqqq16s")
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_COLUMNS = "bucket int, watermark timestamp, keys long, slices long, late long, blobs long, bytes long, definition map<string,string>"


class Header(NamedTuple):
    """What stands before a bucket's own meta value in the state."""

    version: bytes  # new with every commit
    timer: int  # in ms
    buckets: int
    bucket: int
    keys: int
    slices: int
    fingerprint: bytes

    def pack(self) -> bytes:
        """Write it."""
        return _FIELDS.pack(*self)

    @classmethod
    def split(cls, data: bytes) -> tuple[Header, bytes]:
        """Read it, and what follows."""
        return cls(*_FIELDS.unpack_from(data)), data[_FIELDS.size :]


def read_state(spark: SparkSession, checkpoint: str, operator: int = 0) -> DataFrame:
    """Read the state of a windows(), rolling() or tiles() query: a row per bucket.

    Gives the watermark it stands at, how many keys and slices it holds, how many late rows it has seen, the number and bytes of
    its blobs, and the definition it was made with. `operator` counts the stateful operators of the query, the last one first.

    >>> read_state(spark, "checkpoints/hourly").show()  # doctest: +SKIP
    """

    def load(variable: str) -> DataFrame:
        reader = spark.read.format("statestore").option("stateVarName", variable).option("operatorId", operator)
        return reader.load(checkpoint)

    blobs = load("blobs").selectExpr("key.bucket as label", "length(user_map_value.blob) as size")
    sizes = {row["label"]: (row["n"], row["total"]) for row in blobs.groupBy("label").agg(*_sums()).collect()}
    meta = load("meta").selectExpr("key.bucket as label", "value.meta as meta").collect()
    rows = [_row(bytes(row["meta"]), *sizes.get(row["label"], (0, 0))) for row in meta]
    return spark.createDataFrame(sorted(rows), _COLUMNS)


def _sums() -> list[Any]:
    from pyspark.sql import functions as F

    return [F.count("size").alias("n"), F.sum("size").alias("total")]


def _row(data: bytes, blobs: int, size: int) -> tuple[Any, ...]:
    header, meta = Header.split(data)
    stored = codec.decode(codec.unseal("bucket", None, meta))
    watermark = _EPOCH + stored["watermark"] * _MICROSECOND
    definition = {name: str(value) for name, value in stored["definition"].items()}
    return (header.bucket, watermark, header.keys, header.slices, stored["late"], blobs, size + len(data), definition)
