"""The stateful operator: one group per bucket, the native engine inside, its state in few blobs.

    blobs of the batch --add--> Bucket --advance(watermark)--> record batches
                                  |  ^
                         commit() v  | load()
                      state: a map of blobs, the one with the number META says what the others are

The state of a bucket is what Bucket.commit() gives, and beside it a header: the number of buckets, the definition's
fingerprint, the pending timer, and a version that is new with every commit. A decoded Bucket may stay in this process for the
next micro-batch; it is used again if the version in the state is the one it was committed under, or one that the state says it
came from: then the blobs written since bring it up to date, for a partition moves between processes all the time. A batch that
Spark runs again reads an older version, and reloads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from sash.engine import Bucket, Commit, Query, begun, bucket_of, commits_of
from sash.errors import CheckpointMismatch
from sash.spark.buckets import spark_hash
from sash.spark.packing import operator_rows
from sash.spark.state import META, Header

# Types, not text: Spark's worker asks the JVM to parse text, in every task.
_ID = T.StructType([T.StructField("id", T.IntegerType())])
_BLOB = T.StructType([T.StructField("blob", T.BinaryType())])

_NO_TIMER = -1
_MILLI = 1000


class _Cache:
    """The decoded buckets of this worker process, least recently used first."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._buckets: OrderedDict[bytes, Bucket] = OrderedDict()

    def take(self, version: bytes) -> Bucket | None:
        """Remove and return the bucket committed under `version`: while it changes, it is the state of no commit."""
        return self._buckets.pop(version, None)

    def take_last(self, line: list[tuple[int, bytes]]) -> Bucket | None:
        """The same for the last of these commits that a bucket is held of."""
        return next((bucket for _, version in reversed(line) if (bucket := self.take(version)) is not None), None)

    def put(self, version: bytes, bucket: Bucket) -> None:
        self._buckets[version] = bucket
        while len(self._buckets) > self._size:
            self._buckets.popitem(last=False)


_cache = _Cache()


def header_of(bucket: Bucket, commit: Commit, number: int, buckets: int, timer: int = _NO_TIMER) -> Header:
    """What stands before the meta value of a commit in the state."""
    return Header(commit.version, timer, buckets, number, bucket.keys, bucket.slices, bucket.query.fingerprint())


class BucketProcessor(StatefulProcessor):  # type: ignore[misc]
    """Feed the blobs of a bucket to its engine, emit what the watermark closed, keep the rest as state."""

    def __init__(self, query: Query, buckets: int, cache: bool) -> None:
        self._query = query
        self._buckets = buckets
        self._use_cache = cache

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._results = self._query.output_schema()
        # One variable: each costs column families in RocksDB, and round trips in every task before the first row.
        self._state = handle.getMapState("state", _ID, _BLOB)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        bucket, timer = self._open()
        late = bucket.late
        # Lateness is judged by the watermark of the last advance, that is the previous batch's: so all rows come before advance.
        for frame in rows:
            for blob in frame["blob"]:
                if blob:
                    bucket.add(blob)
        held, out = self._close(key, bucket, timer, timerValues.getCurrentWatermarkInMs())
        return operator_rows(self._results, (bucket.late - late, held.keys, held.slices), out)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        bucket, _ = self._open()
        # Spark deletes the timer that fired; deleting it here too would cost a call.
        held, out = self._close(key, bucket, _NO_TIMER, timerValues.getCurrentWatermarkInMs())
        return operator_rows(self._results, (0, held.keys, held.slices), out)

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        """Take over the stored state that history gave a bucket, a blob a row: only in the first micro-batch of a query."""
        due = timerValues.getCurrentWatermarkInMs() + 1
        for number, blob in zip(initialState["id"], initialState["blob"], strict=True):
            data = bytes(blob)
            if number == META:
                header, meta = Header.split(data)
                self._handle.registerTimer(due)
                data = header._replace(timer=due).pack() + meta
            self._state.updateValue((int(number),), (data,))

    def close(self) -> None:
        pass

    def _open(self) -> tuple[Bucket, int]:
        state = self._state.getValue((META,))
        if state is None:
            return begun(self._query), _NO_TIMER
        data = bytes(state[0])
        header, meta = Header.split(data)
        if header.buckets != self._buckets:
            raise CheckpointMismatch(
                f"this checkpoint was started with {header.buckets} buckets and the query now has {self._buckets}. "
                f"Set spark.sash.buckets to {header.buckets}."
            )
        # The worker may hold a bucket of the old definition under the same version: load() tells the user what changed.
        known = self._use_cache and header.fingerprint == self._query.fingerprint()
        cached = (_cache.take(header.version) or self._caught_up(meta)) if known else None
        return cached or self._load(meta), header.timer

    def _caught_up(self, meta: bytes) -> Bucket | None:
        """A bucket of an earlier commit, brought up to date."""
        bucket = _cache.take_last(commits_of(meta))
        if bucket is None or bucket.query.fingerprint() != self._query.fingerprint():  # of before the definition changed
            return None
        return bucket if bucket.catch_up(meta, lambda i: bytes(self._state.getValue((i,))[0])) else None

    def _load(self, meta: bytes) -> Bucket:
        blobs = {key[0]: bytes(value[0]) for key, value in self._state.iterator() if key[0] != META}
        try:
            return bucket_of(self._query).load(self._query, meta, blobs)
        except ValueError as error:
            raise CheckpointMismatch(str(error)) from error

    def _close(self, key: Any, bucket: Bucket, timer: int, watermark: int) -> tuple[Header, list[pa.RecordBatch]]:
        out = bucket.advance(watermark * _MILLI)
        commit = bucket.commit()
        for gone in commit.remove:
            self._state.removeKey((gone,))
        for blob_id, blob in commit.put.items():
            self._state.updateValue((blob_id,), (blob,))
        # The next movement of the watermark, however small, must reach this bucket also without rows of its own:
        # it may close windows, and it decides which rows of the next batch are late.
        due = watermark + 1
        if timer != due:
            if timer != _NO_TIMER:
                self._handle.deleteTimer(timer)
            self._handle.registerTimer(due)
        number = spark_hash(int(key[0]))  # in Spark 4.0 it is one of NumPy's
        header = header_of(bucket, commit, number, self._buckets, due)
        self._state.updateValue((META,), (header.pack() + commit.meta,))
        if self._use_cache:
            _cache.put(header.version, bucket)
        return header, out
