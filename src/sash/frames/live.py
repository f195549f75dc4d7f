"""The engine of a stream as an object: for a service that is not on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sash import codec
from sash.agg import Aggregation
from sash.engine import Query, Slicer, bucket_of
from sash.engine.definition import Columns, define_rolling, define_windows
from sash.errors import DefinitionError
from sash.frames.arrow import engine_type
from sash.frames.kinds import frame_of
from sash.time import timestamp

__all__ = ["Live"]


class Live:
    """Windows or look-backs over batches that go on: feed rows, advance the watermark, take what is final.

    The same definition as `windows` (range=, slide= or session=) or `rolling` (lookbacks=), the same engine as in a Spark stream. A
    row is late if its time is at or before the watermark of the last advance; `late=` says what becomes of it. `save()` gives the
    state as bytes, for `Live.load(data, ...)` with the same definition.

    Cost: what came and what comes out; not what is held.

    >>> import pyarrow as pa
    >>> from sash import Live, agg
    >>> schema = pa.schema([("at", pa.timestamp("s")), ("zone", pa.string()), ("fare", pa.int64())])
    >>> live = Live(schema, time="at", key="zone", range="2m", slide="1m", aggs={"fares": agg.sum("fare")})
    >>> live.feed(pa.table({"at": pa.array([0, 70, 80], schema.field("at").type), "zone": ["a", "b", "a"], "fare": [5, 7, 8]}))
    >>> [row["fares"] for batch in live.advance("1970-01-01 00:02:00") for row in batch.to_pylist() if row["zone"] == "a"]
    [5, 13]
    >>> live.keys, live.late
    (2, 0)
    """

    def __init__(
        self,
        schema: Any,
        *,
        time: str,
        key: str | Sequence[str] | None = None,
        aggs: Mapping[str, Aggregation],
        range: Any = None,
        slide: Any = None,
        session: Any = None,
        lookbacks: Iterable[Any] | None = None,
        offset: Any = None,
        emit: str = "final",
        closed: str | None = None,
        delay: Any = None,
        late: str = "drop",
        tie: str | None = None,
        empty: str = "drop",
        tz: str | None = None,
    ) -> None:
        self.query = _define(
            _schema_of(schema),
            {"time": time, "key": key, "aggs": aggs, "emit": emit, "late": late, "tie": tie},
            {"range": range, "slide": slide, "session": session, "offset": offset, "tz": tz, "empty": None if empty == "drop" else empty},
            {"lookbacks": lookbacks, "closed": closed, "delay": delay},
        )
        self._slicer = Slicer(self.query, 1)
        self._bucket = bucket_of(self.query)(self.query)
        self._blobs: dict[int, bytes] = {}
        # Rows wait here for the next advance: a bucket stores what its last advance left, and some ways to emit tell what came since.
        self._fed: list[bytes] = []

    def feed(self, batch: Any) -> None:
        """Take rows: any frame with the columns of the schema, in any order of rows and columns."""
        frame = frame_of(batch)
        for name in self.query.schema.names:
            if name not in frame.names:
                raise DefinitionError(f"the batch has no column {name!r}. Its columns are {', '.join(map(str, frame.names))}.")
        rows = frame.batch(self.query.schema, self.query.keys, self.query.time)
        self._fed += [packed.blob for packed in self._slicer.pack(rows)] if rows.num_rows else []

    def advance(self, watermark: Any = None) -> list[pa.RecordBatch]:
        """Move the watermark and give what is final by it; None: everything, and every later row is late.

        A watermark does not go back: an older one changes nothing.
        """
        to = None if watermark is None else timestamp(watermark)
        fed, self._fed = self._fed, []
        for blob in fed:
            self._bucket.add(blob)
        return self._bucket.advance(to)

    def save(self) -> bytes:
        """The state as bytes; what has been fed is in it, what has come out is not."""
        commit = self._bucket.commit()
        for number in commit.remove:
            self._blobs.pop(number, None)
        self._blobs |= commit.put
        return codec.seal("live", self.query.fingerprint(), codec.encode((commit.meta, sorted(self._blobs.items()), self._fed)))

    @classmethod
    def load(cls, data: bytes, schema: Any, **definition: Any) -> Live:
        """Go on from saved bytes, with the definition they were saved under; a ValueError names what differs in another."""
        live = cls(schema, **definition)
        payload = codec.unseal("live", None, data)
        with codec.refusing():
            meta, blobs, live._fed = codec.decode(payload)
            live._blobs = dict(blobs)
            live._bucket = bucket_of(live.query).load(live.query, meta, live._blobs)
        return live

    @property
    def watermark(self) -> int | None:
        """Where the last advance stopped, in microseconds; None before the first."""
        return self._bucket.watermark

    @property
    def late(self) -> int:
        """How many rows have come late. This and the counts below are of the last advance: rows fed since are counted by the next."""
        return self._bucket.late

    @property
    def keys(self) -> int:
        """How many keys are held."""
        return self._bucket.keys

    @property
    def entries(self) -> int:
        """How many slices, or rows that some look-back may still need, are held."""
        return self._bucket.slices


def _schema_of(given: Any) -> pa.Schema:
    """An Arrow schema, or that of a frame."""
    if isinstance(given, pa.Schema):
        return pa.schema([(field.name, engine_type(field.type)) for field in given])
    frame = frame_of(given)
    return frame.schema(frame.names)


def _define(schema: pa.Schema, both: dict[str, Any], windows: dict[str, Any], rolling: dict[str, Any]) -> Query:
    columns = Columns(schema.names, schema)
    if rolling["lookbacks"] is None:
        if rolling["closed"] is not None or rolling["delay"] is not None:
            raise DefinitionError("closed= and delay= are about look-backs, and there are none. Add lookbacks=[...], or leave them out.")
        return define_windows(columns, **both, **{name: value for name, value in windows.items() if value is not None}, streaming=True)
    if given := [name for name, value in windows.items() if value is not None]:
        raise DefinitionError(f"lookbacks= and {given[0]}= do not go together: one Live has windows or look-backs. Drop one.")
    return define_rolling(columns, **both, **rolling, streaming=True)
