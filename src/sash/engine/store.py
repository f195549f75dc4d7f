"""The stored state of a bucket: few blobs, each written once, that leave whole.

A small state is one blob, rewritten. A larger one is a set of deltas: every commit writes what it added; eight deltas of
about one size become one (so a slice is rewritten once per factor of eight, and some dozen blobs are live); a delta whose
newest slice no window reaches any more is removed unread. Sizes are those of the live part, so deltas merge as they shrink.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import codec
from sash.engine.layout import RowView
from sash.engine.query import FOREVER, Commit, Query
from sash.engine.run import BEFORE_ALL, Run
from sash.engine.slicer import pack_rows, unpack_rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Store"]

SMALL = 100_000  # bytes below which the whole state is one blob
# This many deltas of one size class become one. With 4, windows as long as three micro-batches had their deltas merged just
# before they left: 2.5 MB written again in every third micro-batch of 10,000 keys.
FAN = 8
LEAST = 4_096  # deltas below this are of one class


@dataclass
class Piece:
    """One stored blob: a run of slices, rows that are not final, or late rows to be flagged."""

    kind: str
    data: bytes
    quantiles: list[int]  # of its slices' times, oldest to newest: how much of it is alive

    def live(self, oldest: int) -> float:
        return len(self.data) * sum(q >= oldest for q in self.quantiles) / len(self.quantiles)

    def is_dead(self, oldest: int) -> bool:
        return self.quantiles[-1] < oldest


def _quantiles(times: np.ndarray[Any, Any], forever: bool) -> list[int]:
    if forever:
        return [FOREVER]
    sample = np.sort(times[:: max(1, len(times) // 5_000)])
    return [*(int(t) for t in sample[np.linspace(0, len(sample) - 1, 17).astype(np.int64)]), int(times.max())]


class Store:
    """Which blobs are stored, and what is still to be."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.pieces: dict[int, Piece] = {}
        self._next = 0
        self._delta: Run | None = None
        self.whole = False  # never in deltas: for state that does not leave by age
        self.dirty = False  # entries left the state
        self._rows: list[pa.RecordBatch] = []
        rolling = query.rolling
        # Rows that are kept by number, or folded, do not leave by age.
        self._forever = rolling is not None and (rolling.kept_rows > 0 or rolling.whole_past)

    # --- what the next commit has to store

    def added(self, run: Run) -> None:
        """Slices that are new since the last commit."""
        self._delta = run if self._delta is None else self._delta.merge(run, self.query.windows is not None)[0]

    def pending(self, batch: pa.RecordBatch) -> None:
        """Rows that came since the last commit."""
        self._rows.append(batch)

    def trim(self, oldest: int, watermark: int, held: int) -> None:
        """Forget what is new and already over, so that a state that is never committed does not grow."""
        if self._delta is not None and len(self._delta) > 2 * held:
            self._delta = self._kept(self._delta, oldest)
        self._rows = self._not_final(self._rows, watermark)

    # --- bytes

    def commit(
        self,
        counters: dict[str, Any],
        run: Callable[[], Run],
        pending: list[pa.RecordBatch],
        flagged: list[pa.RecordBatch],
        oldest: int,
        watermark: int | None,
    ) -> Commit:
        """Bring the blobs up to date with the run and the pending rows, and tell what changed."""
        before = dict(self.pieces)
        delta, self._delta = self._delta, None
        rows, self._rows = self._not_final(self._rows, watermark), []
        self.pieces = {
            i: piece for i, piece in before.items() if piece.kind != "flag" and not piece.is_dead(self._bound(piece, oldest, watermark))
        }
        size = sum(piece.live(self._bound(piece, oldest, watermark)) for piece in self.pieces.values())
        fresh = [piece for piece in (self._slices(self._kept(delta, oldest)), self._pending(rows)) if piece is not None]
        dirty, self.dirty = self.dirty, False
        if self.whole or size + sum(len(piece.data) for piece in fresh) < SMALL:
            if fresh or dirty or len(self.pieces) < len(before):
                self.pieces = {}
                self._put(self._slices(run()))
                self._put(self._pending(pending))
        else:
            for piece in fresh:
                self._put(piece)
            for kind in ("slices", "rows"):
                self._merge_classes(kind, oldest, watermark)
        self._put(None if not flagged else Piece("flag", pack_rows(self.query, _concat(flagged)), [FOREVER]))
        put = {i: piece.data for i, piece in self.pieces.items() if i not in before}
        kinds = {i: (piece.kind, piece.quantiles) for i, piece in self.pieces.items()}
        # A fresh version: who still holds the state of this very commit may go on with it.
        meta = counters | {"pieces": kinds, "next": self._next, "version": os.urandom(8)}
        return Commit(codec.seal("bucket", self.query.fingerprint(), codec.encode(meta)), put, [i for i in before if i not in self.pieces])

    def load(
        self, stored: dict[str, Any], blobs: Mapping[int, bytes], oldest: int, watermark: int | None
    ) -> tuple[list[Run], list[pa.RecordBatch], list[pa.RecordBatch]]:
        """The runs, pending rows and flagged rows of a stored state."""
        self._next = stored["next"]
        for i, (kind, quantiles) in stored["pieces"].items():
            if i not in blobs:
                raise ValueError(
                    f"the blob {i} of this state is missing: there are {sorted(blobs)}. Pass all that were put and not removed."
                )
            self.pieces[i] = Piece(kind, blobs[i], quantiles)
        by_kind = {kind: [piece for piece in self.pieces.values() if piece.kind == kind] for kind in ("slices", "rows", "flag")}
        runs = [self._run_of(piece) for piece in by_kind["slices"] if not piece.is_dead(oldest)]
        pending = self._not_final([unpack_rows(self.query, piece.data) for piece in by_kind["rows"]], watermark)
        return runs, pending, [unpack_rows(self.query, piece.data) for piece in by_kind["flag"]]

    # --- pieces

    def _put(self, piece: Piece | None) -> None:
        if piece is not None:
            self.pieces[self._next] = piece
            self._next += 1

    def _bound(self, piece: Piece, oldest: int, watermark: int | None) -> int:
        if piece.kind == "slices":
            return oldest
        return BEFORE_ALL if watermark is None else watermark + 1 if watermark < FOREVER else FOREVER

    def _run_of(self, piece: Piece) -> Run:
        return Run.unpack(self.query.layout, codec.unseal("slices", self.query.fingerprint(), piece.data))[0]

    def _kept(self, run: Run | None, oldest: int) -> Run | None:
        if run is None:
            return None
        rolling = self.query.rolling
        return run.keep(oldest) if rolling is None else run.keep(oldest, rolling.kept_rows, rolling.whole_past)

    def _slices(self, run: Run | None) -> Piece | None:
        if run is None or not len(run):
            return None
        return Piece("slices", codec.seal("slices", self.query.fingerprint(), run.pack()), _quantiles(run.times, self._forever))

    def _pending(self, batches: list[pa.RecordBatch]) -> Piece | None:
        if not batches:
            return None
        batch = _concat(batches)
        return Piece("rows", pack_rows(self.query, batch), _quantiles(RowView(self.query, batch).times, False))

    def _not_final(self, batches: list[pa.RecordBatch], watermark: int | None) -> list[pa.RecordBatch]:
        import pyarrow as pa

        if watermark is None:
            return batches
        kept = (batch.filter(pa.array(RowView(self.query, batch).times > watermark)) for batch in batches)
        return [batch for batch in kept if batch.num_rows]

    def _merge_classes(self, kind: str, oldest: int, watermark: int | None) -> None:
        while True:
            classes: dict[int, list[int]] = {}
            for i, piece in self.pieces.items():
                if piece.kind == kind:
                    size = max(piece.live(self._bound(piece, oldest, watermark)), LEAST)
                    classes.setdefault(int(np.log(size) / np.log(FAN)), []).append(i)
            full = next((members for _, members in sorted(classes.items()) if len(members) >= FAN), None)
            if full is None:
                return
            merged = [self.pieces.pop(i) for i in full]
            if kind == "rows":
                self._put(self._pending(self._not_final([unpack_rows(self.query, piece.data) for piece in merged], watermark)))
            else:
                run = self._run_of(merged[0])
                for piece in merged[1:]:
                    run, _ = run.merge(self._run_of(piece), self.query.windows is not None)
                self._put(self._slices(self._kept(run, oldest)))


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
