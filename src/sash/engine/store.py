"""The stored state of a bucket: few blobs, each written once, that leave whole.

A small state is one blob, rewritten. A larger one is a set of deltas: every commit writes what it added; eight deltas of
about one size become one (so a slice is rewritten once per factor of eight, and some dozen blobs are live); a delta whose
newest slice no window reaches any more is removed unread. Sizes are those of the live part, so deltas merge as they shrink.

What does not leave by age (sessions) leaves by closings: a commit tells until when the entries of a key are gone. When more than half
of what is stored is gone, all that is left is written anew.

Every commit has a number and a version of its own, and every delta says of which commits it is. Who holds the state of an earlier
commit of the same line is brought up to date with the deltas since (``since``): so the last few stay as they are.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import codec
from sash.engine.changes import stored_facts
from sash.engine.closings import Closings
from sash.engine.layout import RowView
from sash.engine.lookbacks import kept_rows
from sash.engine.pending import concat
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
LARGE = 8_000_000  # bytes from which on a delta is left as it is: it would be one value of the store, copied at once
ENTRIES = 1 << 18  # of one delta at most, but for a key that has more
RECENT = 6  # deltas of so many last commits are not merged
LINE = 32  # versions of last commits that are remembered


@dataclass
class Piece:
    """One stored blob: a run of slices, rows that are not final, or late rows to be flagged."""

    kind: str
    data: bytes
    quantiles: list[int]  # the times of its slices, oldest to newest: they tell how much of it is still needed
    first: int = 0  # the commits whose slices it holds
    last: int = 0

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
        self._number = 0  # of the last commit
        self._line: list[tuple[int, bytes]] = []  # numbers and versions of the last commits, the last one last
        self._delta: Run | None = None
        self.by_age = True  # entries leave by their age, not by closings
        self._closed: Closings | None = None  # since the last commit
        self._stored = 0  # entries in all pieces, if they do not leave by age
        self.rewrite = False  # what is stored is another definition's: the next commit writes all of it
        self._rows: list[pa.RecordBatch] = []
        self._facts: dict[str, Any] | None = None
        rolling = query.rolling
        # Rows that are kept by their number, or folded, are not dropped by age.
        self._forever = rolling is not None and (rolling.kept_rows > 0 or rolling.whole_past)

    # --- what the next commit has to store

    def added(self, run: Run) -> None:
        """Slices that are new since the last commit."""
        self._delta = run if self._delta is None else self._delta.merge(run, self.query.windows is not None)[0]

    def pending(self, batch: pa.RecordBatch) -> None:
        """Rows that came since the last commit."""
        self._rows.append(batch)

    def closed(self, closings: Closings) -> None:
        """Entries that have left, other than by their age."""
        self._closed = closings if self._closed is None else self._closed.merge(closings)
        if self._delta is not None:
            self._delta = closings.apply(self._delta)

    def trim(self, oldest: int, watermark: int | None, held: int) -> None:
        """Forget blobs that are new and already out of reach, so that a state that is never committed does not grow."""
        if self._delta is not None and len(self._delta) > 2 * held:
            self._delta = self._kept(self._delta, oldest, watermark)
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
        held: int = 0,
    ) -> Commit:
        """Bring the blobs up to date with the run and the pending rows, and tell what changed; ``held``: how many entries there are."""
        self._number += 1
        before = dict(self.pieces)
        delta, self._delta = self._delta, None
        rows, self._rows = self._not_final(self._rows, watermark), []
        self.pieces = {
            i: piece for i, piece in before.items() if piece.kind != "flag" and not piece.is_dead(self._bound(piece, oldest, watermark))
        }
        size = sum(piece.live(self._bound(piece, oldest, watermark)) for piece in self.pieces.values())
        fresh = [*self._slices(self._kept(delta, oldest, watermark)), *self._pending(rows)]
        closed, self._closed = self._closed, None
        rewrite, self.rewrite = self.rewrite, False
        self._stored += 0 if delta is None else len(delta)
        if rewrite or size + sum(len(piece.data) for piece in fresh) < SMALL or (not self.by_age and self._stored > 2 * held):
            if fresh or rewrite or closed is not None or len(self.pieces) < len(before):
                self.pieces = {}
                self._stored = held
                for piece in [*self._slices(run()), *self._pending(pending)]:
                    self._put(piece, 0)
        else:
            if closed is not None:
                fresh.append(self._closings(closed))
            for piece in fresh:
                self._put(piece, self._number)
            for kind in ("slices", "rows", "closed"):
                self._merge_classes(kind, oldest, watermark)
        if flagged:
            self._put(Piece("flag", pack_rows(self.query, concat(flagged)), [FOREVER]), self._number)
        put = {i: piece.data for i, piece in self.pieces.items() if i not in before}
        kinds = {i: (piece.kind, piece.quantiles, piece.first, piece.last) for i, piece in self.pieces.items()}
        # A fresh version: a worker that holds the state of exactly this commit may go on with it.
        version = secrets.token_bytes(16)
        self._line = [*self._line, (self._number, version)][-LINE:]
        if self._facts is None:
            self._facts = stored_facts(self.query)
        meta = counters | self._facts | {"pieces": kinds, "next": self._next, "line": self._line}
        sealed = codec.seal("bucket", self.query.fingerprint(), codec.encode(meta))
        return Commit(sealed, put, [i for i in before if i not in self.pieces], version)

    def load(
        self, stored: dict[str, Any], blobs: Mapping[int, bytes], oldest: int, watermark: int | None
    ) -> tuple[list[Run], list[pa.RecordBatch], list[pa.RecordBatch]]:
        """The runs, pending rows and flagged rows of a stored state."""
        self._adopt(stored, blobs)
        kinds = ("slices", "rows", "flag", "closed")
        by_kind = {kind: [piece for piece in self.pieces.values() if piece.kind == kind] for kind in kinds}
        runs = [self._run_of(piece) for piece in by_kind["slices"] if not piece.is_dead(oldest)]
        self._stored = sum(map(len, runs))
        for piece in by_kind["closed"]:
            closings = self._closings_of(piece)
            runs = [closings.apply(run) for run in runs]
        pending = self._not_final([unpack_rows(self.query, piece.data) for piece in by_kind["rows"]], watermark)
        return runs, pending, [unpack_rows(self.query, piece.data) for piece in by_kind["flag"]]

    def since(
        self, stored: dict[str, Any], blob: Callable[[int], bytes], oldest: int, watermark: int | None
    ) -> tuple[list[Run], list[pa.RecordBatch], list[pa.RecordBatch]] | None:
        """What a later commit of the same line has and this one does not; None if that can't be told apart.

        ``blob`` reads one; only those that are not here are read.
        """
        if not self._line or self._line[-1] not in [tuple(commit) for commit in stored.get("line", [])]:
            return None
        fresh = {i: piece for i, piece in stored["pieces"].items() if i not in self.pieces}
        if any(first <= self._number < last for _, _, first, last in fresh.values()):
            return None  # merged with slices that are here
        known, since = self._number, set(fresh)
        self._adopt(stored, {i: self.pieces[i].data if i in self.pieces else blob(i) for i in stored["pieces"]})
        new = [piece for i, piece in self.pieces.items() if i in since and piece.first > known]
        runs = [self._run_of(piece) for piece in new if piece.kind == "slices" and not piece.is_dead(oldest)]
        rows = self._not_final([unpack_rows(self.query, piece.data) for piece in new if piece.kind == "rows"], watermark)
        return runs, rows, [unpack_rows(self.query, piece.data) for piece in self.pieces.values() if piece.kind == "flag"]

    def _adopt(self, stored: dict[str, Any], blobs: Mapping[int, bytes]) -> None:
        self._next = stored["next"]
        self._line = [(number, version) for number, version in stored.get("line", [])]
        self._number = self._line[-1][0] if self._line else 0
        missing = sorted(i for i in stored["pieces"] if i not in blobs)
        if missing:
            raise ValueError(
                f"the blob {missing[0]} of this state is missing: there are {sorted(blobs)}. Pass all that were put and not removed."
            )
        # States of 0.1 do not say of which commits their pieces are.
        self.pieces = {i: Piece(kind, blobs[i], *rest) for i, (kind, *rest) in stored["pieces"].items()}

    # --- pieces

    def _put(self, piece: Piece, first: int, last: int | None = None) -> None:
        """Store a piece with the slices of all commits from the first to the last, which is this one unless told."""
        piece.first, piece.last = first, self._number if last is None else last
        self.pieces[self._next] = piece
        self._next += 1

    def _bound(self, piece: Piece, oldest: int, watermark: int | None) -> int:
        if piece.kind == "slices":
            return oldest
        return BEFORE_ALL if watermark is None else watermark + 1 if watermark < FOREVER else FOREVER

    def _run_of(self, piece: Piece) -> Run:
        return Run.unpack(self.query.layout, codec.unseal("slices", self.query.fingerprint(), piece.data))[0]

    def _closings(self, closings: Closings) -> Piece:
        return Piece("closed", codec.seal("closed", self.query.fingerprint(), closings.pack()), [FOREVER])

    def _closings_of(self, piece: Piece) -> Closings:
        return Closings.unpack(codec.unseal("closed", self.query.fingerprint(), piece.data))

    def _kept(self, run: Run | None, oldest: int, watermark: int | None) -> Run | None:
        if run is None:
            return None
        return run.keep(oldest) if self.query.rolling is None else kept_rows(self.query, run, watermark)

    def _slices(self, run: Run | None, most: int = 0) -> Iterator[Piece]:
        """A run in pieces: some keys in each where it is long."""
        first = 0
        while run is not None and first < len(run.keys):
            last = max(first + 1, int(np.searchsorted(run.starts, run.starts[first] + (most or ENTRIES), side="right")) - 1)
            times = run.times[run.starts[first] : run.starts[last]]
            if len(times):
                data = codec.seal("slices", self.query.fingerprint(), run.pack(first, last))
                yield Piece("slices", data, _quantiles(times, self._forever))
            first = last

    def _pending(self, batches: list[pa.RecordBatch]) -> Iterator[Piece]:
        if batches:
            batch = concat(batches)
            yield Piece("rows", pack_rows(self.query, batch), _quantiles(RowView(self.query, batch).times, False))

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
                if piece.kind == kind and piece.last <= self._number - RECENT:
                    size = max(piece.live(self._bound(piece, oldest, watermark)), LEAST)
                    if size < LARGE:
                        classes.setdefault(int(np.log(size) / np.log(FAN)), []).append(i)
            full = next((members for _, members in sorted(classes.items()) if len(members) >= FAN), None)
            if full is None:
                return
            merged = [self.pieces.pop(i) for i in full]
            if kind == "closed":
                made = [self._closings(reduce(Closings.merge, map(self._closings_of, merged)))]
            elif kind == "rows":
                made = [*self._pending(self._not_final([unpack_rows(self.query, piece.data) for piece in merged], watermark))]
            else:
                run = self._run_of(merged[0])
                for piece in merged[1:]:
                    run, _ = run.merge(self._run_of(piece), self.query.windows is not None)
                made = [*self._slices(self._kept(run, oldest, watermark), FAN * ENTRIES)]
            for piece in made:
                self._put(piece, min(piece.first for piece in merged), max(piece.last for piece in merged))
