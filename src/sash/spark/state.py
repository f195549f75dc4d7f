"""The state of a query, read from its checkpoint while it runs or after."""

from __future__ import annotations

import datetime as dt
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

from sash import codec
from sash.time import duration_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIELDS = struct.Struct("<16sqqqqq16s")
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

META = -1  # the number, in a bucket's map of blobs, of the one that says what the others are

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

    >>> state = read_state(spark, "checkpoint")          # doctest: +SKIP
    >>> state.agg({"keys": "sum"}).first()[0]            # doctest: +SKIP
    3
    """

    reader = spark.read.format("statestore").option("stateVarName", "state").option("operatorId", operator)
    blobs = reader.load(checkpoint).selectExpr("key.bucket as label", "user_map_key.id as id", "user_map_value.blob as blob").cache()
    try:
        others = blobs.filter(f"id != {META}").groupBy("label").agg(F.count("*").alias("n"), F.sum(F.length("blob")).alias("total"))
        sizes = {row["label"]: (row["n"], row["total"]) for row in others.collect()}
        meta = blobs.filter(f"id = {META}").collect()
    finally:
        blobs.unpersist()
    rows = [_row(bytes(row["blob"]), *sizes.get(row["label"], (0, 0))) for row in meta]
    return spark.createDataFrame(sorted(rows), _COLUMNS)


def stored_meta(spark: SparkSession, checkpoint: str) -> bytes | None:
    """Read what some bucket of a checkpoint says of its state; None if the checkpoint holds none of ours."""
    from pyspark.errors import PySparkException

    try:
        reader = spark.read.format("statestore").option("stateVarName", "state").option("operatorId", 0)
        found = reader.load(checkpoint).filter(f"user_map_key.id = {META}").select("user_map_value.blob").take(1)
    except PySparkException:  # no batch was committed yet, or the stateful operator is another's
        return None
    return Header.split(bytes(found[0][0]))[1] if found else None


def _row(data: bytes, blobs: int, size: int) -> tuple[Any, ...]:
    header, meta = Header.split(data)
    stored = codec.decode(codec.unseal("bucket", None, meta))
    watermark = _EPOCH + stored["watermark"] * _MICROSECOND
    return (header.bucket, watermark, header.keys, header.slices, stored["late"], blobs, size + len(data), told(stored["definition"]))


def told(definition: dict[str, Any]) -> dict[str, str]:
    """Tell a stored definition as its writer would: lengths of time in words, aggregations as they are written, nothing left empty.

    >>> told({"key": ("zone",), "tie": None, "aggregation n": ("agg.count()", b"print"), "range": 300_000_000})
    {'key': 'zone', 'aggregation n': 'agg.count()', 'range': '5m'}
    """
    lengths = {"session", "delay"} | (set() if "calendar" in definition else {"range", "slide", "offset"})
    out = {}
    for name, value in definition.items():
        if value is None or value == ():
            continue
        if name.startswith("aggregation "):
            out[name] = str(value[0])
        elif name in lengths and isinstance(value, int):
            out[name] = duration_text(value)
        elif name in ("look-backs", "ranges"):
            out[name] = ", ".join(str(label) for label, _ in value)
        else:
            out[name] = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return out
